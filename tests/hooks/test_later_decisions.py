"""Outputs whose effect comes later: a call that is deferred, a background hook that wakes the model, a first prompt."""

import json
from typing import Any

import pytest

from wave_agent.hooks.definitions import HookDefinition, Mode
from wave_agent.hooks.events import EVENTS, Decision, Flow, HookEvent, OnFailure
from wave_agent.hooks.execution import HookExecutionResult
from wave_agent.hooks.journal_entries import journal_entry
from wave_agent.hooks.matcher import EVERYTHING
from wave_agent.hooks.semantics import MAY_RETRY, merge, read
from wave_agent.hooks.stage import Occurrence, Stage
from wave_agent.hooks.verdicts import (
    AddContext,
    Ask,
    Block,
    Defer,
    InitialPrompt,
    RankedVerdict,
    Role,
    Said,
    TellUser,
    Verdict,
)
from wave_agent.settings.hook_entries import Layer, load_hooks, parse_settings

PRE, START = HookEvent.PRE_TOOL_USE, HookEvent.SESSION_START


def verdict(event: HookEvent, code: int = 0, stderr: str = "", **specific: Any) -> Verdict:
    stdout = json.dumps({"hookSpecificOutput": {"hookEventName": event, **specific}}) if specific else ""
    result = HookExecutionResult(exit_code=code, stdout=stdout, stderr=stderr)
    return read(event, result, name="g", on_failure=OnFailure.CONTINUE)


def ranked(*effects: Any, role: Role = Role.ENFORCE, position: int = 0) -> RankedVerdict:
    return RankedVerdict(position=position, name=f"h{position}", verdict=Verdict(effects), role=role)


def test_a_defer_has_a_reason_even_if_the_hook_gives_none() -> None:
    assert verdict(PRE, permissionDecision="defer").effects == (Defer("Hook g defers the decision about this call"),)
    given = verdict(PRE, permissionDecision="defer", permissionDecisionReason="Ann decides")
    assert given.effects == (Defer("Ann decides"),)
    assert given.word(EVENTS[PRE]) == "defer"


@pytest.mark.parametrize(
    ("beside", "flow"),
    [
        ((), Flow.DEFER_CALL),
        ((Ask("sure?"),), Flow.DEFER_CALL),
        ((Block("no"),), Flow.SKIP_TOOL),
    ],
)
def test_a_defer_beats_an_ask_and_is_beaten_by_a_deny(beside: tuple[Any, ...], flow: Flow) -> None:
    assert merge(PRE, [ranked(Defer("later")), ranked(*beside, position=1)]).flow is flow


def test_only_a_deferral_becomes_an_ask() -> None:
    silent = merge(PRE, [])
    assert silent.as_ask() is silent
    asked = merge(PRE, [ranked(Defer("later"))]).as_ask()
    assert (asked.decision, asked.flow) == (Decision.ASK, Flow.CONFIRM)
    assert asked.reasons == {Decision.ASK: (Said("h0", "later"),)}


def test_a_hook_may_invite_the_model_to_try_again_after_a_deny_and_nowhere_else() -> None:
    denied = HookEvent.PERMISSION_DENIED
    assert verdict(denied, retry=True).effects == (AddContext(MAY_RETRY),)
    assert verdict(denied, retry=False).effects == ()
    assert verdict(HookEvent.POST_TOOL_USE, retry=True).effects == ()
    (told,) = verdict(denied, retry="yes").effects
    assert isinstance(told, TellUser)


def test_the_first_prompts_of_all_hooks_are_kept_in_configuration_order() -> None:
    assert verdict(START, initialUserMessage=" Go. ").effects == (InitialPrompt("Go."),)
    outcome = merge(START, [ranked(InitialPrompt("two"), position=1), ranked(InitialPrompt("one"))])
    assert outcome.initial_prompts == (Said("h0", "one"), Said("h1", "two"))
    assert merge(START, [ranked(InitialPrompt("one"), role=Role.ASYNC)]).initial_prompts == ()


def test_the_block_of_a_background_hook_is_context_if_it_may_wake_the_model() -> None:
    woken = merge(PRE, [ranked(Block("red"), AddContext("note"), role=Role.REWAKE)])
    assert (woken.wakes, woken.contexts) == (True, (Said("h0", "red"), Said("h0", "note")))
    assert (woken.decision, woken.blocked, woken.flow) == (Decision.NONE, False, Flow.JUDGE)
    assert not merge(PRE, [ranked(AddContext("note"), role=Role.REWAKE)]).wakes
    assert merge(PRE, [ranked(Block("red"), role=Role.ASYNC)]).contexts == ()


def loaded(**keys: Any) -> HookDefinition:
    entry = {"command": "true", "name": "g", **keys}
    text = json.dumps({"hooks": {"PostToolUse": [{"hooks": [entry]}]}})
    (hook,) = load_hooks([parse_settings(text, Layer.USER, "settings.json")]).hooks
    return hook


def test_a_hook_that_wakes_the_model_runs_in_the_background() -> None:
    hook = loaded(asyncRewake=True)
    assert (hook.is_async, hook.rewakes, hook.role) == (True, True, Role.REWAKE)
    assert loaded(asyncRewake=True, mode="shadow").role is Role.SHADOW
    assert loaded(asyncRewake=False).role is Role.ENFORCE
    assert loaded(asyncRewake=False, **{"async": True}).role is Role.ASYNC
    assert (hook.mode, hook.matcher) == (Mode.ENFORCE, EVERYTHING)


@pytest.mark.parametrize(("rewakes", "kept"), [(True, ("note", "red")), (False, ("note",))])
def test_the_journal_keeps_what_waits_for_the_model(rewakes: bool, kept: tuple[str, ...]) -> None:
    hook = loaded(asyncRewake=rewakes, **{"async": True})
    stage = Stage(Occurrence(row=EVENTS[hook.event], number=1), {"tool_use_id": "1"})
    said = Verdict((AddContext("note"), Block("red")))
    run = journal_entry(hook, stage, 1, result=HookExecutionResult(exit_code=2), verdict=said, started="")
    assert run.deferred == kept


def test_a_file_is_matched_by_its_name_and_anything_else_by_the_whole_value() -> None:
    changed, tool = EVENTS[HookEvent.FILE_CHANGED], EVENTS[PRE]
    assert changed.target_in({"file_path": "/srv/project/.env"}) == ".env"
    assert tool.target_in({"tool_name": "mcp__a/b__c"}) == "mcp__a/b__c"
    assert EVENTS[HookEvent.CWD_CHANGED].target_in({"new_cwd": "/srv"}) == ""
