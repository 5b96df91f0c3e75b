"""Small questions to a server: asked near, answered soon, never in the way."""

import json
import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from tests.rows import rows
from wave_agent.models.openai_chat import OpenAIChatModel
from wave_agent.models.probe import Probe, is_near


class Server:
    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str | None]] = []
        self.answers: dict[str, Any] = {}
        self.redirects: dict[str, str] = {}
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.seen.append((self.command, self.path, self.headers.get("Authorization")))
                if place := server.redirects.get(self.path):
                    self.send_response(302)
                    self.send_header("Location", place)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                found = server.answers.get(self.path)
                body = json.dumps(found).encode()
                self.send_response(404 if found is None else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET  # noqa: N815 - the name that the base class looks for

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    made = Server()
    thread = threading.Thread(target=made.http.serve_forever)
    thread.start()
    yield made
    made.http.shutdown()
    thread.join()
    made.http.server_close()


async def test_the_window_is_what_the_server_tells(server: Server):
    server.answers["/v1/models"] = {"data": [{"id": "m", "max_model_len": 8192}]}
    model = OpenAIChatModel(base_url=f"{server.url}/v1", api_key="secret-key", environment={})
    window = await model.context_window("m")
    assert window is not None
    assert window.tokens == 8192
    assert server.seen == [("GET", "/v1/models", "Bearer secret-key")]


async def test_a_server_that_tells_nothing_is_no_trouble(server: Server):
    model = OpenAIChatModel(base_url=f"{server.url}/v1", environment={})
    assert await model.context_window("m") is None


async def test_a_public_server_is_asked_for_its_list_of_models_alone():
    with pytest.raises(OSError, match="public"):
        await Probe(None)("POST", "https://api.example.com/api/show", {}, 1)


@rows(
    ("host", "near"),
    [
        ("localhost", True), ("127.0.0.1", True), ("::1", True), ("192.168.1.5", True), ("10.0.0.1", True),
        ("ollama", True), ("box.local", True), ("api.example.com", False), ("8.8.8.8", False),
    ],
)  # fmt: skip
def test_near_is_this_machine_or_its_own_network(host: str, near: bool):
    assert is_near(host) is near


async def test_where_a_server_points_to_is_not_asked(server: Server):
    elsewhere = Server()
    thread = threading.Thread(target=elsewhere.http.serve_forever)
    thread.start()
    elsewhere.answers["/v1/models"] = {"data": []}
    server.redirects["/v1/models"] = f"{elsewhere.url}/v1/models"
    try:
        with pytest.raises(OSError, match="302"):
            await Probe("secret-key")("GET", f"{server.url}/v1/models", None, 5)
    finally:
        elsewhere.http.shutdown()
        thread.join()
        elsewhere.http.server_close()
    assert server.seen == [("GET", "/v1/models", "Bearer secret-key")]
    assert elsewhere.seen == []


async def test_user_and_password_of_the_url_are_sent_as_a_header(server: Server):
    server.answers["/v1/models"] = {"data": []}
    await Probe(None)("GET", f"{server.url.replace('//', '//me:p%20w@')}/v1/models", None, 5)
    assert server.seen == [("GET", "/v1/models", f"Basic {b64encode(b'me:p w').decode()}")]
