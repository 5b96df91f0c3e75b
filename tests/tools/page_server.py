"""A web server on the loopback interface that answers with whatever bytes a test wants."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


class PageServer:
    def __init__(self, pages: Mapping[str, Answer]) -> None:
        self.pages = dict(pages)
        self.requests: list[str] = []
        """The heads of all requests."""
        self.left = asyncio.Event()
        """A client has closed its connection."""
        self.port = 0
        self.tasks: set[asyncio.Future[None]] = set()

    @property
    def paths(self) -> list[str]:
        return [head.split(" ")[1] for head in self.requests]

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tasks.add(asyncio.ensure_future(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._converse(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.left.set()
            writer.transport.abort()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.read(1)
        if first == b"\x16":  # a client that begins with TLS
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await writer.drain()
            return
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode()
        self.requests.append(head)
        answer = self.pages.get(head.split(" ")[1], b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        if isinstance(answer, bytes):
            writer.write(answer)
            await writer.drain()
        else:
            await answer(writer)
        writer.write_eof()
        await reader.read()


@asynccontextmanager
async def serving_pages(pages: Mapping[str, Answer], host: str = "127.0.0.1") -> AsyncGenerator[PageServer]:
    pages_server = PageServer(pages)
    server = await asyncio.start_server(pages_server.serve, host, 0)
    pages_server.port = server.sockets[0].getsockname()[1]
    try:
        yield pages_server
    finally:
        server.close()
        for task in pages_server.tasks:
            task.cancel()
        await asyncio.gather(*pages_server.tasks, return_exceptions=True)
        await server.wait_closed()


def page(body: bytes | str, kind: str = "text/plain", status: str = "200 OK", **headers: str) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    named = {
        "Content-Type": kind,
        "Content-Length": str(len(data)),
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in named.items() if value)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + data


def redirect(to: str, status: str = "302 Found") -> bytes:
    return f"HTTP/1.1 {status}\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n".encode()
