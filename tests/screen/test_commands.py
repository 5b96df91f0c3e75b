"""The commands of the screen, built-in and the user's own."""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.screen.stage import Stage, hooks, stage
from wave_agent.hooks import deny
from wave_agent.models.base import Usage
from wave_agent.screen.command_actions import ScreenCommands
from wave_agent.screen.commands import COMMANDS, PROMPTS, parse
from wave_agent.screen.entries import Info, UserPrompt, Warning_
from wave_agent.screen.session_picker import SessionPicker
from wave_agent.testing import Reply, call


def asked(on: Stage) -> list[str]:
    return [request.messages[-1]["content"] for request in on.model.requests]


def last(on: Stage) -> str:
    """The latest thing that the screen itself said."""
    return str(on.entry(Info).visual)


def test_every_command_of_the_table_has_its_method_and_no_method_is_without_a_row():
    methods = {name.removeprefix("do_") for name in vars(ScreenCommands) if name.startswith("do_")}
    assert methods | PROMPTS == {command.name for command in COMMANDS}


def test_what_begins_with_a_slash_is_a_command_only_if_it_is_one_word():
    assert parse("/model fast one") == ("model", "fast one")
    assert parse("/usr/bin is full") is None
    assert parse("/help\nme") is None
    assert parse("no /help") is None
    assert parse("/") is None


async def test_help_lists_commands_and_keys(project: Path):
    async with stage(project) as on:
        await on.send("/help")
        await on.until(lambda: "Keys in the prompt" in last(on))
        assert all(f"/{command.name}" in last(on) for command in COMMANDS)
        assert "Shift-Tab" in last(on)


async def test_an_unknown_command_is_told_with_the_nearest(project: Path):
    async with stage(project) as on:
        await on.say("/modle x")
        assert 'There is no command /modle (did you mean "model"?)' in str(on.entry(Warning_).visual)
        assert not on.model.requests


async def test_clear_begins_a_new_session_and_resume_brings_the_old_one_back(project: Path):
    sources: list[str] = []
    heard = hooks("SessionStart", lambda event: sources.append(event["source"]))
    async with stage(project, ["first answer", "second answer"], hooks=heard) as on:
        await on.say("first question")
        old = on.agent.session_id
        await on.press("shift+tab")
        await on.say("/clear")
        assert on.agent.session_id != old
        assert on.agent.permission_mode == "acceptEdits"
        assert on.kinds == ["Info"]
        await on.say("second question")
        await on.send("/resume")
        await on.until(lambda: isinstance(on.app.screen, SessionPicker))
        await on.sees("first question")
        await on.press("enter")
        await on.until(lambda: on.agent.session_id == old)
        await on.idle()
        assert on.said(UserPrompt) == ["> first question"]
        assert "first answer" in on.screen
        await on.say("/resume nonsense")
        assert 'There is no session "nonsense"' in str(on.entry(Warning_).visual)
    assert sources == ["startup", "clear"]


async def test_a_session_opens_with_its_conversation_drawn_again(project: Path):
    guard = hooks("PreToolUse", lambda _: deny("not [today]"), matcher="Bash")
    replies = [Reply("Hm.", tool_calls=[call("Bash", command="make")], reasoning="well"), "Then **not**."]
    async with stage(project, replies, hooks=guard) as on:
        await on.say("Build it.")
        session, before = on.agent.session_id, on.kinds
        assert before == ["UserPrompt", "ReasoningEntry", "AnswerText", "ToolCard", "HookLine", "AnswerText"]
    async with stage(project, ["Yes."], hooks=guard, resume=session) as on:
        assert on.kinds == before
        await on.sees("not [today]")
        assert "Then not." in on.screen
        await on.say("Really?")
        assert on.kinds[-2:] == ["UserPrompt", "AnswerText"]


