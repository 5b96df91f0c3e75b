"""What servers said about their windows, remembered between sessions."""

import stat
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project, serving
from wave_agent.models.openai_chat import OpenAIChatModel
from wave_agent.models.window_memory import WindowMemory
from wave_agent.models.windows import Window
from wave_agent.testing import Reply, call

SERVER = "http://127.0.0.1:8000/v1"


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


def test_an_answer_is_remembered_for_an_hour(tmp_path: Path) -> None:
    clock = Clock()
    memory = WindowMemory(tmp_path / "home" / "windows.json", now=clock)
    assert memory.recall(SERVER, "small") is None
    memory.keep(SERVER, "small", Window(4096, "vLLM", images=True))
    memory.keep(SERVER, "other", None)
    again = WindowMemory(tmp_path / "home" / "windows.json", now=clock)
    known, silent = again.recall(SERVER, "small"), again.recall(SERVER, "other")
    assert known is not None
    assert silent is not None
    assert (known.value, silent.value) == (Window(4096, "vLLM", images=True), None)
    assert again.recall("http://other/v1", "small") is None
    for time in (1000 + 3600, 999):  # too old, or the clock was set back
        clock.time = time
        assert again.recall(SERVER, "small") is None


def test_a_window_with_a_warning_is_asked_for_again(tmp_path: Path) -> None:
    memory = WindowMemory(tmp_path / "windows.json")
    memory.keep(SERVER, "small", Window(4096, "Ollama", "start it with more"))
    assert memory.recall(SERVER, "small") is None


@pytest.mark.parametrize("text", ["", "[]", '{"small x": {"asked": "never"}}', "\0"])
def test_a_broken_file_is_as_good_as_none(text: str, tmp_path: Path) -> None:
    file = tmp_path / "windows.json"
    file.write_text(text)
    memory = WindowMemory(file)
    assert memory.recall(SERVER, "small") is None
    memory.keep(SERVER, "small", None)
    assert memory.recall(SERVER, "small") is not None
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_home_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    memory = WindowMemory(tmp_path / "home" / "windows.json")
    memory.keep(SERVER, "small", None)
    assert memory.recall(SERVER, "small") is None


def test_the_file_keeps_the_latest_answers(tmp_path: Path) -> None:
    clock = Clock()
    memory = WindowMemory(tmp_path / "windows.json", now=clock)
    for number in range(60):
        clock.time += 1
        memory.keep(SERVER, f"model-{number}", None)
    kept = [number for number in range(60) if memory.recall(SERVER, f"model-{number}")]
    assert kept == [*range(10, 60)]


class Counted(dict[str, Any]):
    """Answers of a server that notes what it was asked."""

    def __init__(self, answers: dict[str, Any]) -> None:
        super().__init__(answers)
        self.asked: list[str] = []

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.append(key)
        return super().get(key, default)


def test_the_second_session_does_not_ask_the_server(tmp_path: Path) -> None:
    project = Project(tmp_path)
    known = project.home / "windows.json"
    wait = Reply(tool_calls=[call("Bash", command=f"until [ -e {known} ]; do sleep 0.01; done")])
    listing = Counted({"GET /v1/models": {"data": [{"id": "test", "max_model_len": 40_000}]}})
    with serving(wait, "One.", "Two.", elsewhere=listing) as server:
        for answer in ("One.", "Two."):
            done = project.wave("-p", "Hi", "--permission-mode", "bypassPermissions", server=server)
            assert (done.returncode, done.stdout) == (0, f"{answer}\n"), done.stderr
    assert listing.asked == ["GET /v1/models"]


async def test_a_server_that_does_not_answer_is_not_remembered(tmp_path: Path) -> None:
    memory = WindowMemory(tmp_path / "windows.json")
    model = OpenAIChatModel(base_url="http://127.0.0.1:1/v1", environment={}, memory=memory)
    assert await model.context_window("small") is None
    assert memory.recall("http://127.0.0.1:1/v1", "small") is None
