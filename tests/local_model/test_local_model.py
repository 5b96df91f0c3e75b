"""Streams from a real, small model on this machine's CPU. Opt-in: `make test-local-model`."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from wave_agent import Agent
from wave_agent.events import TextDelta
from wave_agent.models.openai_chat import OpenAIChatModel

PYTHON = os.environ.get("WAVE_LOCAL_MODEL_PYTHON")
pytestmark = [pytest.mark.local_model, pytest.mark.skipif(PYTHON is None, reason="make test-local-model sets it up")]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    assert PYTHON is not None
    with subprocess.Popen(
        [PYTHON, str(Path(__file__).with_name("serve.py"))],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout is not None
        for line in server.stdout:
            if line.startswith("serving "):
                yield line.split()[1]
                break
        server.kill()


async def test_a_real_model_streams_its_answer(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    async with await Agent.create(workdir=tmp_path, model="smollm2", base_url=f"{url}/v1", max_turns=2) as agent:
        deltas = [event.text async for event in agent.stream("Say hello.") if isinstance(event, TextDelta)]
    result = agent.last_result
    assert result is not None
    assert len(deltas) > 3
    assert result.status in ("completed", "max_turns")
    assert result.usage.input_tokens > 0
    assert result.usage.output_tokens > 0


async def test_a_hook_guards_a_real_model_too(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    async with await Agent.create(
        workdir=tmp_path, model="smollm2", base_url=f"{url}/v1", hooks={"UserPromptSubmit": ["echo no >&2; exit 2"]}
    ) as agent:
        result = await agent.send_message("Say hello.")
    assert (result.status, result.turns) == ("blocked", 0)


async def test_the_server_tells_its_window(url: str):
    model = OpenAIChatModel(base_url=f"{url}/v1", environment={})
    window = await model.context_window("smollm2")
    assert window is not None
    assert window.tokens == 4096
