"""MCP servers: what they add to the start of `wave -p`, and to one call on a server that is connected."""

import asyncio
import compileall
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import wave_agent
from benchmarks.measure import ENVIRONMENT, Claim, in_floors, spread_of
from benchmarks.starting import WAVE, quiet
from wave_agent.hooks.definitions import Layer
from wave_agent.mcp.host import SdkHost
from wave_agent.mcp.values import Server, ServerEntry, ServerTransport
from wave_agent.testing.model_server import RecordedRequest, RecordingModelServer

ECHO = str(Path(__file__).with_name("mcp_echo_server.py"))
SERVERS = 3
ROUNDS = 20
CALLS = 200
WARMING = 20


def claims() -> list[Claim]:
    compileall.compile_dir(Path(wave_agent.__file__).parent, quiet=1)
    having, without = first_requests(ROUNDS)
    through, plain = warm_calls(CALLS)
    added = [taken - median(plain) for taken in through]
    return [
        in_floors(
            f"wave -p, {SERVERS} MCP servers, start to first request",
            having,
            without,
            1.1,
            floor_name="without servers",
        ),
        Claim(
            name="call on a warm stdio server, over its own time",
            value=median(added),
            unit="ms",
            limit=3,
            spread=spread_of(added),
        ),
    ]


def first_requests(rounds: int) -> tuple[list[float], list[float]]:
    """Milliseconds to the first request, with servers whose tools are cached, and without servers: alternately."""
    arrived: list[float] = []

    def answer(_: RecordedRequest) -> str:
        arrived.append(time.perf_counter())
        return "Hello."

    entry = {"command": sys.executable, "args": ["-I", ECHO]}
    taken: tuple[list[float], list[float]] = ([], [])
    with TemporaryDirectory() as place, RecordingModelServer.in_thread([answer] * (2 * rounds + 4)) as server:
        homes = [Path(place, name) for name in ("with", "without")]
        for home in homes:
            home.mkdir()
        settings = {"mcpServers": {f"echo{number}": entry for number in range(SERVERS)}}
        (homes[0] / "settings.json").write_text(json.dumps(settings))
        endpoint = {"WAVE_BASE_URL": server.base_url, "WAVE_MODEL": "any", "WAVE_API_KEY": "key"}
        for number in range(rounds + 2):
            for home, times in zip(homes, taken, strict=True):
                started = time.perf_counter()
                quiet(WAVE, "-p", "Hi", env={**ENVIRONMENT, **endpoint, "WAVE_HOME": str(home)}, cwd=place)
                if number > 1:  # the first run connects and fills the cache
                    times.append((arrived[-1] - started) * 1000)
        tools = json.dumps(server.requests[-2].body)
        assert all(f"mcp__echo{number}__echo" in tools for number in range(SERVERS)), "the tools were not offered"
    return taken


class BareServer:
    """The same server on its own pipes, without anything between."""

    def __init__(self) -> None:
        command = [sys.executable, "-I", ECHO]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def call(self, number: int, arguments: dict[str, str]) -> None:
        asked, answered = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answered is not None
        params = {"name": "echo", "arguments": arguments}
        asked.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}) + "\n")
        json.loads(answered.readline())

    def close(self) -> None:
        self._process.communicate()


def warm_calls(calls: int) -> tuple[list[float], list[float]]:
    """Milliseconds of a call through the host, and of the same call on the server's own pipes: alternately."""
    bare = BareServer()
    try:
        with TemporaryDirectory() as place:
            return asyncio.run(_alternately(bare, place, calls))
    finally:
        bare.close()


async def _alternately(bare: BareServer, place: str, calls: int) -> tuple[list[float], list[float]]:
    server = Server(
        name="echo",
        entry=ServerEntry(transport=ServerTransport.STDIO, command=sys.executable, args=("-I", ECHO)),
        layer=Layer.USER,
        source="benchmark",
        environment={"PATH": os.environ["PATH"]},
        directory=place,
    )
    host = SdkHost(home=Path(place), session_id="benchmark", environment=dict(os.environ), roots=[place])
    through: list[float] = []
    plain: list[float] = []
    try:
        await host.connect(server, deadline=30)
        for number in range(calls + WARMING):
            arguments = {"message": f"hello {number}"}
            started = time.perf_counter()
            await host.call(server, "echo", arguments)
            between = time.perf_counter()
            bare.call(number, arguments)
            if number >= WARMING:
                through.append((between - started) * 1000)
                plain.append((time.perf_counter() - between) * 1000)
    finally:
        await host.close()
    return through, plain
