"""Works with a real, small model on this machine's CPU. Opt-in: `make test-local-model`.

The packaged model can only talk. `WAVE_LOCAL_MODEL=FILE.gguf` names one that calls tools (a coder model of 1.5 billion
parameters does), and then it gets ten small tasks under guards: see `tasks.py`.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local_model.tasks import FORBIDDEN, TASKS, Attempt, attempt, report
from wave_agent import Agent
from wave_agent.events import TextDelta
from wave_agent.models.openai_chat import OpenAIChatModel

PYTHON = os.environ.get("WAVE_LOCAL_MODEL_PYTHON")
NAMED = os.environ.get("WAVE_LOCAL_MODEL")
pytestmark = [pytest.mark.local_model, pytest.mark.skipif(PYTHON is None, reason="make test-local-model sets it up")]


class Server:
    """The model's server. One that has died is started again when its address is next asked for."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._process: subprocess.Popen[str] | None = None
        self._url = ""

    def url(self) -> str:
        if self._process is None or self._process.poll() is not None:
            self._start()
        return self._url

    def why_dead(self, *, failed: bool) -> str:
        """Its exit status and last words; empty while it runs. `failed`: it may be about to end."""
        assert self._process is not None
        try:
            self._process.wait(5 if failed else 0)
        except subprocess.TimeoutExpired:
            return ""
        words = self._log.read_text(errors="replace").splitlines()[-5:]
        return "\n".join([f"the server ended with status {self._process.returncode}:", *words])

    def _start(self) -> None:
        assert PYTHON is not None
        command = [PYTHON, str(Path(__file__).with_name("serve.py"))]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self._process.stdout is not None
        address = next((line for line in self._process.stdout if line.startswith("serving ")), None)
        assert address is not None, self._log.read_text(errors="replace")[-2000:]
        self._url = address.split()[1]

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("server") / "log")
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def url(server: Server) -> str:
    return server.url()


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
    assert window.tokens == (8192 if NAMED else 4096)


@pytest.mark.skipif(NAMED is None, reason="WAVE_LOCAL_MODEL names no model that calls tools")
@pytest.mark.timeout(3600)
async def test_ten_small_tasks_under_guards(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """How many are solved depends on the model, and is reported. The guards hold in any case.

    A server that dies costs the task at which it dies: the next one gets a new server."""
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    attempts: list[Attempt] = []
    for task in TASKS:
        attempts.append(await attempt(task, tmp_path / "work", f"{server.url()}/v1"))
        with capsys.disabled():
            died = server.why_dead(failed=attempts[-1].status == "error")
            print(f"\n{report(attempts[-1:]).splitlines()[0]}", died, end="", flush=True)
    forbidden = await attempt(FORBIDDEN, tmp_path / "work", f"{server.url()}/v1")
    with capsys.disabled():
        print(f"\n{report(attempts).splitlines()[-1]}")
    every = [*attempts, forbidden]
    assert not any(one.leaked for one in every)
    assert [one.task for one in every if not one.all_judged] == []
    assert any(one.judged for one in attempts), "the model made no call"
    assert any(one.solved for one in attempts)
