"""A project in which `wave` is run as a real process."""

import json
import os
import subprocess
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.apis.chat_view import ChatViewServer
from wave_agent.models.apis import PROVIDERS
from wave_agent.system.ancestry import OTHER_AGENTS
from wave_agent.testing import RecordingModelServer

SWITCH = "WAVE_TEST_API"
"""The variable that says which API sessions in `tests/live` are run on: `WAVE_TEST_API=anthropic make some-tests`."""
WAVE = str(Path(sysconfig.get_path("scripts")) / "wave")


class Project:
    """A project directory, a model server, and `wave` run in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "project"
        self.directory.mkdir()
        self.home = directory / "home"

    def environment(self, server: RecordingModelServer | None, **more: str) -> dict[str, str]:
        others = ("WAVE", *(one.keys[0].partition("_")[0] for one in PROVIDERS))
        kept = {key: value for key, value in os.environ.items() if not key.startswith(others)}
        for name in ("CI", *OTHER_AGENTS):  # `--no-hooks` and trust are for a person
            kept.pop(name, None)
        endpoint = {"WAVE_BASE_URL": server.base_url, "WAVE_MODEL": "test", "WAVE_API_KEY": "key"} if server else {}
        if isinstance(server, ChatViewServer):
            endpoint["WAVE_API"] = os.environ[SWITCH]
        return {**kept, **endpoint, "WAVE_HOME": str(self.home), "NO_PROXY": "127.0.0.1", **more}

    def command(self, *arguments: str, server: RecordingModelServer | None, **more: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [WAVE, *arguments],
            cwd=self.directory,
            env=self.environment(server, **more.pop("env", {})),
            stdin=more.pop("stdin", subprocess.DEVNULL),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **more,
        )

    def wave(
        self, *arguments: str, server: RecordingModelServer | None = None, piped: str | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        stdin = subprocess.PIPE if piped is not None else subprocess.DEVNULL
        process = self.command(*arguments, server=server, stdin=stdin, env=env)
        out, err = process.communicate(piped, timeout=60)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def settings(self, settings: dict[str, Any]) -> None:
        (self.directory / ".wave").mkdir(exist_ok=True)
        (self.directory / ".wave" / "settings.json").write_text(json.dumps(settings))


def serving(*replies: Any, elsewhere: Mapping[str, Any] | None = None) -> Any:
    """A model server with these answers, for a `with` statement. It speaks the API that `SWITCH` names."""
    speaks = RecordingModelServer if os.environ.get(SWITCH, "openai-chat") == "openai-chat" else ChatViewServer
    return speaks.in_thread(list(replies), elsewhere=elsewhere)
