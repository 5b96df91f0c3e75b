"""Real sessions, recorded for the tests of what can be told from them."""

import asyncio
import json
import os
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wave_agent import Agent
from wave_agent.testing import Reply, ScriptedModel, call

WAVE = str(Path(sysconfig.get_path("scripts")) / "wave")


def wave_hooks(project: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [WAVE, "hooks", *arguments],
        cwd=project,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def commands(*lines: str) -> Reply:
    """An answer that runs these command lines."""
    return Reply(tool_calls=[call("Bash", command=line) for line in lines])


def record(
    project: Path,
    replies: Sequence[Any],
    *,
    hooks: Mapping[str, Any] | None = None,
    prompts: Sequence[str] = ("Go.",),
) -> Path:
    """A session in which the model says this; returns its transcript."""

    async def session() -> Path:
        agent = await Agent.create(
            workdir=project,
            model_client=ScriptedModel(replies),
            hooks=hooks,
            setting_sources=[],
            permission_mode="bypassPermissions",
        )
        async with agent:
            for prompt in prompts:
                await agent.send_message(prompt)
        return Path(agent.transcript_path)

    return asyncio.run(session())


def script(file: Path, body: str) -> Path:
    file.write_text(f"#!/bin/bash\n{body}\n")
    file.chmod(0o755)
    return file


def settings(file: Path, **events: Sequence[Mapping[str, Any]]) -> Path:
    """A settings file in which each event has one group with these hooks."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"hooks": {event: [{"hooks": list(hooks)}] for event, hooks in events.items()}}))
    return file
