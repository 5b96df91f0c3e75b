"""Small models: they lose their way among many tools, in long descriptions and between several calls at once."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project, serving
from wave_agent import Agent
from wave_agent.testing import RecordingModelServer, Reply, call
from wave_agent.testing.model_server import Status

FREE = ("--permission-mode", "bypassPermissions", "--output-format", "json")
SMALL = {"models": {"test": {"profile": "small"}}}
OFFERED = ["Bash", "Read", "Write", "Edit", "Glob", "Grep"]
LIMIT = 4200
"""Bytes of the whole first request: about 1,000 of 8,192 tokens."""


def user(project: Project, settings: dict[str, Any]) -> None:
    project.home.mkdir(exist_ok=True)
    (project.home / "settings.json").write_text(json.dumps(settings))


def tools(server: RecordingModelServer, number: int = 0) -> list[str]:
    return [tool["function"]["name"] for tool in server.requests[number].body["tools"]]


def last(server: RecordingModelServer) -> list[dict[str, Any]]:
    """The last message of each request."""
    return [request.body["messages"][-1] for request in server.requests]


@pytest.mark.chat_format  # looks at fields of this format
def test_the_first_request_fills_half_of_a_small_window(project: Project):
    user(project, SMALL)
    with serving("Hello.") as server:
        assert project.wave("-p", "Fix the cart.", server=server).returncode == 0
    body = server.requests[0].body
    system = body["messages"][0]["content"]
    assert tools(server) == OFFERED
    assert body["parallel_tool_calls"] is False
    assert "run_in_background" not in json.dumps(body["tools"])
    assert "one call in an answer" in system
    assert "To change a file: Read it, then Edit it" in system
    assert "Put independent calls into one answer" not in system
    assert f"Project directory: {project.directory}" in system
    assert system.endswith('```json\n{"name": "Read", "arguments": {"file_path": "README.md"}}\n```')
    assert len(json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()) <= LIMIT


@pytest.mark.chat_format  # looks at fields of this format
@pytest.mark.parametrize(
    ("facts", "model", "small"),
    [
        ({}, "test", False),
        ({"contextWindow": 8192}, "test", True),
        ({"contextWindow": 65536}, "test", False),
        ({"contextWindow": 8192, "profile": "full"}, "test", False),
        ({}, "qwen2.5-coder:1.5b", True),
        ({}, "qwen3-coder:30b", False),
    ],
)
def test_the_profile_follows_from_what_is_known(project: Project, facts: dict[str, Any], model: str, small: bool):
    user(project, {"models": {model: facts}})
    with serving("Hello.") as server:
        assert project.wave("-p", "Go.", "--model", model, server=server).returncode == 0
    assert (tools(server) == OFFERED) is small
    assert ("parallel_tool_calls" in server.requests[0].body) is small


def test_several_calls_at_once_are_run_on_guesses(project: Project):
    log = "cat >> ../judged.jsonl; echo >> ../judged.jsonl"
    user(project, {**SMALL, "hooks": {"PreToolUse": [{"hooks": [{"command": log}]}]}})
    (project.directory / "a.txt").write_text("alpha\n")
    both = Reply(tool_calls=[call("Read", file_path="a.txt"), call("Bash", command="touch guessed")])
    with serving(both, "Done.") as server:
        ran = project.wave("-p", "Go.", "--trust", *FREE, server=server)
    asked, result, told = server.requests[1].body["messages"][-3:]
    assert [one["function"]["name"] for one in asked["tool_calls"]] == ["Read"]
    assert (result["role"], "alpha" in result["content"]) == ("tool", True)
    assert "Only the first was run" in told["content"]
    judged = [json.loads(line) for line in (project.directory.parent / "judged.jsonl").read_text().split("\n") if line]
    assert [event["tool_name"] for event in judged] == ["Read"]
    assert not (project.directory / "guessed").exists()
    assert json.loads(ran.stdout)["result"] == "Done."


@pytest.mark.chat_format  # looks at fields of this format
def test_a_server_that_does_not_know_the_limit_to_one_call_is_given_up(project: Project):
    user(project, SMALL)
    refusal = Status(400, {"error": {"message": "Unrecognized request argument supplied: parallel_tool_calls"}})
    with serving(refusal, "Hello.") as server:
        ran = project.wave("-p", "Go.", server=server)
    assert (ran.returncode, ran.stdout) == (0, "Hello.\n")
    assert ["parallel_tool_calls" in request.body for request in server.requests] == [True, False]


def test_a_tool_that_was_not_offered_begins_a_loop(project: Project):
    user(project, SMALL)
    todo = call("TodoWrite", todos=[{"content": "Fix it", "status": "pending"}])
    with serving(Reply(tool_calls=[todo]), Reply(tool_calls=[call("BashOutput", bash_id="bash_1")]), "Done.") as server:
        project.wave("-p", "Go.", *FREE, server=server)
    assert [message["content"] for message in last(server)[1:]] == [
        f'There is no tool "{name}". Call one of these now: {", ".join(OFFERED)}. Bash runs any command.'
        for name in ("TodoWrite", "BashOutput")
    ]


def test_a_command_in_the_background_cannot_be_read_or_ended(project: Project):
    user(project, SMALL)
    begun = call("Bash", command="while [ ! -e go ]; do sleep 0.05; done", run_in_background=True)
    with serving(
        Reply(tool_calls=[begun]),
        Reply(tool_calls=[call("BashOutput", bash_id="bash_1")]),
        Reply(tool_calls=[call("KillShell", shell_id="bash_1")]),
        "Done.",
    ) as server:
        project.wave("-p", "Go.", *FREE, server=server)
    assert "running" in last(server)[2]["content"]
    assert "were ended" in last(server)[3]["content"]
    assert [tools(server, number) for number in range(4)] == [OFFERED] * 4


def test_a_resumed_session_loses_its_profile(project: Project):
    """The server's prompt cache could not serve it, and the model would find other tools than it was shown."""
    user(project, SMALL)
    both = Reply(tool_calls=[call("Bash", command="echo one"), call("Bash", command="echo two")])
    with serving("Hello.", both, "Done.") as server:
        first = json.loads(project.wave("-p", "Go.", *FREE, server=server).stdout)
        user(project, {})
        project.wave("-p", "On.", "--resume", first["session_id"], *FREE, server=server)
    assert tools(server, 1) == OFFERED
    assert server.requests[1].body["messages"][0] == server.requests[0].body["messages"][0]
    assert "Only the first was run" in last(server)[2]["content"]


async def test_a_system_prompt_of_ones_own_leaves_out_how_tools_are_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    async with (
        RecordingModelServer(["Hello."]) as server,
        await Agent.create(
            workdir=tmp_path, model="test", base_url=server.base_url, settings=SMALL, system_prompt="You are terse."
        ) as agent,
    ):
        await agent.send_message("Go.")
    system = server.requests[0].body["messages"][0]["content"]
    assert system.startswith("You are terse.\n\nTo call a tool, answer with the call alone")


def test_an_invalid_profile_is_ignored(project: Project):
    user(project, {"models": {"test": {"profile": "tiny"}}})
    with serving("Hello.") as server:
        ran = project.wave("-p", "Go.", server=server)
    assert "models.test.profile: must be one of full, small, not 'tiny'" in ran.stderr
