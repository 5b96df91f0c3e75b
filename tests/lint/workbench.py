"""A project whose hooks are linted, in this process."""

import json
import os
from pathlib import Path
from typing import Any

from wave_agent.lint.check import LintReport, check


class Workbench:
    def __init__(self, directory: Path) -> None:
        self.project = directory / "project"
        self.project.mkdir()
        self.home = directory / "home"

    def write(self, name: str, text: str, mode: int = 0o755) -> Path:
        file = self.project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
        return file

    def settings(self, hooks: Any, name: str = ".wave/settings.json") -> Path:
        return self.write(name, json.dumps({"hooks": hooks}, indent=2), 0o644)

    def hook(self, command: Any, event: str = "PreToolUse", name: str = ".wave/settings.json", **more: Any) -> Path:
        entry = command if isinstance(command, dict) else {"command": command, **more}
        return self.settings({event: [{"hooks": [entry]}]}, name)

    def check(self, *paths: str) -> LintReport:
        return check(str(self.project), self.home, [str(self.project / path) for path in paths], which=self.which)

    def which(self, program: str) -> str | None:
        """A machine that has what hooks are usually written with, whatever this one has."""
        name = os.path.basename(program)
        return None if name.startswith("missing") else f"/usr/bin/{name}"

    def codes(self, *paths: str) -> list[str]:
        return [one.code for one in self.check(*paths).findings]

    def script(self, text: str, event: str = "PreToolUse", *, name: str = "hook.sh", **more: Any) -> list[str]:
        """The codes for a script that one hook runs, less the advice."""
        self.write(name, text)
        self.hook(f"./{name}", event, **more)
        return [code for code in self.codes() if code != "W112"]
