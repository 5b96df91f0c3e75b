"""Hooks made visible: what runs, what it decided, all there are, and whether the project's own may run."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.screen.stage import hooks, project_settings, stage
from tests.spec.world import make
from wave_agent.hooks import context, deny, rewrite
from wave_agent.screen.entries import HookLine
from wave_agent.screen.hooks_view import HooksView
from wave_agent.screen.permission import PermissionDialog
from wave_agent.screen.sent_prompt import MOST_WAKES
from wave_agent.screen.trust import ChangedFiles, TrustQuestion
from wave_agent.testing import Reply, call

GUARD: dict[str, Any] = {
    "PreToolUse": [
        {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo no >&2; exit 2", "name": "guard"}]}
    ]
}


async def test_what_runs_is_shown_with_what_it_says_about_itself(project: Path):
    slow = {
        "type": "command",
        "command": "until [ -e go ]; do sleep 0.01; done",
        "name": "checker",
        "statusMessage": "looking at [everything]",
    }
    async with stage(project, ["ok"], hooks=hooks("UserPromptSubmit", slow)) as on:
        await on.send("Hello.")
        await on.sees("hook checker on UserPromptSubmit: looking at [everything]")
        (project / "go").touch()
        await on.idle()
        assert "checker" not in on.screen


async def test_escape_ends_a_hook_that_hangs(project: Path):
    stuck = {"type": "command", "command": "echo $$ > pid; sleep 600", "name": "stuck"}
    async with stage(project, ["ok"], hooks=hooks("UserPromptSubmit", stuck)) as on:
        await on.send("Hello.")
        await on.until(lambda: (project / "pid").exists() and (project / "pid").read_text().endswith("\n"))
        await on.press("escape")
        await on.idle()
        assert not Path(f"/proc/{(project / 'pid').read_text().strip()}").exists()


async def test_each_verdict_that_mattered_has_a_line_that_opens_to_the_whole_story(project: Path):
    def guard(event: Any) -> Any:
        return deny("too dangerous") if "rm" in event.input["command"] else None

    def tidy(event: Any) -> Any:
        return rewrite(command=event.input["command"] + " made2") if "touch" in event.input["command"] else None

    crash = {"type": "command", "command": "exit 1", "name": "crash"}
    defined = {
        **hooks("PreToolUse", guard, tidy, matcher="Bash"),
        **hooks("UserPromptSubmit", lambda _: context("it is Sunday"), crash),
    }
    replies = [Reply(tool_calls=[call("Bash", command="rm x"), make("made1")]), "done"]
    async with stage(project, replies, hooks=defined, permission_mode="bypassPermissions", size=(120, 40)) as on:
        await on.say("Go.")
        lines = on.said(HookLine)
        found = {entry.run_.name: entry for entry in on.entries if isinstance(entry, HookLine)}
        assert sorted(" ".join(line.split()[:2]) for line in lines) == ["! crash", "+ <lambda>", "~ tidy", "⊘ guard"]
        added, denied, rewrote = found["<lambda>"], found["guard"], found["tidy"]
        assert str(denied.visual).startswith("⊘ guard on PreToolUse denied")
        assert on.screen.count("too dangerous") == 1  # on the card of the call
        assert "rewrote the input" in str(rewrote.visual)
        for entry in (added, denied, rewrote):
            entry.toggle()
        assert "it is Sunday" in str(added.visual)
        assert "command  python:guard" in str(denied.visual)
        assert "too dangerous" in str(denied.visual)
        assert '+  "command": "touch made1 made2"' in str(rewrote.visual)
    assert (project / "made2").exists()


async def test_slash_hooks_browses_them_all(project: Path):
    project_settings(project, {"hooks": GUARD})
    async with stage(project, size=(140, 30)) as on:
        await on.send("/hooks")
        await on.until(lambda: isinstance(on.app.screen, HooksView))
        shown = on.screen
        assert "PreToolUse" in shown
        assert "echo no >&2; exit 2" in shown
        assert f"{project}/.wave/settings.json:1 · enforce" in shown
        assert "on failure" in shown
        await on.press("escape")
        await on.until(lambda: on.box.input.has_focus)


async def test_a_question_waits_behind_a_view_that_is_open(project: Path):
    gate = asyncio.Event()
    async with stage(project, [Reply(tool_calls=[make()], gate=gate), "done"]) as on:
        await on.send("Make it.")
        await on.until(lambda: len(on.model.requests) == 1)
        await on.send("/hooks")
        await on.until(lambda: isinstance(on.app.screen, HooksView))
        gate.set()
        await on.until(lambda: bool(on.app.screen_stack[0].query(PermissionDialog)))
        await on.press("escape")
        await on.until(lambda: on.asks(PermissionDialog) is not None)
        await on.press("y")
        await on.idle()
    assert (project / "made.txt").exists()


async def test_slash_hooks_trace_is_the_time_line(project: Path):
    async with stage(project, [Reply(tool_calls=[make()]), "done"], hooks=GUARD) as on:
        await on.say("Make it.")
        await on.send("/hooks trace")
        await on.until(lambda: isinstance(on.app.screen, HooksView))
        assert "guard on PreToolUse denied: no" in on.screen
        assert "exit code  2" in on.screen


async def test_an_untrusted_project_opens_with_its_hooks_and_a_question(project: Path):
    project_settings(project, {"hooks": GUARD})
    (project / ".wave" / "commands").mkdir()
    (project / ".wave" / "commands" / "deploy.md").write_text("Deploy it.")
    replies = [Reply(tool_calls=[make()]), "done"]
    options: dict[str, Any] = {"trust": False, "permission_mode": "bypassPermissions", "wait_for_agent": False}
    async with stage(project, replies, **options) as on:
        await on.until(lambda: on.asks(TrustQuestion) is not None)
        assert "PreToolUse: echo no >&2; exit 2" in on.screen
        assert ".wave/commands/deploy.md (not trusted yet): Deploy it." in on.screen
        await on.press("t")
        await on.until(lambda: on.app.open_agent is not None)
        await on.say("Make it.")
        assert not (project / "made.txt").exists()
        assert "deploy" in on.app.custom


async def test_trust_can_be_kept_until_a_hook_changes(project: Path):
    project_settings(project, {"hooks": GUARD})
    options: dict[str, Any] = {"trust": False, "wait_for_agent": False}
    async with stage(project, ["hello"], **options) as on:
        await on.until(lambda: on.asks(TrustQuestion) is not None)
        await on.press("k")
        await on.until(lambda: on.app.open_agent is not None)
        await on.say("Hi.")
    async with stage(project, ["hello"], trust=False) as on:
        await on.say("Hi.")
        assert len(on.agent.settings.hooks.hooks) == 1
    project_settings(project, {"hooks": {**GUARD, "Stop": ["true"]}})
    async with stage(project, ["hello"], **options) as on:
        await on.until(lambda: on.asks(TrustQuestion) is not None)
        assert "Stop: true" in on.screen
        assert "no model" not in on.status
        await on.press("o")
        await on.until(lambda: on.app.open_agent is not None)
        await on.say("Hi.")
        assert on.status.startswith("PROJECT HOOKS OFF · ")
        await on.say("/hooks")
        await on.sees("No hooks: the project's 2 were skipped.")


async def test_what_is_gone_is_shown_and_asked_about(project: Path):
    project_settings(project, {"hooks": GUARD})
    options: dict[str, Any] = {"trust": False, "wait_for_agent": False}
    async with stage(project, **options) as on:
        await on.until(lambda: on.asks(TrustQuestion) is not None)
        await on.press("k")
        await on.until(lambda: on.app.open_agent is not None)
    project_settings(project, {})
    async with stage(project, **options) as on:
        await on.until(lambda: on.asks(TrustQuestion) is not None)
        assert "Something you trusted in it has changed" in on.screen
        assert "removed or disabled: PreToolUse: echo no >&2; exit 2" in on.screen
        await on.press("k")
        await on.until(lambda: on.app.open_agent is not None)
    async with stage(project, trust=False) as on:
        assert on.agent.settings.hooks.hooks == ()


@pytest.mark.parametrize(("key", "is_made"), [("y", True), ("n", False), ("escape", False)])
async def test_a_script_that_changes_in_a_session_is_asked_about_and_does_not_run_before(
    project: Path, key: str, is_made: bool
):
    (project / "guard.sh").write_text("exit 0\n")
    project_settings(project, {"hooks": {"PreToolUse": ["sh ./guard.sh"]}})
    replies = [Reply(tool_calls=[make()]), "one", Reply(tool_calls=[make()]), "two"]
    async with stage(project, replies, permission_mode="bypassPermissions") as on:
        (project / "guard.sh").write_text("exit 0 # better\n")
        await on.send("Make it.")
        await on.until(lambda: on.asks(ChangedFiles) is not None)
        await on.idle()
        assert "guard.sh: changed" in on.screen
        assert not (project / "made.txt").exists()
        assert on.screen.count("did not run: guard.sh has changed since it was trusted") == 1
        await on.press(key)
        await on.until(lambda: on.asks(ChangedFiles) is None)
        await on.say("Once more.")
        assert on.asks(ChangedFiles) is None
    assert (project / "made.txt").exists() == is_made


async def test_an_untrusted_project_can_be_opened_without_its_hooks_and_commands(project: Path):
    project_settings(project, {"hooks": GUARD})
    (project / ".wave" / "commands").mkdir()
    (project / ".wave" / "commands" / "deploy.md").write_text("Deploy it.")
    replies = [Reply(tool_calls=[make()]), "done"]
    options: dict[str, Any] = {"trust": False, "permission_mode": "bypassPermissions", "wait_for_agent": False}
    async with stage(project, replies, **options) as on:
        await on.until(lambda: on.asks(TrustQuestion) is not None)
        await on.press("enter")
        await on.until(lambda: on.app.open_agent is not None)
        await on.say("Make it.")
        assert (project / "made.txt").exists()
        assert on.app.custom == {}


async def test_who_does_not_answer_the_question_of_trust_leaves(project: Path):
    project_settings(project, {"hooks": GUARD})
    async with stage(project, trust=False, wait_for_agent=False) as on:
        await on.until(lambda: on.asks(TrustQuestion) is not None)
        await on.press("escape")
        await on.until(lambda: on.app.return_value is not None)
        assert on.app.open_agent is None


async def test_hooks_for_other_agents_are_told_once(project: Path):
    (project / ".claude").mkdir()
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./old-guard.sh"}]}]}
    (project / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    async with stage(project) as on:
        await on.sees("This project has hooks for other agents, which do not run here:")
        await on.sees("PreToolUse: ./old-guard.sh")
    async with stage(project, ["hello"]) as on:
        await on.send("hi")
        await on.sees("hello")
        assert "other agents" not in on.screen


async def test_a_background_hook_that_blocks_starts_a_turn_of_its_own_while_nothing_runs(project: Path):
    check = {
        "command": "test -e woken && exit; until test -e go; do sleep 0.01; done; touch woken; echo Red. >&2; exit 2",
        "asyncRewake": True,
        "name": "ci",
    }
    async with stage(project, ["Pushed.", "I will look."], hooks=hooks("Stop", check)) as on:
        await on.send("Push.")
        await on.idle()
        assert len(on.model.requests) == 1
        (project / "go").touch()
        await on.sees("I will look.")
        await on.idle()
        assert 'name="ci">\nRed.' in on.model.requests[1].messages[-1]["content"]
        assert not on.agent.is_woken


async def test_background_hooks_start_a_limited_number_of_turns_between_two_prompts(project: Path):
    check = {"command": "echo Again. >&2; exit 2", "asyncRewake": True}
    async with stage(project, ["Yes."] * 30, hooks=hooks("Stop", check)) as on:
        await on.send("Go.")
        await on.until(lambda: len(on.model.requests) == 1 + MOST_WAKES and on.agent.is_woken)
        await on.idle()
        await on.send("Once more.")
        await on.until(lambda: len(on.model.requests) == 2 * (1 + MOST_WAKES) and on.agent.is_woken)
