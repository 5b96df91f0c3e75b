"""The network of a sandbox with a list of hosts: a proxy outside that connects to those hosts and no others.

A command has its own network, which consists of a loopback interface. Before it starts, a few lines of Python inside
open a listening socket there and send it out over a Unix socket that has no name. The proxy accepts connections on it.
So nothing inside leads to the proxy but that port, nothing has to run inside, and nothing is left on disk.
"""

import asyncio
import os
import re
import socket
import sys
import threading
from array import array
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from wave_agent.effects.hosts import normal_host
from wave_agent.errors import SandboxError
from wave_agent.lazy_regex import lazy_regex
from wave_agent.permissions.hosts import HostList
from wave_agent.system.threads import start_in_thread

PORT = 3128
"""Of the proxy, inside. Every command has the loopback interface to itself."""
_ENTER = """
import _signal, _socket, os, sys
channel = _socket.socket(fileno=int(sys.argv[1]))
listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
listener.bind(("127.0.0.1", int(sys.argv[2])))
listener.listen(128)
passed = listener.fileno().to_bytes(4, sys.byteorder)
channel.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, passed)])
channel.close()
listener.close()
for name in ("SIGPIPE", "SIGXFSZ"):
    _signal.signal(getattr(_signal, name), _signal.SIG_DFL)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""Python ignores two signals, which the command must not inherit."""
_OWN = ("localhost", "127.0.0.1", "::1")
"""What a command calls itself."""
_MOST_CONNECTIONS = 512
"""At once, for the whole session."""
_LONGEST_HEAD = 64 << 10
_HEAD_SECONDS = 30.0
_CONNECT_SECONDS = 15.0
_CHUNK = 64 << 10
_NOT_HTTP = "this is an HTTP proxy, and that was not an HTTP/1.1 request"
_SHOWN = 5
"""Refused hosts that are named; the rest is counted."""
_REQUEST = lazy_regex(rb"([A-Z]+) ([!-~]+) HTTP/1\.[01]")
_AUTHORITY = lazy_regex(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+):([0-9]{1,5})")
_HOP_BY_HOP = (b"connection", b"proxy-connection", b"proxy-authorization", b"keep-alive", b"host")

SocketAddress = tuple[Any, ...]
Resolve = Callable[[str, int], Sequence[tuple[int, SocketAddress]]]
"""Host and port → families and addresses. Blocks; raises `OSError`."""


def resolve(host: str, port: int) -> Sequence[tuple[int, SocketAddress]]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(family, address) for family, _, _, _, address in found]


class _ForbiddenError(Exception):
    """The request is not carried out; the client gets this answer."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(why)
        self.status = status


class WayOut:
    """The network of one command."""

    def __init__(self, proxy: "NetworkProxy", hosts: HostList) -> None:
        self._proxy = proxy
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.refused: dict[str, None] = {}
        own = ",".join(name for name in _OWN if hosts.is_own(name))
        address = f"http://127.0.0.1:{PORT}"
        proxies = {f"{name}_PROXY": address for name in ("HTTP", "HTTPS", "ALL")} | {"NO_PROXY": own}
        self.variables: Mapping[str, str] = {
            **proxies,
            **{name.lower(): value for name, value in proxies.items()},
            "NODE_USE_ENV_PROXY": "1",
        }
        """For the command."""

    @property
    def descriptor(self) -> int:
        """Has to be passed to the command."""
        return self._theirs.fileno()

    def enter(self, argv: Sequence[str]) -> list[str]:
        """The command line inside that connects the way out, then becomes `argv`."""
        python = getattr(sys, "_base_executable", None) or sys.executable
        return [os.path.realpath(python), "-I", "-S", "-c", _ENTER, str(self.descriptor), str(PORT), *argv]

    def close(self) -> str:
        """Ends all its connections. Returns a remark on what was refused, or nothing."""
        if self._ours.fileno() >= 0:
            self._proxy.forget(self)
            self._proxy.run(self._end())
            self._theirs.close()
            self._ours.close()
        names = list(self.refused)
        if not names:
            return ""
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return f"The sandbox refused the network: {'; '.join(names[:_SHOWN])}{more}"

    async def begin(self) -> None:
        """In the proxy's thread: waits for the socket, in the background."""
        self._ours.setblocking(False)
        asyncio.get_running_loop().add_reader(self._ours.fileno(), self._receive)

    def _receive(self) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._ours.fileno())  # one socket, whatever else arrives
        descriptors = array("i")
        try:
            space = socket.CMSG_SPACE(descriptors.itemsize)
            _, ancillary, _, _ = self._ours.recvmsg(1, space)
        except OSError:
            return
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
        if len(descriptors) != 1:
            for descriptor in descriptors:
                os.close(descriptor)
            return
        self._listener = socket.socket(fileno=descriptors[0])
        self._listener.setblocking(False)
        self._start(self._listen(self._listener))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _listen(self, listener: socket.socket) -> None:
        try:
            self._server = await asyncio.start_server(self._accept, sock=listener, limit=_LONGEST_HEAD)
        except (OSError, ValueError):  # not a listening socket
            listener.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        self._start(self._serve(reader, writer))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._proxy.serve(self, reader, writer)
        with suppress(OSError):
            await writer.wait_closed()
        self._writers.discard(writer)

    async def _end(self) -> None:
        if self._ours.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._ours.fileno())
        if self._server is not None:
            self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0)  # they close in the next round
        if self._listener is not None:
            self._listener.close()


