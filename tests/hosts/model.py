"""A scripted model on loopback, in whichever API a host speaks."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.hosts.wires import Sent, Turn, Wire, heard
from tests.running_servers import running

Answer = Callable[[frozenset[str], str], Turn]
"""What the model answers, given the names of the tools on offer and what it was told."""
Script = Sequence[Answer]


class ScriptedModel(ThreadingHTTPServer):
    """Answers each request that offers tools with the next turn of the script, and with a plain text after the last.

    Requests without tools are the host's own, for a title or a summary: they get a text, too, and are not kept.
    """

    daemon_threads = True

    def __init__(self, wire: Wire, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.wire = wire
        self.requests: list[str] = []
        """What the model was told, request by request."""
        self.waits: list[float] = []
        """Seconds from each answer to the next request."""
        self._script = script
        self._answered = 0.0
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, path: str, body: Mapping[str, Any]) -> Sent:
        tools = self.wire.tools(body)
        with self._lock:
            if not tools:
                return self.wire.reply(body, path, (), len(self.requests))
            if self.requests:
                self.waits.append(time.monotonic() - self._answered)
            self.requests.append(heard(body))
            number = len(self.requests)
            turn = self._script[number - 1](tools, self.requests[-1]) if number <= len(self._script) else ()
            return self.wire.reply(body, path, turn, number)

    def answered(self) -> None:
        self._answered = time.monotonic()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is no news."""


@contextmanager
def serving(wire: Wire, script: Script) -> Iterator[ScriptedModel]:
    server = ScriptedModel(wire, script)
    with running(server):
        yield server


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._send(Sent("application/json", b""))

    def do_GET(self) -> None:
        self._send(Sent("application/json", b'{"object": "list", "data": []}'))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))) or b"{}")
        assert isinstance(self.server, ScriptedModel)
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens") or path.endswith(":countTokens"):
            self._send(Sent("application/json", b'{"input_tokens": 100, "totalTokens": 100}'))
        elif self.server.wire.path in path:
            self._send(self.server.answer(path, body))
            self.server.answered()
        else:
            self._send(Sent("application/json", b"{}"), 404)

    def _send(self, sent: Sent, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", sent.kind)
        self.send_header("Content-Length", str(len(sent.data)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(sent.data)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are kept, not logged."""
