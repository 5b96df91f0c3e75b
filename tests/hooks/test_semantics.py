"""The meaning of a hook's output: the table is whole, and no combination loses a deny or gains an allow."""

import json
from itertools import combinations_with_replacement, permutations, product
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.rows import rows
from wave_agent.events import HookRun
from wave_agent.hooks.dialects import Dialect
from wave_agent.hooks.events import EVENTS, Audience, Decision, Flow, HookEvent, OnFailure
from wave_agent.hooks.execution import HookExecutionResult, Opinion
from wave_agent.hooks.semantics import (
    RULES,
    ExitClass,
    Stdout,
    changed,
    changes,
    ends_turn,
    kinds_of,
    limited,
    merge,
    read,
    rewrite,
    rule_of,
    withholds,
    words_of,
)
from wave_agent.hooks.verdicts import (
    AddContext,
    Approve,
    Ask,
    Block,
    Blocks,
    Defer,
    EndTurn,
    Failure,
    FailureKind,
    Outcome,
    RankedVerdict,
    ReplaceOutput,
    Rewrite,
    Role,
    Said,
    TellRefused,
    TellUser,
    ToUser,
    Verdict,
    Withhold,
    without_hooks,
)
from wave_agent.permissions.decision import JudgedCall, PermissionMode, Rules, Ruling, decide
from wave_agent.rules.rule import Places, parse_rule

PRE = HookEvent.PRE_TOOL_USE
POST = HookEvent.POST_TOOL_USE
PROMPT = HookEvent.USER_PROMPT_SUBMIT
STOP = HookEvent.STOP
START = HookEvent.SESSION_START
BLOCKING = (PROMPT, PRE, POST, STOP)


def ran(code: int = 0, stdout: str = "", stderr: str = "", **more: Any) -> HookExecutionResult:
    return HookExecutionResult(exit_code=code, stdout=stdout, stderr=stderr, **more)


def printed(output: object, code: int = 0, stderr: str = "") -> HookExecutionResult:
    return ran(code, json.dumps(output), stderr)


def verdict(event: HookEvent, result: HookExecutionResult, on_failure: OnFailure = OnFailure.CONTINUE) -> Verdict:
    return read(event, result, name="guard", on_failure=on_failure)


