"""What hooks are tried on."""

import re
from typing import Any

import jsonschema
import pytest

from tests.rows import rows
from wave_agent.effects.shown import to_json
from wave_agent.effects.values import NO_EFFECTS
from wave_agent.hooks.events import COMMON_STDIN, EVENTS, HookEvent
from wave_agent.permissions.decision import PermissionMode
from wave_agent.settings.hook_entries import hooks_in_code, load_hooks
from wave_agent.workshop.sample_events import SubjectError, check_tool, event_for, event_named, hooks_named, subject
from wave_agent.workshop.schemas import input_schema

HOOKS = load_hooks([
    hooks_in_code({"PreToolUse": [{"matcher": "Deploy", "hooks": ["./guard.sh"]}], "Stop": ["./done.sh"]})
]).hooks  # fmt: skip


@rows("event", EVENTS)
def test_every_event_can_be_made_whole_from_next_to_nothing(event: HookEvent) -> None:
    given = {"tool": "Bash"} if EVENTS[event].has_tool else {}
    facts = subject(event, given).facts
    common = {field.name: "x" for field in COMMON_STDIN}
    computed = {field.name: to_json(NO_EFFECTS) for field in EVENTS[event].stdin if field.computed}
    payload = {**common, "hook_event_name": event.value, "permission_mode": "default", **facts, **computed}
    jsonschema.validate(payload, input_schema(event))


def test_what_is_given_stands_in_its_fields_and_their_aliases() -> None:
    facts = subject(HookEvent.USER_PROMPT_SUBMIT, {"prompt": "hello"}).facts
    assert facts == {"prompt": "hello", "user_prompt": "hello"}


def test_fields_that_are_not_always_there_are_left_out() -> None:
    assert "original_tool_input" not in subject(HookEvent.PRE_TOOL_USE, {"tool": "Bash"}).facts


def test_a_payload_says_the_fields_and_the_mode_but_not_the_session() -> None:
    payload = {"tool_name": "Bash", "session_id": "mine", "permission_mode": "plan", "own": 1}
    made = subject(HookEvent.PRE_TOOL_USE, {}, payload)
    assert (made.tool, made.mode, made.facts["own"]) == ("Bash", PermissionMode.PLAN, 1)
    assert "session_id" not in made.facts


def test_the_effects_in_a_recorded_payload_are_left_out_since_they_are_computed_again() -> None:
    payload = {"tool_name": "Bash", "effects": {"reads": ["/old"]}}
    assert "effects" not in subject(HookEvent.PRE_TOOL_USE, {}, payload).facts


@pytest.mark.parametrize(
    ("event", "given", "payload", "problem"),
    [
        ("PreToolUse", {}, None, "PreToolUse needs a tool"),
        ("Stop", {"tool": "Bash"}, None, "Stop has no tool; available: stop_hook_active"),
        ("PreToolUse", {"tool": "Bash", "input": "ls"}, None, "tool_input must be an object, not a string"),
        ("Stop", {}, {"stop_block_count": True}, "stop_block_count must be a number, not true or false"),
        ("Stop", {}, {"hook_event_name": "PreToolUse"}, 'the payload is for the event "PreToolUse", not Stop'),
        ("Stop", {}, {"permission_mode": "free"}, "permission_mode must be one of default, "),
    ],
)
def test_what_cannot_be_is_refused(event: str, given: Any, payload: Any, problem: str) -> None:
    with pytest.raises(SubjectError, match=re.escape(problem)):
        subject(HookEvent(event), given, payload)


@pytest.mark.parametrize(
    ("given", "event"),
    [(["prompt"], "UserPromptSubmit"), (["tool", "input"], "PreToolUse"), (["tool", "response"], "PostToolUse")],
)
def test_what_is_given_tells_the_event(given: list[str], event: str) -> None:
    assert event_for(given) == event


def test_an_unknown_event_gets_the_nearest_name() -> None:
    assert event_named("Stop") is HookEvent.STOP
    with pytest.raises(SubjectError, match=r'there is no event "PreToolUs" \(did you mean "PreToolUse"\?\)'):
        event_named("PreToolUs")


@pytest.mark.parametrize("name", ["Bash", "WebFetch", "mcp__files__read", "Deploy"])
def test_a_tool_is_known_if_it_is_built_in_or_a_servers_or_named_by_a_matcher(name: str) -> None:
    check_tool(name, ["Bash"], HOOKS)


def test_an_unknown_tool_gets_the_nearest_name() -> None:
    with pytest.raises(SubjectError, match=r'no tool "Deplyo" \(did you mean "Deploy"\?\)'):
        check_tool("Deplyo", ["Bash"], HOOKS)


def test_hooks_are_found_by_name() -> None:
    assert [hook.name for hook in hooks_named("guard.sh", HookEvent.PRE_TOOL_USE, HOOKS)] == ["guard.sh"]


@pytest.mark.parametrize(
    ("name", "event", "problem"),
    [
        ("gaurd.sh", HookEvent.PRE_TOOL_USE, 'no hook "gaurd.sh" (did you mean "guard.sh"?); available: guard.sh'),
        ("done.sh", HookEvent.PRE_TOOL_USE, 'the hook "done.sh" runs on Stop, not on PreToolUse'),
        ("x", HookEvent.PRE_COMPACT, 'PreCompact has no hook "x"; it has no hooks'),
    ],
)
def test_an_unknown_hook_gets_the_nearest_name(name: str, event: HookEvent, problem: str) -> None:
    with pytest.raises(SubjectError, match=re.escape(problem)):
        hooks_named(name, event, HOOKS)
