"""`once`: the first time that a hook applies in a session, and not again."""

import json
from pathlib import Path
from typing import Any

import pytest

from wave_agent import Agent
from wave_agent.hooks.definitions import Layer
from wave_agent.settings.hook_entries import load_hooks, parse_settings
from wave_agent.testing import Reply, ScriptedModel, call


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))


def bash(command: str) -> Reply:
    return Reply(tool_calls=[call("Bash", command=command)])


async def agent_with(project: Path, hooks: Any, *replies: Any, **more: Any) -> Agent:
    return await Agent.create(
        workdir=project,
        model_client=ScriptedModel([*replies]),
        permission_mode="bypassPermissions",
        settings={"hooks": hooks},
        **more,
    )


async def test_it_runs_when_it_first_applies_also_after_others_did_not(tmp_path: Path) -> None:
    hooks = {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"command": "echo a >> log", "once": True, "if": "Bash(echo*)"}]},
            {"matcher": "Bash", "hooks": [{"command": "echo b >> log"}]},
        ]
    }
    async with await agent_with(tmp_path, hooks, bash("true"), bash("echo 1"), bash("echo 2"), "Done.") as agent:
        await agent.send_message("go")
    assert sorted((tmp_path / "log").read_text().split()) == ["a", "b", "b", "b"]


async def test_a_session_that_goes_on_remembers_it(tmp_path: Path) -> None:
    hooks = {"UserPromptSubmit": [{"command": "echo x >> log", "once": True}]}
    async with await agent_with(tmp_path, hooks, "One.", "Two.") as agent:
        await agent.send_message("go")
        await agent.send_message("go")
        session = agent.session_id
    async with await agent_with(tmp_path, hooks, "Three.", resume=session) as agent:
        await agent.send_message("go")
    assert (tmp_path / "log").read_text() == "x\n"
    async with await agent_with(tmp_path, hooks, "Four.") as agent:
        await agent.send_message("go")
    assert (tmp_path / "log").read_text() == "x\nx\n"


async def test_a_guard_that_runs_once_still_gets_its_second_look(tmp_path: Path) -> None:
    answer = json.dumps({"hookSpecificOutput": {"updatedInput": {"command": "echo evil"}}})
    guard = "if grep -q evil; then echo no >&2; exit 2; fi"
    hooks = {"PreToolUse": [{"hooks": [{"command": f"echo '{answer}'"}, {"command": guard, "once": True}]}]}
    async with await agent_with(tmp_path, hooks, bash("echo fine"), "Done.") as agent:
        result = await agent.send_message("go")
    assert [(run.look, run.outcome) for run in result.hooks if "grep" in run.command] == [(1, "none"), (2, "deny")]


async def test_async_hooks_run_once_too(tmp_path: Path) -> None:
    hooks = {"PreToolUse": [{"command": "echo x >> log", "once": True, "async": True}]}
    both = Reply(tool_calls=[call("Glob", pattern="*"), call("Glob", pattern="a*")])
    async with await agent_with(tmp_path, hooks, both, "Done.") as agent:
        await agent.send_message("go")
    assert (tmp_path / "log").read_text() == "x\n"


def test_anything_but_true_or_false_is_a_broken_entry() -> None:
    text = json.dumps({"hooks": {"Stop": [{"command": "x", "once": "yes"}]}})
    (issue,) = load_hooks([parse_settings(text, Layer.PROJECT, "s")]).issues
    assert "once: must be true or false, not a string" in str(issue)
