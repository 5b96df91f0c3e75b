"""The proxy of a sandbox, without one: the listening socket comes from here."""

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from wave_agent.permissions.hosts import HostList
from wave_agent.permissions.network_proxy import NetworkProxy, WayOut, resolve

SECONDS = 20.0


class Echo(BaseHTTPRequestHandler):
    """Answers with the request's first line, Host and body."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        said = "\n".join([self.requestline, self.headers["Host"], str(self.headers.get("Proxy-Authorization"))])
        answer = said.encode() + b"\n" + body
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_GET  # noqa: N815 - the name that the standard library looks for

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128


@pytest.fixture
def server() -> Generator[int]:
    with Server(("127.0.0.1", 0), Echo) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield running.server_address[1]
        running.shutdown()


class Inside:
    """What a command would see: a port that leads to the proxy."""

    def __init__(self, hosts: HostList, resolve: Callable[..., Any]) -> None:
        self.proxy = NetworkProxy(hosts, resolve)
        self.way: WayOut = self.proxy.open()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.address = listener.getsockname()
            with socket.socket(fileno=os.dup(self.way.descriptor)) as channel:
                socket.send_fds(channel, [b"."], [listener.fileno()])

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, SECONDS)

    def say(self, text: str | bytes) -> str:
        """Everything that is answered."""
        with self.connect() as connection:
            connection.sendall(text if isinstance(text, bytes) else text.encode())
            return _all(connection).decode()


def _all(connection: socket.socket) -> bytes:
    pieces: list[bytes] = []
    while piece := connection.recv(1 << 16):
        pieces.append(piece)
    return b"".join(pieces)


Enter = Callable[..., Inside]


@pytest.fixture
def enter() -> Generator[Enter]:
    made: list[Inside] = []

    def one(
        *entries: str, denied: Sequence[str | None] = (), to: str | None = "127.0.0.1", at: int | None = None
    ) -> Inside:
        def lead(_: str, port: int) -> list[tuple[int, tuple[Any, ...]]]:
            return [(socket.AF_INET, (to, at or port))]

        made.append(Inside(HostList(entries, denied), resolve if to is None else lead))
        return made[-1]

    yield one
    for inside in made:
        inside.proxy.close()


def test_a_plain_request_reaches_a_listed_host_as_the_server_expects_it(enter: Enter, server: int) -> None:
    inside = enter("api.example.com", at=server)
    answer = inside.say(
        "POST http://API.example.com/path?x=1 HTTP/1.1\r\nHost: other.example\r\nProxy-Authorization: Basic x\r\n"
        "Content-Length: 4\r\n\r\nbody"
    )
    assert answer.startswith("HTTP/1.1 200")
    assert answer.endswith("POST /path?x=1 HTTP/1.1\nAPI.example.com\nNone\nbody")
    assert inside.way.close() == ""


def test_so_does_a_tunnel(enter: Enter, server: int) -> None:
    inside = enter("api.example.com", at=server)
    answer = inside.say(
        "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com\r\n\r\n"
        "GET / HTTP/1.1\r\nHost: in-the-tunnel\r\nConnection: close\r\n\r\n"
    )
    assert answer.startswith("HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200")
    assert "in-the-tunnel" in answer


@pytest.mark.parametrize(
    "request_line",
    [
        "CONNECT evil.example:443 HTTP/1.1",
        "CONNECT api.example.com.evil.example:443 HTTP/1.1",
        "CONNECT 127.0.0.1:{port} HTTP/1.1",
        "CONNECT 127.1:{port} HTTP/1.1",
        "CONNECT 2130706433:{port} HTTP/1.1",
        "CONNECT [::1]:{port} HTTP/1.1",
        "CONNECT [::ffff:127.0.0.1]:{port} HTTP/1.1",
        "GET http://evil.example/ HTTP/1.1",
        "GET http://127.0.0.1:{port}/ HTTP/1.1",
    ],
)
def test_nothing_else_is_reached_and_the_answer_names_the_setting(enter: Enter, server: int, request_line: str) -> None:
    inside = enter("api.example.com", at=server)
    answer = inside.say(f"{request_line.format(port=server)}\r\nHost: api.example.com\r\n\r\n")
    assert answer.startswith("HTTP/1.1 403")
    assert "it is not listed in the setting sandbox.network (api.example.com)." in answer
    assert "The sandbox refused the network: " in inside.way.close()


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n", 400),
        ("GET https://api.example.com/ HTTP/1.1\r\n\r\n", 400),
        ("GET http://api.example.com@evil.example/ HTTP/1.1\r\n\r\n", 400),
        ("GET http://[::1/ HTTP/1.1\r\n\r\n", None),
        ("CONNECT api.example.com HTTP/1.1\r\n\r\n", 400),
        ("CONNECT api.example.com:0 HTTP/1.1\r\n\r\n", 400),
        ("CONNECT api.example.com:99999 HTTP/1.1\r\n\r\n", 400),
        ("CONNECT api.example.com\x00.evil:443 HTTP/1.1\r\n\r\n", 400),
        ("\x05\x01\x00\r\n\r\n", 400),
        (f"GET http://api.example.com/{'x' * 70_000} HTTP/1.1\r\n\r\n", 431),
    ],
)
def test_what_is_no_request_is_refused(enter: Enter, server: int, said: str, status: int | None) -> None:
    inside = enter("api.example.com", at=server)
    try:
        answer = inside.say(said)
    except ConnectionError:
        answer = ""
    assert answer.startswith(f"HTTP/1.1 {status}") if status else not answer
    assert inside.say("GET http://api.example.com/ HTTP/1.1\r\n\r\n").startswith("HTTP/1.1 200")


def test_a_rule_beats_the_list(enter: Enter, server: int) -> None:
    inside = enter("*.example.com", "127.0.0.1", denied=["bad.example.com"], at=server)
    assert inside.say("GET http://good.example.com/ HTTP/1.1\r\n\r\n").startswith("HTTP/1.1 200")
    answer = inside.say("GET http://bad.example.com/ HTTP/1.1\r\n\r\n")
    assert answer.startswith("HTTP/1.1 403")
    assert "Net" in answer


def test_a_listed_name_does_not_lead_into_this_machine(enter: Enter, server: int) -> None:
    """As with DNS rebinding: whoever owns the name decides where it leads."""
    inside = enter("*.example.com", at=server)
    answer = inside.say("CONNECT a.example.com:443 HTTP/1.1\r\n\r\n")
    assert answer.startswith("HTTP/1.1 403")
    assert "it leads to the private address 127.0.0.1" in answer


def test_it_connects_to_the_address_that_it_judged(server: int) -> None:
    """The second time, the name leads elsewhere."""
    answers = iter([("127.0.0.1", server), ("127.0.0.1", 1)])
    inside = Inside(HostList(["a.example.com"]), lambda *_: [(socket.AF_INET, next(answers))])
    assert inside.say("GET http://a.example.com/ HTTP/1.1\r\n\r\n").startswith("HTTP/1.1 200")
    inside.proxy.close()


def test_a_host_that_cannot_be_reached_or_resolved_is_said_to_be(enter: Enter) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    inside = enter("localhost", at=port)
    assert inside.say("CONNECT localhost:443 HTTP/1.1\r\n\r\n").startswith("HTTP/1.1 502")

    def fail(*_: object) -> Any:
        raise RuntimeError("broken")

    other = Inside(HostList(["localhost"]), fail)
    assert "cannot be resolved: broken" in other.say("CONNECT localhost:443 HTTP/1.1\r\n\r\n")
    other.proxy.close()


def test_an_explicit_localhost_is_this_machine(enter: Enter, server: int) -> None:
    inside = enter("localhost", to=None)
    assert inside.say(f"GET http://localhost:{server}/ HTTP/1.1\r\n\r\n").startswith("HTTP/1.1 200")
    assert inside.way.variables["NO_PROXY"] == "127.0.0.1,::1"


def test_a_half_closed_connection_still_gets_its_answer(enter: Enter) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer_at_the_end() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(_all(connection).upper())

        thread = threading.Thread(target=answer_at_the_end, daemon=True)
        thread.start()
        inside = enter("a.example.com", at=server.getsockname()[1])
        with inside.connect() as connection:
            connection.sendall(b"CONNECT a.example.com:9 HTTP/1.1\r\n\r\nhello")
            connection.shutdown(socket.SHUT_WR)
            assert _all(connection).endswith(b"\r\n\r\nHELLO")
        thread.join(SECONDS)


def test_a_server_that_stops_sending_still_gets_the_rest(enter: Enter) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        received: list[bytes] = []

        def close_first() -> None:
            connection, _ = server.accept()
            with connection:
                connection.shutdown(socket.SHUT_WR)
                received.append(_all(connection))

        thread = threading.Thread(target=close_first, daemon=True)
        thread.start()
        inside = enter("a.example.com", at=server.getsockname()[1])
        with inside.connect() as connection:
            connection.sendall(b"CONNECT a.example.com:9 HTTP/1.1\r\n\r\n")
            assert b"200" in _all(connection)
            connection.sendall(b"the rest")
            connection.shutdown(socket.SHUT_WR)
            thread.join(SECONDS)
        assert received == [b"the rest"]


def test_many_connections_at_once(enter: Enter, server: int) -> None:
    inside = enter("a.example.com", at=server)
    connections = [inside.connect() for _ in range(100)]
    for connection in connections:
        connection.sendall(b"GET http://a.example.com/ HTTP/1.1\r\n\r\n")
    assert all(_all(connection).startswith(b"HTTP/1.1 200") for connection in connections)
    for connection in connections:
        connection.close()


def test_when_the_command_has_ended_so_have_its_connections(enter: Enter, server: int) -> None:
    inside = enter("a.example.com", at=server)
    with inside.connect() as connection:
        connection.sendall(b"CONNECT a.example.com:9 HTTP/1.1\r\n\r\n")
        assert b"200" in connection.recv(1 << 16)
        inside.way.close()
        assert connection.recv(1) == b""
    with pytest.raises(OSError):  # noqa: PT011 - refused or reset
        inside.connect()


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors through /proc")
def test_nothing_is_left_open(server: int) -> None:
    Inside(HostList(["a.example.com"]), resolve).proxy.close()  # loads what is loaded once
    before = os.listdir("/proc/self/fd")
    inside = Inside(HostList(["a.example.com"]), lambda *_: [(socket.AF_INET, ("127.0.0.1", server))])
    for _ in range(20):
        inside.say("GET http://a.example.com/ HTTP/1.1\r\n\r\n")
    connection = inside.connect()
    connection.sendall(b"CONNECT a.example.com:9 HTTP/1.1\r\n\r\n")
    connection.recv(1)
    inside.proxy.close()
    connection.close()
    deadline = time.monotonic() + SECONDS
    while len(os.listdir("/proc/self/fd")) > len(before):  # the server, which is also here, closes its side later
        assert time.monotonic() < deadline
    assert "wave-network" not in [thread.name for thread in threading.enumerate()]


def test_a_client_that_does_not_read_keeps_nothing_open(enter: Enter) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        inside = enter("a.example.com", at=server.getsockname()[1])
        with inside.connect() as client:
            client.sendall(b"CONNECT a.example.com:9 HTTP/1.1\r\n\r\n")
            connection, _ = server.accept()
            with connection:
                connection.settimeout(0.2)
                with pytest.raises(TimeoutError):  # everything on the way is full
                    send_forever(connection)
                inside.proxy.close()
                connection.settimeout(SECONDS)
                with pytest.raises(ConnectionError):
                    send_forever(connection)


def send_forever(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"x" * 65536)


@pytest.mark.parametrize("count", [0, 2])
def test_only_one_socket_is_accepted_from_inside(count: int) -> None:
    """A command that gets hold of the channel gains nothing."""
    proxy = NetworkProxy(HostList(["a.example.com"]))
    way = proxy.open()
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(fileno=os.dup(way.descriptor)) as channel:
        socket.send_fds(channel, [b"."], [listener.fileno()] * count)
        with socket.create_connection(listener.getsockname(), SECONDS) as connection:
            connection.settimeout(0.2)
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            with pytest.raises(TimeoutError):
                connection.recv(1)
    proxy.close()
