"""A project with a guard before Bash, and an agent that calls Bash once: what any kind of hook is tried in."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wave_agent import Agent
from wave_agent.testing import Reply, ScriptedModel, call


class Checkout:
    def __init__(self, directory: Path) -> None:
        self.project = directory / "project"
        (self.project / ".wave" / "hooks").mkdir(parents=True)

    def write_settings(self, entry: Mapping[str, Any], **others: Any) -> None:
        content = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [entry]}]}, **others}
        (self.project / ".wave" / "settings.json").write_text(json.dumps(content))

    async def agent(self, *, trust: bool = True) -> Agent:
        model = ScriptedModel([Reply(tool_calls=[call("Bash", command="touch ran")]), "done"])
        return await Agent.create(
            workdir=self.project, model_client=model, trust=trust, permission_mode="bypassPermissions"
        )

    @property
    def ran(self) -> bool:
        return (self.project / "ran").exists()
