"""The stdio transport. The SDK's own gives servers some of our variables, reads lines of any length, and lets stderr
through; the rest is the same."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import types
from mcp.shared.message import SessionMessage

from wave_agent.mcp.sdk.launching import ServerProcess
from wave_agent.mcp.sdk.oversized import BoundedLine
from wave_agent.mcp.sdk.unreadable import readable

_FLUSH = 0.3
"""Seconds to write what was already accepted, before stdin is closed."""
_MOST_OPEN = 32
"""Requests of a server that are answered at the same time."""
_BRAKE = 0.1
"""Seconds by which each further one is delayed: a server that does not read the answers could fill the memory."""
_GONE = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)

Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]


@asynccontextmanager
async def stdio_transport(process: ServerProcess, lost: anyio.Event) -> AsyncGenerator[Streams]:
    """The messages of a server that runs already; leaving it ends the server. `lost` is set when it says no more."""
    to_session, incoming = anyio.create_memory_object_stream[Incoming](0)
    outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    written = anyio.Event()
    reader = _LineReader(process)

    async def read() -> None:
        async with to_session:
            try:
                async for message in reader.messages():
                    await to_session.send(message)
            except _GONE:
                pass
            await process.wait(_FLUSH)  # Its exit code belongs into the message of whoever waits for an answer.
            lost.set()

    async def write() -> None:
        try:
            async with from_session:
                async for message in from_session:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await process.stdin.send(text.encode() + b"\n")
                    reader.answered(message)
        except _GONE:
            await to_session.aclose()  # There is no answer to what could not be written.
            lost.set()
        finally:
            written.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(process.keep_stderr)
        tasks.start_soon(read)
        tasks.start_soon(write)
        try:
            yield incoming, outgoing
        finally:
            with anyio.CancelScope(shield=True):
                incoming.close()
                outgoing.close()
                with anyio.move_on_after(_FLUSH):
                    await written.wait()
                await process.end()
            tasks.cancel_scope.cancel()


class _LineReader:
    """Messages out of chunks. What is no message is noted beside stderr: many programs print a greeting."""

    def __init__(self, process: ServerProcess) -> None:
        self._process = process
        self._line = BoundedLine()
        self._free = anyio.Semaphore(_MOST_OPEN)

    async def messages(self) -> AsyncGenerator[SessionMessage]:
        while True:
            *ends, rest = (await self._process.stdout.receive()).split(b"\n")
            for end in ends:
                self._line.add(end)
                line = self._line.take()
                message = self._parse(line) if line is not None and line.strip() else None
                if message is not None:
                    if isinstance(message.message, types.JSONRPCRequest):
                        with anyio.move_on_after(_BRAKE):
                            await self._free.acquire()
                    yield message
            self._line.add(rest)

    def answered(self, message: SessionMessage) -> None:
        """This was written to the server."""
        if isinstance(message.message, types.JSONRPCResponse | types.JSONRPCError):
            self._free.release()

    def _parse(self, line: bytes) -> SessionMessage | None:
        try:
            return _message(line)
        except ValueError:
            mended = readable(line)
        if mended is line:
            self._process.tail.add(b"(stdout) " + line[:200] + b"\n")
            return None
        return _message(mended)


def _message(line: bytes) -> SessionMessage:
    message: Any = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    return SessionMessage(message)