def specific(**fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": fields}


# ------------------------------------------------------------------------------------------------------ whole tables


UNHEARD = (
    *(HookEvent.NOTIFICATION, HookEvent.STOP_FAILURE, HookEvent.CONFIG_CHANGE),
    *(HookEvent.INSTRUCTIONS_LOADED, HookEvent.FILE_CHANGED, HookEvent.CWD_CHANGED),
)
TASKS = (HookEvent.TASK_CREATED, HookEvent.TASK_COMPLETED)
NOTHING_TO_DECIDE = (*UNHEARD, HookEvent.SESSION_END)
QUESTIONS = (HookEvent.ELICITATION, HookEvent.ELICITATION_RESULT)


def test_every_kind_of_stdout_with_every_exit_code_is_decided():
    assert set(RULES) == set(product(Stdout, ExitClass))


@rows("event", HookEvent)
def test_every_event_has_a_row_and_every_decision_a_flow(event: HookEvent):
    row = EVENTS[event]
    assert row.event is event
    assert set(row.flow) == set(Decision)
    ends = Flow.DECLINE if event in QUESTIONS else Flow.END_TURN
    unending = (*NOTHING_TO_DECIDE, HookEvent.SUBAGENT_STOP)  # the subagent ends anyway
    assert row.flow[Decision.STOP] is (Flow.PROCEED if event in unending else ends)
    assert {"block", "deny", "approve", "allow"} <= set(row.decision_words)
    assert row.decision_words["block"] is row.decision_words["deny"] is Decision.BLOCK
    assert row.permission_words["deny"] is Decision.BLOCK


@rows(("event", "decision"), list(product(HookEvent, Decision)))
def test_every_outcome_of_every_event_says_what_the_agent_does(event: HookEvent, decision: Decision):
    effects: dict[Decision, Any] = {
        Decision.NONE: TellUser("x"),
        Decision.ALLOW: Approve("x"),
        Decision.ASK: Ask("x"),
        Decision.DEFER: Defer("x"),
        Decision.BLOCK: Block("x"),
        Decision.STOP: EndTurn("x"),
    }
    outcome = merge(event, [RankedVerdict(position=0, name="guard", verdict=Verdict((effects[decision],)))])
    assert outcome.decision is decision
    assert outcome.flow is EVENTS[event].flow[decision]
    # Whatever is said reaches somebody, unless a decision has no meaning at all on the event.
    heard = "x" in [*outcome.for_model(), *(note.text for note in outcome.for_user())]
    assert heard == (decision is Decision.NONE or event not in UNHEARD)


def test_the_flow_of_a_block_is_the_events_own():
    assert {event: EVENTS[event].flow[Decision.BLOCK] for event in HookEvent} == {
        PROMPT: Flow.ERASE_PROMPT,
        HookEvent.USER_PROMPT_EXPANSION: Flow.ERASE_PROMPT,
        PRE: Flow.SKIP_TOOL,
        POST: Flow.FEEDBACK,
        STOP: Flow.KEEP_WORKING,
        START: Flow.PROCEED,
        HookEvent.SUBAGENT_START: Flow.PROCEED,
        HookEvent.SUBAGENT_STOP: Flow.KEEP_WORKING,
        HookEvent.PRE_COMPACT: Flow.SKIP_COMPACTION,
        HookEvent.POST_COMPACT: Flow.PROCEED,
        HookEvent.PERMISSION_REQUEST: Flow.REFUSE_CALL,
        HookEvent.POST_TOOL_USE_FAILURE: Flow.FEEDBACK,
        HookEvent.PERMISSION_DENIED: Flow.PROCEED,
        HookEvent.POST_TOOL_BATCH: Flow.END_TURN,
        **dict.fromkeys(TASKS, Flow.REFUSE_TASK),
        **dict.fromkeys(QUESTIONS, Flow.DECLINE),
        **dict.fromkeys(NOTHING_TO_DECIDE, Flow.PROCEED),
    }


@pytest.mark.parametrize(
    ("result", "kinds"),
    [
        (HookExecutionResult(exit_code=0), (Stdout.EMPTY, ExitClass.ZERO)),
        (HookExecutionResult(exit_code=2, stdout="text"), (Stdout.TEXT, ExitClass.TWO)),
        (HookExecutionResult(exit_code=7, stdout='{"decision": "block"}'), (Stdout.DECIDES, ExitClass.OTHER)),
        (HookExecutionResult(exit_code=0, stdout="{}", stdout_dropped=1), (Stdout.UNREADABLE, ExitClass.ZERO)),
        (HookExecutionResult(exit_code=0, stdout='x\n{"decision": "block"}'), (Stdout.CHATTER, ExitClass.ZERO)),
        (HookExecutionResult(timed_out=True), None),
    ],
)
def test_the_cell_that_a_run_is_read_by_can_be_named(result: HookExecutionResult, kinds: object):
    assert kinds_of(HookEvent.PRE_TOOL_USE, result) == kinds


# ------------------------------------------------------------------------------------------------------- single cells


@rows("event", HookEvent)
@rows("stdout", ["", "{}", " \n", "\ufeff", "\ufeff{}"])
def test_silence_is_no_opinion(event: HookEvent, stdout: str):
    assert verdict(event, ran(0, stdout)) == Verdict()


@rows("event", HookEvent)
def test_plain_text_is_context_only_where_the_event_says_so(event: HookEvent):
    says_so = (PROMPT, START, HookEvent.PRE_COMPACT, HookEvent.USER_PROMPT_EXPANSION)
    expected = (AddContext("note"),) if event in says_so else ()
    assert verdict(event, ran(0, "note", "ignored")).effects == expected


@pytest.mark.parametrize("stdout", ['["a"]', '"text"', "12", "null", "NaN"])
def test_other_json_values_are_plain_text(stdout: str):
    assert verdict(PROMPT, ran(0, stdout)).effects == (AddContext(stdout),)


@rows("event", HookEvent)
@rows("stdout", ["", "text", "{}", '{"unknown": 1}', '{"continue": true}', '{"reason": ""}', "{bad"])
def test_exit_2_blocks_with_stderr_or_the_default_reason(event: HookEvent, stdout: str):
    assert verdict(event, ran(2, stdout, "no")).effects[-1] == Block("no")
    to_model = EVENTS[event].reason_reader is Audience.MODEL
    why = "\ntext" if stdout == "text" and to_model else ""
    assert verdict(event, ran(2, stdout)).effects[-1] == Block(f"Blocked by hook guard{why}")


@rows("event", HookEvent)
def test_a_failure_that_blocks_and_goes_to_the_model_says_why(event: HookEvent):
    def message(*streams: str) -> str:
        found = verdict(event, ran(3, *streams), OnFailure.BLOCK).failure
        assert found is not None
        return found.message

    if EVENTS[event].reason_reader is Audience.MODEL:
        what = "Hook guard failed with exit code 3"
        assert (message(), message("{}"), message("{bad")) == (what, what, what)
        assert message("out") == f"{what}\nout"
        assert message("out", "err") == f"{what}\nout\nerr"
    else:
        assert (message(), message("out")) == ("Hook execution failed", "Hook execution failed")
        assert message("out", "err") == "err"
    assert message("", "err") == "err"


def test_the_exit_2_of_make_gives_what_its_recipe_printed():
    make = "make: *** [Makefile:3: test] Error 1"
    gate = verdict(STOP, ran(2, "test_sum FAILED", f"cc: warning\n{make}"), OnFailure.BLOCK)
    assert gate.effects == (Block(f"Blocked by hook guard\ntest_sum FAILED\ncc: warning\n{make}"),)
    assert verdict(STOP, ran(2, "", make)).effects == (Block(make),)
    assert verdict(STOP, ran(2, "chatter", f"{make}\nno tests, no end")).effects == (
        Block(f"{make}\nno tests, no end"),
    )
    assert verdict(PROMPT, ran(2, "chatter", make)).effects == (Block(make),)


def test_the_end_of_a_stream_is_30_lines_and_2000_characters():
    lines = [f"line {number}" for number in range(50)]
    assert verdict(STOP, ran(2, "\n".join(lines))).effects[-1] == Block(
        "\n".join(["Blocked by hook guard", *lines[-30:]])
    )
    assert verdict(STOP, ran(2, "ab" * 2000)).effects[-1] == Block("Blocked by hook guard\n" + "ab" * 1000)
    cut = ran(2, "the beginning", stdout_dropped=9, stdout_end="the end")
    assert verdict(STOP, cut).effects[-1] == Block("Blocked by hook guard\nthe end")
    both = ran(1, "out", "err", stdout_dropped=9, stdout_end="last out", stderr_dropped=9, stderr_end="last err")
    failed = verdict(STOP, both, OnFailure.BLOCK).failure
    assert failed is not None
    assert failed.message == "Hook guard failed with exit code 1\nlast out\nlast err"


@rows("event", HookEvent)
@rows("code", [1, 3, 126, 127, 255])
def test_other_codes_fail_and_are_told(event: HookEvent, code: int):
    assert verdict(event, ran(code, "text", "broke")).effects == (Failure(FailureKind.EXIT, "broke", False, code),)
    told = "Hook execution failed"
    assert verdict(event, ran(code)).effects == (Failure(FailureKind.EXIT, told, False, code),)


@rows(
    ("result", "kind", "word"),
    [
        (
            HookExecutionResult(timed_out=True, stdout="partial", duration=300),
            FailureKind.TIMEOUT,
            "timed out after 0.3 s",
        ),
        (HookExecutionResult(signal=9, stdout="partial"), FailureKind.SIGNAL, "signal 9 (SIGKILL)"),
        (HookExecutionResult(signal=200), FailureKind.SIGNAL, "signal 200"),
        (HookExecutionResult(error="no such file"), FailureKind.SPAWN, "could not be started: no such file"),
        (HookExecutionResult(error="it answered 500", by_service=True), FailureKind.HTTP, "no answer: it answered 500"),
    ],
)
@rows("event", HookEvent)
def test_a_run_that_did_not_end_by_itself_is_a_failure(
    event: HookEvent, result: HookExecutionResult, kind: FailureKind, word: str
):
    found = verdict(event, result)
    assert found.failure is not None
    assert found.failure.kind is kind
    assert word in found.failure.message
    assert len(found.effects) == 1  # partial stdout is never context


@pytest.mark.parametrize("on_failure", OnFailure)
@pytest.mark.parametrize(("exit_code", "stdin_left"), [(0, 9), (0, 0), (2, 9)])
def test_a_hook_that_left_stdin_unread_has_not_judged_an_argument_that_was_cut(
    on_failure: OnFailure, exit_code: int, stdin_left: int
):
    result = HookExecutionResult(exit_code=exit_code, stderr="no", stdin_left=stdin_left, has_cut_arguments=True)
    verdict = read(HookEvent.PRE_TOOL_USE, result, name="h", on_failure=on_failure)
    assert TellUser("hook h: an argument was truncated to 100 KiB; stdin has all of it") in verdict.effects
    failed = verdict.failure
    assert (failed is not None) == (exit_code == 0 and stdin_left > 0)
    assert failed is None or failed.blocks == (on_failure is OnFailure.BLOCK)
    assert (Block("no") in verdict.effects) == (exit_code == 2)


def test_json_that_was_cut_at_the_cap_is_a_decision_that_cannot_be_read():
    cut = ran(0, '{"decision": "approve"}', stdout_dropped=1)
    assert verdict(PRE, cut).decision is Decision.ASK
    assert verdict(POST, cut).failure_kind is FailureKind.JSON
    assert verdict(PRE, ran(2, '{"a', "no", stdout_dropped=1)).effects[-1] == Block("no")


MALFORMED = [
    '{"decision": "approve"', '{"decision": "block", "decision": }', '{"a": NaN}',
    "{" * 70, '{"a":' * 70 + "1" + "}" * 70, "{'a': 1}", '{"a": 1} trailing',
]  # fmt: skip


@pytest.mark.parametrize("stdout", MALFORMED)
def test_malformed_json_is_told_and_the_exit_code_rules(stdout: str):
    for event in HookEvent:
        lenient = verdict(event, ran(0, stdout))
        assert [type(effect) for effect in lenient.effects] == [TellUser]
        assert lenient.failure_kind is FailureKind.JSON
        strict = verdict(event, ran(0, stdout), OnFailure.BLOCK)
        assert (
            strict.failure == Failure(FailureKind.JSON, strict.failure.message, blocks=True)
            if strict.failure
            else False
        )
        blocked = verdict(event, ran(2, stdout, "no"), OnFailure.BLOCK)
        assert blocked.effects[-1] == Block("no")
        assert blocked.failure_kind is None
        failed = verdict(event, ran(1, stdout, "broke"))
        assert failed.effects[-1] == Failure(FailureKind.EXIT, "broke", blocks=False, code=1)


def test_an_allow_beside_exit_2_stands_but_is_told_and_fails_where_failing_blocks():
    output = specific(permissionDecision="allow")
    assert verdict(PRE, printed(output, 2)).decision is Decision.ALLOW
    assert any(isinstance(effect, TellUser) for effect in verdict(PRE, printed(output, 2)).effects)
    strict = verdict(PRE, printed(output, 2), OnFailure.BLOCK)
    assert strict.decision is Decision.NONE
    assert strict.failure is not None
    assert strict.failure.blocks


def test_json_that_decides_nothing_forgives_other_codes_unless_failing_blocks():
    output = {"systemMessage": "careful"}
    assert verdict(PRE, printed(output, 1)).effects == (TellUser("careful"),)
    assert verdict(PRE, printed(output, 1, "broke"), OnFailure.BLOCK).failure == Failure(
        FailureKind.EXIT, "broke", blocks=True, code=1
    )


def test_exit_2_beside_json_without_a_decision_takes_the_jsons_reason_first():
    assert verdict(PRE, printed({"reason": "json"}, 2, "stderr")).effects == (Block("json"),)
    assert verdict(PRE, printed({"continue": True}, 2, "stderr")).effects == (Block("stderr"),)


def test_continue_false_beside_exit_2_also_blocks():
    for event in HookEvent:
        found = verdict(event, printed({"continue": False, "stopReason": "enough"}, 2, "no"))
        assert found.decision is Decision.STOP
        assert EndTurn("enough") in found.effects
        assert Block("no") in found.effects


def test_blocking_a_stop_needs_a_reason():
    assert verdict(STOP, printed({"decision": "block", "reason": "tests fail"})).effects == (Block("tests fail"),)
    for empty in ({}, {"reason": ""}, {"reason": "  "}, {"reason": 5}):
        found = verdict(STOP, printed({"decision": "block", **empty}))
        assert found.failure is None
        assert Block("Blocked by hook guard") in found.effects
        assert any(isinstance(effect, TellUser) and '"reason"' in effect.text for effect in found.effects)
        assert verdict(STOP, printed({"decision": "block", **empty}, 2, "lent")).effects[-1] == Block("lent")
    stopped = verdict(STOP, printed({"decision": "block", "continue": False}))
    assert stopped.decision is Decision.STOP
    assert stopped.failure is None
    for event in (PROMPT, PRE, POST):
        assert Block("Blocked by hook guard") in verdict(event, printed({"decision": "block"})).effects


@rows(
    "output",
    [
        {"decision": "Deny"}, {"decision": "defer"}, {"decision": 5}, {"decision": ""}, {"continue": "false"},
        {"continue": 0}, specific(permissionDecision="block"), specific(permissionDecision=["deny"]),
        {"permissionDecision": "DENY"}, specific(hookEventName="Other", permissionDecision=7),
    ],
)  # fmt: skip
def test_a_decision_that_cannot_be_read_is_an_ask_before_a_tool_and_a_failure_elsewhere(output: dict[str, Any]):
    asked = verdict(PRE, printed(output))
    assert asked.decision is Decision.ASK
    assert asked.failure_kind is None
    for event in (PROMPT, POST, STOP, START):
        failed = verdict(event, printed(output))
        assert failed.failure is not None
        assert failed.failure.kind is FailureKind.JSON
    for event in HookEvent:
        assert verdict(event, printed(output, 2, "no")).effects[-1] == Block("no")


def test_an_unreadable_decision_does_not_weaken_a_readable_one_beside_it():
    both = {"decision": "Deny", **specific(permissionDecision="allow")}
    assert verdict(PRE, printed(both)).decision is Decision.ASK
    assert verdict(PRE, printed(both, 2, "no")).decision is Decision.BLOCK
    stop = {"continue": False, "decision": 5}
    for event in HookEvent:
        assert verdict(event, printed(stop)).decision is Decision.STOP
        assert verdict(event, printed(stop, 2)).decision is Decision.STOP
    assert verdict(POST, printed({"continue": "no", "decision": "block", "reason": "r"})).decision is Decision.BLOCK


def test_two_decisions_in_one_output_the_stricter_holds_and_all_reasons_are_given():
    output = {"decision": "block", "reason": "a", **specific(permissionDecision="allow", permissionDecisionReason="b")}
    assert verdict(PRE, printed(output)).decision is Decision.BLOCK
    output = {"decision": "block", "reason": "a", **specific(permissionDecision="deny", permissionDecisionReason="b")}
    assert [effect for effect in verdict(PRE, printed(output)).effects if isinstance(effect, Block)] == [
        Block("a"),
        Block("b"),
    ]


@rows(
    ("event", "output", "decision", "place"),
    [
        (PRE, {"permissionDecision": "deny"}, Decision.BLOCK, "hookSpecificOutput.permissionDecision"),
        (PRE, {"permissionDecision": "ask"}, Decision.ASK, "hookSpecificOutput.permissionDecision"),
        (PRE, {"permissionDecision": "allow"}, Decision.NONE, "hookSpecificOutput.permissionDecision"),
        (PRE, specific(decision="block"), Decision.BLOCK, "did you mean decision"),
        (PRE, specific(decision="approve"), Decision.NONE, "did you mean decision"),
        (STOP, specific(decision="approve"), Decision.NONE, "did you mean decision"),
        (PRE, {**specific(**{"continue": False})}, Decision.STOP, "did you mean continue"),
        (PRE, specific(hookEventName="PostToolUse", permissionDecision="deny"), Decision.BLOCK, "hookEventName"),
        (PRE, specific(hookEventName="PostToolUse", permissionDecision="allow"), Decision.NONE, "hookEventName"),
        (POST, specific(permissionDecision="deny"), Decision.BLOCK, '{"decision": "block"}'),
        (POST, specific(permissionDecision="allow"), Decision.NONE, '{"decision": "block"}'),
        (PRE, {"updatedInput": {"a": 1}}, Decision.NONE, "hookSpecificOutput.updatedInput"),
        (PRE, specific(systemMessage="x"), Decision.NONE, "did you mean systemMessage"),
        (PRE, {"hookEventName": "PreToolUse"}, Decision.NONE, "hookSpecificOutput.hookEventName"),
        (POST, specific(updatedInput={"a": 1}), Decision.NONE, "does not accept it"),
        (PRE, specific(hookEventName="Stop", additionalContext="x"), Decision.NONE, "hookEventName"),
        (PRE, specific(hookEventName=5, updatedInput={}), Decision.NONE, "hookEventName"),
    ],
)
def test_in_the_wrong_place_what_restricts_is_honoured_and_what_loosens_is_dropped(
    event: HookEvent, output: dict[str, Any], decision: Decision, place: str
):
    found = verdict(event, printed(output))
    assert found.decision is decision
    assert found.rewrite is None
    assert not any(isinstance(effect, AddContext) for effect in found.effects)
    assert any(place in effect.text for effect in found.effects if isinstance(effect, TellUser))


@pytest.mark.parametrize(
    ("output", "field", "wanted"),
    [
        ({"systemMessage": 5}, "systemMessage", "a string, not 5"),
        ({"suppressOutput": "yes"}, "suppressOutput", 'true or false, not "yes"'),
        ({"reason": True}, "reason", "a string, not true"),
        ({"hookSpecificOutput": []}, "hookSpecificOutput", "an object, not a list"),
        (specific(updatedInput="ls"), "updatedInput", 'an object, not "ls"'),
        (specific(additionalContext=1.5), "additionalContext", "a string, not 1.5"),
    ],
)
def test_a_field_of_the_wrong_type_is_dropped_and_told_and_the_rest_stands(
    output: dict[str, Any], field: str, wanted: str
):
    found = verdict(PRE, printed({**output, "decision": "ask"}))
    assert found.decision is Decision.ASK
    [note] = [effect.text for effect in found.effects if isinstance(effect, TellUser)]
    assert field in note
    assert wanted in note


ALLOW = '"permissionDecision": "allow"'


@rows(
    "output",
    [
        f'{{"updatedInput": {{"a": 1}}, "hookSpecificOutput": {{{ALLOW}}}}}',
        f'{{"hookSpecificOutput": {{{ALLOW}, "updatedInput": "ls"}}}}',
        f'{{"hookSpecificOutput": {{{ALLOW}, "updatedInput": [{{"a": 1}}]}}}}',
        f'{{"hookSpecificOutput": {{{ALLOW}, "updatedinput": {{"a": 1}}}}}}',
        f'{{"hookSpecificOutput": {{{ALLOW}, "updatedInput": {{"a": 1, "a": 2}}}}}}',
        f'{{"hookSpecificOutput": {{{ALLOW}, "updatedInput": {{"a": 1}}, "updatedInput": {{"a": 1}}}}}}',
        f'{{"hookSpecificOutput": {{{ALLOW}, "updatedInput": {{"a": 1e999}}}}}}',
        f'{{"updatedInput": {{"a": 1}}, "hookSpecificOutput": {{{ALLOW}, "updatedInput": {{"a": true}}}}}}',
        '{"decision": "approve", "updatedInput": {"a": 1}}',
        '{"decision": "approve", "hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedInput": {"a": 1}}}',
        '{"decision": "approve", "hookSpecificOutput": [{"updatedInput": {"a": 1}}]}',
        '{"decision": "approve", "hookSpecificOutput": "{\\"updatedInput\\": {}}"}',
        '{"decision": "approve", "hookSpecificOutput": {"updatedInput": {"a": 1}}, "hookSpecificOutput": {}}',
    ],
)
def test_an_allow_does_not_hold_without_the_input_that_came_with_it(output: str):
    found = verdict(PRE, ran(0, output))
    assert found.decision is Decision.NONE
    assert any("the allow was ignored" in effect.text for effect in found.effects if isinstance(effect, TellUser))
    assert verdict(PRE, ran(2, output, "no")).decision is Decision.BLOCK
    stopped = verdict(PRE, ran(0, '{"continue": false, ' + output[1:]))
    assert stopped.decision is Decision.STOP
    assert not any(isinstance(effect, Approve) for effect in stopped.effects)


@pytest.mark.parametrize(
    "fields", [{"updatedInput": {"a": [1], "updatedInput": {"b": 1}}}, {"updatedInput": None}, {"systemMessage": 5}]
)
def test_an_allow_holds_where_no_input_was_lost(fields: dict[str, Any]):
    assert verdict(PRE, printed(specific(permissionDecision="allow", **fields))).decision is Decision.ALLOW
    both = {"updatedInput": {"a": 1}, **specific(permissionDecision="allow", updatedInput={"a": 1})}
    assert verdict(PRE, printed(both)).decision is Decision.ALLOW


def test_an_answer_does_not_hold_without_the_input_beside_it():
    output = specific(decision={"behavior": "allow"}, updatedInput={"a": 1})
    assert verdict(HookEvent.PERMISSION_REQUEST, printed(output)).decision is Decision.NONE


def test_null_means_absent():
    nulls = dict.fromkeys(("continue", "decision", "reason", "hookSpecificOutput"))
    assert verdict(STOP, printed(nulls)) == Verdict()
    assert verdict(PRE, printed(specific(permissionDecision=None, updatedInput=None))) == Verdict()


def test_every_field_reaches_its_effect():
    output = {
        "systemMessage": " careful ", "suppressOutput": True, "additionalContext": "top",
        **specific(
            hookEventName="PreToolUse", permissionDecision="allow", permissionDecisionReason="safe",
            updatedInput={"command": "ls"}, additionalContext=" inner ",
        ),
    }  # fmt: skip
    found = verdict(PRE, printed(output))
    assert found.effects == (
        TellUser("careful"), AddContext("top"), AddContext("inner"), Rewrite({"command": "ls"}), Approve("safe"),
    )  # fmt: skip
    assert verdict(POST, printed(specific(updatedToolOutput=""))).effects == (ReplaceOutput(""),)
    assert verdict(PRE, printed({"additionalContext": " ", "stopReason": ""})) == Verdict()


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 5000])
def test_a_number_out_of_range_costs_no_deny_but_cannot_be_written_into_an_input(number: str):
    assert verdict(PRE, ran(0, f'{{"decision": "block", "reason": "no", "n": {number}}}')).effects == (Block("no"),)
    [told] = verdict(PRE, ran(0, f'{{"hookSpecificOutput": {{"updatedInput": {{"n": [{number}]}}}}}}')).effects
    assert isinstance(told, TellUser)
    assert "out of range" in told.text


