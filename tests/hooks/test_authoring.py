"""Hooks as Python functions: the event they see, and that each answer means what it is called."""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.rows import rows
from wave_agent.hooks import authoring
from wave_agent.hooks.authoring import (
    Answer,
    HookCall,
    allow,
    ask,
    context,
    deny,
    grant,
    refuse,
    replace_output,
    rewrite,
    stop,
    tell,
)
from wave_agent.hooks.events import EVENTS, ContextPlace, HookEvent, OnFailure
from wave_agent.hooks.execution import HookExecutionResult
from wave_agent.hooks.semantics import read
from wave_agent.hooks.verdicts import (
    AddContext,
    Approve,
    Ask,
    Block,
    EndTurn,
    ReplaceOutput,
    Rewrite,
    TellRefused,
    TellUser,
)

COMMON = {
    "session_id": "s-1",
    "transcript_path": "/t.jsonl",
    "cwd": "/srv/project",
    "hook_event_name": "PreToolUse",
    "permission_mode": "plan",
}


# ------------------------------------------------------------------------------------------------------------ the event


def test_the_fields_of_every_event_have_names() -> None:
    call = HookCall(COMMON)
    assert call.event == "PreToolUse"
    assert call.session == "s-1"
    assert call.cwd == "/srv/project"
    assert call.transcript_path == "/t.jsonl"
    assert call.permission_mode == "plan"


def test_the_fields_of_a_tool_call_have_names() -> None:
    call = HookCall({
        **COMMON,
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
        "original_tool_input": {"command": "la"},
        "tool_response": {"success": True, "content": "a"},
    })  # fmt: skip
    assert call.tool == "Bash"
    assert call.input == {"command": "ls"}
    assert call.original_input == {"command": "la"}
    assert call.response == {"success": True, "content": "a"}


def test_prompt_and_stop_fields_have_names() -> None:
    assert HookCall({**COMMON, "prompt": "hello"}).prompt == "hello"
    assert HookCall({**COMMON, "stop_hook_active": True}).stop_hook_active is True


def test_what_an_event_does_not_have_is_empty() -> None:
    call = HookCall(COMMON)
    assert (call.prompt, call.tool, call.input, call.response) == ("", "", {}, {})
    assert call.original_input is None
    assert call.stop_hook_active is False


def test_any_other_field_is_read_by_its_name() -> None:
    call = HookCall({**COMMON, "tool_use_id": "t-1"})
    assert call["tool_use_id"] == "t-1"
    assert call.get("tool_use_id") == "t-1"
    assert call.get("absent") is None
    assert call.get("absent", 5) == 5
    with pytest.raises(KeyError):
        call["absent"]


# ---------------------------------------------------------------------------------------------------------- the answers


def meaning(answer: dict[str, Any], event: HookEvent) -> tuple[object, ...]:
    result = HookExecutionResult(exit_code=0, stdout=json.dumps(answer))
    return read(event, result, name="hook", on_failure=OnFailure.BLOCK).effects


@rows(
    ("answer", "event", "effect"),
    [
        (deny("no"), HookEvent.PRE_TOOL_USE, Block("no")),
        (deny("no"), HookEvent.USER_PROMPT_SUBMIT, Block("no")),
        (deny("no"), HookEvent.POST_TOOL_USE, Block("no")),
        (deny("no"), HookEvent.STOP, Block("no")),
        (ask("sure?"), HookEvent.PRE_TOOL_USE, Ask("sure?")),
        (allow("fine"), HookEvent.PRE_TOOL_USE, Approve("fine")),
        (allow(), HookEvent.PRE_TOOL_USE, Approve("")),
        *((stop("enough"), event, EndTurn("enough")) for event in HookEvent),
        *(
            (context("note"), row.event, AddContext("note"))
            for row in EVENTS.values()
            if row.context is not ContextPlace.NOWHERE
        ),
        (rewrite(command="ls", timeout=None), HookEvent.PRE_TOOL_USE, Rewrite({"command": "ls", "timeout": None})),
        (replace_output("[redacted]"), HookEvent.POST_TOOL_USE, ReplaceOutput("[redacted]")),
        *((tell("look"), event, TellUser("look")) for event in HookEvent),
    ],
)
def test_an_answer_means_what_it_is_called(answer: Answer, event: HookEvent, effect: object) -> None:
    assert meaning(answer, event) == (effect,)