async def test_compact_summarises_with_what_matters(project: Path):
    async with stage(project, ["long answer " * 50, "SUMMARY", "after"]) as on:
        await on.say("question " * 50)
        await on.say("/compact keep names")
        assert "keep names" in asked(on)[1]
        await on.say("Go on.")
        assert "SUMMARY" in json.dumps(on.model.requests[2].messages)


async def test_compact_says_when_there_is_nothing_to_do_and_can_be_interrupted(project: Path):
    async with stage(project, ["answer " * 50, Reply("S", gate=asyncio.Event())]) as on:
        await on.say("/compact")
        assert "Nothing was summarised." in last(on)
        await on.say("question " * 50)
        await on.send("/compact")
        await on.until(lambda: len(on.model.requests) == 2)
        await on.press("escape")
        await on.idle()
        assert "Nothing was summarised." in last(on)


async def test_model_and_permissions_and_cost_tell_and_change(project: Path):
    settings: dict[str, Any] = {
        "permissions": {"deny": ["Bash(rm:*)"]},
        "models": {"large": {"contextWindow": 1000, "prices": {"input": 1000, "output": 2000, "cacheRead": 0}}},
    }
    usage = Usage(100, 50, cache_read_tokens=40)
    async with stage(project, [Reply("hi", usage=usage)], model="small", overlays=(settings,)) as on:
        await on.say("/cost")
        assert "The cost is unknown: set models.small.prices in your settings." in last(on)
        await on.send("/model large")
        await on.until(lambda: on.agent.model_name == "large")
        await on.say("Hello.")
        assert on.model.requests[0].model == "large"
        await on.send("/cost")
        await on.until(lambda: "$0.16 in total." in last(on))
        assert "40 of the tokens in (40%) came from the server's prompt cache, which saved $0.0400." in last(on)
        assert "150 of 1,000 tokens" in last(on)
        assert "$0.16" in on.status
        assert "40% cached" in on.status
        assert "15% of 1.0k" in on.status
        await on.send("/permissions")
        await on.until(lambda: "deny  Bash(rm:*)" in last(on))
        await on.send("/model")
        await on.until(lambda: "The model is large." in last(on))


async def test_cost_tells_models_subagents_hooks_and_what_is_left(project: Path):
    prices = {"prices": {"input": 10, "output": 100, "cacheRead": 1}}
    judge = {"type": "prompt", "prompt": "Is it fine? $ARGUMENTS", "model": "small"}
    settings: dict[str, Any] = {"models": {"large": prices, "small": prices}, "hooks": hooks("UserPromptSubmit", judge)}
    task = call("Task", description="a", prompt="b", subagent_type="explore")
    fine = Reply('{"ok": true}', usage=Usage(500, 10))
    replies = [
        *[fine, Reply(tool_calls=[task], usage=Usage(1000, 10)), Reply("found", usage=Usage(20_000, 10))],
        *[Reply("hi", usage=Usage(2000, 10, cache_read_tokens=1000)), fine, Reply("ho", usage=Usage(100, 1))],
    ]
    options: dict[str, Any] = {"model": "large", "overlays": (settings,), "max_cost": 5.0}
    async with stage(project, replies, **options) as on:
        await on.say("Look.")
        await on.say("/model small")
        await on.say("Go on.")
        await on.send("/cost")
        await on.until(lambda: "in total." in last(on))
        session = on.agent.session_id
        assert last(on).splitlines() == [
            "· 23,100 tokens in, 31 out since this session was opened.",
            "1,000 of the tokens in (4%) came from the server's prompt cache, which saved $0.0090.",
            "Of that, subagents used 20,000 tokens in, 10 out, $0.20.",
            "Besides that, hooks that ask a model used 1,020 tokens, $0.0120.",
            "By model:",
            "  large: 23,000 tokens in (1,000 cached), 30 out, $0.22",
            "  small: 100 tokens in, 1 out, $0.0011",
            "Context window: 101 tokens.",
            "$0.24 in total.",
            "The limit of this session is $5.00 (--max-cost): $4.76 of it left.",
        ]
    async with stage(project, resume=session, **options) as on:
        await on.send("/cost")
        await on.until(lambda: "in total." in last(on))
        assert "Before it was resumed: 23,100 tokens in, 31 out, 1,000 from the cache, $0.2" in last(on)


