"""The cost of reading and streaming a model's long answer."""

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from tempfile import TemporaryDirectory
from threading import Thread

from benchmarks.measure import Claim
from wave_agent import Agent
from wave_agent.events import Event, TextDelta
from wave_agent.testing.model_server import delta

WORD = "sixty-four characters, about what a busy server sends at a time "[:64]
WORDS = (1 << 20) // len(WORD)


def claims() -> list[Claim]:
    with served(6) as base_url:
        spent = [asyncio.run(read(base_url)) for _ in range(6)][1:]
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


@contextmanager
def served(times: int) -> Iterator[str]:
    """A server with a prepared answer, each event in a separate chunk: only the client is measured."""
    end = json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    events = [f"data: {json.dumps(delta(content=WORD))}\n\n"] * WORDS + [f"data: {end}\n\n", "data: [DONE]\n\n"]
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = "".join(f"{len(event):x}\r\n{event}\r\n" for event in events)
    answer = f"{head}{body}0\r\n\r\n".encode()

    def serve() -> None:
        for _ in range(times):
            while True:
                connection, _ = listening.accept()
                with connection:
                    asked = connection.recv(1 << 20)
                    if asked.startswith(b"POST"):
                        connection.sendall(answer)
                        break
                    connection.sendall(b"HTTP/1.1 404 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"


async def read(base_url: str) -> float:
    """Milliseconds of CPU for a whole turn, in this thread: the server has its own."""
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
