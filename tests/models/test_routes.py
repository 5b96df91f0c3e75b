"""Proxies, certificates and base URLs."""

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.models.serving import RecordingProxy, answer, client, text_of
from tests.rows import rows
from wave_agent.errors import ModelError
from wave_agent.http.retries import Backoff
from wave_agent.http.routes import chat_endpoint, proxy_for, tls_context
from wave_agent.testing.model_server import RecordingModelServer

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="makes certificates with openssl")


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate of 127.0.0.1 and model.example, with its key in the same file."""
    folder = tmp_path_factory.mktemp("tls")
    names = "subjectAltName=IP:127.0.0.1,DNS:model.example"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
    files = ["-keyout", "key.pem", "-out", "ca.pem", "-addext", names]
    subprocess.run([*command, *files], cwd=folder, check=True, capture_output=True)
    return folder / "ca.pem"


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    return context


def forwarding_to(
    server: RecordingModelServer, refusal: bytes = b"", tls: ssl.SSLContext | None = None
) -> RecordingProxy:
    parts = urlsplit(server.base_url)
    return RecordingProxy(parts.hostname or "", parts.port or 0, refusal, tls)


@needs_openssl
@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
async def test_tls_with_an_authority_of_ones_own(name: str, certificate: Path, tls: ssl.SSLContext) -> None:
    async with (
        RecordingModelServer(["Hi", "again"], tls=tls) as server,
        client(server.base_url, {name: str(certificate)}) as model,
    ):
        assert text_of(await answer(model)) == "Hi"
        assert text_of(await answer(model)) == "again"
    assert [request.connection for request in server.requests] == [1, 1]


@needs_openssl
async def test_a_certificate_that_is_not_trusted_is_told(tls: ssl.SSLContext) -> None:
    async with RecordingModelServer([], tls=tls) as server, client(server.base_url) as model:
        with pytest.raises(ModelError, match=r"certificate refused: self.signed certificate\)\. Set SSL_CERT_FILE"):
            await answer(model)


async def test_https_to_a_server_for_http_is_told() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, client(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1") as model:
        with pytest.raises(ModelError, match=r"no TLS: .*Does the server use http://"):
            await answer(model)


def test_a_bundle_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").touch()
    for file in ("missing.pem", "empty.pem"):
        with pytest.raises(ModelError, match=rf"SSL_CERT_FILE is .*{file}, which cannot be used: "):
            tls_context({"SSL_CERT_FILE": str(tmp_path / file)})
    assert tls_context({"SSL_CERT_DIR": str(tmp_path)}).verify_mode is ssl.CERT_REQUIRED
    assert tls_context({}).check_hostname


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_plain_requests_go_through_the_proxy(name: str) -> None:
    async with RecordingModelServer(["Hi"]) as server, forwarding_to(server) as proxy:
        environment = {name: f"http://me:secret%40word@{proxy.url}"}
        async with client("http://model.example/v1", environment) as model:
            assert text_of(await answer(model)) == "Hi"
    assert proxy.heads[0].startswith(
        "POST http://model.example/v1/chat/completions HTTP/1.1\r\nHost: model.example\r\n"
    )
    assert "Proxy-Authorization: Basic bWU6c2VjcmV0QHdvcmQ=" in proxy.heads[0]


@needs_openssl
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_tls_goes_through_a_tunnel_of_the_proxy(scheme: str, certificate: Path, tls: ssl.SSLContext) -> None:
    proxy_tls = tls if scheme == "https" else None
    async with RecordingModelServer(["Hi", "again"], tls=tls) as server, forwarding_to(server, tls=proxy_tls) as proxy:
        environment = {"HTTPS_PROXY": f"{scheme}://{proxy.url}", "SSL_CERT_FILE": str(certificate)}
        async with client("https://model.example/v1", environment, api_key="sk-secret") as model:
            assert text_of(await answer(model)) == "Hi"
            assert text_of(await answer(model)) == "again"
    assert proxy.heads == ["CONNECT model.example:443 HTTP/1.1\r\nHost: model.example:443\r\n\r\n"]
    assert server.requests[0].headers["host"] == "model.example"


@pytest.mark.parametrize("no_proxy", ["127.0.0.1", "*", "example.com, 127.0.0.0/8"])
async def test_no_proxy_is_honoured(no_proxy: str) -> None:
    async with (
        RecordingModelServer(["Hi"]) as server,
        forwarding_to(server) as proxy,
        client(server.base_url, {"HTTP_PROXY": proxy.url, "NO_PROXY": no_proxy}) as model,
    ):
        assert text_of(await answer(model)) == "Hi"
    assert proxy.heads == []


async def test_a_proxy_that_refuses_is_told_without_its_password() -> None:
    refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
    async with (
        RecordingModelServer([]) as server,
        forwarding_to(server, refusal) as proxy,
        client("https://model.example/v1", {"HTTPS_PROXY": f"http://me:hunter2@{proxy.url}"}) as model,
    ):
        with pytest.raises(ModelError) as raised:
            await answer(model)
    assert str(raised.value) == (
        f"Could not connect to https://model.example/v1 through the proxy http://{proxy.url} "
        "(407 Proxy Authentication Required). Put the user and password in the proxy's URL."
    )


@pytest.mark.parametrize("refusal", [b"HTTP/1.1 503 Busy\r\n\r\n", b"nonsense\r\n\r\n"])
async def test_a_proxy_in_trouble_is_tried_again(refusal: bytes) -> None:
    async with (
        RecordingModelServer([]) as server,
        forwarding_to(server, refusal) as proxy,
        client("https://h/v1", {"HTTPS_PROXY": proxy.url}, backoff=Backoff(attempts=3)) as model,
    ):
        with pytest.raises(ModelError, match=r"through the proxy .*tried 3 times"):
            await answer(model)
    assert len(proxy.heads) == 3


async def test_a_proxy_that_is_not_running_is_told() -> None:
    async with client("http://h/v1", {"HTTP_PROXY": "http://127.0.0.1:9"}) as model:
        with pytest.raises(ModelError, match=r"through the proxy .*Is the proxy running at http://127\.0\.0\.1:9\?"):
            await answer(model)


@rows(
    ("url", "no_proxy", "proxied"),
    [
        ("http://api.example.com/v1", "", True),
        ("http://api.example.com/v1", "example.com", False),
        ("http://api.example.com/v1", ".example.com", False),
        ("http://api.example.com/v1", "*.example.com", False),
        ("http://badexample.com/v1", "example.com", True),
        ("http://example.com:8000/v1", "example.com:8000", False),
        ("http://example.com:8000/v1", "example.com:80", True),
        ("http://[::1]:8000/v1", "::1", False),
        ("http://[::1]:8000/v1", "[::1]:8000", False),
        ("http://10.1.2.3/v1", "192.168.0.0/16,10.0.0.0/8", False),
        ("http://example.com/v1", "10.0.0.0/8", True),
        ("http://example.com/v1", " , EXAMPLE.com", False),
    ],
)
def test_what_no_proxy_excepts(url: str, no_proxy: str, proxied: bool) -> None:
    environment = {"HTTP_PROXY": "p:3128", "HTTPS_PROXY": "other", "no_proxy": no_proxy}
    proxy = proxy_for(chat_endpoint(url).place, environment)
    assert (proxy is not None) == proxied
    if proxy is not None:
        assert proxy.origin == "http://p:3128"


@pytest.mark.parametrize("url", ["socks5://me:hunter2@h:1080", "http://h:port"])
def test_a_proxy_that_cannot_be_used_is_told(url: str) -> None:
    with pytest.raises(ModelError, match=r"^ALL_PROXY is .*Change or unset it\.$") as raised:
        proxy_for(chat_endpoint("http://h/v1").place, {"ALL_PROXY": url})
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "shown", "target"),
    [
        ("https://api.openai.com/v1", "https://api.openai.com/v1", "/v1/chat/completions"),
        (" http://h:80/v1/ ", "http://h/v1", "/v1/chat/completions"),
        ("http://h:8080", "http://h:8080", "/chat/completions"),
        ("http://h/v1/chat/completions", "http://h/v1", "/v1/chat/completions"),
        ("https://u:p@h/a?api-version=1", "https://h/a", "/a/chat/completions?api-version=1"),
        ("http://[::1]:9/é", "http://[::1]:9/é", "/%C3%A9/chat/completions"),
        ("http://bücher.example/v1", "http://xn--bcher-kva.example/v1", "/v1/chat/completions"),
    ],
)
def test_base_urls(url: str, shown: str, target: str) -> None:
    endpoint = chat_endpoint(url)
    assert (endpoint.shown, endpoint.target) == (shown, target)


@pytest.mark.parametrize("url", ["", "api.openai.com/v1", "ftp://h/v1", "http://", "http://h:x/v1", "http://h/a b"])
def test_what_is_no_base_url_is_told(url: str) -> None:
    with pytest.raises(ModelError, match="is not a base URL"):
        chat_endpoint(url)


async def test_user_and_password_of_the_base_url_are_sent() -> None:
    async with RecordingModelServer(["Hi"]) as server, client(server.base_url.replace("://", "://me:word@")) as model:
        await answer(model)
    assert server.requests[0].headers["authorization"] == "Basic bWU6d29yZA=="
