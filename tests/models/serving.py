"""What tests of the model client share: a client that waits for nothing, and a proxy that takes notes."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from ssl import SSLContext
from typing import Any

from wave_agent.models.base import Delta, ModelRequest, Retry, Text
from wave_agent.models.openai_chat import OpenAIChatModel

REQUEST = ModelRequest(model="tiny", messages=[{"role": "user", "content": "Hello"}])


class Patient:
    """A `sleep` that remembers instead of sleeping."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)


@asynccontextmanager
async def client(
    base_url: str, environment: Mapping[str, str] | None = None, **options: Any
) -> AsyncIterator[OpenAIChatModel]:
    options = {"sleep": Patient(), "chance": lambda: 0.5} | options
    model = OpenAIChatModel(base_url=base_url, environment=environment or {}, **options)
    try:
        yield model
    finally:
        await model.close()


async def collect(model: OpenAIChatModel, shown: list[Delta], request: ModelRequest = REQUEST) -> list[Delta]:
    """Adds to `shown` what comes, so that it is known also when an error ends it."""
    async for delta in model.stream(request):
        shown.append(delta)  # noqa: PERF401
    return shown


async def answer(model: OpenAIChatModel, request: ModelRequest = REQUEST) -> list[Delta]:
    return await collect(model, [], request)


def text_of(deltas: list[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, Text))


def retries_of(deltas: list[Delta]) -> list[Retry]:
    return [delta for delta in deltas if isinstance(delta, Retry)]


class RecordingProxy:
    """Forwards every request to one server, whatever host the request names."""

    def __init__(self, host: str, port: int, refusal: bytes = b"", tls: SSLContext | None = None) -> None:
        self.heads: list[str] = []
        self._to = (host, port)
        self._refusal = refusal
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"127.0.0.1:{self._port}"

    async def __aenter__(self) -> "RecordingProxy":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._forward(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head.decode())
        if self._refusal:
            writer.write(self._refusal)
            writer.close()
            return
        to_reader, to_writer = await asyncio.open_connection(*self._to)
        try:
            if head.startswith(b"CONNECT "):
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                to_writer.write(head)
            await asyncio.gather(_copy(reader, to_writer), _copy(to_reader, writer))
        finally:
            writer.transport.abort()
            to_writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    writer.close()
