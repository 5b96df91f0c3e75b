"""How costs grow with a session: time and memory of a turn, resuming, the size of the process."""

import asyncio
import json
import os
import resource
import subprocess
import sys
import sysconfig
import time
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import msgspec
from msgspec import Struct

from benchmarks.measure import ENVIRONMENT, Claim, spread_of
from wave_agent import Agent
from wave_agent.models.base import Delta, ModelRequest, Text, ToolCall
from wave_agent.testing import Reply, call
from wave_agent.testing.model_server import RecordingModelServer

WAVE = str(Path(sysconfig.get_path("scripts")) / "wave")
FILE = "notes.txt"


class Clocked:
    """A model that calls a tool and then answers, and measures the time between its requests: the agent's own."""

    def __init__(self) -> None:
        self.requests = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        self.requests += 1
        if self.requests % 2:
            yield ToolCall(id=f"call-{self.requests}", name="Read", arguments=json.dumps({"file_path": FILE}))
        else:
            yield Text("Done with it, and here is a line about what was found.")

    async def close(self) -> None:
        pass


def claims() -> list[Claim]:
    with TemporaryDirectory() as directory:
        os.environ["WAVE_HOME"] = f"{directory}/home"
        project = Path(directory) / "project"
        project.mkdir()
        (project / FILE).write_text("a line of text\n" * 20)
        session = in_a_new_process(project, 2000)
        resumed, messages = asyncio.run(resume(project, session.id))
        peak = twenty_turns(project, directory)
    first, second = session.memory
    return [
        Claim(
            name="overhead of turn 2,000 vs turn 20",
            value=median(session.late),
            unit="ms",
            limit=1.5 * median(session.early),
            floor_name="turn 20",
            floor=median(session.early),
            factor=1.5,
            spread=spread_of(session.late),
        ),
        Claim(
            name="memory of turns 1,001 to 2,000 vs the first 1,000",
            value=second,
            unit="MB",
            limit=1.5 * first,
            floor_name="turns 1 to 1,000",
            floor=first,
            factor=1.5,
        ),
        Claim(name="resuming 10,000 recorded messages", value=resumed * 10_000 / messages, unit="s", limit=1),
        Claim(name="peak memory of `wave -p` with 20 turns", value=peak, unit="MB", limit=70),
    ]


class Session(Struct, frozen=True):
    id: str
    early: list[float]
    """Milliseconds of the agent's own CPU in each of the turns around the 20th."""
    late: list[float]
    memory: tuple[float, float]
    """Megabytes added by the first and the second half of the session."""


def in_a_new_process(project: Path, turns: int) -> Session:
    """What other benchmarks have used and freed would be used again first: the session would seem to begin small."""
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.growth", project, str(turns)], stdout=subprocess.PIPE, check=True
    )
    return msgspec.json.decode(run.stdout, type=Session)


async def many_turns(project: Path, turns: int) -> Session:
    """CPU, not time: waiting for the disk does not grow with the session, and would hide what does."""
    taken: list[float] = []
    sizes: list[float] = []
    async with await Agent.create(workdir=project, model_client=Clocked(), setting_sources=[]) as agent:
        for number in range(turns + 50):
            if number in (50, turns // 2, turns):
                sizes.append(resident())
            started = time.process_time()
            result = await agent.send_message("Read the notes once more, please, and say what is in them.")
            taken.append((time.process_time() - started) * 1000)
            assert result.status == "completed", result
        return Session(
            agent.session_id, taken[10:40], taken[turns - 30 : turns], (sizes[1] - sizes[0], sizes[2] - sizes[1])
        )


def resident() -> float:
    """Resident memory of this process, in megabytes."""
    if sys.platform == "linux":
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


async def resume(project: Path, session_id: str) -> tuple[float, int]:
    started = time.perf_counter()
    async with await Agent.create(
        workdir=project, model_client=Clocked(), resume=session_id, setting_sources=[]
    ) as agent:
        return time.perf_counter() - started, len(agent.messages)


def twenty_turns(project: Path, directory: str) -> float:
    """The peak memory of the process, in megabytes, as reported by the system."""
    limits = range(1, 21)  # other calls each time: the agent ends a turn that repeats the same one
    replies = [*(Reply(tool_calls=[call("Read", file_path=FILE, limit=limit)]) for limit in limits), "Done."]
    with RecordingModelServer.in_thread(replies) as server:
        more = {"WAVE_HOME": f"{directory}/home", "WAVE_BASE_URL": server.base_url, "WAVE_MODEL": "any"}
        code = (
            "import resource, subprocess, sys\n"
            "subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)\n"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
        )
        told = subprocess.run(
            [sys.executable, "-c", code, WAVE, "-p", "Read the notes twenty times."],
            env={**ENVIRONMENT, **more},
            cwd=project,
            capture_output=True,
            text=True,
            check=True,
        )
    unit = 1 if sys.platform == "darwin" else 1024
    return int(told.stdout.split()[-1]) * unit / 1e6


if __name__ == "__main__":
    print(msgspec.json.encode(asyncio.run(many_turns(Path(sys.argv[1]), int(sys.argv[2])))).decode())
