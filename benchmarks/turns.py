"""The cost of a turn in addition to the command it runs."""

import asyncio
import os
import subprocess
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.measure import Claim, spread_of
from wave_agent import Agent
from wave_agent.testing import Reply, ScriptedModel, call

ROUNDS = 60


def claims() -> list[Claim]:
    turns, bare, syncs = asyncio.run(one_call_each(ROUNDS))
    over = [turn - floor for turn, floor in zip(turns, bare, strict=True)]
    return [
        Claim(
            name="turn with one Bash call of `true`, over bash itself",
            value=median(over),
            unit="ms",
            limit=8,
            floor_name="bash -c true",
            floor=median(bare),
            spread=spread_of(over),
        ),
        Claim(name="the two disk syncs of this turn", value=2 * median(syncs), unit="ms", limit=None),
    ]


async def one_call_each(rounds: int) -> tuple[list[float], list[float], list[float]]:
    """Milliseconds of a turn with one call, of the bare command, and of one file sync, measured alternately."""
    syncs: list[float] = []
    turns: list[float] = []
    bare: list[float] = []
    replies = [Reply(tool_calls=[call("Bash", command="true")]), "Done."] * (rounds + 1)
    with TemporaryDirectory() as project:
        os.environ["WAVE_HOME"] = f"{project}/home"
        async with await Agent.create(
            workdir=project,
            model_client=ScriptedModel(replies),
            permission_mode="bypassPermissions",
            setting_sources=[],
        ) as agent:
            await agent.send_message("go")
            for _ in range(rounds):
                started = time.perf_counter()
                result = await agent.send_message("go")
                turns.append((time.perf_counter() - started) * 1000)
                assert result.status == "completed", result
                started = time.perf_counter()
                subprocess.run(["bash", "-c", "true"], check=True)  # noqa: ASYNC221 - nothing else runs meanwhile
                bare.append((time.perf_counter() - started) * 1000)
                syncs.append(sync(Path(agent.transcript_path).with_suffix(".other")))
    return turns, bare, syncs


def sync(file: Path) -> float:
    """Appends a line on the disk where the transcript is."""
    with file.open("ab") as opened:
        opened.write(b"x" * 400 + b"\n")
        opened.flush()
        started = time.perf_counter()
        getattr(os, "fdatasync", os.fsync)(opened.fileno())
        return (time.perf_counter() - started) * 1000
