"""HTTP/1.1 connections, with asyncio for I/O and h11 for the protocol. Imported on the first request."""

import asyncio
import select
import ssl
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from wave_agent.http.retries import BrokenConnectionError, InvalidRequestError
from wave_agent.http.routes import Address, Headers

if TYPE_CHECKING:  # see `Connection.request`
    from wave_agent.http.chunks import ChunkReader
    from wave_agent.http.exchanges import Exchange, Head

_FULL = 1 << 20
"""Maximum bytes buffered before reading from the server is paused."""
_KEPT_SECONDS = 60
"""A connection idle for longer may be silently dead: routers forget it, and a request on it would hang."""
_KEPT = 8
_INTERIM = 20
"""Maximum interim responses, such as `100 Continue`, before the real one."""
_EXCHANGES = "wave_agent.http.exchanges"
_FRAMING = {"host", "content-length", "transfer-encoding", "connection", "expect", "upgrade"}
"""Headers that h11 treats differently from others."""


class ProxyRefusedError(Exception):
    """The proxy did not open a tunnel."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status} {reason}".strip())
        self.status = status


class Connection(asyncio.Protocol):
    """One connection, for one request at a time."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.reused = False
        self.unused_since = 0.0
        self.status = 0
        self.reason = ""
        self.headers: Mapping[str, str] = {}
        """Headers of the current response; names in lower case."""
        self._exchange: Exchange | None = None
        self._chunks: ChunkReader | None = None
        """Reads a chunked body; h11 only reads the headers."""
        self._kept_alive = False
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._ended = False
        self._error: Exception | None = None
        self._news = asyncio.Event()
        self._lost = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) > _FULL and self._transport is not None:
            self._transport.pause_reading()
        self._news.set()

    def eof_received(self) -> None:
        self._ended = True
        self._news.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended, self._error = True, exc
        self._news.set()
        self._lost.set()

    async def tunnel(self, place: Address, authorization: str | None, tls: ssl.SSLContext) -> None:
        """Ask this proxy for a connection to `place`, and start TLS through it."""
        authority = f"{place.authority.removesuffix(f':{place.port}')}:{place.port}"
        headers: Headers = [("Host", authority)]
        if authorization:
            headers.append(("Proxy-Authorization", authorization))
        self._write(self._protocol().connect(authority, headers))
        await self._head(None)
        if not 200 <= self.status < 300:
            raise ProxyRefusedError(self.status, self.reason)
        assert self._transport is not None
        self._transport = await self.loop.start_tls(self._transport, self, tls, server_hostname=place.host)
        if self._transport is None:
            raise BrokenConnectionError("the connection was closed")
        self._exchange = None

    async def request(self, target: str, headers: Headers, body: bytes, seconds: float | None) -> None:
        """Post `body`. On return, `status` and `headers` are those of the response.

        Loading h11 takes as long as an interpreter's start. So the first request, if it is plain, is written without
        it: h11 is loaded while the server works, gets the same request, and has to write the same bytes.
        """
        head = None if _EXCHANGES in sys.modules else plain_head(target, headers, len(body))
        if head is not None:
            self._write(head, body)
        parts = self._protocol().post(target, headers, body)
        if head is None:
            self._write(*parts)
        elif parts != (head, body):
            raise InvalidRequestError("The first request was not written as h11 writes it, which is a bug")
        await self._head(seconds)

    async def get(self, target: str, headers: Headers, seconds: float | None) -> None:
        """Ask for a page. On return, `status` and `headers` are those of the response."""
        self._write(self._protocol().get(target, headers))
        await self._head(seconds)

    def _protocol(self) -> "Exchange":
        from wave_agent.http.exchanges import Exchange  # lazy: see `request`

        self._exchange = self._exchange or Exchange()
        return self._exchange

    async def read(self, seconds: float | None) -> bytes:
        """The next part of the body; empty at the end. Raises `TimeoutError` if none arrives within `seconds`."""
        if self._chunks is not None:
            return await self._part(self._chunks, seconds)
        exchange = self._protocol()
        if not exchange.has_body:
            return b""
        part = await self._next(exchange, seconds)
        if isinstance(part, bytes):
            return part
        raise BrokenConnectionError("the connection was closed")

    def abort(self) -> None:
        """Close the connection immediately."""
        if self._transport is not None:
            with suppress(RuntimeError):  # the event loop is already closed
                self._transport.abort()

    async def close(self) -> None:
        self.abort()
        if self.loop is asyncio.get_running_loop() and self._transport is not None:
            await self._lost.wait()

    def ready_again(self) -> bool:
        """Whether the response was fully read and the connection can take another request."""
        if (exchange := self._exchange) is None:
            return False
        if (chunks := self._chunks) is not None:
            whole = chunks.ended and not chunks.rest and self._kept_alive and exchange.is_sent
            self._exchange, self._chunks = None, None
            return whole and self.alive
        return self.alive and exchange.next_cycle()

    @property
    def alive(self) -> bool:
        """Whether the connection is open, from our side. Unsolicited bytes are as bad as a disconnect."""
        return not self._ended and not self._received

    @property
    def is_quiet(self) -> bool:
        """Whether it is alive with nothing left to read, which would be taken for the next response."""
        if not self.alive or self._transport is None:
            return False
        waiting = select.poll()
        waiting.register(self._transport.get_extra_info("socket"), select.POLLIN)
        return not waiting.poll(0)

    async def _head(self, seconds: float | None) -> None:
        """Read the status line and headers. `seconds` is for all of them together, even if they arrive byte by byte."""
        exchange = self._protocol()
        async with asyncio.timeout(seconds):
            head = await self._response(exchange)
            for _ in range(_INTERIM):
                if not head.is_interim:
                    break
                head = await self._response(exchange)
        if head.is_interim:
            raise BrokenConnectionError(f"more than {_INTERIM} interim responses")
        self.status, self.reason, self.headers = head.status, head.reason, head.headers
        if head.is_chunked:
            from wave_agent.http.chunks import ChunkReader  # lazy: not needed to send a request

            self._chunks, self._kept_alive = ChunkReader(), head.keeps_alive
            self._received[:0] = exchange.unread

    async def _response(self, exchange: "Exchange") -> "Head":
        head = await self._next(exchange, None)
        if isinstance(head, bytes):
            raise BrokenConnectionError("the connection was closed before a response arrived")
        return head

    async def _part(self, chunks: "ChunkReader", seconds: float | None) -> bytes:
        """The part of a chunked body received so far, or the next one. Empty at the end."""
        part = b""
        while not part and not chunks.ended:
            data = await self._data(seconds)
            if not data:
                raise BrokenConnectionError("the connection was closed before the response was complete")
            try:
                part = chunks.feed(data)
            except ValueError as error:  # a `ChunkError`
                raise BrokenConnectionError(str(error)) from None
        return part

    async def _next(self, exchange: "Exchange", seconds: float | None) -> "Head | bytes":
        while (event := exchange.next()) is None:
            exchange.receive(await self._data(seconds))
        return event

    async def _data(self, seconds: float | None) -> bytes:
        """The data received; empty at the end of the connection."""
        if not self._received and not self._ended:
            self._news.clear()
            async with asyncio.timeout(seconds):
                await self._news.wait()
        if not self._received and self._error is not None:
            raise BrokenConnectionError(str(self._error)) from None
        data = bytes(self._received)
        self._received.clear()
        if len(data) > _FULL and self._transport is not None and not self._ended:
            self._transport.resume_reading()
        return data

    def _write(self, *parts: bytes | None) -> None:
        if self._transport is None or self._ended:
            raise BrokenConnectionError("the connection was closed")
        self._transport.writelines([part for part in parts if part])


