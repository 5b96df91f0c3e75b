"""Hooks see what a call would do, and their `if` can be about it."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from wave_agent.effects.values import UNKNOWN_EFFECTS, Effects
from wave_agent.hooks import allow, context, deny, rewrite
from wave_agent.hooks.authoring import CallEffects, HookCall
from wave_agent.hooks.events import EVENTS, Decision, HookEvent
from wave_agent.hooks.manager import HookManager, SessionFacts
from wave_agent.hooks.stage import ToolFacts
from wave_agent.rules.rule import Places
from wave_agent.settings.hook_entries import hooks_in_code, load_hooks
from wave_agent.testing import FakeHookRunner

PRE = HookEvent.PRE_TOOL_USE
NOTHING = {"reads": [], "writes": [], "deletes": [], "runs": [], "hosts": [], "complete": False, "truncated": False}


class Effectful:
    """A tool whose `command` says what it reads; "?" is a command that nobody understands."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, Any]] = []

    def effects(self, tool_input: Mapping[str, Any]) -> Effects:
        self.asked.append(tool_input)
        said = tool_input["command"]
        return UNKNOWN_EFFECTS if said == "?" else Effects(reads=(f"/p/{said}",), runs=(("cat", said),))

    def facts(self) -> ToolFacts:
        return ToolFacts(effects=self.effects)


def manager(hooks: Mapping[str, Any], runner: Any = None) -> HookManager:
    config = load_hooks([hooks_in_code(hooks)])
    assert config.issues == ()
    session = SessionFacts(session_id="s", transcript_path="/t", project_dir="/p", home="/home/me")
    return HookManager(config.hooks, runner=runner or FakeHookRunner({}), session=session, environment={})


def bash(command: str, **more: Any) -> dict[str, Any]:
    return {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "1", **more}


def keeping(into: list[Any], answer: Any = None) -> Any:
    def keep(call: HookCall) -> Any:
        into.append(call)
        return answer

    return keep


# ---------------------------------------------------------------------------------------------------------------- stdin


@pytest.mark.parametrize("event", [PRE, HookEvent.PERMISSION_REQUEST])
async def test_a_hook_sees_what_the_call_would_do(event: HookEvent) -> None:
    seen: list[HookCall] = []
    await manager({event.value: [keeping(seen)]}).run(event, bash(".env"), tool=Effectful().facts())
    assert seen[0]["effects"] == {**NOTHING, "reads": ["/p/.env"], "runs": [["cat", ".env"]], "complete": True}
    effects = seen[0].effects
    assert (effects.reads, effects.runs, effects.complete) == (["/p/.env"], [["cat", ".env"]], True)
    assert (effects.writes, effects.deletes, effects.hosts, effects.truncated) == ([], [], [], False)


async def test_a_tool_that_says_nothing_may_do_anything() -> None:
    seen: list[HookCall] = []
    await manager({"PreToolUse": [keeping(seen)]}).run(PRE, bash("ls"))
    assert seen[0]["effects"] == NOTHING


async def test_other_events_have_no_effects_and_say_so() -> None:
    assert [event for event, row in EVENTS.items() if row.shows_effects] == [PRE, HookEvent.PERMISSION_REQUEST]
    seen: list[HookCall] = []
    tool = Effectful()
    facts = bash("ls", tool_response={"success": True, "content": ""})
    await manager({"PostToolUse": [keeping(seen)]}).run(HookEvent.POST_TOOL_USE, facts, tool=tool.facts())
    assert "effects" not in seen[0].payload
    assert tool.asked == []
    assert isinstance(seen[0].effects, CallEffects)
    assert not seen[0].effects.complete


async def test_a_hook_of_the_other_dialect_sees_them_too() -> None:
    runner = FakeHookRunner({})
    hook = {"command": "./g", "dialect": "claude"}
    await manager({"PreToolUse": [hook]}, runner).run(PRE, bash("x"), tool=Effectful().facts())
    assert json.loads(runner.jobs[0].stdin)["effects"]["reads"] == ["/p/x"]


async def test_effects_are_those_of_the_input_that_the_hook_sees() -> None:
    """After a rewrite they are computed again; for the same input, once."""
    first: list[HookCall] = []
    after: list[HookCall] = []
    tool = Effectful()
    hooks = {
        "PreToolUse": [
            {"phase": "rewrite", "hooks": [keeping(first, rewrite(command="b")), keeping(after)]},
            {"hooks": [keeping(after), keeping(after)]},
        ]
    }
    await manager(hooks).run(PRE, bash("a"), tool=tool.facts())
    assert first[0].effects.reads == ["/p/a"]
    assert [call.effects.reads for call in after] == [["/p/b"]] * 3
    assert tool.asked == [{"command": "a"}, {"command": "b"}]


