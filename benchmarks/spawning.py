"""What the runner adds to a process, compared with spawning the same one with pipes in its own session."""

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.measure import ENVIRONMENT, Claim, in_floors, in_turns
from wave_agent.hooks.execution import HookJob
from wave_agent.hooks.runners.command import ProcessRunner

PIPE = subprocess.PIPE
AT_ONCE = 50
SCRIPT = "import json, sys\njson.load(sys.stdin)\n"


def raw_spawn(*command: str) -> None:
    with subprocess.Popen(
        command, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True, env=ENVIRONMENT
    ) as process:
        process.communicate(b"{}")


def job(command: str, directory: str, args: tuple[str, ...] | None = None) -> HookJob:
    return HookJob(command=command, args=args, stdin=b"{}", env=ENVIRONMENT, cwd=directory, timeout=60)


def claims() -> list[Claim]:
    with TemporaryDirectory() as directory, asyncio.Runner() as own, ThreadPoolExecutor(AT_ONCE) as threads:
        run = own.get_loop().run_until_complete  # Runner.run sets up signals each time; an agent's loop is running
        script = Path(directory) / "hook.py"
        script.write_text(SCRIPT)
        guard = Path(directory) / "guard.sh"
        guard.write_text("#!/bin/sh\n")
        guard.chmod(0o755)
        runner = ProcessRunner()

        async def many() -> None:
            await asyncio.gather(*(runner.run(job("true", directory)) for _ in range(AT_ONCE)))

        raw, hook, raw_guard, shelled, plain, raw_python, python = in_turns(
            lambda: raw_spawn("bash", "-c", "true"),
            lambda: run(runner.run(job("true", directory))),
            lambda: raw_spawn(str(guard)),
            lambda: raw_spawn("bash", "-c", str(guard)),
            lambda: run(runner.run(job(str(guard), directory))),
            lambda: raw_spawn(sys.executable, str(script)),
            lambda: run(runner.run(job(sys.executable, directory, (str(script),)))),
            rounds=120,
        )
        raw_many, hooks = in_turns(
            lambda: list(threads.map(lambda _: raw_spawn("bash", "-c", "true"), range(AT_ONCE))),
            lambda: run(many()),
            rounds=40,
        )
    return [
        in_floors("one shell hook", hook, raw, 1.3, floor_name="raw spawn"),
        in_floors("50 shell hooks at once", hooks, raw_many, 1.2, floor_name="50 raw spawns"),
        in_floors("one script that needs no shell", plain, raw_guard, 1.3, floor_name="raw spawn of it"),
        Claim(name="the same through a shell, raw", value=median(shelled), unit="ms", limit=None),
        in_floors("one Python script as a hook", python, raw_python, 1.1, floor_name="raw spawn of it"),
    ]
