"""Sessions through LiteLLM's proxy, a server that others wrote, in front of the scripted model. Opt-in:
`make test-litellm`.

The proxy speaks all three APIs, and translates each of them to what the model behind it speaks.
"""

import json
import os
import socket
import subprocess
import time
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import repeat
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

import pytest

from tests.cli.project import Project
from wave_agent.models.apis import APIS
from wave_agent.models.base import ToolCall, Usage
from wave_agent.testing.model_server import RecordedRequest, RecordingModelServer, Reply, ServerScript

PROGRAM = os.environ.get("WAVE_LITELLM")
KEY = "sk-litellm-test"
MODELS = ("over-openai", "over-anthropic")
"""What the model behind the proxy speaks."""
FREE = ("--permission-mode", "bypassPermissions", "--output-format", "json")

pytestmark = [
    pytest.mark.litellm,
    pytest.mark.skipif(PROGRAM is None, reason="make test-litellm sets it up"),
    pytest.mark.timeout(600),  # it takes half a minute to start, more on a busy machine
]


class Upstream:
    """The model behind the proxy: each test gives it answers."""

    def __init__(self) -> None:
        self.answers: deque[ServerScript] = deque()
        self.server = RecordingModelServer(repeat(self._answer))

    def _answer(self, request: RecordedRequest) -> Any:
        return self.answers.popleft() if self.answers else ValueError(f"unexpected request {request.path}")

    def begin(self, *answers: ServerScript) -> None:
        self.answers = deque(answers)
        self.server.requests.clear()


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    found = Upstream()
    found.server.start()
    yield found
    found.server.stop()


