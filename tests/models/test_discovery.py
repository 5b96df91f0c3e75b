"""Servers on this machine, and what they list: whatever a port answers, the others are found and nothing breaks."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import pytest

from tests.rows import rows
from wave_agent.errors import SettingsError
from wave_agent.models.discovery import MOST_MODELS, Listing, find_local_servers, list_models
from wave_agent.models.nearby import ModelServer, advice, hosted_servers, local_servers, origin_of, server_at
from wave_agent.testing import RecordingModelServer
from wave_agent.testing.model_server import Hang, Status

ROWS = {"data": [{"id": "small"}, {"id": "large", "max_model_len": 65536}]}


def serving_list(answer: Any, path: str = "/v1/models", **more: Any) -> RecordingModelServer:
    return RecordingModelServer([], elsewhere={f"GET {path}": answer, **more})


def at(server: RecordingModelServer, name: str = "vLLM") -> ModelServer:
    return ModelServer(name, server.base_url)


def port_of(server: RecordingModelServer) -> str:
    return server.base_url.removesuffix("/v1").rpartition(":")[2]


@contextmanager
def raw_server(sent: bytes) -> Iterator[str]:
    """Answers each connection with these bytes, whatever was asked, and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(4096)
                    connection.sendall(sent)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


async def test_models_are_listed_with_what_the_list_says_about_them() -> None:
    priced = {"id": "x/y", "context_length": 1000, "pricing": {"prompt": "0.000003", "completion": "0.000015"}}
    free = {"id": "free", "pricing": {"prompt": "-1", "completion": "0"}}
    odd = {"id": "odd", "max_model_len": True, "pricing": {"prompt": "nan", "completion": "much"}}
    async with serving_list({"data": [*ROWS["data"], priced, free, odd, {"id": "small"}]}) as server:
        found = await list_models(at(server))
    assert [(one.name, one.window) for one in found.models] == [
        ("small", None),
        ("large", 65536),
        ("x/y", 1000),
        ("free", None),
        ("odd", None),
    ]
    assert [one.prices for one in found.models] == [None, None, {"input": 3.0, "output": 15.0}, None, None]
    assert found.problem == ""


async def test_an_old_ollama_lists_its_models_elsewhere() -> None:
    async with serving_list({"models": [{"name": "llama3:latest"}]}, "/api/tags") as server:
        found = await list_models(at(server, "Ollama"))
    assert [one.path for one in server.other_requests] == ["/v1/models", "/api/tags"]
    assert [one.name for one in found.models] == ["llama3:latest"]
    assert found.server.base_url == server.base_url


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        pytest.param(Status(200, "<!doctype html><html><body>Welcome</body></html>"), "strange", id="a web page"),
        pytest.param(Status(200, "ok"), "strange", id="not JSON"),
        pytest.param([1, 2], "strange", id="a list"),
        pytest.param({"models": 5}, "strange", id="another object"),
        pytest.param({"data": [{"id": 5}, {"id": ""}, "x", None]}, "strange", id="rows without names"),
        pytest.param({"data": [{"id": "\x1b[2J"}]}, "strange", id="a name that commands the terminal"),
        pytest.param({"data": [{"id": "x" * 10_000}]}, "strange", id="a name without end"),
        pytest.param(Status(200, "[" * 100_000), "strange", id="deep nesting"),
        pytest.param(Status(401, {"error": {"message": "who are you"}}), "key", id="no key"),
        pytest.param(Status(403, ""), "key", id="a wrong key"),
        pytest.param(Status(404, ""), "refused", id="nothing there"),
        pytest.param(Status(500, "<html>"), "refused", id="broken"),
        pytest.param(Status(302, "", {"Location": "http://127.0.0.1:1/v1/models"}), "refused", id="elsewhere"),
        pytest.param(Hang(), "silent", id="no answer"),
    ],
)
async def test_an_answer_that_is_no_list_is_a_problem_in_words(answer: Any, problem: str) -> None:
    async with serving_list(answer) as server:
        found = await list_models(at(server), seconds=0.5)
    assert (found.problem, found.models) == (problem, ())
    assert found.detail.startswith("it ")
    assert "\x1b" not in found.detail


@pytest.mark.parametrize("sent", [b"", b"SSH-2.0-OpenSSH_9.6\r\n", b"\x00\xff" * 50, b"HTTP/1.1 200 OK\r\n\r\n{"])
async def test_a_port_that_speaks_something_else_is_strange(sent: bytes) -> None:
    with raw_server(sent) as url:
        found = await list_models(ModelServer("llama.cpp", url), seconds=5)
    assert found.problem == "strange"


async def test_nothing_listening_is_unreachable() -> None:
    found = await list_models(ModelServer("llama.cpp", f"http://127.0.0.1:{free_port()}/v1"))
    assert found.problem == "unreachable"
    assert "connection refused" in found.detail


async def test_an_empty_list_is_no_problem() -> None:
    async with serving_list({"data": []}) as server:
        assert await list_models(at(server)) == Listing(at(server))


async def test_a_huge_list_is_cut_and_counted() -> None:
    many = {"data": [{"id": f"model-{number}"} for number in range(MOST_MODELS + 7)]}
    async with serving_list(many) as server:
        found = await list_models(at(server), seconds=10)
    assert (len(found.models), found.more) == (MOST_MODELS, 7)