async def test_on_a_second_look_they_are_those_of_the_final_input() -> None:
    seen: list[HookCall] = []
    await manager({"PreToolUse": [keeping(seen), lambda _: rewrite(command="b")]}).run(
        PRE, bash("a"), tool=Effectful().facts()
    )
    assert [call.effects.reads for call in seen] == [["/p/a"], ["/p/b"]]


async def test_nothing_is_computed_if_no_hook_runs() -> None:
    tool = Effectful()
    hooks = {"PreToolUse": [{"matcher": "Read", "hooks": [deny]}, {"command": "x", "if": "Bash(git push:*)"}]}
    await manager(hooks).run(PRE, bash("ls"), tool=tool.facts())
    assert tool.asked == []


# ------------------------------------------------------------------------------------------------------------------- if


@pytest.mark.parametrize("matcher", ["*", "Bash"])
@pytest.mark.parametrize(("command", "runs"), [(".env", True), (".e*", True), ("?", True), ("main.py", False)])
async def test_a_condition_about_a_path_applies_to_whatever_reads_it_or_may(
    matcher: str, command: str, runs: bool
) -> None:
    seen: list[HookCall] = []
    group = {"matcher": matcher, "hooks": [{"function": keeping(seen, deny("no")), "if": "Read(.env)"}]}
    outcome = await manager({"PreToolUse": [group]}).run(PRE, bash(command), tool=Effectful().facts())
    assert bool(seen) is runs
    assert outcome.decision is (Decision.BLOCK if runs else Decision.NONE)


async def test_a_condition_is_asked_again_after_a_rewrite() -> None:
    guard = {"function": lambda _: deny("no"), "if": "Read(.env)"}
    hooks = {"PreToolUse": [{"hooks": [guard, lambda _: rewrite(command=".env")]}]}
    outcome = await manager(hooks).run(PRE, bash("main.py"), tool=Effectful().facts())
    assert outcome.decision is Decision.BLOCK


async def test_a_condition_about_a_path_applies_after_the_call_too() -> None:
    seen: list[HookCall] = []
    hooks = {"PostToolUse": [{"function": keeping(seen, context("secret")), "if": "Read(.env)"}]}
    facts = {"tool_response": {"success": True, "content": ""}}
    for command in (".env", "main.py"):
        await manager(hooks).run(HookEvent.POST_TOOL_USE, bash(command, **facts), tool=Effectful().facts())
    assert [call.input["command"] for call in seen] == [".env"]


@pytest.mark.parametrize(("command", "rule"), [("docs/a", "Read(docs/**)"), ("?", "Read(docs/**)"), ("?", "Net(*)")])
@pytest.mark.parametrize("answer", [allow(), allow() | context("x")])
async def test_an_allow_does_not_cover_a_command_that_its_condition_does_not_name(
    command: str, rule: str, answer: Any
) -> None:
    hooks = {"PreToolUse": [{"function": lambda _: answer, "if": rule}]}
    outcome = await manager(hooks).run(PRE, bash(command), tool=Effectful().facts())
    assert outcome.decision is Decision.NONE
    assert [said.text for said in outcome.contexts] == (["x"] if "additionalContext" in answer else [])


async def test_an_allow_for_the_tool_that_the_condition_names_counts() -> None:
    hooks = {"PreToolUse": [{"function": lambda _: allow(), "if": "Read(docs/**)"}]}
    facts = {"tool_name": "Read", "tool_input": {"file_path": "/p/docs/a"}, "tool_use_id": "1"}
    assert (await manager(hooks).run(PRE, facts)).decision is Decision.ALLOW


def test_why_a_hook_does_not_run_names_the_condition() -> None:
    (hook,) = load_hooks([hooks_in_code({"PreToolUse": [{"command": "x", "if": "Net(*)"}]})]).hooks
    places = Places("/p", "/home/me")
    assert hook.why_not(bash("ls"), places) is None
    why = hook.why_not(bash("ls"), places, lambda: Effects(reads=("/p/x",)))
    assert why == 'its condition "Net(*)" does not match what the call does'
