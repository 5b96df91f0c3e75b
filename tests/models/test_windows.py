"""Context windows, asked of servers that answer on loopback as the real ones do."""

import asyncio
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rows import rows
from wave_agent.models.prices import Prices
from wave_agent.models.windows import Window, context_window, estimate_tokens


def listing(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"object": "list", "data": list(rows)}


def ollama(parameters: str = "", *, loaded: int | None = None, **more: Any) -> dict[str, Any]:
    """Answers of Ollama; `loaded` is the window of the model in memory."""
    stops = 'stop                           "<|im_start|>"\nstop                           "<|im_end|>"'
    row = {"name": "qwen2.5-coder:latest", "model": "qwen2.5-coder:latest", "size_vram": 5137025024}
    return {
        "GET /v1/models": listing({"id": "qwen2.5-coder", "object": "model", "owned_by": "library"}),
        "POST /api/show": {
            "modelfile": "FROM qwen2.5-coder\nPARAMETER num_ctx 1",
            "parameters": f"{stops}\n{parameters}" if parameters else stops,
            "details": {"format": "gguf", "family": "qwen2", "parameter_size": "7.6B"},
            "model_info": {
                "general.architecture": "qwen2",
                "general.parameter_count": 7615616512,
                "qwen2.block_count": 28,
                "qwen2.context_length": 32768,
                "qwen2.embedding_length": 3584,
            },
            "capabilities": ["completion", "tools"],
            **more,
        },
        "GET /api/ps": {"models": [{**row, "context_length": loaded}] if loaded else []},
    }


OLLAMA = Window(32768, "Ollama", images=False, parameters=7615616512)
LM_STUDIO_ROW = {
    "id": "google/gemma-3-4b",
    "object": "model",
    "type": "vlm",
    "publisher": "google",
    "arch": "gemma3",
    "compatibility_type": "gguf",
    "quantization": "Q4_K_M",
    "max_context_length": 131072,
}
VLLM = listing(
    {
        "id": "meta-llama/Llama-3.1-8B",
        "object": "model",
        "created": 1723770563,
        "owned_by": "vllm",
        "root": "meta-llama/Llama-3.1-8B",
        "parent": None,
        "max_model_len": 8096,
    }
)
PROPS: dict[str, Any] = {
    "default_generation_settings": {"id": 0, "n_ctx": 8192, "params": {"n_predict": -1}},
    "total_slots": 4,
    "model_path": "/models/q.gguf",
}
PROPS_AT = "GET /props?model=q.gguf&autoload=false"
LLAMA_CPP = {
    "GET /v1/models": listing(
        {"id": "q.gguf", "object": "model", "owned_by": "llamacpp", "meta": {"n_ctx_train": 40960, "n_vocab": 151936}}
    ),
    PROPS_AT: PROPS,
}
SIZED = listing({"id": "q.gguf", "owned_by": "llamacpp", "meta": {"n_params": 1777088000}})
SIZED_WINDOW = Window(8192, "llama.cpp", parameters=1777088000)


def open_router(length: int, of_provider: int | None, **more: Any) -> dict[str, Any]:
    row = {
        "id": "qwen/qwen3-coder",
        "canonical_slug": "qwen/qwen3-coder",
        "context_length": length,
        "pricing": {"prompt": "0.0000002", "completion": "0.0000008"},
        "top_provider": {"context_length": of_provider, "max_completion_tokens": None, "is_moderated": False},
        **more,
    }
    return {"GET /v1/models": {"data": [{"id": "other", "context_length": 1}, row]}}


