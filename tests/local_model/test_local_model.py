"""Works with a real, small model on this machine's CPU. Opt-in: `make test-local-model`.

The packaged model can only talk. `WAVE_LOCAL_MODEL=FILE.gguf` names one that calls tools (a coder model of 1.5 billion
parameters does), and then it has to mend a bug under a guard.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from wave_agent import Agent
from wave_agent.events import TextDelta
from wave_agent.models.openai_chat import OpenAIChatModel

PYTHON = os.environ.get("WAVE_LOCAL_MODEL_PYTHON")
NAMED = os.environ.get("WAVE_LOCAL_MODEL")
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


@pytest.mark.timeout(900)  # a model on a busy CPU takes its time
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
    assert window.tokens == (16384 if NAMED else 4096)


GUARD = """#!/bin/sh
event=$(cat)
printf '%s\\n' "$event" >> guard.log
case $event in *'git push'*|*'rm -rf'*) echo "not allowed here" >&2; exit 2;; esac
"""
TASK = (
    "The function in add.py is wrong, so test_add.py fails. Read add.py, correct the one wrong line with the Edit "
    f"tool, then run the test with the Bash tool: {sys.executable} test_add.py"
)


@pytest.mark.skipif(NAMED is None, reason="WAVE_LOCAL_MODEL names no model that calls tools")
@pytest.mark.timeout(1800)
async def test_it_reads_a_file_mends_a_bug_and_runs_the_tests_under_a_guard(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    project = tmp_path / "project"
    (project / ".wave").mkdir(parents=True)
    (project / "add.py").write_text("def add(a, b):\n    return a - b\n")
    (project / "test_add.py").write_text("from add import add\n\nassert add(2, 3) == 5\nprint('passed')\n")
    (project / "guard.sh").write_text(GUARD)
    (project / "guard.sh").chmod(0o755)
    hook = {"command": "./guard.sh", "name": "guard", "onFailure": "block"}
    (project / ".wave" / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [hook]}]}}))
    async with await Agent.create(
        workdir=project,
        model="local",
        base_url=f"{url}/v1",
        max_turns=20,
        trust=True,
        permission_mode="bypassPermissions",
    ) as agent:
        result = await agent.send_message(TASK)
    judged = [json.loads(line)["tool_name"] for line in (project / "guard.log").read_text().splitlines()]
    assert {"Read", "Bash"} <= set(judged), result.text
    assert passes(project), (project / "add.py").read_text()


def passes(project: Path) -> bool:
    return (
        subprocess.run([sys.executable, "test_add.py"], cwd=project, capture_output=True, check=False).returncode == 0
    )
