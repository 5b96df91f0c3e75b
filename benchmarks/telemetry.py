"""What telemetry adds to a turn: CPU time of the whole process, so the thread that sends counts too."""

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.measure import Claim, spread_of
from wave_agent import Agent
from wave_agent.testing import Reply, ScriptedModel, call

ROUNDS = 40
TURNS = 5
"""Turns of one sample: the processor's clock is coarse."""


def claims() -> list[Claim]:
    on, off = asyncio.run(alternately(ROUNDS))
    added = [one - other for one, other in zip(on, off, strict=True)]
    return [
        Claim(
            name="CPU that telemetry adds to a turn with one Bash call",
            value=max(0.0, median(added)),
            unit="ms",
            limit=3,
            floor_name="turn without telemetry",
            floor=median(off),
            spread=spread_of(added),
        )
    ]


async def alternately(rounds: int) -> tuple[list[float], list[float]]:
    """Milliseconds of CPU of a turn with telemetry, and without."""
    on: list[float] = []
    off: list[float] = []
    with TemporaryDirectory() as project, swallowing() as url:
        os.environ.update(WAVE_HOME=f"{project}/home", OTEL_BSP_SCHEDULE_DELAY="50", NO_PROXY="127.0.0.1")
        async with AsyncExitStack() as stack:
            agents = [
                await stack.enter_async_context(await agent(project, rounds, settings))
                for settings in ({"telemetry": {"endpoint": url}}, {})
            ]
            for one in agents:
                await sample(one)  # loads everything, the SDK too
            for _ in range(rounds):
                on.append(await sample(agents[0]))
                off.append(await sample(agents[1]))
    return on, off


async def agent(project: str, rounds: int, settings: dict[str, Any]) -> Agent:
    replies = [Reply(tool_calls=[call("Bash", command="true")]), "Done."] * ((rounds + 1) * TURNS)
    return await Agent.create(
        workdir=project,
        model_client=ScriptedModel(replies),
        permission_mode="bypassPermissions",
        setting_sources=[],
        settings=settings,
        hooks={"PreToolUse": [{"hooks": [lambda _: None]}]},
    )


async def sample(agent: Agent) -> float:
    """Of one turn, with the delivery of its spans, which may come after it."""
    started = time.process_time()
    for _ in range(TURNS):
        result = await agent.send_message("go")
        assert result.status == "completed", result
    await asyncio.sleep(0.1)
    return (time.process_time() - started) * 1000 / TURNS


@contextmanager
def swallowing() -> Iterator[str]:
    """A receiver that answers 200. It runs in this process, so what it takes is counted as well: too much, not too
    little."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