def test_answers_are_combined_with_a_bar() -> None:
    effects = meaning(rewrite(command="ls") | tell("cleaned up") | context("note"), HookEvent.PRE_TOOL_USE)
    assert set(map(type, effects)) == {Rewrite, TellUser, AddContext}


@pytest.mark.parametrize(
    ("combined", "strictest"),
    [
        (deny("no") | allow("fine"), Block("no")),
        (allow("fine") | deny("no"), Block("no")),
        (deny("no") | ask("sure?"), Block("no")),
        (ask("sure?") | allow("fine"), Ask("sure?")),
        (ask("sure?") | deny("no"), Block("no")),
    ],
)
def test_of_two_decisions_that_are_combined_the_stricter_holds(combined: dict[str, Any], strictest: object) -> None:
    effects = meaning(combined, HookEvent.PRE_TOOL_USE)
    assert [effect for effect in effects if isinstance(effect, Block | Ask | Approve)] == [strictest]


def test_rewrites_that_are_combined_all_count() -> None:
    effects = meaning(rewrite(command="ls") | rewrite(timeout=5), HookEvent.PRE_TOOL_USE)
    assert effects == (Rewrite({"command": "ls", "timeout": 5}),)


# ------------------------------------------------------------------------------------------------------------- the cost


def test_a_hook_script_that_imports_the_answers_imports_nothing_else() -> None:
    script = (
        "import sys; before = set(sys.modules); from wave_agent.hooks import HookCall, deny; "
        "print(*sorted(name for name in set(sys.modules) - before if not name.startswith('wave_agent')))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert set(run.stdout.split()) <= {"importlib", "importlib._bootstrap", "importlib._bootstrap_external", "warnings"}


def test_the_hooks_package_offers_every_answer() -> None:
    from wave_agent import hooks

    made_here = [
        name for name, value in vars(authoring).items() if getattr(value, "__module__", "") == authoring.__name__
    ]
    assert set(made_here) <= set(hooks.__all__)
    for name in made_here:
        assert getattr(hooks, name) is getattr(authoring, name)


# ----------------------------------------------------------------------------------------------------- the other events


def test_the_fields_of_other_events_have_names() -> None:
    assert HookCall({**COMMON, "error": "no such file", "is_interrupt": True}).error == "no such file"
    assert HookCall({**COMMON, "is_interrupt": True}).is_interrupt is True
    assert HookCall({**COMMON, "message": "Look."}).message == "Look."
    inside = HookCall({**COMMON, "agent_id": "a1", "agent_type": "explore"})
    assert (inside.agent_id, inside.agent_type) == ("a1", "explore")
    assert HookCall({**COMMON, "permission_suggestions": ["Bash(ls)"]}).suggestions == ["Bash(ls)"]


@pytest.mark.parametrize("field", ["notification_type", "trigger", "source", "reason"])
def test_what_happened_in_one_word(field: str) -> None:
    assert HookCall({**COMMON, field: "auto"}).target == "auto"


def test_they_are_empty_where_they_mean_nothing() -> None:
    call = HookCall(COMMON)
    assert (call.error, call.message, call.target, call.suggestions, call.is_interrupt) == ("", "", "", [], False)
    assert (call.agent_id, call.agent_type) == ("", "")


@pytest.mark.parametrize(
    ("answer", "effects"),
    [
        (grant(), (Approve(),)),
        (grant(command="ls"), (Rewrite({"command": "ls"}), Approve())),
        (refuse("no"), (TellRefused("no"), Block("no"))),
        (refuse("no", interrupt=True), (TellRefused("no"), EndTurn("no"), Block("no"))),
    ],
)
def test_answers_to_a_question(answer: Answer, effects: tuple[Any, ...]) -> None:
    result = HookExecutionResult(exit_code=0, stdout=json.dumps(answer))
    assert read(HookEvent.PERMISSION_REQUEST, result, name="guard").effects == effects
