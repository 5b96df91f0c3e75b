"""What the runner adds to a process, beside spawning the same one with pipes and a session of its own."""

import asyncio
import os
import subprocess

from benchmarks.measure import Claim, microseconds
from wave_agent.hooks.execution import HookJob
from wave_agent.hooks.runner import ProcessRunner

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
    return [Claim("one shell hook, started and read", spent, "raw spawn", floor, 1.3 * floor)]
