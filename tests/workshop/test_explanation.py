"""Outcomes in plain words."""

import pytest

from tests.rows import rows
from wave_agent.hooks.events import EVENTS, Decision, Flow, HookEvent
from wave_agent.hooks.semantics import merge
from wave_agent.hooks.verdicts import (
    AddContext,
    Approve,
    Ask,
    Block,
    Effect,
    EndTurn,
    Failure,
    FailureKind,
    Outcome,
    RankedVerdict,
    ReplaceOutput,
    TellUser,
    Verdict,
)
from wave_agent.permissions.decision import Permission, Ruling
from wave_agent.workshop.explanation import FLOW_WORDS, account_of


def outcome(event: HookEvent, *effects: Effect) -> Outcome:
    return merge(event, [RankedVerdict(position=0, name="guard", verdict=Verdict(effects))])


def test_every_flow_has_its_words() -> None:
    assert set(FLOW_WORDS) == set(Flow)


@pytest.mark.parametrize(
    ("effect", "word"),
    [
        (Block("no"), "block"),
        (Ask("sure?"), "ask"),
        (Approve("fine"), "allow"),
        (EndTurn("enough"), "stop"),
        (AddContext("by the way"), "context"),
        (TellUser("hm"), "none"),
    ],
)
def test_each_outcome_has_one_word(effect: Effect, word: str) -> None:
    assert account_of(outcome(HookEvent.PRE_TOOL_USE, effect)).word == word


def test_a_blocked_call_tells_the_model() -> None:
    told = account_of(outcome(HookEvent.PRE_TOOL_USE, Block("no"), TellUser("look")))
    assert (told.happens, told.model, told.user) == (
        ("The tool does not run; the model continues.",),
        ("no",),
        ("look",),
    )


def test_a_blocked_prompt_tells_the_user_alone() -> None:
    told = account_of(outcome(HookEvent.USER_PROMPT_SUBMIT, Block("no"), AddContext("lost")))
    assert (told.happens, told.model, told.user) == (
        *(("The prompt is erased, and the model is not called.",), (), ("no",)),
    )


def test_a_judged_call_ends_as_permission_says() -> None:
    denied = Permission(answer=Ruling.DENY, by="rule Bash(rm:*)", for_model="Denied by the rule.")
    told = account_of(outcome(HookEvent.PRE_TOOL_USE), denied)
    assert (told.happens, told.model, told.user) == (
        *(("The tool does not run (rule Bash(rm:*)).",), ("Denied by the rule.",), ()),
    )


def test_a_question_is_for_the_user() -> None:
    asked = Permission(answer=Ruling.ASK, by="hook guard", for_user="sure?")
    told = account_of(outcome(HookEvent.PRE_TOOL_USE, Ask("sure?")), asked)
    assert (told.happens, told.model, told.user) == (
        *(("The user is asked before the tool runs (hook guard).",), (), ("sure?",)),
    )


def test_why_a_call_is_allowed_is_said_once() -> None:
    allowed = Permission(answer=Ruling.ALLOW, by="hook guard", for_user="fine")
    told = account_of(outcome(HookEvent.PRE_TOOL_USE, Approve("fine")), allowed)
    assert (told.happens, told.user) == (("The tool runs (hook guard).",), ("fine",))


def test_context_that_others_take_care_of_is_told_with_its_place() -> None:
    told = account_of(outcome(HookEvent.PRE_COMPACT, AddContext("later")))
    assert (told.happens, told.model) == (
        ("The agent continues.", "Context goes: into the instructions for the summary."),
        (),
    )


def test_context_of_a_stop_keeps_the_agent_working() -> None:
    told = account_of(outcome(HookEvent.STOP, AddContext("more to do")))
    assert (told.word, told.happens, told.model) == (
        "context",
        ("The turn does not end: the model continues.",),
        ("more to do",),
    )


def test_context_after_results_reaches_the_model() -> None:
    assert account_of(outcome(HookEvent.POST_TOOL_USE, AddContext("now"))).model == ("now",)


def test_a_replaced_result_is_what_the_model_sees() -> None:
    told = account_of(outcome(HookEvent.POST_TOOL_USE, ReplaceOutput("[redacted]")))
    assert (told.happens[1], told.model) == ("The result is replaced by guard.", ("[redacted]",))


def test_rewritten_fields_are_told_with_their_hook() -> None:
    made = Outcome(event=HookEvent.PRE_TOOL_USE, flow=Flow.JUDGE, rewritten_by={"command": "tidy"})
    assert account_of(made).happens == (FLOW_WORDS[Flow.JUDGE], "Hook tidy sets command.")


def test_failures_that_were_let_through_are_counted() -> None:
    told = account_of(outcome(HookEvent.PRE_TOOL_USE, Failure(FailureKind.EXIT, "broken", blocks=False)))
    assert (told.word, told.happens[-1], told.user) == ("failure", "Failures that were let through: 1.", ("broken",))


@rows("event", EVENTS)
@rows("decision", Decision)
def test_every_outcome_of_every_event_can_be_told(event: HookEvent, decision: Decision) -> None:
    made = Outcome(event=event, decision=decision, flow=EVENTS[event].flow[decision])
    assert account_of(made).happens
