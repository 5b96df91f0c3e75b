"""HTTP/1.1 connections: the bytes by asyncio, what they mean by h11. Loaded with the first request."""

import asyncio
import select
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress

import h11

from wave_agent.http.chunks import ChunkError, ChunkReader
from wave_agent.http.routes import Address

_FULL = 1 << 20
"""Bytes that wait to be read; beyond them the server has to wait."""
_KEPT_SECONDS = 60
"""Unused for longer, a connection may be dead without a word: routers forget it, and a request on it would hang."""
_KEPT = 8
_INTERIM = 20
"""Answers of the kind `100 Continue` before the one that counts."""
_HEAD_TOO_LARGE = 431
"""How h11 hints at a status line and headers beyond its limit of 16 KiB."""

Headers = list[tuple[str, str]]


class BrokenConnectionError(Exception):
    """The other side went away, or speaks no HTTP."""


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
        self._reason = ""
        self.headers: dict[str, str] = {}
        """Of the response that is being read; names in lower case."""
        self._http = h11.Connection(h11.CLIENT)
        self._chunks: ChunkReader | None = None
        """Of a chunked body: h11 has read no more than the head."""
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
        """Asks this proxy for a connection to `place`, and speaks TLS through it."""
        authority = f"{place.authority.removesuffix(f':{place.port}')}:{place.port}"
        headers: Headers = [("Host", authority)]
        if authorization:
            headers.append(("Proxy-Authorization", authorization))
        self._write(self._http.send(h11.Request(method="CONNECT", target=authority, headers=headers)))
        await self._head(None)
        if not 200 <= self.status < 300:
            raise ProxyRefusedError(self.status, self._reason)
        assert self._transport is not None
        self._transport = await self.loop.start_tls(self._transport, self, tls, server_hostname=place.host)
        if self._transport is None:
            raise BrokenConnectionError("the connection was closed")
        self._http = h11.Connection(h11.CLIENT)

    async def request(self, target: str, headers: Headers, body: bytes, seconds: float | None) -> None:
        """Posts `body`; `status` and `headers` are those of the response when this returns."""
        message = h11.Request(method="POST", target=target, headers=[*headers, ("Content-Length", str(len(body)))])
        parts = (self._http.send(message), self._http.send(h11.Data(data=body)), self._http.send(h11.EndOfMessage()))
        self._write(*parts)
        await self._head(seconds)

    async def read(self, seconds: float | None) -> bytes:
        """The next part of the body; empty at its end. Raises `TimeoutError` when none comes for `seconds`."""
        if self._chunks is not None:
            return await self._part(self._chunks, seconds)
        if self._http.their_state is not h11.SEND_BODY:
            return b""
        event = await self._event(seconds)
        if isinstance(event, h11.Data):
            return bytes(event.data)
        if isinstance(event, h11.EndOfMessage):
            return b""
        raise BrokenConnectionError("the connection was closed")

    def abort(self) -> None:
        """Closes the connection at once."""
        if self._transport is not None:
            with suppress(RuntimeError):  # of an event loop that is closed already
                self._transport.abort()

    async def close(self) -> None:
        self.abort()
        if self.loop is asyncio.get_running_loop() and self._transport is not None:
            await self._lost.wait()

    def ready_again(self) -> bool:
        """The response was read to its end, and the connection can take another request."""
        if (chunks := self._chunks) is not None:
            whole = chunks.ended and not chunks.rest and self._kept_alive and self._http.our_state is h11.DONE
            self._http, self._chunks = h11.Connection(h11.CLIENT), None
            return whole and self.alive
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE or not self.alive:
            return False
        if self._http.trailing_data[0]:  # an answer that nobody asked for, right behind the one that was
            return False
        self._http.start_next_cycle()
        return True

    @property
    def alive(self) -> bool:
        """As far as this side knows. Bytes that nobody asked for are as bad as an end."""
        return not self._ended and not self._received

    @property
    def is_quiet(self) -> bool:
        """Alive, and nothing waits to be read: or it would be taken for the answer to the next request."""
        if not self.alive or self._transport is None:
            return False
        waiting = select.poll()
        waiting.register(self._transport.get_extra_info("socket"), select.POLLIN)
        return not waiting.poll(0)

    async def _head(self, seconds: float | None) -> None:
        """`seconds` are for all of it: one that comes byte by byte is as good as none."""
        async with asyncio.timeout(seconds):
            event = await self._event(None)
            for _ in range(_INTERIM):
                if not isinstance(event, h11.InformationalResponse):
                    break
                event = await self._event(None)
        if isinstance(event, h11.InformationalResponse):
            raise BrokenConnectionError(f"more than {_INTERIM} interim answers")
        if not isinstance(event, h11.Response):
            raise BrokenConnectionError("the connection was closed before an answer came")
        self.status = event.status_code
        self._reason = bytes(event.reason).decode("latin-1")
        self.headers = {bytes(name).decode("latin-1"): bytes(value).decode("latin-1") for name, value in event.headers}
        if self.headers.get("transfer-encoding", "").lower() == "chunked" and self._http.their_state is h11.SEND_BODY:
            self._chunks = ChunkReader()
            self._kept_alive = (
                event.http_version == b"1.1" and "close" not in self.headers.get("connection", "").lower()
            )
            self._received[:0] = self._http.trailing_data[0]

    async def _part(self, chunks: ChunkReader, seconds: float | None) -> bytes:
        """What has come of a chunked body, if anything has; else what comes next. Empty at its end."""
        part = b""
        while not part and not chunks.ended:
            data = await self._data(seconds)
            if not data:
                raise BrokenConnectionError("the connection was closed before the answer was complete")
            try:
                part = chunks.feed(data)
            except ChunkError as error:
                raise BrokenConnectionError(str(error)) from None
        return part

    async def _event(self, seconds: float | None) -> object:
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                self._http.receive_data(await self._data(seconds))
        except h11.RemoteProtocolError as error:
            too_large = error.error_status_hint == _HEAD_TOO_LARGE
            raise BrokenConnectionError("the head of its answer has no end" if too_large else str(error)) from None
        return event

    async def _data(self, seconds: float | None) -> bytes:
        """What has come; empty at the end of the connection."""
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