async def test_export_writes_markdown_and_does_not_overwrite(project: Path):
    async with stage(project, ["an answer"]) as on:
        await on.say("a question")
        await on.send("/export talk.md")
        await on.until(lambda: (project / "talk.md").exists() and "Wrote" in last(on))
        assert "## You\n\na question" in (project / "talk.md").read_text()
        await on.send("/export talk.md")
        await on.until(lambda: "already exists; choose another" in "".join(on.said(Warning_)))


async def test_sessions_lists_them(project: Path):
    async with stage(project, ["an answer"]) as on:
        await on.say("a question")
        await on.send("/sessions")
        await on.until(lambda: on.agent.session_id in last(on))
        assert "a question" in last(on)


async def test_a_theme_is_kept(project: Path):
    async with stage(project) as on:
        assert on.app.theme == "wave-dark"
        await on.send("/theme light")
        await on.until(lambda: on.app.theme == "wave-light")
        await on.send("/theme pink")
        await on.until(lambda: 'There is no theme "pink"' in "".join(on.said(Warning_)))
    async with stage(project) as on:
        assert on.app.theme == "wave-light"


async def test_undo_takes_files_back_tells_the_model_and_refuses_what_was_changed_since(project: Path):
    write = [call("Write", file_path="a.txt", content="a"), call("Write", file_path="b.txt", content="b")]
    async with stage(project, [Reply(tool_calls=write), "done", "ok"], permission_mode="acceptEdits") as on:
        await on.say("/undo")
        assert "No changes to files to undo" in last(on)
        await on.say("Write.")
        (project / "b.txt").write_text("mine")
        await on.say("/undo")
        assert not (project / "a.txt").exists()
        assert (project / "b.txt").read_text() == "mine"
        assert "b.txt was not reverted: it has changed since." in str(on.entry(Warning_).visual)
        await on.say("Go on.")
        assert '<from-the-user kind="undo"' in asked(on)[-1]
        assert "removed new file: " in asked(on)[-1]


async def test_commands_of_the_users_own_are_prompts_that_hooks_judge(project: Path, home: Path):
    (home / "commands").mkdir(parents=True)
    (home / "commands" / "fix.md").write_text("---\ndescription: Fix an issue\n---\nFix issue $ARGUMENTS, please.\n")
    (project / ".wave" / "commands").mkdir(parents=True)
    (project / ".wave" / "commands" / "deny.md").write_text("A forbidden word.")

    def judge(event: Any) -> Any:
        return deny("no") if "forbidden" in event.prompt else None

    async with stage(project, ["done"], hooks=hooks("UserPromptSubmit", judge)) as on:
        await on.say("/fix 12 and 13")
        assert asked(on) == ["Fix issue 12 and 13, please."]
        await on.say("/deny a secret")
        assert len(on.model.requests) == 1
        (history,) = home.rglob("history")
        assert history.read_text() == '"/fix 12 and 13"\n'
        await on.type("/fi")
        await on.sees("Fix an issue")


async def test_a_command_that_needs_the_agent_waits_for_it_and_others_do_not(project: Path):
    gate = asyncio.Event()
    async with stage(project, [Reply("one", gate=gate)]) as on:
        await on.send("first")
        await on.until(lambda: len(on.model.requests) == 1)
        await on.send("/undo")
        assert on.box.queued == ["/undo"]
        await on.send("/cost")
        await on.until(lambda: "tokens in" in last(on))
        gate.set()
        await on.idle()
        assert "to undo" in last(on)


async def test_exit_leaves(project: Path):
    async with stage(project) as on:
        await on.send("/exit")
        await on.until(lambda: on.app.return_value == 0)
