"""What the runner adds to a process, beside spawning the same one with pipes and a session of its own."""

import asyncio
import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Claim, microseconds
from wave_agent.hooks.execution import HookJob
from wave_agent.hooks.runner import ProcessRunner
from wave_agent.leftovers import Leftovers
from wave_agent.session import FileSessionStore

JOB = HookJob(command="true", env=dict(os.environ), cwd=os.getcwd(), timeout=60)
PIPE = subprocess.PIPE


def raw_spawn() -> None:
    with subprocess.Popen(
        ["bash", "-c", "true"], stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
    ) as process:
        process.communicate()


def claims() -> list[Claim]:
    floor = microseconds(raw_spawn, samples=60, inner=1)
    with asyncio.Runner() as loop:
        runner = ProcessRunner()
        spent = microseconds(lambda: loop.run(runner.run(JOB)), samples=60, inner=1)
    return [
        Claim("one shell hook, started and read", spent, "raw spawn", floor, 1.3 * floor),
        *durability(),
    ]


def durability() -> list[Claim]:
    """What it adds that a killed agent leaves nothing running, and that what was recorded stays."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / "s.jsonl"
        leftovers = Leftovers(Path(directory), path)
        leftovers.open()
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        line = b"x" * 400 + b"\n"
        floor = microseconds(lambda: os.write(descriptor, line))
        noted = microseconds(lambda: note_one(leftovers))
        store = FileSessionStore(path)
        appended = microseconds(lambda: store.append({"type": "user", "message": "x" * 380}))
        os.close(descriptor)
        store.close()
        leftovers.close()
    return [
        Claim("noting one process for the next start", noted, "one write", floor, 50),
        Claim("one record, appended", appended, "one write", floor, 50),
    ]


def note_one(leftovers: Leftovers) -> None:
    with leftovers.entry() as note:
        note(1)
