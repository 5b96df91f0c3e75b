"""Servers at a URL: streamable HTTP and SSE, headers, and logins with OAuth."""

import asyncio
import json
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.conftest import SERVERS, new_host, server, text_of
from tests.mcp.oauth_server import OAuthServer
from tests.running_servers import running
from tests.waiting import number_in
from wave_agent.mcp.host import SdkHost
from wave_agent.mcp.values import LoginNeededError, McpError, OAuth, Server, ServerEntry, ServerTransport


def remote(url: str, transport: ServerTransport = ServerTransport.HTTP, *, name: str = "remote", **more: Any) -> Server:
    return server(ServerEntry(transport=transport, url=url, **more), name=name)


@pytest.fixture(scope="module", params=["streamable-http", "sse"])
def official(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of the official SDK."""
    port_file = tmp_path_factory.mktemp("official") / "port"
    process = subprocess.Popen([sys.executable, str(SERVERS / "official.py"), request.param, str(port_file)])
    try:
        port = asyncio.run(number_in(port_file))
        path, kind = ("sse", ServerTransport.SSE) if request.param == "sse" else ("mcp", ServerTransport.HTTP)
        yield remote(f"http://127.0.0.1:{port}/{path}", kind, name=path, headers={"x-a": "1"}, timeout=20)
    finally:
        process.kill()  # politely, it would wait for us to disconnect
        process.wait()


async def test_tools_are_listed_and_called_with_the_headers_of_the_entry(host: SdkHost, official: Server) -> None:
    listing = await host.connect(official, deadline=20)
    is_sse = official.entry.transport == ServerTransport.SSE
    assert listing.protocol == ("2025-11-25" if is_sse else "2026-07-28")
    assert (listing.instructions, listing.tools[0].name) == ("Over HTTP.", "add")
    result = await host.call(official, "add", {"a": 2, "b": 3})
    assert (text_of(result), result.structured) == ("5", {"result": 5})
    if not is_sse:
        assert text_of(await host.call(official, "header", {"name": "x-a"})) == "1"
    assert (await host.call(official, "add", {"a": "x"})).is_error


async def test_a_large_result_is_cut_and_the_connection_stays(host: SdkHost, official: Server) -> None:
    # On the wire, a text is twice as long: it is in the structured content, too.
    assert len(text_of(await host.call(official, "big", {"size": 3 << 20}))) == 3 << 20
    result = await host.call(official, "big", {"size": 20 << 20})
    assert len(text_of(result)) < 8 << 20 < result.cut
    assert text_of(await host.call(official, "add", {"a": 2, "b": 3})) == "5"


async def test_progress_and_cancellation_work_over_http(host: SdkHost, official: Server) -> None:
    heard: asyncio.Queue[tuple[float, float | None, str]] = asyncio.Queue()
    call = asyncio.create_task(host.call(official, "wait", {}, progress=lambda *seen: heard.put_nowait(seen)))
    assert await asyncio.wait_for(heard.get(), 20) == (1, 2, "waiting")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert text_of(await host.call(official, "add", {"a": 2, "b": 3})) == "5"


@pytest.mark.parametrize("status", [200, 302, 403, 404, 500])
async def test_what_is_no_mcp_server_is_named_with_its_http_status(host: SdkHost, status: int) -> None:
    class Page(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", "5")
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, format: str, *args: object) -> None:
            pass

    page = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    with running(page):
        url = f"http://127.0.0.1:{page.server_port}/"
        with pytest.raises(McpError, match=rf"\(HTTP {status}\): .* Is {url} the address of an MCP server\?"):
            await host.connect(remote(url, name=f"page-{status}"), deadline=20)


@pytest.mark.parametrize("transport", [ServerTransport.HTTP, ServerTransport.SSE])
async def test_a_server_that_is_not_there_is_named_without_its_secrets(
    host: SdkHost, transport: ServerTransport
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(McpError) as caught:
        await host.connect(remote(f"http://user:pass@127.0.0.1:{port}/mcp?key=1", transport), deadline=20)
    assert f"'remote' cannot be reached at http://127.0.0.1:{port}/mcp: " in str(caught.value)


@pytest.fixture
def guarded() -> Iterator[OAuthServer]:
    guarded = OAuthServer()
    with running(guarded):
        yield guarded


def visit(url: str) -> None:
    """The user's browser."""
    threading.Thread(target=lambda: urllib.request.urlopen(url).close()).start()


async def test_a_login_is_kept_refreshed_and_never_asked_for_unseen(guarded: OAuthServer, tmp_path: Path) -> None:
    one = remote(f"{guarded.url}/mcp")
    host = new_host(tmp_path)
    try:
        with pytest.raises(McpError, match="The MCP server 'remote' needs a login: wave mcp login remote"):
            await host.connect(one, deadline=20)
        assert not guarded.clients  # Nothing is registered before the user wants it.
        await host.login(one, show_url=visit)
        assert text_of(await host.call(one, "whoami", {})).startswith("access-0 in session-")
        file = tmp_path / "mcp-tokens.json"
        assert file.stat().st_mode & 0o777 == 0o600
        # Another URL under the same name gets nothing.
        with pytest.raises(McpError, match="needs a login"):
            await host.connect(remote(f"{guarded.url}/mcp?"), deadline=20)
        # A server that has forgotten the session is asked again.
        guarded.sessions.clear()
        assert text_of(await host.call(one, "whoami", {})).startswith("access-0 in session-")
    finally:
        await host.close()

    stored = json.loads(file.read_text())
    next(iter(stored["servers"].values()))["expires"] = 1
    file.write_text(json.dumps(stored))
    guarded.tokens.clear()
    guarded.tokens["old"] = 0
    host = new_host(tmp_path)
    try:
        assert text_of(await host.call(one, "whoami", {})).startswith("access-1 in session-")
        assert "access-1" in file.read_text()
        guarded.tokens.clear()
        guarded.refresh_tokens.clear()
        with pytest.raises(McpError, match="needs a login"):
            await host.call(one, "whoami", {})
    finally:
        await host.close()


async def test_a_login_for_more_scopes_keeps_those_there_are(guarded: OAuthServer, tmp_path: Path) -> None:
    guarded.scope_of_calls = "write"
    one = remote(f"{guarded.url}/mcp", oauth=OAuth())
    asked: list[str] = []
    host = new_host(tmp_path)
    try:
        await host.login(one, show_url=visit)
        next_login = json.loads((tmp_path / "mcp-tokens.json").read_text())
        next(iter(next_login["servers"].values()))["tokens"]["scope"] = "read"
        (tmp_path / "mcp-tokens.json").write_text(json.dumps(next_login))
        with pytest.raises(LoginNeededError, match="needs a login"):
            await host.call(one, "whoami", {})
        await host.login(one, show_url=lambda url: (asked.append(url), visit(url))[1])
        assert "scope=read+write" in asked[0]
        assert text_of(await host.call(one, "whoami", {})).startswith("access-1")
    finally:
        await host.close()


async def test_a_login_is_asked_for_even_if_the_older_protocol_is_refused(guarded: OAuthServer, host: SdkHost) -> None:
    guarded.is_newer = True
    with pytest.raises(LoginNeededError, match="needs a login"):
        await host.connect(remote(f"{guarded.url}/mcp"), deadline=20)


async def test_a_configured_client_needs_no_registration_and_a_forged_answer_is_ignored(
    guarded: OAuthServer, host: SdkHost
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
    guarded.clients["mine"] = {"redirect_uris": [f"http://localhost:{port}/callback"]}
    one = remote(f"{guarded.url}/mcp", oauth=OAuth(client_id="mine", callback_port=port, scopes="read write"))
    seen: list[str] = []

    def visit_twice(url: str) -> None:
        seen.append(url)

        def go() -> None:
            with pytest.raises(urllib.error.HTTPError, match="400"):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/callback?code=theirs&state=theirs")
            urllib.request.urlopen(url).close()

        threading.Thread(target=go).start()

    await host.login(one, show_url=visit_twice)
    assert "scope=read+write" in seen[0]
    assert "POST /register" not in guarded.requests
    assert text_of(await host.call(one, "whoami", {})).startswith("access-0")


async def test_a_helper_adds_headers_and_its_failures_are_explained(guarded: OAuthServer, host: SdkHost) -> None:
    guarded.tokens["of-helper"] = float("inf")
    url = f"{guarded.url}/mcp"
    helper = """test "$OF_ITS_OWN" = yes && echo '{"Authorization": "Bearer of-helper"}'"""
    assert text_of(await host.call(remote(url, headers_helper=helper), "whoami", {})).startswith("of-helper in ")
    for broken, why in (
        ("echo no tool >&2; exit 7", r"failed \(exit code 7\): no tool"),
        ("echo '[1]'", "must print a JSON object with a string for each header"),
    ):
        with pytest.raises(McpError, match=f"The headersHelper of the MCP server 'remote' {why}"):
            await host.connect(remote(url, headers_helper=broken), deadline=20)
    guarded.encoding_of_calls = "gzip"  # However small it is: it could be a bomb.
    with pytest.raises(McpError, match="The answer is compressed, although that was not requested"):
        await host.call(remote(url, headers_helper=helper), "whoami", {})
    wrong = remote(url, headers={"Authorization": "Bearer wrong"})
    with pytest.raises(McpError, match=r"refused the credentials in its headers \(HTTP 401\)"):
        await host.connect(wrong, deadline=20)
