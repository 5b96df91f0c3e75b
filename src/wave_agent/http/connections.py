"""HTTP/1.1 connections, with asyncio for I/O and h11 for the protocol. Imported on the first request."""

import asyncio
import select
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress

import h11

from wave_agent.http.chunks import ChunkError, ChunkReader
from wave_agent.http.routes import Address

_FULL = 1 << 20
"""Maximum bytes buffered before reading from the server is paused."""
_KEPT_SECONDS = 60
"""A connection idle for longer may be silently dead: routers forget it, and a request on it would hang."""
_KEPT = 8
_INTERIM = 20
"""Maximum interim responses, such as `100 Continue`, before the real one."""
_HEAD_TOO_LARGE = 431
"""h11's status hint for a status line and headers beyond its limit of 16 KiB."""

Headers = list[tuple[str, str]]


class BrokenConnectionError(Exception):
    """The other side disconnected, or does not speak HTTP."""


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
        """Headers of the current response; names in lower case."""
        self._http = h11.Connection(h11.CLIENT)
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
        """Post `body`. On return, `status` and `headers` are those of the response."""
        message = h11.Request(method="POST", target=target, headers=[*headers, ("Content-Length", str(len(body)))])
        parts = (self._http.send(message), self._http.send(h11.Data(data=body)), self._http.send(h11.EndOfMessage()))
        self._write(*parts)
        await self._head(seconds)

    async def read(self, seconds: float | None) -> bytes:
        """The next part of the body; empty at the end. Raises `TimeoutError` if none arrives within `seconds`."""
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
        if (chunks := self._chunks) is not None:
            whole = chunks.ended and not chunks.rest and self._kept_alive and self._http.our_state is h11.DONE
            self._http, self._chunks = h11.Connection(h11.CLIENT), None
            return whole and self.alive
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE or not self.alive:
            return False
        if self._http.trailing_data[0]:  # an unsolicited response right after the real one
            return False
        self._http.start_next_cycle()
        return True

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
        async with asyncio.timeout(seconds):
            event = await self._event(None)
            for _ in range(_INTERIM):
                if not isinstance(event, h11.InformationalResponse):
                    break
                event = await self._event(None)
        if isinstance(event, h11.InformationalResponse):
            raise BrokenConnectionError(f"more than {_INTERIM} interim responses")
        if not isinstance(event, h11.Response):
            raise BrokenConnectionError("the connection was closed before a response arrived")
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
        """The part of a chunked body received so far, or the next one. Empty at the end."""
        part = b""
        while not part and not chunks.ended:
            data = await self._data(seconds)
            if not data:
                raise BrokenConnectionError("the connection was closed before the response was complete")
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
            raise BrokenConnectionError("its response headers are too large" if too_large else str(error)) from None
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


def _is_address(host: str) -> bool:
    """Whether the host is an IP address. A name may have several addresses, which are tried in parallel because one may
    be dead. For a single address, asyncio's race could leak its socket when cancelled at the wrong moment."""
    return ":" in host or host.replace(".", "").isdigit()


async def connect(
    place: Address, proxy: Address | None, tls: Callable[[], ssl.SSLContext], seconds: float
) -> Connection:
    """A new connection to `place`. Raises `OSError` (which includes TLS errors) or one of this module's errors."""
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
