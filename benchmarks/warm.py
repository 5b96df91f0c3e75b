"""A function in a persistent process, compared with its own time and with a spawned script; and an HTTP service."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.measure import ENVIRONMENT, Claim, in_turns, spread_of
from wave_agent.hooks.execution import HookJob, HookKind
from wave_agent.hooks.runners.command import ProcessRunner
from wave_agent.hooks.runners.http import HttpRunner
from wave_agent.hooks.runners.worker_pool import WorkerPool

SCRIPT = """\
import json, sys

def check(call):
    if "rm -rf" in call["tool_input"]["command"]:
        return {"decision": "block", "reason": "no"}

if __name__ == "__main__":
    check(json.load(sys.stdin))
"""
STDIN = b'{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}}'


def claims() -> list[Claim]:
    with TemporaryDirectory() as directory, asyncio.Runner() as loop:
        (Path(directory) / "guard.py").write_text(SCRIPT)
        names: dict[str, Callable[..., object]] = {}
        exec(SCRIPT.partition("if __name__")[0], names)
        pool, runner = WorkerPool(), ProcessRunner()
        call = {"tool_input": {"command": "ls"}}
        own, warm = in_turns(
            lambda: names["check"](call),
            lambda: loop.run(pool.run(job("guard.py:check", directory, HookKind.PYTHON))),
            rounds=500,
        )
        again, spawned = in_turns(
            lambda: loop.run(pool.run(job("guard.py:check", directory, HookKind.PYTHON))),
            lambda: loop.run(runner.run(job(sys.executable, directory, HookKind.COMMAND, ("guard.py",)))),
            rounds=40,
        )
        loop.run(pool.close())
        asked = loop.run(ask_a_service(200))
    return [
        Claim(
            name="warm Python hook, over the function's own time",
            value=median(warm) - median(own),
            unit="ms",
            limit=1,
            spread=spread_of(warm),
        ),
        Claim(
            name="warm Python hook, times faster than spawned",
            value=median(spawned) / median(again),
            unit="x",
            limit=20,
            at_least=True,
        ),
        Claim(name="http hook on an open connection", value=median(asked), unit="ms", limit=2, spread=spread_of(asked)),
    ]


def job(command: str, directory: str, kind: HookKind, args: tuple[str, ...] | None = None) -> HookJob:
    return HookJob(kind=kind, command=command, args=args, stdin=STDIN, env=ENVIRONMENT, cwd=directory, timeout=60)


async def ask_a_service(rounds: int) -> list[float]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
                await reader.readexactly(int(length.split(b":")[1]))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        except asyncio.IncompleteReadError:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/decide"
    http = HttpRunner(hosts=["127.0.0.1"], variables=(), environment={})
    taken = [(await http.run(job(url, "/", HookKind.HTTP))).duration for _ in range(rounds + 1)]
    await http.close()
    server.close()
    return taken[1:]
