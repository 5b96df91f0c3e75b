"""What the model knows of its mode. Otherwise it tries what cannot run, asks where nobody answers, or never begins."""

import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.project import WAVE, Project, serving
from tests.screen.terminal import Terminal
from wave_agent.testing import Reply, call

WRITE = Reply(tool_calls=[call("Write", file_path="note.txt", content="Hi.\n")])


def test_without_anybody_to_ask_the_model_knows_it_and_its_plan_is_the_result(project: Project):
    with serving(WRITE, "1. Write note.txt.") as server:
        done = project.wave("-p", "Plan a note.", "--permission-mode", "plan", server=server)
    system = server.requests[0].body["messages"][0]["content"]
    assert "This run is not interactive: no question can be answered." in system
    assert "Permission mode: plan. Only reading is possible: Read, Glob, Grep, commands" in system
    assert "The plan is the result of this run." in system
    assert "plan mode" in server.requests[1].body["messages"][-1]["content"]
    assert not (project.directory / "note.txt").exists()
    assert (done.returncode, done.stdout) == (0, "1. Write note.txt.\n")


def test_a_session_that_goes_on_in_another_mode_is_not_taken_for_one_in_the_old(project: Project):
    with serving("1. Write note.txt.", WRITE, "Done.") as server:
        project.wave("-p", "Plan a note.", "--permission-mode", "plan", server=server)
        project.wave("-c", "-p", "Do it.", "--permission-mode", "acceptEdits", server=server)
    first, second = (request.body["messages"] for request in server.requests[:2])
    assert second[: len(first)] == first  # or a prompt cache could not serve it
    assert second[-1]["content"].startswith("[From Wave, not from the user] The permission mode is now acceptEdits. ")
    assert (project.directory / "note.txt").exists()


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    found = Terminal(tmp_path)
    yield found
    found.tmux("kill-server")


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
def test_a_plan_accepted_on_the_screen_is_carried_out_and_the_model_knows_its_new_mode(
    project: Project, terminal: Terminal
):
    with serving("1. Write note.txt.", WRITE, "It is written.") as server:
        environment = project.environment(server, TERM="xterm-256color", LANG="C.UTF-8")
        terminal.start(f"{shlex.quote(WAVE)} --permission-mode plan", project.directory, environment)
        terminal.sees("Say what to do.")
        terminal.type("Plan a note.")
        terminal.keys("Enter")
        terminal.sees("Accept this plan?")
        assert not (project.directory / "note.txt").exists()
        terminal.type("a")
        terminal.sees("It is written.")
        terminal.keys("C-q")
        terminal.sees("status 0")
    first, second, third = (request.body["messages"] for request in server.requests)
    assert "This session is interactive" in first[0]["content"]
    assert "The user may accept it; you then carry it out." in first[0]["content"]
    assert second[0] == first[0] == third[0]  # or a prompt cache could not serve it
    assert [message["content"] for message in second[1:4]] == [
        "Plan a note.",
        "1. Write note.txt.",
        "I accept this plan. Carry it out.",
    ]
    assert second[4]["role"] == "user"
    assert second[4]["content"].startswith("[From Wave, not from the user] The permission mode is now acceptEdits. ")
    assert (project.directory / "note.txt").read_text() == "Hi.\n"
    (transcript,) = (project.home / "projects").rglob("*.jsonl")
    lines = [json.loads(line) for line in transcript.read_text().splitlines()]
    (told,) = [line for line in lines if line.get("isMeta")]
    assert (told["type"], told["source"], told["origins"]) == ("user", "hook", [{"event": "harness", "hook": "wave"}])
