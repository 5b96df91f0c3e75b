"""An agent while it lives: mode, model and rules can change, files be taken back, the conversation be shortened."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.spec.world import make
from tests.waiting import until
from wave_agent import Agent, Allow, Deny, PermissionRequest, SettingsError
from wave_agent.agent.options import Options
from wave_agent.models.base import ToolCall, Usage
from wave_agent.settings.layers import merge_settings
from wave_agent.settings.sources import SourceChoice, gather_settings
from wave_agent.system.project import Project
from wave_agent.testing import Reply, ScriptedModel, call
from wave_agent.tools.changes import FileChanges


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    project = (tmp_path / "project").resolve()
    project.mkdir()
    return project


async def agent(project: Path, replies: list[Any], **options: Any) -> Agent:
    return await Agent.create(workdir=project, model_client=ScriptedModel(replies), **options)


# Mode and rules


async def test_a_new_mode_counts_from_the_next_call_on_and_hooks_are_told(project: Path):
    modes: list[str] = []

    def hear(event: Any) -> None:
        modes.append(event.payload["permission_mode"])

    hooks = {"PreToolUse": [{"hooks": [hear]}], "Stop": [{"hooks": [hear]}]}
    replies = [Reply(tool_calls=[make("a")]), "no", Reply(tool_calls=[make("b")]), "yes"]
    async with await agent(project, replies, hooks=hooks) as wave:
        await wave.send_message("one")
        wave.permission_mode = "bypassPermissions"
        assert wave.permission_mode == "bypassPermissions"
        await wave.send_message("two")
    assert [path.name for path in project.iterdir()] == ["b"]
    assert modes == ["default", "default", "bypassPermissions", "bypassPermissions"]


async def test_a_mode_that_does_not_exist_is_refused(project: Path):
    async with await agent(project, []) as wave:
        with pytest.raises(SettingsError, match="not a permission mode"):
            wave.permission_mode = "wild"  # pyright: ignore[reportAttributeAccessIssue]
        assert wave.permission_mode == "default"


async def test_the_mode_can_change_while_a_question_is_open(project: Path):
    async def answer(request: PermissionRequest) -> Allow:
        wave.permission_mode = "plan"
        return Allow()

    replies = [Reply(tool_calls=[make("a"), make("b")]), "done"]
    async with await agent(project, replies, can_use_tool=answer) as wave:
        await wave.send_message("go")
    assert [path.name for path in project.iterdir()] == ["a"]


async def test_an_allowed_rule_counts_at_once_and_the_question_says_what_asks(project: Path):
    asked: list[PermissionRequest] = []

    def answer(request: PermissionRequest) -> Allow:
        asked.append(request)
        wave.allow("Bash(touch:*)")
        return Allow()

    replies = [Reply(tool_calls=[make("a"), make("b")]), "done"]
    async with await agent(project, replies, can_use_tool=answer) as wave:
        await wave.send_message("go")
        assert [rule.text for rule in wave.rules.allow] == ["Bash(touch:*)"]
    assert sorted(path.name for path in project.iterdir()) == ["a", "b"]
    assert [(request.by, request.lasting) for request in asked] == [("mode default", True)]


async def test_no_rule_answers_for_good_what_a_rule_asks(project: Path):
    asked: list[PermissionRequest] = []

    def answer(request: PermissionRequest) -> Deny:
        asked.append(request)
        return Deny("no")

    settings = {"permissions": {"ask": ["Bash(touch:*)"]}}
    replies = [Reply(tool_calls=[make("a")]), "done"]
    async with await agent(project, replies, can_use_tool=answer, settings=settings) as wave:
        await wave.send_message("go")
    assert [(request.by, request.lasting) for request in asked] == [("rule Bash(touch:*)", False)]


async def test_a_rule_that_is_none_is_refused(project: Path):
    async with await agent(project, []) as wave:
        with pytest.raises(SettingsError, match="is not a rule"):
            wave.allow("(")


# Model, usage, window


async def test_a_new_model_is_asked_from_the_next_prompt_on(project: Path):
    settings = {"models": {"large": {"contextWindow": 1000}}}
    model = ScriptedModel([Reply("one", usage=Usage(10, 5)), Reply("two", usage=Usage(30, 7))])
    async with await Agent.create(workdir=project, model="small", model_client=model, settings=settings) as wave:
        assert (wave.context.used, wave.context.window) == (None, None)
        await wave.send_message("first")
        assert (wave.context.used, wave.context.window) == (15, None)
        wave.model_name = "large"
        await wave.send_message("second")
        assert (wave.context.used, wave.context.window) == (37, 1000)
        assert wave.usage == Usage(40, 12)
    assert [request.model for request in model.requests] == ["small", "large"]


@pytest.mark.parametrize(
    ("prices", "message"),
    [(3, "must be an object"), ({"input": "3"}, "a price for each"), ({"outptu": 3}, "a price for each")],
)
def test_prices_that_cannot_be_read_are_told_with_their_place(prices: Any, message: str):
    overlay = {"models": {"m": {"prices": prices}}}
    gathered = gather_settings(
        Path("/nowhere"), Project.at("/nowhere"), SourceChoice(setting_sources=(), overlays=(overlay,))
    )
    (issue,) = merge_settings(gathered.sources).issues
    assert message in str(issue)
    assert "models.m.prices" in str(issue)


# Shortening


async def test_the_conversation_is_summarised_when_the_user_wants_it(project: Path):
    model = ScriptedModel(["a long answer " * 50, "SUMMARY", "after"])
    async with await Agent.create(workdir=project, model_client=model) as wave:
        assert await wave.compact() is False
        await wave.send_message("first " * 50)
        assert await wave.compact("Keep the numbers.") is True
        await wave.send_message("second")
    assert "Keep the numbers." in model.requests[1].messages[-1]["content"]
    assert "SUMMARY" in str(model.requests[2].messages)


async def test_shortening_can_be_interrupted(project: Path):
    model = ScriptedModel(["answer " * 50, Reply("SUMMARY", gate=asyncio.Event())])
    async with await Agent.create(workdir=project, model_client=model) as wave:
        await wave.send_message("first " * 50)
        work = asyncio.create_task(wave.compact())
        await until(lambda: len(model.requests) == 2)
        wave.interrupt()
        assert await work is False


async def test_a_session_that_begins_anew_says_so_to_its_hooks(project: Path):
    heard: list[str] = []
    hooks = {"SessionStart": [{"hooks": [lambda event: heard.append(event.payload["source"])]}]}
    options = Options(workdir=project, hooks=hooks, model_client=ScriptedModel(["hi"]), source="clear")
    async with Agent.from_options(options) as wave:
        await wave.send_message("hello")
    assert heard == ["clear"]


# Taking back


def write(name: str, content: str) -> Any:
    return call("Write", file_path=name, content=content)


async def test_undo_takes_back_what_the_last_turn_wrote_and_then_the_one_before(project: Path):
    (project / "old.txt").write_bytes(b"one\r\ntwo\r\n")
    edit = call("Edit", file_path="old.txt", old_string="two", new_string="three")
    replies = [
        Reply(tool_calls=[write("new.txt", "first")]),
        "made",
        Reply(tool_calls=[call("Read", file_path="old.txt")]),
        Reply(tool_calls=[edit, write("new.txt", "second")]),
        "changed",
        "nothing to do",
    ]
    async with await agent(project, replies, permission_mode="acceptEdits") as wave:
        for prompt in ("make", "change", "look"):
            await wave.send_message(prompt)
        assert (project / "old.txt").read_bytes() == b"one\r\nthree\r\n"
        taken = await wave.undo()
        assert sorted(taken.restored) == [str(project / "new.txt"), str(project / "old.txt")]
        assert (project / "old.txt").read_bytes() == b"one\r\ntwo\r\n"
        assert (project / "new.txt").read_text() == "first"
        assert (await wave.undo()).removed == (str(project / "new.txt"),)
        assert not (project / "new.txt").exists()
        taken = await wave.undo()
        assert (taken.restored, taken.removed, taken.refused) == ((), (), {})


async def test_undo_leaves_a_file_alone_that_was_changed_since(project: Path):
    replies = [Reply(tool_calls=[write("a.txt", "a"), write("b.txt", "b")]), "done"]
    async with await agent(project, replies, permission_mode="acceptEdits") as wave:
        await wave.send_message("go")
        (project / "a.txt").write_text("mine")
        taken = await wave.undo()
    assert taken.removed == (str(project / "b.txt"),)
    assert taken.refused == {str(project / "a.txt"): "it has changed since"}
    assert (project / "a.txt").read_text() == "mine"


def test_what_is_kept_for_undo_is_bounded(tmp_path: Path):
    changes = FileChanges(memory=100)
    (tmp_path / "small").write_bytes(b"new")
    changes.note(str(tmp_path / "small"), b"old", b"new")
    changes.begin_turn()
    changes.note(str(tmp_path / "large"), b"x" * 110, b"y" * 20)
    assert changes.take_back().restored == ()


async def test_calls_of_a_server_that_gives_all_the_same_id_are_told_apart(project: Path) -> None:
    answers = [Reply(tool_calls=[ToolCall("c", "Glob", '{"pattern": "*"}')] * 2) for _ in range(2)]
    model = ScriptedModel([*answers, "done"])
    async with await Agent.create(workdir=project, model_client=model) as agent:
        await agent.send_message("go")
    asked = [call["id"] for one in model.requests[-1].messages for call in one.get("tool_calls", ())]
    assert asked == ["c", "c-2", "c-3", "c-4"]
    assert [one["tool_call_id"] for one in model.requests[-1].messages if one["role"] == "tool"] == asked
