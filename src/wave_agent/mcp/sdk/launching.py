"""Processes of servers: started with exactly their own environment, in the sandbox if there is one, and ended."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import anyio
from anyio.abc import Process

from wave_agent.mcp import wire
from wave_agent.mcp.values import McpError, Server
from wave_agent.system.processes import explain, find_program, signal_group
from wave_agent.text import strip_controls

_TAIL = 8192
"""Bytes of a server's stderr that are kept."""
_SHOWN = 1000
"""Characters of them in a message."""
_GRACE = 0.7
"""Seconds for a server to end after its stdin was closed, as the protocol asks, and again after SIGTERM."""
_GLANCE = 0.01

_RENUMBER = """
import os, sys
ours, theirs = int(sys.argv[1]), int(sys.argv[2])
os.dup2(ours, theirs)
os.set_inheritable(theirs, True)
if ours != theirs:
    os.close(ours)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""The sandbox's command line names a descriptor by the number that it has in the agent."""

Confine = Callable[[str, tuple[str, ...], Mapping[str, str], str], Awaitable[tuple[wire.Confined, int | None]]]
"""Asks the agent for a command line in the sandbox; also returns the descriptor that came along."""


class StderrTail:
    """The last bytes of a stream."""

    def __init__(self) -> None:
        self._data = b""
        self.length = 0
        """Bytes so far."""

    def add(self, data: bytes) -> None:
        self._data = (self._data + data)[-_TAIL:]
        self.length += len(data)

    def text(self, since: int = 0) -> str:
        """For a message: the end of it, in readable characters. `since`: of what came after this number of bytes."""
        data = self._data[max(0, len(self._data) - (self.length - since)) :]
        return strip_controls(data.decode(errors="replace")).strip()[-_SHOWN:]


class Launcher:
    """Starts the processes of one host."""

    def __init__(
        self,
        marks: Mapping[str, str],
        *,
        confine: Confine | None,
        spawned: Callable[[int], None],
        exited: Callable[[int], None],
    ) -> None:
        """`spawned` gets each new process group, `exited` the number of each `Confined` whose process has ended."""
        self._marks = marks
        self._confine = confine
        self._spawned = spawned
        self._exited = exited

    async def start(self, argv: tuple[str, ...], server: Server) -> "ServerProcess":
        """A program of this server, with pipes, in its own session. Raises `McpError`."""
        environment: Mapping[str, str] = {**server.environment, **self._marks}
        directory = server.directory
        question: int | None = None
        descriptor: int | None = None
        if self._confine is not None:
            confined, descriptor = await self._confine(server.name, argv, environment, directory)
            question = confined.question
            if confined.error:
                raise McpError(confined.error)
            argv, environment = confined.argv, confined.environment
            if descriptor is not None and confined.descriptor is not None:
                argv = (sys.executable, "-I", "-S", "-c", _RENUMBER, str(descriptor), str(confined.descriptor), *argv)
        try:
            program = find_program(argv[0], environment, directory)
            process = await anyio.open_process(
                [program, *argv[1:]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=directory or None,
                env=dict(environment),
                start_new_session=True,
                pass_fds=() if descriptor is None else (descriptor,),
            )
        except (OSError, ValueError) as error:
            if question is not None:
                self._exited(question)
            raise McpError(explain(error, argv[0], directory)) from None
        finally:
            if descriptor is not None:
                os.close(descriptor)
        self._spawned(process.pid)
        return ServerProcess(process, lambda: None if question is None else self._exited(question))


class ServerProcess:
    """A running server."""

    def __init__(self, process: Process, ended: Callable[[], None]) -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self._process = process
        self._ended = ended
        self.stdin, self.stdout, self._stderr = process.stdin, process.stdout, process.stderr
        self.tail = StderrTail()

    @property
    def status(self) -> int | None:
        """Its exit code or negative signal; None while it runs."""
        return self._process.returncode

    async def keep_stderr(self) -> None:
        """Until it is closed: a full pipe would stop the server."""
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            while True:
                self.tail.add(await self._stderr.receive())

    async def wait(self, seconds: float) -> bool:
        """Whether it ended in that time. Does not wait for its pipes, which a child may hold open."""
        limit = anyio.current_time() + seconds
        while self._process.returncode is None:
            if anyio.current_time() >= limit:
                return False
            await asyncio.sleep(_GLANCE)
        return True

    async def end(self) -> None:
        """Closes its stdin, waits, then ends its group. Bounded in time."""
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            await self.stdin.aclose()
        if not await self.wait(_GRACE):
            signal_group(self._process.pid, signal.SIGTERM)
            await self.wait(_GRACE)
        signal_group(self._process.pid, signal.SIGKILL)  # also for what it leaves in its group
        await self.wait(_GRACE)
        for stream in (self.stdout, self._stderr):
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
                await stream.aclose()
        # While a child holds a pipe open, asyncio keeps the transport, and warns about it later.
        transport = getattr(getattr(self._process, "_process", None), "_transport", None)
        if transport is not None:
            with suppress(PermissionError, ProcessLookupError):
                transport.close()
        self._ended()