def plain_head(target: str, headers: Headers, length: int) -> bytes | None:
    """The first lines of a POST request, as h11 writes them. None unless each header is an ordinary one."""
    (first, place), *others = headers
    texts = [target, place, *(value for _, value in others)]
    names = [name for name, _ in others]
    if first != "Host" or " " in target or not all(text and text == text.strip() for text in texts):
        return None
    if not all(text.isascii() and text.isprintable() for text in texts):
        return None
    if not all(name.isascii() and name.replace("-", "").isalnum() and name.lower() not in _FRAMING for name in names):
        return None
    lines = [f"POST {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), f"Content-Length: {length}"]
    return "\r\n".join([*lines, "", ""]).encode("ascii")


def _is_address(host: str) -> bool:
    """Whether the host is an IP address. A name may have several addresses, which are tried in parallel because one may
    be dead. For a single address, asyncio's race could leak its socket when cancelled at the wrong moment."""
    return ":" in host or host.replace(".", "").isdigit()


async def connect(
    place: Address, proxy: Address | None, tls: Callable[[], ssl.SSLContext], seconds: float, *, at: str | None = None
) -> Connection:
    """A new connection to `place`; with `at`, to this address of it. Raises `OSError` (which includes TLS errors) or
    one of this module's errors."""
    first = proxy or place
    host = at or first.host
    secure = tls() if "https" in {first.scheme, place.scheme} else None
    async with asyncio.timeout(seconds):
        _, connection = await asyncio.get_running_loop().create_connection(
            Connection,
            host,
            first.port,
            ssl=secure if first.scheme == "https" else None,
            server_hostname=first.host if first.scheme == "https" else None,
            happy_eyeballs_delay=None if _is_address(host) else 0.25,
        )
        if proxy is not None and place.scheme == "https" and secure is not None:
            try:
                await connection.tunnel(place, proxy.authorization, secure)
            except BaseException:
                connection.abort()
                raise
    return connection


class Pool:
    """Keeps idle connections to one destination for reuse."""

    def __init__(self, open_connection: Callable[[], Awaitable[Connection]]) -> None:
        self._open = open_connection
        self._unused: list[Connection] = []
        self._used: set[Connection] = set()
        self._coming: asyncio.Task[Connection] | None = None
        self._opening = 0
        """Connections being opened for waiting requests."""
        self.closed = False

    def prepare(self) -> None:
        """Start opening a connection for an upcoming request."""
        if not (self._unused or self._used or self._opening or self._coming):
            self._coming = asyncio.ensure_future(self._open())

    async def take(self) -> Connection:
        """An idle connection that is still alive, or a new one."""
        loop = asyncio.get_running_loop()
        while self._unused:
            connection = self._unused.pop()
            same_loop = connection.loop is loop
            if same_loop and connection.is_quiet and loop.time() - connection.unused_since < _KEPT_SECONDS:
                connection.reused = True
                break
            connection.abort()
        else:
            self._opening += 1
            try:
                connection = await self._prepared() or await self._open()
            finally:
                self._opening -= 1
        self._used.add(connection)
        return connection

    async def _prepared(self) -> Connection | None:
        """The prepared connection, if it was opened and is still alive."""
        coming, self._coming = self._coming, None
        if coming is None or coming.get_loop() is not asyncio.get_running_loop():
            return None
        try:
            await asyncio.wait({coming})
        except asyncio.CancelledError:
            _let_go(coming)
            raise
        if coming.cancelled() or coming.exception() is not None:
            return None  # connecting is tried again, and the error reported then
        return coming.result() if coming.result().alive else None

    def give_back(self, connection: Connection) -> None:
        """Keep the connection if its response was fully read. Otherwise close it immediately."""
        self._used.discard(connection)
        if len(self._unused) < _KEPT and connection.ready_again():
            connection.unused_since = connection.loop.time()
            self._unused.append(connection)
        else:
            connection.abort()

    async def close(self) -> None:
        """Close all connections, including those in use."""
        self.closed = True
        coming, self._coming = self._coming, None
        if coming is not None:
            _let_go(coming)
            if coming.get_loop() is asyncio.get_running_loop():
                await asyncio.wait({coming})
                await asyncio.sleep(0)  # its pending attempts are cancelled too, and close their sockets
        connections = [*self._unused, *self._used]
        self._unused.clear()
        for connection in connections:
            await connection.close()


def _let_go(coming: asyncio.Task[Connection]) -> None:
    """Discard this connection, whether it is open yet or not."""

    def drop(task: asyncio.Task[Connection]) -> None:
        if not task.cancelled() and task.exception() is None:
            task.result().abort()

    coming.cancel()
    coming.add_done_callback(drop)
