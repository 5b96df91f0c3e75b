"""What it costs to read and stream a long answer of a model."""

import asyncio
import json
import time
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.measure import Claim
from wave_agent import Agent
from wave_agent.events import Event, TextDelta
from wave_agent.model_server import Events, RecordingModelServer, delta

WORD = "sixty-four characters, about what a busy server sends at a time "[:64]
WORDS = (1 << 20) // len(WORD)


def claims() -> list[Claim]:
    with RecordingModelServer.in_thread([Events([delta(content=WORD)] * WORDS + ["[DONE]"])] * 6) as server:
        spent = [asyncio.run(read(server.base_url)) for _ in range(6)][1:]
    floor = [parse() for _ in range(5)]
    return [
        Claim(
            name="reading and streaming a 1 MB answer, CPU",
            value=median(spent),
            unit="ms",
            limit=150,
            floor_name="json.loads of each event",
            floor=median(floor),
        )
    ]


async def read(base_url: str) -> float:
    """Milliseconds of CPU of a whole turn, in this thread: the server has another one."""
    size = 0

    def show(event: Event) -> None:
        nonlocal size
        size += len(event.text) if isinstance(event, TextDelta) else 0

    with TemporaryDirectory() as project:
        async with await Agent.create(
            workdir=project, base_url=base_url, model="any", setting_sources=[], callbacks={"on_event": show}
        ) as agent:
            started = time.thread_time()
            result = await agent.send_message("Go on.")
            spent = (time.thread_time() - started) * 1000
    assert (result.status, size) == ("completed", len(WORD) * WORDS)
    return spent


def parse() -> float:
    line = json.dumps(delta(content=WORD))
    started = time.thread_time()
    for _ in range(WORDS):
        json.loads(line)
    return (time.thread_time() - started) * 1000