def test_an_object_without_a_known_key_is_context_where_text_is_and_told_elsewhere():
    assert verdict(PROMPT, ran(0, '{"foo": 1}')).effects == (AddContext('{"foo": 1}'),)
    [told] = verdict(PRE, ran(0, '{"desicion": "block"}')).effects
    assert isinstance(told, TellUser)
    assert 'did you mean "decision"' in told.text
    assert verdict(PRE, ran(1, '{"foo": 1}', "broke")).failure is not None


def test_lone_surrogates_cost_no_deny():
    found = verdict(PRE, ran(0, '{"decision": "block", "reason": "bad \\ud800 text"}'))
    assert found.effects == (Block("bad \ufffd text"),)


@rows(
    ("effects", "event", "word"),
    [
        ((), PRE, "none"),
        ((TellUser("x"), Rewrite({})), PRE, "none"),
        ((AddContext("x"),), PRE, "context"),
        ((AddContext("x"), Approve()), PRE, "allow"),
        ((Ask("x"), Approve()), PRE, "ask"),
        ((Block("x"),), PRE, "deny"),
        ((Block("x"),), STOP, "block"),
        ((Block("x"), EndTurn("y")), STOP, "stop"),
        ((TellUser("x"), Failure(FailureKind.EXIT, "x", blocks=True)), PRE, "failure"),
    ],
)
def test_the_journal_has_one_word_for_each_verdict(effects: tuple[Any, ...], event: HookEvent, word: str):
    assert Verdict(effects).word(EVENTS[event]) == word