@contextmanager
def serving(answers: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """A server with these answers, by method and path, and 404 for the rest: its base URL, and what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            place = f"{self.command} {self.path}"
            asked.append(f"{place} {body.decode()}".strip())
            answer = answers.get(place)
            content = answer if isinstance(answer, bytes) else json.dumps(answer or {"error": "not found"}).encode()
            self.send_response(404 if answer is None else 200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = answer  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1", asked
        finally:
            server.shutdown()
            thread.join()


async def fetch(method: str, url: str, body: Mapping[str, Any] | None, seconds: float) -> tuple[int, Any]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url, method=method, data=None if body is None else json.dumps(body).encode())

    def send() -> tuple[int, Any]:
        try:
            with opener.open(request, timeout=seconds) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    return await asyncio.to_thread(send)


async def window_of(answers: Mapping[str, Any], model: str, path: str = "") -> Window | None:
    """What is told; nothing is asked twice."""
    with serving(answers) as (base_url, asked):
        window = await context_window(base_url + path, model, fetch)
    assert len(set(asked)) == len(asked)
    return window


@pytest.mark.parametrize(
    ("answers", "model", "window"),
    [
        ({"GET /v1/models": VLLM}, "meta-llama/Llama-3.1-8B", Window(8096, "vLLM")),
        (LLAMA_CPP, "q.gguf", Window(8192, "llama.cpp")),
        ({**LLAMA_CPP, "GET /v1/models": SIZED}, "q.gguf", SIZED_WINDOW),
        ({PROPS_AT.replace("q.gguf", "any"): PROPS, "GET /v1/models": SIZED}, "any", SIZED_WINDOW),
        (open_router(262144, 131072), "qwen/qwen3-coder", Window(131072, "OpenRouter", prices=Prices(0.2, 0.8))),
        (open_router(262144, None), "qwen/qwen3-coder", Window(262144, "OpenRouter", prices=Prices(0.2, 0.8))),
        (
            {"GET /api/v0/models": listing({**LM_STUDIO_ROW, "state": "loaded", "loaded_context_length": 4096})},
            "google/gemma-3-4b",
            Window(4096, "LM Studio", images=True),
        ),
        (
            {"GET /v1/models": listing({"id": "llama-3.3", "owned_by": "Meta", "context_window": 131072})},
            "llama-3.3",
            Window(131072, "the server's list of models"),
        ),
        (ollama("num_ctx                        32768"), "qwen2.5-coder", OLLAMA),
        (ollama(loaded=32768), "qwen2.5-coder", OLLAMA),
        (ollama("num_ctx 65536"), "qwen2.5-coder", OLLAMA),
        (ollama(remote_model="qwen3", remote_host="https://ollama.com"), "qwen2.5-coder", OLLAMA),
    ],
    ids=[
        "vllm",
        "llama.cpp",
        "llama.cpp with a size",
        "llama.cpp by any name",
        "openrouter",
        "openrouter without a provider's length",
        "lm studio",
        "a list of models with windows",
        "ollama as long as the model",
        "ollama loaded as long as the model",
        "ollama beyond the model",
        "ollama's cloud",
    ],
)
async def test_each_kind_of_server_tells_its_window(answers: dict[str, Any], model: str, window: Window) -> None:
    assert await window_of(answers, model) == window


@pytest.mark.parametrize(
    ("answers", "model", "images"),
    [
        ({**LLAMA_CPP, PROPS_AT: PROPS | {"modalities": {"vision": True, "audio": False}}}, "q.gguf", True),
        ({**LLAMA_CPP, PROPS_AT: PROPS | {"modalities": {"vision": False, "audio": False}}}, "q.gguf", False),
        (LLAMA_CPP, "q.gguf", None),
        (ollama(capabilities=["completion", "vision"]), "qwen2.5-coder", True),
        (ollama(capabilities=["completion"]), "qwen2.5-coder", False),
        (ollama(capabilities=None), "qwen2.5-coder", None),
        (open_router(8, 8, architecture={"input_modalities": ["text", "image"]}), "qwen/qwen3-coder", True),
        (open_router(8, 8, architecture={"input_modalities": ["text"]}), "qwen/qwen3-coder", False),
        ({"GET /api/v0/models": listing(LM_STUDIO_ROW)}, "google/gemma-3-4b", True),
        ({"GET /api/v0/models": listing({**LM_STUDIO_ROW, "type": "llm"})}, "google/gemma-3-4b", False),
        (
            {"GET /v1/models": listing({"id": "m", "max_context_length": 9, "capabilities": {"vision": True}})},
            "m",
            True,
        ),
        ({"GET /v1/models": VLLM}, "meta-llama/Llama-3.1-8B", None),
    ],
)
async def test_servers_tell_whether_a_model_takes_images(
    answers: dict[str, Any], model: str, images: bool | None
) -> None:
    window = await window_of(answers, model)
    assert window is not None
    assert window.images is images


@pytest.mark.parametrize(
    ("answers", "tokens", "says"),
    [
        (ollama("num_ctx                        8192"), 8192, ["Ollama runs", "8192", "PARAMETER num_ctx 32768"]),
        (ollama(loaded=4096), 4096, ["Ollama runs", "4096", "OLLAMA_CONTEXT_LENGTH=32768"]),
        (ollama(), 4096, ["is likely to run", "4096", "OLLAMA_CONTEXT_LENGTH=32768"]),
        (ollama("num_ctx 8192", loaded=2048), 8192, ["8192", "num_ctx"]),
    ],
    ids=["set in the modelfile", "loaded", "neither set nor loaded", "the modelfile goes before what others loaded"],
)
async def test_a_window_that_ollama_cuts_silently_comes_with_a_warning_and_a_way_to_raise_it(
    answers: dict[str, Any], tokens: int, says: list[str]
) -> None:
    window = await window_of(answers, "qwen2.5-coder")
    assert window is not None
    assert (window.tokens, window.source) == (tokens, "Ollama")
    assert [part for part in says if part not in (window.warning or "")] == []


async def test_a_model_that_lm_studio_has_yet_to_load_comes_with_a_warning() -> None:
    answers = {"GET /api/v0/models": listing({**LM_STUDIO_ROW, "state": "not-loaded"})}
    window = await window_of(answers, "google/gemma-3-4b")
    assert window is not None
    assert window.tokens == 131072
    assert "lms load google/gemma-3-4b --context-length 65536" in (window.warning or "")


@pytest.mark.parametrize("path", ["", "/", "/chat/completions"])
async def test_the_base_url_may_be_written_in_several_ways(path: str) -> None:
    assert await window_of({"GET /v1/models": VLLM}, "meta-llama/Llama-3.1-8B", path) == Window(8096, "vLLM")


@pytest.mark.parametrize(
    ("answers", "model", "requests"),
    [
        ({"GET /v1/models": VLLM}, "meta-llama/Llama-3.1-8B", ["GET /v1/models"]),
        (LLAMA_CPP, "q.gguf", ["GET /v1/models", "GET /props?model=q.gguf&autoload=false"]),
        (ollama(), "qwen2.5-coder", ["GET /v1/models", 'POST /api/show {"model": "qwen2.5-coder"}', "GET /api/ps"]),
    ],
    ids=["vllm", "llama.cpp", "ollama"],
)
async def test_no_more_is_asked_than_is_needed(answers: dict[str, Any], model: str, requests: list[str]) -> None:
    with serving(answers) as (base_url, asked):
        await context_window(base_url, model, fetch)
    assert asked == requests


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"GET /v1/models": VLLM},
        {"GET /v1/models": b"<html>"},
        {"GET /v1/models": b"[]", "POST /api/show": b"[]", "GET /api/v0/models": b"3"},
        {"GET /v1/models": {"data": "none"}, "GET /api/v0/models": {"data": [None, {"id": "m"}]}},
        {"GET /v1/models": listing({"id": "m", "max_model_len": True, "context_length": "8192"})},
        {"GET /v1/models": listing({"id": "m", "top_provider": None})},
        {"POST /api/show": {"model_info": {"general.architecture": None, "x.context_length": -1}}},
        {"GET /props?model=m&autoload=false": {"default_generation_settings": {"n_ctx": 0}}},
    ],
)
async def test_a_server_that_does_not_tell_gives_none(answers: dict[str, Any]) -> None:
    assert await window_of(answers, "m") is None


@pytest.mark.parametrize("base_url", ["http://127.0.0.1:1/v1", "http://[", "", "nonsense"])
async def test_a_server_that_is_not_there_gives_none(base_url: str) -> None:
    assert await context_window(base_url, "m", fetch) is None


async def test_a_server_that_does_not_answer_is_given_up() -> None:
    asked: list[str] = []

    async def silence(method: str, url: str, body: Mapping[str, Any] | None, seconds: float) -> Any:
        asked.append(f"{method} {url} {seconds}")
        await asyncio.Event().wait()

    assert await context_window("http://localhost/v1", "m", silence, seconds=0.01) is None
    assert asked == ["GET http://localhost/v1/models 0.01"]


async def test_all_requests_together_have_a_deadline() -> None:
    async def slow(method: str, url: str, body: Mapping[str, Any] | None, seconds: float) -> Any:
        if url.endswith("/v1/models"):
            return 404, {}
        return await asyncio.Event().wait()

    assert await context_window("http://localhost/v1", "m", slow, total_seconds=0.01) is None


@rows(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("four", 1), ("a" * 4000, 1000), ("漢字かな", 4), ("привет", 3), ("\ud800", 1), ("x😀", 2)],
)
def test_tokens_are_estimated_by_script(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@settings(deadline=None)
@given(before=st.text(), text=st.text(), after=st.text())
def test_more_text_is_never_fewer_tokens(before: str, text: str, after: str) -> None:
    whole = estimate_tokens(before + text + after)
    assert estimate_tokens(text) <= whole
    assert estimate_tokens(before + after) <= whole