def _is_address(host: str) -> bool:
    """A name may have several addresses, of which one is dead: they are tried side by side. An address is the only one,
    and asyncio's race would leave its socket open when it is cancelled at the wrong moment."""
    return ":" in host or host.replace(".", "").isdigit()


async def connect(
    place: Address, proxy: Address | None, tls: Callable[[], ssl.SSLContext], seconds: float
) -> Connection:
    """A new connection to `place`. Raises `OSError` (TLS errors are such) or one of the errors of this module."""
    first = proxy or place
    secure = tls() if "https" in {first.scheme, place.scheme} else None
    async with asyncio.timeout(seconds):
        _, connection = await asyncio.get_running_loop().create_connection(
            Connection,
            first.host,
            first.port,
            ssl=secure if first.scheme == "https" else None,
            happy_eyeballs_delay=None if _is_address(first.host) else 0.25,
        )
        if proxy is not None and place.scheme == "https" and secure is not None:
            try:
                await connection.tunnel(place, proxy.authorization, secure)
            except BaseException:
                connection.abort()
                raise
    return connection


class Pool:
    """Keeps connections between requests. One pool has one destination."""

    def __init__(self, open_connection: Callable[[], Awaitable[Connection]]) -> None:
        self._open = open_connection
        self._unused: list[Connection] = []
        self._used: set[Connection] = set()
        self._coming: asyncio.Task[Connection] | None = None
        self._opening = 0
        """Connections on their way for requests that wait for them."""
        self.closed = False

    def prepare(self) -> None:
        """Begins to open a connection, for a request that is about to come."""
        if not (self._unused or self._used or self._opening or self._coming):
            self._coming = asyncio.ensure_future(self._open())

    async def take(self) -> Connection:
        """A connection that was used before, if one still lives; else a new one."""
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
        """The connection that was prepared, if it came to be and still lives."""
        coming, self._coming = self._coming, None
        if coming is None or coming.get_loop() is not asyncio.get_running_loop():
            return None
        try:
            await asyncio.wait({coming})
        except asyncio.CancelledError:
            _let_go(coming)
            raise
        if coming.cancelled() or coming.exception() is not None:
            return None  # the same will be tried again, and told then
        return coming.result() if coming.result().alive else None

    def give_back(self, connection: Connection) -> None:
        """Keeps the connection if its response was read to the end. Otherwise it is closed at once."""
        self._used.discard(connection)
        if len(self._unused) < _KEPT and connection.ready_again():
            connection.unused_since = connection.loop.time()
            self._unused.append(connection)
        else:
            connection.abort()

    async def close(self) -> None:
        """Closes all connections, also those in use."""
        self.closed = True
        coming, self._coming = self._coming, None
        if coming is not None:
            _let_go(coming)
            if coming.get_loop() is asyncio.get_running_loop():
                await asyncio.wait({coming})
                await asyncio.sleep(0)  # the attempts that it had begun are cancelled with it, and close their sockets
        connections = [*self._unused, *self._used]
        self._unused.clear()
        for connection in connections:
            await connection.close()


def _let_go(coming: asyncio.Task[Connection]) -> None:
    """Nobody wants this connection any more, whether it is there already or not."""

    def drop(task: asyncio.Task[Connection]) -> None:
        if not task.cancelled() and task.exception() is None:
            task.result().abort()

    coming.cancel()
    coming.add_done_callback(drop)