# ------------------------------------------------------------------------------------------------------------- merging


def reading(position: int, *effects: Any, **more: Any) -> RankedVerdict:
    return RankedVerdict(position=position, name=f"hook{position}", verdict=Verdict(effects), **more)


def test_all_denying_reasons_are_given_in_configuration_order():
    readings = [reading(2, Block("c")), reading(0, Block("a")), reading(1, Approve("b"))]
    outcome = merge(PRE, readings)
    assert outcome.reason == "a\nc"
    assert outcome.for_model() == ("a\nc",)
    assert outcome.for_user() == ()


def test_a_stop_beats_a_block_and_what_it_beat_is_still_told():
    outcome = merge(POST, [reading(0, Block("feedback")), reading(1, EndTurn("enough"))])
    assert outcome.decision is Decision.STOP
    assert outcome.blocked
    assert outcome.for_model() == ()
    assert [note.text for note in outcome.for_user()] == ["enough", "feedback"]


def test_a_blocked_prompt_takes_all_context_with_it_and_its_reason_stays_with_the_user():
    outcome = merge(PROMPT, [reading(0, AddContext("secret")), reading(1, Block("no"))])
    assert outcome.prompt_erased
    assert outcome.for_model() == ()
    assert [note.text for note in outcome.for_user()] == ["no"]
    stopped = merge(PROMPT, [reading(0, AddContext("c")), reading(1, EndTurn("enough"))])
    assert not stopped.prompt_erased
    assert merge(PROMPT, [reading(0, Block("no")), reading(1, EndTurn("enough"))]).prompt_erased


def test_an_allow_for_another_input_does_not_count():
    outcome = merge(PRE, [reading(0, Approve("ok"), allow_counts=False)])
    assert outcome.decision is Decision.NONE
    assert outcome.for_user() == ()


def test_the_same_context_and_reason_of_both_looks_count_once():
    twice = [reading(0, AddContext("c"), Ask("a"), look=look) for look in (1, 2)]
    outcome = merge(PRE, twice)
    assert outcome.contexts == (Said("hook0", "c"),)
    assert outcome.reason == "a"


@rows("event", HookEvent)
def test_failures_that_cannot_block_are_counted_as_let_through(event: HookEvent):
    lenient = merge(event, [reading(0, Failure(FailureKind.EXIT, "broke", blocks=False))])
    assert (lenient.decision, lenient.failed_open) == (Decision.NONE, 1)
    assert lenient.for_user() == (ToUser("hook0", "broke", "error"),)
    strict = merge(event, [reading(0, Failure(FailureKind.EXIT, "broke", blocks=True))])
    harmless = (START, HookEvent.SUBAGENT_START, HookEvent.POST_COMPACT, HookEvent.PERMISSION_DENIED)
    cannot_block = event in (*harmless, *NOTHING_TO_DECIDE)
    assert strict.failed_open == cannot_block
    assert strict.blocked == (not cannot_block)
    assert strict.unmet == (() if cannot_block else ("hook0",))
    assert (strict.replacement is not None) == strict.withheld == (event in (POST, HookEvent.POST_TOOL_USE_FAILURE))


def test_a_gate_that_is_red_blocks_a_stop_like_exit_2():
    red = reading(0, Failure(FailureKind.EXIT, "1 failed", blocks=True, code=1))
    for spent in ((), (0,)):
        outcome = merge(STOP, [red], spent=spent)
        assert (outcome.flow, outcome.reason, outcome.failed_open) == (Flow.KEEP_WORKING, "1 failed", 0)
        assert not outcome.only_broken_block
        assert outcome.broken == frozenset()
    ended = limited(merge(STOP, [red]), Blocks(total=8, in_a_row=8), limit=8)
    assert (ended.flow, ended.limit_reached) == (Flow.END_TURN, True)
    assert "hook0" in ended.error


BROKEN = [
    Failure(FailureKind.TIMEOUT, "slow", blocks=True),
    Failure(FailureKind.SIGNAL, "killed", blocks=True),
    Failure(FailureKind.SPAWN, "gone", blocks=True),
    Failure(FailureKind.JSON, "odd", blocks=True),
    Failure(FailureKind.EXIT, "not found", blocks=True, code=127),
    Failure(FailureKind.EXIT, "not executable", blocks=True, code=126),
]


@pytest.mark.parametrize("failure", BROKEN, ids=lambda failure: failure.message)
def test_a_broken_hook_blocks_a_stop_once_per_prompt_and_then_it_is_no_success(failure: Failure):
    broken = reading(0, failure)
    first = merge(STOP, [broken])
    assert (first.flow, first.broken, first.only_broken_block) == (Flow.KEEP_WORKING, {0}, True)
    assert limited(first, Blocks(total=8, in_a_row=8), limit=8).flow is Flow.KEEP_WORKING
    second = merge(STOP, [broken], spent=(0,))
    assert (second.flow, second.limit_reached, second.failed_open) == (Flow.END_TURN, True, 0)
    assert "hook0" in second.error
    assert merge(STOP, [broken], spent=(1,)).flow is Flow.KEEP_WORKING  # that was another hook's
    wanted = merge(STOP, [broken, reading(1, Block("work left"))])
    assert wanted.reason == f"{failure.message}\nwork left"
    assert not wanted.only_broken_block
    assert merge(STOP, [broken, reading(1, AddContext("c"))], spent=(0,)).flow is Flow.KEEP_WORKING
    assert merge(STOP, [broken, reading(1, EndTurn("enough"))], spent=(0,)).limit_reached is False


def test_blocks_are_limited_in_a_row_and_in_a_prompt():
    blocked = merge(STOP, [reading(0, Block("go on"))])
    goes_on = merge(STOP, [reading(0, AddContext("c"))])
    for outcome in (blocked, goes_on):
        assert limited(outcome, Blocks(total=79, in_a_row=7), limit=8).flow is Flow.KEEP_WORKING
        in_a_row = limited(outcome, Blocks(total=8, in_a_row=8), limit=8)
        assert "8 times in a row" in in_a_row.to_user[-1].text
        in_all = limited(outcome, Blocks(total=80, in_a_row=0), limit=8)
        assert "80 times" in in_all.to_user[-1].text
        for ended in (in_a_row, in_all):
            assert (ended.flow, ended.limit_reached, ended.contexts) == (Flow.END_TURN, True, ())
            assert ended.error == "The turn has ended, but hook hook0 did not pass."
        assert limited(outcome, Blocks(total=800, in_a_row=800), limit=0).flow is Flow.KEEP_WORKING
    silent = merge(STOP, [reading(0)])
    assert limited(silent, Blocks(total=8, in_a_row=8), limit=8) == silent


@pytest.mark.parametrize("failure", BROKEN, ids=lambda failure: failure.message)
def test_a_hook_that_fails_after_a_tool_withholds_the_result(failure: Failure):
    outcome = merge(POST, [reading(0, failure), reading(1, ReplaceOutput("half redacted"))])
    assert outcome.replacement is not None
    assert outcome.replacement.startswith("[The tool has run. Its result is withheld: hook hook0 failed ")
    assert failure.message not in outcome.replacement
    assert (outcome.flow, outcome.reason, outcome.replaced_by) == (Flow.FEEDBACK, failure.message, "hook0")
    lenient = Failure(failure.kind, failure.message, blocks=False, code=failure.code)
    assert merge(POST, [reading(0, lenient)]).replacement is None
    assert merge(POST, [reading(0, failure, role=Role.SHADOW)]).replacement is None
    assert withholds(EVENTS[POST], Verdict((failure,)))
    assert not withholds(EVENTS[POST], Verdict((lenient,)))
    assert not withholds(EVENTS[PRE], Verdict((failure,)))


