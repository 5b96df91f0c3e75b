"""Real sessions, recorded for the tests of what can be told from them."""

import asyncio
import json
import os
import subprocess
import sysconfig
import time
from collections.abc import Callable, Mapping, Sequence
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


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for what another process does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


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


# ------------------------------------------------------------------------------------------------------------ backtests

GUARD = 'case $(cat) in *"rm -rf"*) echo "rm -rf in $PWD is not allowed" >&2; exit 2;; esac'
SAME = ("findings", "totals", "events", "judged", "sessions", "left_out", "notes")


def sessions(directory: Path, count: int, calls: int = 20, padding: int = 0) -> Path:
    """Transcripts as other agents write them; a fifth of the calls would be blocked."""
    directory.mkdir()
    for number in range(count):
        lines: list[Any] = [{"type": "user", "cwd": "/srv/app", "message": {"role": "user", "content": "Tidy up."}}]
        for at in range(calls):
            command = f"rm -rf /srv/app/{at}" if at % 5 == 0 else f"ls {at}"
            use = {"type": "tool_use", "id": str(at), "name": "Bash", "input": {"command": command}}
            lines.append({"type": "assistant", "padding": "x" * padding, "message": {"content": [use]}})
        (directory / f"s{number:03}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return directory


def report(project: Path, *arguments: str, status: int = 1, **environment: str) -> Any:
    done = wave_hooks(project, "backtest", "--json", *arguments, **environment)
    assert (done.returncode, bool(done.stdout)) == (status, True), done.stderr
    return json.loads(done.stdout)


def complaint(done: "subprocess.CompletedProcess[str]") -> tuple[int, str]:
    """The exit status and the last line on stderr; before that, a slow machine says how far it is."""
    return done.returncode, done.stderr.splitlines()[-1]


def compared(found: Any) -> dict[str, Any]:
    return {key: found[key] for key in SAME}