async def test_an_answer_that_never_ends_is_given_up() -> None:
    async with serving_list(Status(200, json.dumps(ROWS) + " " * (5 << 20))) as server:
        found = await list_models(at(server), seconds=10)
    assert found.problem in ("", "strange")  # at most 4 MiB are read


async def test_all_ports_are_asked_at_once_without_a_key_or_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    silent, closed = [serving_list(Hang()) for _ in range(3)], free_port()
    async with serving_list(ROWS) as good, silent[0], silent[1], silent[2]:
        servers = [good, *silent]
        ports = [port_of(server) for server in servers]
        names = ["Ollama", "vLLM", "LM Studio", "llama.cpp"]
        stated = ",".join(f"{name}={port}" for name, port in zip(names, ports, strict=True))
        environment = {"WAVE_LOCAL_PORTS": f"{stated},Other={closed}", "OPENAI_API_KEY": "sk-secret"}
        began = monotonic()
        found = await find_local_servers(environment, seconds=1)
        took = monotonic() - began
    assert [(one.server.name, one.problem, len(one.models)) for one in found] == [
        ("Ollama", "", 2),
        ("vLLM", "silent", 0),
        ("LM Studio", "silent", 0),
        ("llama.cpp", "silent", 0),
    ]
    assert took < 2.5  # one after another, three silent ones would take three seconds
    assert [request.path for request in good.other_requests] == ["/v1/models"]
    assert all("authorization" not in request.headers for server in servers for request in server.other_requests)


async def test_a_key_is_sent_as_the_api_expects_it() -> None:
    async with serving_list(ROWS) as server:
        await list_models(at(server), "sk-key")
        await list_models(ModelServer("Anthropic", server.base_url, "anthropic"), "sk-key")
        await list_models(ModelServer("Anthropic", server.base_url, "anthropic"))
    plain, anthropic, without = (request.headers for request in server.other_requests)
    assert plain["authorization"] == "Bearer sk-key"
    assert (anthropic["x-api-key"], "authorization" in anthropic) == ("sk-key", False)
    assert ("x-api-key" in without, without["anthropic-version"]) == (False, "2023-06-01")


# -------------------------------------------------------------------------------------------------------- the servers


def test_the_usual_ports_are_on_this_machine() -> None:
    assert {one.name: one.base_url for one in local_servers({})} == {
        "Ollama": "http://127.0.0.1:11434/v1",
        "LM Studio": "http://127.0.0.1:1234/v1",
        "llama.cpp": "http://127.0.0.1:8080/v1",
        "vLLM": "http://127.0.0.1:8000/v1",
    }
    assert all(one.base_url.startswith("https://") and one.keys for one in hosted_servers())


def test_other_ports_can_be_named() -> None:
    found = local_servers({"WAVE_LOCAL_PORTS": " ollama = 1 , Mine=65535,"})
    assert [(one.name, one.base_url) for one in found] == [
        ("Ollama", "http://127.0.0.1:1/v1"),
        ("Mine", "http://127.0.0.1:65535/v1"),
    ]
    assert local_servers({"WAVE_LOCAL_PORTS": ""}) == ()


@pytest.mark.parametrize("stated", ["11434", "x=", "x=0", "x=65536", "x=a", "=5", "x=²", "x=1=2"])
def test_ports_that_are_none_are_refused(stated: str) -> None:
    with pytest.raises(SettingsError, match="WAVE_LOCAL_PORTS"):
        local_servers({"WAVE_LOCAL_PORTS": stated})


@rows(
    ("url", "origin"),
    [
        ("https://api.openai.com/v1", "https://api.openai.com"),  # plain
        ("https://API.openai.com:443", "https://api.openai.com"),  # the usual port
        ("https://api.openai.com:8443/v1", "https://api.openai.com:8443"),  # another port
        ("http://api.openai.com/v1", "http://api.openai.com"),  # another scheme
        ("https://api.openai.com@evil.example/v1", "https://evil.example"),  # a user
        ("http://[::1]:80/v1", "http://[::1]"),  # an address
        ("api.openai.com", ""),  # no URL
        ("file:///etc/passwd", ""),  # another kind of URL
        ("http://x:99999/", ""),  # a port that is none
    ],
)
def test_the_origin_is_what_the_client_connects_to(url: str, origin: str) -> None:
    assert origin_of(url) == origin


def test_a_server_is_known_by_its_origin() -> None:
    assert server_at("https://api.mistral.ai/other", {}).keys == ("MISTRAL_API_KEY",)
    assert server_at("http://api.mistral.ai/v1", {}) == ModelServer("", "http://api.mistral.ai/v1")
    assert server_at("https://api.mistral.ai.evil.example/v1", {}).keys == ()


def test_discovery_ends_with_the_loop() -> None:
    """A thread that still waits for a silent server does not keep the program alive."""

    async def ask() -> Listing:
        async with serving_list(Hang()) as server:
            return await list_models(at(server), seconds=0.2)

    assert asyncio.run(ask()).problem == "silent"


def test_advice_names_a_local_server_or_the_demo() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        found = advice({"WAVE_LOCAL_PORTS": f"Ollama={listening.getsockname()[1]}"})
    assert found == "Something is listening on Ollama's usual port: wave setup finds out what."
    assert advice({"WAVE_LOCAL_PORTS": ""}) == "wave demo works without a model."
    assert "WAVE_LOCAL_PORTS" in advice({"WAVE_LOCAL_PORTS": "x"})