@rows(
    ("value", "text"),
    [
        ("plain", "plain"),
        ({"stdout": "out\n", "stderr": "err\n"}, "out\nerr"),
        ({"stdout": "", "stderr": ""}, ""),
        ({"stdout": "out", "stderr": None}, "out"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ({"content": [{"type": "text", "text": "a"}]}, "a"),
        ({"success": True, "content": "a"}, "a"),
        ({"content": "out\n", "stdout": "out", "stderr": ""}, "out"),
        ([{"type": "text", "text": "a"}, {"type": "image"}], '[{"type": "text", "text": "a"}, {"type": "image"}]'),
        ({"rows": ["é"]}, '{"rows": ["é"]}'),
        ([], "[]"),
    ],
)
def test_what_replaces_a_result_is_turned_into_text(value: object, text: str):
    assert verdict(POST, printed(specific(updatedToolOutput=value))).effects == (ReplaceOutput(text),)


@pytest.mark.parametrize(
    "output",
    [
        '{"hookSpecificOutput": {"updatedToolOutput": 5}}',
        '{"hookSpecificOutput": {"updatedToolOutput": false}}',
        '{"hookSpecificOutput": {"updatedToolOutput": {"content": "a", "stdout": "b"}}}',
        '{"hookSpecificOutput": {"updatedToolOutput": "a", "updatedToolOutput": "b"}}',
        '{"hookSpecificOutput": {"updatedToolOutput": {"stdout": "a", "stdout": "b"}}}',
        '{"hookSpecificOutput": {"updatedToolOutput": {"n": 1e999}}}',
    ],
)
def test_what_cannot_replace_a_result_withholds_it(output: str):
    found = verdict(POST, ran(0, output))
    assert any(isinstance(effect, TellUser) and "updatedToolOutput" in effect.text for effect in found.effects)
    assert withholds(EVENTS[POST], found)
    outcome = merge(POST, [RankedVerdict(position=0, name="guard", verdict=found)])
    assert outcome.withheld
    assert outcome.flow is Flow.PROCEED
    failed = verdict(POST, ran(0, output[:-1] + ', "decision": "Block"}'))
    assert merge(POST, [RankedVerdict(position=0, name="guard", verdict=failed)]).withheld
    # Where it means nothing, it changes nothing.
    assert not merge(PRE, [RankedVerdict(position=0, name="guard", verdict=verdict(PRE, ran(0, output)))]).withheld


@rows(
    "output",
    [
        '{"updatedToolOutput": "safe"}',
        '{"updatedToolOutput": "safe", "updatedToolOutput": "safe"}',
        '{"updatedMCPToolOutput": "safe"}',
        '{"hookspecificoutput": {"updatedToolOutput": "safe"}}',
        '{"systemMessage": "x", "output": [{"updatedToolOutput": "safe"}]}',
        '{"hookSpecificOutput": {"updatedMCPToolOutput": "safe"}}',
        '{"hookSpecificOutput": {"UpdatedToolOutput": "safe"}}',
        '{"hookSpecificOutput": {"updated_tool_output": "safe"}}',
        '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedToolOutput": "safe"}}',
        '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedToolOutput": 5}}',
        '{"hookSpecificOutput": [{"updatedToolOutput": "safe"}]}',
        '{"hookSpecificOutput": "{\\"updatedToolOutput\\": \\"safe\\"}"}',
        '{"hookSpecificOutput": {"updatedToolOutput": "safe"}, "hookSpecificOutput": {}}',
        '{"hookSpecificOutput": {"updatedToolOutput": "safe"}, "updatedMCPToolOutput": "safer"}',
        'checking\n{"hookSpecificOutput": {"updatedToolOutput": "safe"}}',
        'checking\n{"updatedToolOutput": "safe"}',
        'checking\n{"decision": "block", "reason": "no", "hookSpecificOutput": {"updatedToolOutput": "safe"}}',
    ],
)
@rows("event", [POST, HookEvent.POST_TOOL_USE_FAILURE])
@rows("code", [0, 1, 2])
def test_a_redaction_that_is_dropped_withholds_the_result_and_is_told(event: HookEvent, output: str, code: int):
    for policy in OnFailure:
        found = verdict(event, ran(code, output), policy)
        outcome = merge(event, [RankedVerdict(position=0, name="guard", verdict=found)])
        assert outcome.withheld
        assert "safe" not in str(outcome.replacement)
        assert any(word in note.text for word in ("ToolOutput", "withheld") for note in outcome.for_user())
        assert outcome.blocked is (code == 2 or "block" in output or (code == 1 and policy is OnFailure.BLOCK))
    assert not merge(STOP, [RankedVerdict(position=0, name="guard", verdict=verdict(STOP, ran(code, output)))]).withheld


@pytest.mark.parametrize("more", [{"updatedMCPToolOutput": "safe"}, {"updatedToolOutput": None}])
def test_a_redaction_that_is_used_is_not_lost_to_its_copy_elsewhere(more: dict[str, Any]):
    found = verdict(POST, printed({**more, **specific(updatedToolOutput="safe")}))
    assert not withholds(EVENTS[POST], found)
    assert found.replacement == "safe"


@rows("stdout", ["", "starting", '{"systemMessage": "x"}', "{oops"])
@rows("event", [POST, HookEvent.POST_TOOL_USE_FAILURE])
def test_an_exit_2_by_accident_withholds_the_result_where_failing_blocks(event: HookEvent, stdout: str):
    broken = ran(2, stdout, "python3: can't open file '/x/redact.py': [Errno 2] No such file or directory")

    def outcome(result: HookExecutionResult, policy: OnFailure, on: HookEvent = event) -> Outcome:
        return merge(on, [RankedVerdict(position=0, name="guard", verdict=verdict(on, result, policy))])

    found = outcome(broken, OnFailure.BLOCK)
    assert (found.withheld, found.flow, found.reason) == (True, Flow.FEEDBACK, broken.stderr)
    assert found.replacement is not None
    assert "hook guard: it exited with 2 and looks broken" in found.replacement
    assert any("looks broken: its script is missing" in note.text for note in found.to_user)
    assert not outcome(broken, OnFailure.CONTINUE).withheld
    assert not outcome(ran(2, stdout, "Do not do that."), OnFailure.BLOCK).withheld
    assert not outcome(broken, OnFailure.BLOCK, PRE).withheld


# ------------------------------------------------------------------------------------------------- text before the JSON


@pytest.mark.parametrize("before", ["checking…\n", "checking… ", "x {} then ", '["x"]', "x {'a': 1}}\n"])
def test_a_restriction_that_ends_stdout_is_honoured_behind_text(before: str):
    deny = json.dumps({"decision": "block", "reason": "no", "systemMessage": "x", **specific(additionalContext="c")})
    for event in BLOCKING:
        found = verdict(event, ran(0, before + deny))
        assert [effect for effect in found.effects if not isinstance(effect, TellUser)] == [Block("no")]
        [told] = [effect for effect in found.effects if isinstance(effect, TellUser)]
        assert "stderr" in told.text


def test_what_loosens_behind_text_is_dropped_and_told():
    loose = json.dumps(specific(permissionDecision="allow", updatedInput={"command": "x"}))
    [told] = verdict(PRE, ran(0, f"ok\n{loose}")).effects
    assert isinstance(told, TellUser)
    assert "ignored" in told.text
    both = json.dumps({"decision": "approve", **specific(permissionDecision="ask", permissionDecisionReason="sure?")})
    assert verdict(PRE, ran(0, f"ok\n{both}")).effects[1:] == (Ask("sure?"),)


def test_an_unreadable_decision_behind_text_asks_before_a_tool_and_is_told_elsewhere():
    odd = 'x\n{"decision": "Deny"}'
    assert verdict(PRE, ran(0, odd)).decision is Decision.ASK
    [told] = verdict(POST, ran(0, odd)).effects
    assert isinstance(told, TellUser)
    assert "mixes text and JSON" in told.text
    assert verdict(PROMPT, ran(0, odd)).effects == (AddContext(odd),)  # there, text is context


@rows(
    "stdout",
    [
        'checking\n{"decision":"block"}\nbye',
        'checking\n{\n  "decision": "block"\n}\nbye',
        'checking\n  {"hookSpecificOutput": {"permissionDecision": "deny"}}\nbye',
        'checking\n{"decision": "block", "n": NaN}',
        'checking\n{"decision": "block",}',
        'checking\n{"decision": "block", "reason": "a\nb"}',
        'checking\n{"decision": "block"',
        'checking\n{"decision": "block"}\n{"continue": true}',
        'checking\n{"decision": "block"}\n{"decision": "approve"}',
        '```json\n{"continue": false}\n```',
        'checking\n{"hookSpecificOutput": {"updatedToolOutput": "x"}}\nbye',
    ],
)
def test_a_decision_with_text_beside_it_is_not_lost_in_silence(stdout: str):
    for event in (event for event in BLOCKING if not EVENTS[event].text_is_context):
        found = verdict(event, ran(0, stdout))
        [told] = found.effects
        assert isinstance(told, TellUser)
        assert "mixes text and JSON" in told.text
        assert found.failure_kind is FailureKind.JSON
        assert verdict(event, ran(0, stdout), OnFailure.BLOCK).failure is not None
        assert verdict(event, ran(2, stdout, "no")).effects[-1] == Block("no")
        assert verdict(event, ran(1, stdout)).failure is not None


def test_a_decision_before_a_flood_is_not_lost_in_silence():
    flood = ran(0, 'checking\n{"decision": "block"}\nxxx', stdout_dropped=9, stdout_end="xxx")
    assert kinds_of(PRE, flood) == (Stdout.MALFORMED, ExitClass.ZERO)


def test_text_before_json_beside_other_exit_codes():
    said = [{"decision": word, "reason": "r"} for word in ("block", "ask", "approve")]
    deny, ask, allow = (f"x\n{json.dumps(output)}" for output in said)
    assert verdict(PRE, ran(2, deny, "err")).effects[1:] == (Block("r"), Block("r"))
    assert verdict(PRE, ran(2, allow, "err")).effects[1:] == (Block("r"),)
    assert verdict(PRE, ran(2, 'x\n{"decision": "block"}', "err")).effects[1:] == (Block("err"),)
    assert verdict(PRE, ran(2, 'x\n{"continue": false}', "err")).decision is Decision.STOP
    for policy in OnFailure:
        assert verdict(PRE, ran(1, deny), policy).effects[1:] == (Block("r"),)
        assert verdict(PRE, ran(1, allow), policy).failure is not None
    assert verdict(PRE, ran(1, ask)).effects[1:] == (Ask("r"),)
    assert verdict(PRE, ran(1, ask), OnFailure.BLOCK).failure is not None


@rows(
    "stdout",
    [
        'note\n{"foo": 1}', 'note\n{"continue": true}', 'note {"decision": "block"} and more', "note }", "a } b {c}",
        'a "decision": b\n[x]', '["decision"]', '```\ncode\n```', "x" + "{" * 3000 + "}",
    ],
)  # fmt: skip
def test_text_that_does_not_end_in_a_decision_stays_text(stdout: str):
    assert verdict(PROMPT, ran(0, stdout)).effects == (AddContext(stdout),)
    assert verdict(PRE, ran(0, stdout)).effects == ()


def test_the_search_for_a_decision_behind_text_has_an_end():
    far = "x" + json.dumps({"decision": "block", "more": [{}] * 2000})
    assert verdict(PRE, ran(0, far)).effects == ()
    near = "x" + json.dumps({"decision": "block", "reason": "no", "more": [{}] * 900})
    assert verdict(PRE, ran(0, near)).decision is Decision.BLOCK


def test_changes_are_what_differs_as_json_and_compose():
    before = {"a": 1, "b": [1], "c": True}
    after = {"b": [1], "c": 1, "d": None}
    found = changes(before, after)
    assert set(found) == {"a", "c", "d"}
    assert changed({"a": 0, "e": 5}, found) == {"c": 1, "d": None, "e": 5}
    assert changes(before, dict(reversed(before.items()))) == {}


def test_a_decision_at_the_end_of_a_flood_is_found():
    flood = ran(0, "x" * 100, stdout_dropped=9, stdout_end='xxx\n{"decision": "block", "reason": "no"}')
    assert verdict(PRE, flood).decision is Decision.BLOCK


# ------------------------------------------------------------------------------------------------------ duplicate keys


@rows(
    ("output", "decision"),
    [
        ('{"decision": "block", "decision": "approve"}', Decision.BLOCK),
        ('{"decision": "approve", "decision": "block"}', Decision.BLOCK),
        ('{"decision": "approve", "decision": "approve"}', Decision.ALLOW),
        ('{"decision": "approve", "decision": "allow"}', Decision.NONE),
        ('{"decision": "approve", "decision": null}', Decision.NONE),
        ('{"decision": "approve", "decision": 5}', Decision.ASK),
        ('{"decision": "approve", "decision": "Deny"}', Decision.ASK),
        ('{"continue": true, "continue": false}', Decision.STOP),
        ('{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecision": "allow"}}', Decision.BLOCK),
        ('{"hookSpecificOutput": {"permissionDecision": "ask"}, "hookSpecificOutput": {"additionalContext": "c"}}',
         Decision.ASK),
        ('{"hookSpecificOutput": {"permissionDecision": "allow"}, "hookSpecificOutput": {}}', Decision.NONE),
        ('{"hookSpecificOutput": 5, "hookSpecificOutput": {"permissionDecision": "deny", "permissionDecision": "ask"}}',
         Decision.BLOCK),
        ('{"hookSpecificOutput": {"hookEventName": "PreToolUse", "hookEventName": "PreToolUse", '
         '"permissionDecision": "allow"}}', Decision.NONE),
        ('{"hookSpecificOutput": {"updatedInput": {"a": [{"b": 1, "b": 2}]}}}', Decision.NONE),
        ('{"hookSpecificOutput": {"updatedInput": {"a": 1}, "updatedInput": {"a": 1}}}', Decision.NONE),
        ('{"decision": "block", "reason": "a", "reason": "b"}', Decision.BLOCK),
        ('{"systemMessage": "a", "systemMessage": "b"}', Decision.NONE),
        ('{"decision": "block", "other": 1, "other": "\\u00e9"}', Decision.BLOCK),
    ],
)  # fmt: skip
def test_of_a_duplicate_key_the_strictest_value_counts_and_nothing_else(output: str, decision: Decision):
    found = verdict(PRE, ran(0, output))
    assert found.decision is decision
    assert found.rewrite is None
    assert any(isinstance(effect, TellUser) and "duplicate key" in effect.text for effect in found.effects)
    assert not any(isinstance(effect, Block) and effect.reason in ("a", "b") for effect in found.effects)


def test_a_duplicate_key_in_an_answer_never_permits():
    def answered(answer: str) -> Decision:
        return verdict(HookEvent.PERMISSION_REQUEST, ran(0, f'{{"hookSpecificOutput": {answer}}}')).decision

    allow, deny = '{"behavior": "allow"}', '{"behavior": "deny"}'
    assert answered(f'{{"decision": {allow}, "decision": {deny}}}') is Decision.BLOCK
    assert answered(f'{{"decision": {allow}, "decision": {allow}}}') is Decision.ALLOW
    assert answered(f'{{"decision": {allow}, "decision": {{"behavior": 5}}}}') is Decision.ASK
    assert answered(f'{{"decision": {deny}, "decision": {{"behavior": "allow", "interrupt": true}}}}') is Decision.STOP
    assert answered('{"decision": {"behavior": "allow", "behavior": "deny"}}') is Decision.BLOCK
    assert answered('{"decision": {"behavior": "allow", "behavior": "allow"}}') is Decision.ASK
    assert answered('{"decision": {"behavior": "allow", "interrupt": true, "interrupt": 5}}') is Decision.STOP
    assert answered('{"decision": {"behavior": "allow", "updatedInput": {"a": 1, "a": 2}}}') is Decision.ASK


def test_decision_allow_before_a_tool_is_no_opinion_and_names_what_would_be_one():
    [told] = verdict(PRE, printed({"decision": "allow"})).effects
    assert isinstance(told, TellUser)
    assert "hookSpecificOutput.permissionDecision" in told.text
    assert verdict(PRE, printed({"decision": "approve"})).effects == (Approve(),)
    assert verdict(PRE, printed({"decision": "ask", "reason": "r"})).effects == (Ask("r"),)
    quiet = {"decision": "allow", **specific(permissionDecision="allow")}
    assert verdict(PRE, printed(quiet)).effects == (Approve(),)
    for event in (PROMPT, POST, STOP):
        assert verdict(event, printed({"decision": "allow"})).effects == ()


def test_shadow_hooks_change_nothing_and_async_hooks_only_add_context_and_messages():
    said = (
        Block("no"),
        EndTurn("x"),
        AddContext("c"),
        TellUser("t"),
        ReplaceOutput("r"),
        Failure(FailureKind.EXIT, "f", blocks=True),
    )
    shadow = merge(POST, [reading(0, *said, role=Role.SHADOW)])
    assert (shadow.decision, shadow.contexts, shadow.replacement, shadow.failed_open) == (Decision.NONE, (), None, 0)
    assert [note.text for note in shadow.for_user()] == ["f"]
    later = merge(POST, [reading(0, *said, role=Role.ASYNC)])
    assert (later.decision, later.replacement, later.failed_open) == (Decision.NONE, None, 0)
    assert later.contexts == (Said("hook0", "c"),)
    assert [note.text for note in later.for_user()] == ["t", "f"]


def test_parallel_hooks_that_replace_a_result_differently_give_away_neither_text():
    outcome = merge(POST, [reading(0, ReplaceOutput("without a")), reading(1, ReplaceOutput("without b"))])
    assert outcome.replacement is not None
    assert "withheld" in outcome.replacement
    assert "without" not in outcome.replacement.replace("withheld", "")
    assert [note.hook for note in outcome.for_user()] == ["hook0, hook1"]
    agreeing = merge(POST, [reading(0, ReplaceOutput("same")), reading(1, ReplaceOutput("same"))])
    assert agreeing.replacement == "same"
    strand = merge(POST, [reading(0, ReplaceOutput("a"), strand=3), reading(1, ReplaceOutput("b"), strand=3)])
    assert strand.replacement == "b"


def test_a_rewrite_sets_whole_fields_and_null_removes_one_unless_its_schema_takes_null():
    before = {"command": "ls", "timeout": 5, "options": {"a": 1, "b": 2}}
    after = rewrite(before, {"options": {"a": 9}, "timeout": None, "absent": None, "extra": None}, nullable=("extra",))
    assert after == {"command": "ls", "options": {"a": 9}, "extra": None}
    assert before == {"command": "ls", "timeout": 5, "options": {"a": 1, "b": 2}}


# ---------------------------------------------------------------------------------------------------------- properties

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
words = st.sampled_from(
    ["allow", "deny", "ask", "block", "approve", "Deny", "defer", "", None, 5, True, False, "false"]
)
inner_fields = st.fixed_dictionaries(
    {},
    optional={
        "hookEventName": st.sampled_from([*HookEvent, "Other", None, 7]),
        "permissionDecision": words,
        "permissionDecisionReason": st.text(max_size=5) | st.none() | st.integers(),
        "updatedInput": st.dictionaries(st.text(max_size=3), json_values, max_size=2) | json_values,
        "updatedToolOutput": st.text(max_size=5) | json_values,
        "additionalContext": st.text(max_size=5) | json_values,
        "decision": words,
        "continue": words,
    },
)
outputs = st.fixed_dictionaries(
    {},
    optional={
        "continue": words,
        "stopReason": st.text(max_size=5) | json_values,
        "systemMessage": st.text(max_size=5) | json_values,
        "suppressOutput": st.booleans() | json_values,
        "decision": words,
        "reason": st.text(max_size=5) | json_values,
        "permissionDecision": words,
        "updatedInput": json_values,
        "additionalContext": st.text(max_size=5) | json_values,
        "hookSpecificOutput": inner_fields | json_values,
        "other": json_values,
    },
)
events = st.sampled_from(HookEvent)
codes = st.sampled_from([0, 1, 2, 3, 127])
policies = st.sampled_from(OnFailure)


@given(
    events, st.binary(max_size=200) | st.binary(max_size=60).map(b"{".__add__), codes, st.binary(max_size=20), policies
)
def test_reading_never_raises_on_any_bytes(event: HookEvent, out: bytes, code: int, err: bytes, policy: OnFailure):
    result = ran(code, out.decode(errors="replace").strip(), err.decode(errors="replace").strip())
    found = read(event, result, name="guard", on_failure=policy)
    if code == 2 and not out.decode(errors="replace").strip().startswith(("{", "\ufeff")):
        assert found.decision is Decision.BLOCK


def states_allow(event: HookEvent, output: dict[str, Any]) -> bool:
    inner = output.get("hookSpecificOutput")
    nested = isinstance(inner, dict) and inner.get("hookEventName") in (None, event)
    return event is PRE and (
        output.get("decision") == "approve"
        or (nested and isinstance(inner, dict) and inner.get("permissionDecision") == "allow")
    )


@given(events, outputs, codes, policies)
@example(HookEvent.POST_TOOL_USE_FAILURE, {"hookSpecificOutput": {"updatedToolOutput": ""}}, 0, OnFailure.CONTINUE)
@example(HookEvent.POST_TOOL_USE_FAILURE, {"hookSpecificOutput": {"updatedToolOutput": []}}, 0, OnFailure.CONTINUE)
@example(HookEvent.POST_TOOL_USE, {"hookSpecificOutput": {"updatedToolOutput": 5}}, 0, OnFailure.CONTINUE)
def test_an_invalid_output_never_loosens(event: HookEvent, output: dict[str, Any], code: int, policy: OnFailure):
    found = read(event, printed(output, code), name="guard", on_failure=policy)
    inner = output.get("hookSpecificOutput")
    inner = inner if isinstance(inner, dict) else {}
    right = inner.get("hookEventName") in (None, event)
    for effect in found.effects:
        if isinstance(effect, Approve):
            assert states_allow(event, output)
        if isinstance(effect, Rewrite):
            assert event is PRE
            assert right
            assert effect.fields == inner["updatedInput"]
        if isinstance(effect, ReplaceOutput):
            assert "updatedToolOutput" in EVENTS[event].specific
            assert right
            said = inner["updatedToolOutput"]
            assert effect.text == said if isinstance(said, str) else isinstance(said, dict | list)
        if isinstance(effect, AddContext) and {"additionalContext", "hookSpecificOutput"} & output.keys():
            valid = [output.get("additionalContext"), inner.get("additionalContext") if right else None]
            assert effect.text in [text.strip() for text in valid if isinstance(text, str)]


@given(events, outputs, codes, policies)
def test_an_output_can_always_tighten(event: HookEvent, output: dict[str, Any], code: int, policy: OnFailure):
    found = read(event, printed(output, code), name="guard", on_failure=policy)
    inner = output.get("hookSpecificOutput")
    inner = inner if isinstance(inner, dict) else {}
    if output.get("continue") is False or inner.get("continue") is False:
        assert found.decision is Decision.STOP
    said = {
        output.get("decision"),
        output.get("permissionDecision") if isinstance(output.get("permissionDecision"), str) else None,
    }
    said |= {word for word in (inner.get("decision"), inner.get("permissionDecision")) if isinstance(word, str)}
    if "deny" in said or "block" in {output.get("decision"), inner.get("decision")}:
        needs_reason = event is STOP and found.failure is not None
        assert found.decision >= Decision.BLOCK or needs_reason
    if code == 2 and not states_allow(event, output) and not said & {"ask"}:
        assert found.decision >= Decision.BLOCK


effects = st.lists(
    st.sampled_from([
        Block("b1"), Block("b2"), Ask("a"), Approve("y"), EndTurn("e"), AddContext("c1"), AddContext("c2"),
        TellUser("t"), ReplaceOutput("r1"), ReplaceOutput("r2"), Withhold("w"),
        Failure(FailureKind.EXIT, "f", blocks=True), Failure(FailureKind.TIMEOUT, "h", blocks=True),
        Failure(FailureKind.JSON, "g", blocks=False),
    ]),
    max_size=3,
)  # fmt: skip


@given(events, st.lists(st.tuples(effects, st.sampled_from(Role)), min_size=1, max_size=5), st.randoms(), st.booleans())
def test_merging_does_not_depend_on_the_order_of_completion(
    event: HookEvent, found: list[tuple[list[Any], Role]], random: Any, is_spent: bool
):
    readings = [reading(index, *said, role=role) for index, (said, role) in enumerate(found)]
    shuffled = readings.copy()
    random.shuffle(shuffled)
    spent = range(len(found)) if is_spent else ()
    assert merge(event, readings, spent=spent) == merge(event, shuffled, spent=spent)


RUNS = [
    ran(0), ran(0, "text"), ran(1, "", "e"), ran(2, "", "no"), ran(2), ran(2, "{bad"), ran(0, "{bad"), ran(1, "{bad"),
    printed({"decision": "block", "reason": "json"}), printed({"decision": "block", "reason": "json"}, 1),
    printed({"decision": "approve"}), printed({"decision": "approve"}, 1), printed({"continue": False}),
    printed(specific(permissionDecision="deny", permissionDecisionReason="n")),
    printed(specific(permissionDecision="allow")),
    printed(specific(permissionDecision="ask")), printed({"decision": "Deny"}), printed({"decision": "Deny"}, 2),
    printed({"systemMessage": "m"}, 2), printed({"additionalContext": "c"}),
    HookExecutionResult(timed_out=True), HookExecutionResult(signal=9), HookExecutionResult(error="gone"),
]  # fmt: skip


def denies(event: HookEvent, result: HookExecutionResult, policy: OnFailure) -> bool:
    """An independent, much simpler statement of what a deny is."""
    finished = result.exit_code is not None
    try:
        output = json.loads(result.stdout) if finished and result.stdout.startswith("{") else None
    except ValueError:
        output = None
        if result.exit_code == 0:
            return policy is OnFailure.BLOCK
    if not finished:
        return policy is OnFailure.BLOCK
    if isinstance(output, dict):
        inner = output.get("hookSpecificOutput", {}).get("permissionDecision")
        if output.get("decision") in ("block", "deny") or inner == "deny":
            return True
        asks = event is PRE and inner == "ask"
        if result.exit_code == 2:
            return not asks
        if output.get("decision") == "Deny" or (event is not PRE and inner == "ask"):
            return event is not PRE and policy is OnFailure.BLOCK
        if result.exit_code == 1 and event is not PRE and output.get("decision") == "approve":
            return policy is OnFailure.BLOCK
        return False
    return result.exit_code == 2 or (result.exit_code == 1 and policy is OnFailure.BLOCK)


@pytest.mark.parametrize("event", BLOCKING)
def test_a_deny_is_never_lost_whatever_three_hooks_say_or_break(event: HookEvent):
    cases = list(product(RUNS, OnFailure))
    verdicts = {
        index: read(event, run, name=f"h{index}", on_failure=policy) for index, (run, policy) in enumerate(cases)
    }
    denying = {index for index, (run, policy) in enumerate(cases) if denies(event, run, policy)}
    assert denying
    for trio in combinations_with_replacement(range(len(cases)), 3):
        readings = [RankedVerdict(position=at, name=f"p{at}", verdict=verdicts[index]) for at, index in enumerate(trio)]
        outcome = merge(event, readings)
        assert outcome.blocked == bool(denying & set(trio)), [cases[index] for index in trio]
        if outcome.blocked:
            assert outcome.decision >= Decision.BLOCK


def test_a_deny_is_never_lost_to_a_permission_rule_a_mode_or_the_order_of_hooks():
    rule = parse_rule("Bash(ls:*)")
    rulings = [
        Rules(),
        Rules(allow=(rule,)),
        Rules(ask=(rule,)),
        Rules(deny=(rule,)),
        Rules(allow=(rule,), ask=(rule,)),
    ]
    call = JudgedCall(tool="Bash", tool_input={"command": "ls"})
    places = Places("/project", "/home/me")
    samples = [(run, policy) for run, policy in product(RUNS[::2], OnFailure)]
    for pair in combinations_with_replacement(samples, 2):
        for order in permutations(pair):
            found = [read(PRE, run, name="h", on_failure=policy) for run, policy in order]
            outcome = merge(
                PRE, [RankedVerdict(position=at, name=f"p{at}", verdict=one) for at, one in enumerate(found)]
            )
            for rules, mode in product(rulings, PermissionMode):
                answer = decide(call, mode, rules, outcome, places).answer
                if rules.deny or any(denies(PRE, run, policy) for run, policy in pair):
                    assert answer is Ruling.DENY
                if outcome.decision is Decision.ASK:
                    assert answer in (Ruling.ASK, Ruling.DENY)


@rows("on_failure", OnFailure)
@rows("event", HookEvent)
def test_a_hook_that_must_not_run_blocks_like_any_failure_that_may(event: HookEvent, on_failure: OnFailure) -> None:
    refused = HookExecutionResult(error="guard.sh has changed since it was trusted", is_refused=True)
    given = read(event, refused, name="guard", on_failure=on_failure)
    other = read(event, HookExecutionResult(error=refused.error), name="guard", on_failure=OnFailure.BLOCK)
    assert given.failure is not None
    assert other.failure is not None
    assert given.failure == replace(other.failure, message=f"Hook guard did not run: {refused.error}")


@pytest.mark.parametrize("event", HookEvent)
@pytest.mark.parametrize("tool_input", [None, {}, {"command": "ls"}])
def test_without_hooks_an_event_has_the_outcome_of_no_verdicts(
    event: HookEvent, tool_input: dict[str, Any] | None
) -> None:
    merged = merge(event, [])
    expected = replace(merged, tool_input=tool_input or {}) if EVENTS[event].has_rewrites else merged
    assert without_hooks(event, tool_input) == expected


# -------------------------------------------------------------------------------------------------- opinions of models

THINKING = [event for event, row in EVENTS.items() if row.asks_models]
NO = Opinion(ok=False, reason="No.")


def thought(event: HookEvent, opinion: Opinion, **more: Any) -> Verdict:
    return read(event, HookExecutionResult(exit_code=0, opinion=opinion), name="h", **more)


@rows("event", THINKING)
@rows("continues", [True, False])
def test_a_model_that_does_not_object_has_no_opinion(event: HookEvent, continues: bool) -> None:
    agrees = Opinion(ok=True, reason="fine")
    assert thought(event, agrees, on_failure=OnFailure.BLOCK, continue_on_block=continues) == Verdict()


@rows("event", THINKING)
def test_a_model_that_objects_blocks(event: HookEvent) -> None:
    verdict = thought(event, NO)
    assert verdict.decision is Decision.BLOCK
    assert verdict.failure is None
    outcome = merge(event, [RankedVerdict(position=0, name="h", verdict=verdict)])
    assert outcome.flow is EVENTS[event].flow[Decision.BLOCK]
    assert outcome.reason == "No."


def test_the_model_hears_why_its_call_was_refused_although_the_reason_is_for_the_user() -> None:
    assert thought(HookEvent.PERMISSION_REQUEST, NO).effects == (Block("No."), TellRefused("No."))


def test_an_objection_ends_the_turn_only_where_that_can_be_chosen() -> None:
    ends = [event for event in THINKING if thought(event, NO, continue_on_block=False).decision is Decision.STOP]
    assert ends == [PRE, POST]


def test_what_is_impossible_does_not_keep_the_agent_working() -> None:
    impossible = Opinion(ok=False, reason="No.", impossible=True)
    assert thought(STOP, impossible).decision is Decision.NONE
    assert [type(effect) for effect in thought(STOP, impossible).effects] == [TellUser]
    assert thought(PRE, impossible).decision is Decision.BLOCK


@rows("on_failure", OnFailure)
def test_no_answer_is_a_failure_and_never_a_consent(on_failure: OnFailure) -> None:
    for event in THINKING:
        result = HookExecutionResult(error="the server is down", by_model=True)
        (failure,) = read(event, result, name="h", on_failure=on_failure).effects
        blocks = on_failure is OnFailure.BLOCK
        assert failure == Failure(FailureKind.ANSWER, "Hook h got no answer: the server is down", blocks=blocks)


@rows(
    "stdout, decided",
    [
        ('{"continue": true}\n{"decision": "block", "reason": "R"}', Decision.BLOCK),
        ('{"decision": "block", "reason": "R"} {"continue": true}{}', Decision.BLOCK),
        ('{"decision": "block", "reason": "R"}\n{"systemMessage": "fine"}', Decision.BLOCK),
        ('{"decision": "deny", "reason": "R"}\n' + '{"continue": true}\n' * 100, Decision.NONE),
        ('{"permissionDecision": "allow"}\n{"permissionDecision": "allow"}', Decision.NONE),
        ('{"continue": true}\n{"permissionDecision": "Deny"}', Decision.ASK),
        ('{"continue": true} then {"decision": "block", "reason": "R"}', Decision.BLOCK),
    ],
)
def test_of_several_objects_what_restricts_is_honoured(stdout: str, decided: Decision) -> None:
    result = HookExecutionResult(exit_code=0, stdout=stdout)
    found = verdict(HookEvent.PRE_TOOL_USE, result)
    assert merge(HookEvent.PRE_TOOL_USE, [RankedVerdict(position=0, name="h", verdict=found)]).decision is decided
    assert any(isinstance(effect, TellUser) for effect in found.effects)


def test_a_call_that_cannot_be_judged_for_want_of_money_is_denied() -> None:
    spent = HookExecutionResult(error="Stopped: the limit is reached.", by_model=True, is_spent=True)
    assert verdict(HookEvent.PRE_TOOL_USE, spent).effects[0].blocks  # pyright: ignore[reportAttributeAccessIssue]
    assert not verdict(HookEvent.USER_PROMPT_SUBMIT, spent).effects[0].blocks  # pyright: ignore[reportAttributeAccessIssue]


def test_a_reason_without_a_decision_is_reported_unless_the_exit_code_decides() -> None:
    def said(code: int) -> list[Any]:
        result = HookExecutionResult(exit_code=code, stdout='{"reason": "R"}')
        return list(read(PRE, result, name="g").effects)

    (told,) = said(0)
    assert isinstance(told, TellUser)
    assert told.text.startswith("hook g: reason without a decision has no effect: PreToolUse expects ")
    assert said(1) == [told]
    assert said(2) == [Block("R")]


def test_what_a_rule_says_about_itself_is_one_line() -> None:
    said = [words_of(rule_of(dialect, kinds)) for dialect in Dialect for kinds in RULES]
    assert [text for text in said if not text or "\n" in text or "  " in text or text.endswith(".")] == []


@rows(
    ("event", "outcome", "let_through", "ended"),
    [
        ("PostToolBatch", "block", False, True),
        ("PostToolBatch", "failure", False, True),
        ("PostToolBatch", "failure", True, False),
        ("PostToolBatch", "context", False, False),
        ("PreToolUse", "deny", False, False),
        ("PreToolUse", "stop", False, True),
    ],
)
def test_a_recorded_hook_ended_the_turn(event: str, outcome: str, let_through: bool, ended: bool) -> None:
    run = HookRun(
        event=event, name="guard", command="x", layer="project", tool_use_id=None, exit_code=0, outcome=outcome,
        failure=None, mode="enforce", look=1, rewrote=False, let_through=let_through, duration_ms=1.0,
    )  # fmt: skip
    assert ends_turn(run) is ended