@pytest.fixture(scope="module")
def proxy(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a proxy in front of `upstream`."""
    assert PROGRAM is not None
    directory = tmp_path_factory.mktemp("litellm")
    url = upstream.server.base_url
    behind = {
        "over-openai": {"model": "openai/m", "api_base": url, "api_key": "upstream"},
        "over-anthropic": {"model": "anthropic/m", "api_base": url.removesuffix("/v1"), "api_key": "upstream"},
    }
    settings = {
        "model_list": [{"model_name": name, "litellm_params": params} for name, params in behind.items()],
        "litellm_settings": {"num_retries": 0, "telemetry": False},
        "general_settings": {"master_key": KEY},
    }
    (directory / "config.yaml").write_text(json.dumps(settings))  # JSON is YAML
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(directory),
        "NO_PROXY": "127.0.0.1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # otherwise it fetches one from the internet
    }
    command = [os.path.abspath(PROGRAM), "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
    with (
        (directory / "log").open("wb") as log,
        subprocess.Popen(command, cwd=directory, env=environment, stdout=log, stderr=log) as process,
    ):
        try:
            _wait(f"http://127.0.0.1:{port}/health/liveliness", process, directory / "log")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    opener, ends = build_opener(ProxyHandler({})), time.monotonic() + 300
    while True:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < ends, log.read_text()
        try:
            with opener.open(url, timeout=5):
                return
        except OSError:
            time.sleep(0.2)  # nothing announces that it listens


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def outputs(request: RecordedRequest) -> dict[str, str]:
    """The results of calls that the model behind the proxy got, by the id of the call."""
    body = request.body
    if request.api == "anthropic":
        blocks = [block for turn in body["messages"] if isinstance(turn["content"], list) for block in turn["content"]]
        return {one["tool_use_id"]: json.dumps(one["content"]) for one in blocks if one["type"] == "tool_result"}
    if request.api == "openai-responses":
        items = [item for item in body["input"] if item.get("type") == "function_call_output"]
        return {one["call_id"]: json.dumps(one["output"]) for one in items}
    return {one["tool_call_id"]: json.dumps(one["content"]) for one in body["messages"] if one["role"] == "tool"}


def bash(number: int, command: str) -> ToolCall:
    return ToolCall(f"call_{number}", "Bash", json.dumps({"command": command}))


def asked(project: Project, proxy: str, api: str, model: str, *flags: str) -> dict[str, Any]:
    """What `wave -p` prints as JSON. `api` may be empty."""
    named = (*FREE, *flags, "--model", model)
    ran = project.wave("-p", "Go on.", *named, WAVE_BASE_URL=proxy, WAVE_API_KEY=KEY, WAVE_API=api)
    assert ran.stdout, ran.stderr
    return json.loads(ran.stdout)


def combinations(faults: Mapping[tuple[str, str], str]) -> Any:
    """Every API in front of every model. Where something is lost in translation, the test is expected to fail."""
    found = [
        pytest.param(api, model, marks=[pytest.mark.xfail(reason=faults[api, model])] if (api, model) in faults else [])
        for api in APIS
        for model in MODELS
    ]
    return pytest.mark.parametrize(("api", "model"), found)


@combinations({})
def test_a_loop_of_calls_goes_through(api: str, model: str, project: Project, proxy: str, upstream: Upstream) -> None:
    both = Reply("Let me see.", [bash(1, "echo alpha | tee a"), bash(2, "echo beta | tee b")], usage=Usage(100, 5))
    upstream.begin(both, Reply(tool_calls=[bash(3, "cat a b")]), Reply("All done.", usage=Usage(300, 7)))
    result = asked(project, proxy, api, model)
    assert (result["status"], result["result"], result["error"]) == ("completed", "All done.", None)
    requests = upstream.server.requests
    assert [len(outputs(request)) for request in requests] == [0, 2, 3]
    last = outputs(requests[-1])
    assert [("alpha" in text, "beta" in text) for text in last.values()] == [(True, False), (False, True), (True, True)]
    assert (project.directory / "b").read_text() == "beta\n"
    assert result["turns"] == 3
    assert result["usage"]["output_tokens"] >= 12


@combinations({})
def test_a_session_is_resumed(api: str, model: str, project: Project, proxy: str, upstream: Upstream) -> None:
    upstream.begin(Reply("One moment.", [bash(1, "echo alpha")]), "First.", "Second.")
    first = asked(project, proxy, api, model)
    second = asked(project, proxy, api, model, "-r", first["session_id"])
    assert (first["result"], second["result"]) == ("First.", "Second.")
    assert "alpha" in "".join(outputs(upstream.server.requests[-1]).values())


@pytest.mark.parametrize("api", APIS)
def test_what_the_proxy_refuses_is_said(api: str, project: Project, proxy: str, upstream: Upstream) -> None:
    upstream.begin()
    result = asked(project, proxy, api, "unknown-model")
    assert result["status"] == "error"
    assert "unknown-model" in result["error"]
    assert upstream.server.requests == []


@combinations({})
def test_reasoning_is_shown_and_tokens_are_counted(
    api: str, model: str, project: Project, proxy: str, upstream: Upstream
) -> None:
    thought = Reply("I see.", [bash(1, "echo alpha")], "Let me think.", Usage(100, 9, 40))
    upstream.begin(thought, Reply("All done.", reasoning="It is clear.", usage=Usage(200, 9, 100)))
    result = asked(project, proxy, api, model)
    assert (result["status"], result["result"], result["error"]) == ("completed", "All done.", None)
    blocks = [block for message in result["messages"] for block in message["blocks"]]
    thoughts = [block["content"] for block in blocks if block["type"] == "reasoning"]
    assert thoughts == ["Let me think.", "It is clear."]
    used = result["usage"]
    assert (used["input_tokens"], used["output_tokens"], used["cache_read_tokens"]) == (300, 18, 140)


@combinations(
    {
        (
            "openai-chat",
            "over-anthropic",
        ): "needs LiteLLM's own field thinking_blocks, which is not sent back",
        ("openai-responses", "over-anthropic"): "LiteLLM streams the item without its encrypted_content",
    }
)
def test_reasoning_goes_back_through_the_loop(
    api: str, model: str, project: Project, proxy: str, upstream: Upstream
) -> None:
    upstream.begin(Reply("I see.", [bash(1, "echo alpha")], "Let me think."), "All done.")
    asked(project, proxy, api, model)
    assert len(upstream.server.requests) == 2
    assert "Let me think." in json.dumps(upstream.server.requests[-1].body)


@combinations({("anthropic", "over-openai"): "LiteLLM drops disable_parallel_tool_use on the way to OpenAI"})
def test_a_small_model_is_asked_for_one_call_at_a_time(
    api: str, model: str, project: Project, proxy: str, upstream: Upstream
) -> None:
    project.home.mkdir()
    (project.home / "settings.json").write_text(json.dumps({"models": {model: {"profile": "small"}}}))
    upstream.begin(Reply("I see.", [bash(1, "echo alpha")]), "All done.")
    result = asked(project, proxy, api, model)
    assert (result["status"], result["result"], result["error"]) == ("completed", "All done.", None)
    limits = [(one.body.get("tool_choice"), one.body.get("parallel_tool_calls")) for one in upstream.server.requests]
    one_call = {"type": "auto", "disable_parallel_tool_use": True}
    assert limits == [(None, False) if model == "over-openai" else (one_call, None)] * 2


def test_without_a_stated_api_nothing_is_asked(project: Project, proxy: str, upstream: Upstream) -> None:
    upstream.begin("Hello.")
    result = asked(project, proxy, "", "over-openai")
    assert result["result"] == "Hello."
    assert [request.api for request in upstream.server.requests] == ["openai-chat"]
    assert not (project.home / "apis.json").exists()
