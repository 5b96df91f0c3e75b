"""A decision that is an object, as PermissionRequest takes it: it refuses in any form, and allows only as a whole."""

import json
from typing import Any

import pytest

from tests.rows import rows
from wave_agent.hooks.events import Decision, Flow, HookEvent
from wave_agent.hooks.execution import HookExecutionResult
from wave_agent.hooks.semantics import merge, read
from wave_agent.hooks.verdicts import Approve, Block, EndTurn, RankedVerdict, Rewrite, TellRefused, TellUser, Verdict

REQUEST, PRE, POST = HookEvent.PERMISSION_REQUEST, HookEvent.PRE_TOOL_USE, HookEvent.POST_TOOL_USE


def answered(decision: Any, code: int = 0, **others: Any) -> Verdict:
    output = json.dumps({"hookSpecificOutput": {"decision": decision}, **others})
    return read(REQUEST, HookExecutionResult(exit_code=code, stdout=output), name="guard")


@rows(
    ("decision", "effects"),
    [
        ({"behavior": "allow"}, (Approve(),)),
        ({"behavior": "allow", "updatedInput": {"command": "ls"}}, (Rewrite({"command": "ls"}), Approve())),
        ({"behavior": "allow", "updatedInput": None, "message": None, "interrupt": None}, (Approve(),)),
        ({"behavior": "allow", "interrupt": False}, (Approve(),)),
        ({"behavior": "deny"}, (Block("Blocked by hook guard"),)),
        ({"behavior": "deny", "message": " no "}, (TellRefused("no"), Block("no"))),
        ({"behavior": "deny", "message": " "}, (Block("Blocked by hook guard"),)),
        ({"behavior": "deny", "interrupt": True}, (EndTurn("Stopped by hook guard"), Block("Blocked by hook guard"))),
        ({"behavior": "deny", "interrupt": True, "message": "no"}, (TellRefused("no"), EndTurn("no"), Block("no"))),
    ],
)
def test_an_answer_that_can_be_read(decision: Any, effects: tuple[Any, ...]):
    assert answered(decision).effects == effects


def test_the_reason_of_a_refusal_is_the_users_and_its_message_the_models():
    assert answered({"behavior": "deny", "message": "no"}, reason="policy 4").effects == (
        TellRefused("no"),
        Block("policy 4"),
    )


@rows(
    ("decision", "fragment"),
    [
        ({}, "behavior is missing"),
        ({"behavior": ""}, "behavior is missing"),
        ({"behavior": "Allow"}, '"Allow" cannot be read (did you mean "allow"?)'),
        ({"behavior": "ask"}, "expected one of allow, deny"),
        ({"behavior": 1}, "behavior must be a string"),
        ({"behavior": "allow", "updatedInput": "ls"}, "updatedInput must be an object"),
        ({"behavior": "allow", "interrupt": "yes"}, "interrupt must be"),
        (["allow"], "decision must be an object"),
        (True, "decision must be an object"),
    ],
)
def test_an_answer_that_cannot_be_read_leaves_the_question_to_the_user(decision: Any, fragment: str):
    verdict = answered(decision)
    assert verdict.decision is Decision.ASK
    assert fragment in str(verdict.effects)
    merged = merge(
        REQUEST,
        [
            RankedVerdict(position=0, name="other", verdict=Verdict((Approve(),))),
            RankedVerdict(position=1, name="guard", verdict=verdict),
        ],
    )
    assert (merged.decision, merged.flow) == (Decision.ASK, Flow.CONFIRM)


def test_an_input_with_a_number_out_of_range_is_not_allowed():
    output = '{"hookSpecificOutput": {"decision": {"behavior": "allow", "updatedInput": {"n": 1e999}}}}'
    verdict = read(REQUEST, HookExecutionResult(exit_code=0, stdout=output), name="guard")
    assert (verdict.decision, verdict.rewrite) == (Decision.ASK, None)
    assert "out of range" in str(verdict.effects)


def test_an_unreadable_part_takes_nothing_from_a_refusal():
    verdict = answered({"behavior": "deny", "interrupt": "yes", "message": 5})
    assert verdict.decision is Decision.BLOCK
    assert "message must be a string" in str(verdict.effects)


def test_what_does_not_go_with_an_answer_is_told():
    denied = answered({"behavior": "deny", "updatedInput": {"command": "ls"}})
    assert denied.rewrite is None
    assert 'updatedInput was ignored: it does not go with "deny"' in str(denied.effects)
    allowed = answered({"behavior": "allow", "message": "fine"})
    assert allowed.decision is Decision.ALLOW
    assert 'message was ignored: it does not go with "allow"' in str(allowed.effects)
    stopped = answered({"behavior": "allow", "interrupt": True, "updatedInput": {"command": "ls"}})
    assert (stopped.decision, stopped.rewrite) == (Decision.STOP, None)


@pytest.mark.parametrize(
    "output",
    [
        {"decision": {"behavior": "deny", "message": "no"}},
        {"decision": "deny"},
        {"hookSpecificOutput": {"decision": "deny"}},
        {"hookSpecificOutput": {"permissionDecision": "deny"}},
        {"hookSpecificOutput": {"hookEventName": "PreToolUse", "decision": {"behavior": "deny"}}},
    ],
)
def test_a_refusal_in_another_form_is_honoured(output: Any):
    verdict = read(REQUEST, HookExecutionResult(exit_code=0, stdout=json.dumps(output)), name="guard")
    assert verdict.decision is Decision.BLOCK


@pytest.mark.parametrize(
    "output",
    [
        {"decision": {"behavior": "allow", "updatedInput": {"command": "ls"}}},
        {"decision": "allow"},
        {"decision": "approve"},
        {"hookSpecificOutput": {"decision": "allow"}},
        {"hookSpecificOutput": {"permissionDecision": "allow"}},
        {"hookSpecificOutput": {"hookEventName": "PreToolUse", "decision": {"behavior": "allow"}}},
    ],
)
def test_an_allow_in_another_form_is_dropped_and_told(output: Any):
    verdict = read(REQUEST, HookExecutionResult(exit_code=0, stdout=json.dumps(output)), name="guard")
    assert verdict.decision is Decision.NONE
    assert verdict.rewrite is None
    assert all(isinstance(effect, TellUser) for effect in verdict.effects)
    assert "was ignored: " in str(verdict.effects)


def test_other_events_take_no_object_for_a_decision():
    said = HookExecutionResult(exit_code=0, stdout='{"hookSpecificOutput": {"decision": {"behavior": "allow"}}}')
    assert read(PRE, said, name="guard").decision is Decision.ASK
    assert read(POST, said, name="guard").failure is not None
