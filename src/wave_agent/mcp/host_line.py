"""The agent's end of the socket: whole messages, without ever blocking the event loop."""

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress

from wave_agent.mcp.wire import FromAgent, FromHost, LineSplitter, decode_from_host, encode

_CHUNK = 1 << 18


class HostLine:
    """Serves one event loop at a time: whoever uses it attaches it to theirs."""

    def __init__(self, sock: socket.socket, *, receive: Callable[[FromHost], None], lost: Callable[[], None]) -> None:
        """`receive` gets every message, `lost` is called once when there will be no more."""
        sock.setblocking(False)
        self._socket = sock
        self._receive = receive
        self._lost = lost
        self._lines = LineSplitter()
        self._unsent: list[tuple[memoryview, tuple[int, ...]]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_writing = False

    def attach(self) -> None:
        """To the running loop."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop and self._socket.fileno() >= 0:
            self.detach()
            self._loop = loop
            loop.add_reader(self._socket.fileno(), self._read)
            self._write()

    def detach(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._socket.fileno())
            self._loop.remove_writer(self._socket.fileno())
        self._loop = None
        self._is_writing = False

    def send(self, message: FromAgent, descriptors: Sequence[int] = ()) -> None:
        """`descriptors` are passed along; they must stay open until the message has been sent, so keep them."""
        self._unsent.append((memoryview(encode(message)), tuple(descriptors)))
        if not self._is_writing:
            self._write()

    def _write(self) -> None:
        try:
            while self._unsent:
                data, descriptors = self._unsent[0]
                if descriptors:
                    sent = socket.send_fds(self._socket, [data], list(descriptors))
                else:
                    sent = self._socket.send(data)
                if sent < len(data):
                    self._unsent[0] = (data[sent:], ())
                else:
                    del self._unsent[0]
        except BlockingIOError:
            self._wait_to_write()
            return
        except OSError:  # It has ended: the reader finds out.
            self._unsent.clear()
        self._stop_waiting_to_write()

    def _wait_to_write(self) -> None:
        if self._loop is not None and not self._is_writing:
            self._is_writing = True
            self._loop.add_writer(self._socket.fileno(), self._write)

    def _stop_waiting_to_write(self) -> None:
        if self._loop is not None and self._is_writing:
            self._is_writing = False
            with suppress(OSError, ValueError):
                self._loop.remove_writer(self._socket.fileno())

    def _read(self) -> None:
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.detach()
            self._lost()
            return
        for line in self._lines.feed(data):
            self._receive(decode_from_host(line))