class NetworkProxy:
    """HTTP requests and tunnels to the listed hosts. It runs in its own thread, from the first command on."""

    def __init__(self, hosts: HostList, resolve: Resolve = resolve) -> None:
        self._hosts = hosts
        self._resolve = resolve
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._ways: list[WayOut] = []
        self._connections = 0

    def open(self) -> WayOut:
        """For one command. Raises `SandboxError` if no socket or thread is left."""
        try:
            with self._lock:
                if self._loop is None:
                    self._loop = asyncio.new_event_loop()
                    self._thread = threading.Thread(target=self._loop.run_forever, name="wave-network", daemon=True)
                    self._thread.start()
                way = WayOut(self, self._hosts)
                self._ways.append(way)
            self.run(way.begin())
        except (OSError, RuntimeError) as error:
            raise SandboxError(f"the proxy for sandbox.network cannot be started: {error}") from None
        return way

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """In the proxy's thread, and waits for it."""
        loop = self._loop
        if loop is None or loop.is_closed():
            work.close()
            return
        asyncio.run_coroutine_threadsafe(work, loop).result(_CONNECT_SECONDS)

    def forget(self, way: WayOut) -> None:
        with self._lock, suppress(ValueError):
            self._ways.remove(way)

    def close(self) -> None:
        """Ends all connections. It can be opened again."""
        for way in list(self._ways):
            with suppress(TimeoutError):
                way.close()
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(_CONNECT_SECONDS)
            if not thread.is_alive():
                loop.close()

    async def serve(self, way: WayOut, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection from inside."""
        self._connections += 1
        try:
            if self._connections > _MOST_CONNECTIONS:
                raise _ForbiddenError("503 Service Unavailable", f"more than {_MOST_CONNECTIONS} connections are open")
            await self._carry_out(way, reader, writer)
        except _ForbiddenError as refused:
            body = f"{refused}\n".encode()
            head = f"HTTP/1.1 {refused.status}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
            with suppress(OSError):
                await writer.drain()
        except Exception:  # whatever went wrong, nothing is carried out
            writer.transport.abort()
        finally:
            self._connections -= 1
            writer.close()

    async def _carry_out(self, way: WayOut, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                head = await reader.readexactly(1)
                if not head.isupper():  # as in another protocol, whose client waits for an answer
                    raise _ForbiddenError("400 Bad Request", _NOT_HTTP)
                head += await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            raise _ForbiddenError("431 Request Header Fields Too Large", "the request's header is too long") from None
        first, _, fields = head.partition(b"\r\n")
        request = _REQUEST.fullmatch(first)
        if request is None:
            raise _ForbiddenError("400 Bad Request", _NOT_HTTP)
        method, target = request[1], request[2].decode()
        host, port, rest = _target(method, target)
        upstream = await self._connect(way, host, port)
        there, back = upstream
        try:
            if method == b"CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                back.write(_plain_head(method, rest, target, fields))
            await _both_ways(_pipe(reader, back), _pipe(there, writer))
            back.close()
            await back.wait_closed()  # what it has not taken yet is still sent
        finally:
            back.transport.abort()

    async def _connect(self, way: WayOut, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        name = normal_host(host)
        shown = f"{name}:{port}"
        why = self._hosts.why_not(name, port)
        if why is None:
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    found = await self._addresses(name, port)
            except (OSError, UnicodeError, TimeoutError) as error:
                raise _ForbiddenError("502 Bad Gateway", f"{name} cannot be resolved: {error or 'no answer'}") from None
            judged = [(one, self._hosts.why_not_at(name, str(one[1][0]), port)) for one in found]
            usable = [one for one, problem in judged if problem is None]
            why = None if usable else next((problem for _, problem in judged if problem), "it has no address")
            if why is None:
                return await _first_connection(usable, shown)
        way.refused[f"{shown}: {why}"] = None
        raise _ForbiddenError("403 Forbidden", f"Wave's sandbox refused {shown}: {why}.")

    async def _addresses(self, host: str, port: int) -> Sequence[tuple[int, SocketAddress]]:
        """Resolved outside, in a thread of its own: a name server may take its time."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Sequence[tuple[int, SocketAddress]]] = loop.create_future()

        def deliver(found: Sequence[tuple[int, SocketAddress]], error: Exception | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(found)
            else:
                future.set_exception(error)

        def work() -> None:
            found: Sequence[tuple[int, SocketAddress]] = ()
            problem: Exception | None = None
            try:
                found = self._resolve(host, port)
            except Exception as error:
                problem = error if isinstance(error, OSError | UnicodeError) else OSError(str(error))
            with suppress(RuntimeError):  # the proxy was closed meanwhile
                loop.call_soon_threadsafe(deliver, found, problem)

        start_in_thread(work)
        return await future


def _target(method: bytes, target: str) -> tuple[str, int, str]:
    """Host, port and, for a plain request, the path."""
    if method == b"CONNECT":
        found = _AUTHORITY.fullmatch(target)
        rest = ""
    else:
        parts = urlsplit(target)
        if parts.scheme != "http":
            raise _ForbiddenError(
                "400 Bad Request", "expected CONNECT, or a request for a URL that begins with http://"
            )
        found = _AUTHORITY.fullmatch(parts.netloc if re.search(r":\d+\Z", parts.netloc) else f"{parts.netloc}:80")
        rest = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if found is None or not 0 < int(found[2]) < 1 << 16:
        raise _ForbiddenError("400 Bad Request", "the request does not name a host and a port")
    return found[1], int(found[2]), rest


def _plain_head(method: bytes, rest: str, target: str, fields: bytes) -> bytes:
    """The request as the server expects it. One request per connection: the next may be for another host."""
    kept = [
        line for line in fields.split(b"\r\n") if line and line.partition(b":")[0].strip().lower() not in _HOP_BY_HOP
    ]
    first = b"%s %s HTTP/1.1" % (method, rest.encode())
    return b"\r\n".join([first, b"Host: %s" % urlsplit(target).netloc.encode(), *kept, b"Connection: close", b"", b""])


async def _first_connection(
    addresses: Sequence[tuple[int, SocketAddress]], shown: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """To exactly these addresses, which were judged: a name could lead elsewhere the next time."""
    loop = asyncio.get_running_loop()
    problem: Exception | None = None
    for family, address in addresses:
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.setblocking(False)
            async with asyncio.timeout(_CONNECT_SECONDS):
                await loop.sock_connect(connection, address)
                return await asyncio.open_connection(sock=connection, limit=_CHUNK)
        except (OSError, TimeoutError) as error:
            connection.close()
            problem = error
        except BaseException:
            connection.close()
            raise
    raise _ForbiddenError("502 Bad Gateway", f"{shown} cannot be reached: {problem or 'no answer'}")


async def _both_ways(*pipes: Coroutine[Any, Any, None]) -> None:
    """Until both are done. If one fails, the other has no one to talk to."""
    tasks = [asyncio.ensure_future(pipe) for pipe in pipes]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until one side ends; the other direction may go on."""
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
