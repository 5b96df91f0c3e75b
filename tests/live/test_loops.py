"""Models that go round in circles, or answer with nothing."""

import json
from itertools import repeat

import pytest

from tests.cli.project import Project, serving
from wave_agent.models.base import ToolCall
from wave_agent.testing import Reply, call
from wave_agent.testing.model_server import RecordingModelServer

FREE = ("--permission-mode", "bypassPermissions", "--output-format", "json")


def test_the_same_call_is_run_for_ever(project: Project):
    guard = {"hooks": {"PreToolUse": [{"hooks": [{"command": "echo judged >> judged.txt"}]}]}}
    project.settings(guard)
    again = Reply(tool_calls=[ToolCall("", "Bash", '{"command": "echo ran >> ran.txt; echo nothing new"}')])
    with RecordingModelServer.in_thread(repeat(lambda _: again)) as server:
        ran = project.wave("-p", "Go.", "--trust", *FREE, server=server)
    last = [request.body["messages"][-1] for request in server.requests]
    assert [message["role"] for message in last[:4]] == ["user", "tool", "user", "user"]
    assert "You have made this Bash call before, with the same result." in last[2]["content"]
    assert "same call 3 times in a row" in last[3]["content"]
    assert last[5]["content"].startswith("Not run: this call was made 4 times in a row")
    assert (project.directory / "judged.txt").read_text() == "judged\n" * 4
    assert (project.directory / "ran.txt").read_text() == "ran\n" * 4
    result = json.loads(ran.stdout)
    assert (ran.returncode, result["status"], result["turns"]) == (1, "error", 10)
    assert "same call 10 times" in result["error"]


def test_a_file_is_read_again_and_again_between_other_looks(project: Project):
    (project.directory / "a.txt").write_text("alpha\n")
    look = call("Read", file_path="a.txt")
    with serving(
        Reply(tool_calls=[look]),
        Reply(tool_calls=[call("Glob", pattern="*.txt")]),
        Reply(tool_calls=[look]),
        Reply(tool_calls=[call("Bash", command="echo beta >> b.txt")]),
        Reply(tool_calls=[look]),
        "Done.",
    ) as server:
        project.wave("-p", "Go.", *FREE, server=server)
    last = [request.body["messages"][-1] for request in server.requests]
    assert [message["role"] for message in last] == ["user", "tool", "tool", "user", "tool", "tool"]
    assert "You have made this Read call before, with the same result. Do not make it again" in last[3]["content"]
    assert last[3]["content"].startswith("[From Wave, not from the user]")


def test_tests_that_are_run_again_after_a_change_are_taken_for_a_loop(project: Project):
    test = Reply(tool_calls=[ToolCall("", "Bash", '{"command": "echo >> n; wc -l < n"}')])
    with serving(*[test] * 6, "Done.") as server:
        ran = project.wave("-p", "Go.", *FREE, server=server)
    results = [message["content"] for message in server.requests[-1].body["messages"] if message["role"] == "tool"]
    assert [result.split()[0] for result in results] == ["1", "2", "3", "4", "5", "6"]
    assert json.loads(ran.stdout)["result"] == "Done."


def test_waiting_for_a_background_command_is_taken_for_a_loop(project: Project):
    waits = call("Bash", command="while [ ! -e go ]; do sleep 0.05; done", run_in_background=True)
    look = Reply(tool_calls=[ToolCall("", "BashOutput", '{"bash_id": "bash_1"}')])
    with serving(Reply(tool_calls=[waits]), *[look] * 6, "Still at it.") as server:
        project.wave("-p", "Go.", *FREE, server=server)
    messages = server.requests[-1].body["messages"]
    results = [message["content"] for message in messages if message["role"] == "tool"]
    assert len(set(results[1:])) == 1
    assert "running" in results[1]
    assert [message["role"] for message in messages].count("user") == 1


UNREADABLE = '<tool_call>{"name": "Read", "arguments": {"file_path": "a.txt", "limit": }}</tool_call>'


@pytest.mark.parametrize(
    ("useless", "told"),
    [
        (Reply(), "Your answer was empty"),
        (Reply(reasoning="Hm."), "Your answer was empty"),
        (Reply(" \n"), "Your answer was empty"),
        (Reply(cut="length", reasoning="Hm, hm."), "Think less"),
        (Reply(UNREADABLE), "could not be parsed"),
        (Reply(f"Let me look.\n{UNREADABLE}"), "could not be parsed"),
        (Reply("<tool_response>\nlib/names.py\n</tool_response>"), "written as a tool's result"),
    ],
    ids=["empty", "only thoughts", "blank", "cut while thinking", "unreadable", "announced and unreadable", "a result"],
)
def test_an_answer_with_nothing_in_it_is_a_success(project: Project, useless: Reply, told: str):
    with serving(useless, "Here I am.", useless, useless) as server:
        once = project.wave("-p", "Go.", server=server)
        twice = project.wave("-p", "Go.", "--output-format", "json", server=server)
    assert told in server.requests[1].body["messages"][-1]["content"]
    assert (once.returncode, once.stdout) == (0, "Here I am.\n")
    result = json.loads(twice.stdout)
    assert (twice.returncode, result["status"]) == (1, "error")
    assert "twice in a row" in result["error"]
    assert "twice in a row" in twice.stderr
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    "text",
    [
        'A call looks like this: `<tool_call>{"name": "Read", "arguments": {…}}</tool_call>`.',
        "<tool_response>\nlib/names.py\n</tool_response>\nThe function is in lib/names.py.",
        "Templates write <tool_response>…</tool_response> around results.",
    ],
    ids=["a call", "a result with an answer", "about results"],
)
def test_an_answer_that_explains_a_call_is_taken_for_one(project: Project, text: str):
    with serving(text) as server:
        ran = project.wave("-p", "How?", server=server)
    assert (ran.returncode, ran.stdout, len(server.requests)) == (0, f"{text}\n", 1)
