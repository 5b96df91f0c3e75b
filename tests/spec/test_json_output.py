"""JSON that ends the turn, has fields its event does not take, or makes no sense at all.

Each test looks at the request that the model got, the hook's own log, the side effect on disk, the messages, the
transcript and the result, in this order.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.spec.covering import covers, row
from tests.spec.world import (
    BLOCK,
    DONE,
    EVENTS,
    PROMPT,
    REASON,
    UNDISTURBED,
    World,
    errors,
    make,
    notices,
    printing,
    records,
    roles,
    specific,
    tools,
    users,
    work,
)
from wave_agent.testing import Reply

STOP = {"continue": False, "stopReason": "Enough for today."}
JSON_BLOCK = {"decision": "block", "reason": REASON}
REQUESTS = {"UserPromptSubmit": 0, "PreToolUse": 1, "PostToolUse": 1, "Stop": 2}
"""How many requests there have been when the turn ends at this event."""


@covers("012 FR-004", "012 US2.1")
@pytest.mark.parametrize("event", EVENTS)
async def test_continue_false_ends_the_turn_and_only_the_user_reads_why(world: World, event: str) -> None:
    world.settings({event: [world.says("guard", STOP)]})

    agent, result = await world.run([Reply(tool_calls=[make()]), DONE, DONE])

    assert not world.model_saw("Enough for today.")
    assert world.requests == REQUESTS[event]
    assert len(world.log("guard")) == 1
    assert world.exists() is (event in ("PostToolUse", "Stop"))
    assert notices(agent) == ["Enough for today."]
    assert [line["content"] for line in records(agent, "notice")] == ["Enough for today."]
    assert [run["outcome"] for run in records(agent, "hook_run")] == ["stop"]
    assert result.status == "stopped"


ONE_HOOK = {"both": printing({**STOP, **JSON_BLOCK})}
TWO_HOOKS = {"blocks": printing(JSON_BLOCK), "stops": printing(STOP)}
ALLOW = specific("PreToolUse", permissionDecision="allow", permissionDecisionReason=REASON)


@pytest.mark.parametrize(
    ("event", "scripts"),
    [
        *(row(f"a block of the same hook at {event}", event, ONE_HOOK, covers=("012 FR-012",)) for event in EVENTS[1:]),
        *(row(f"a block of another hook at {event}", event, TWO_HOOKS, covers=("012 FR-012",)) for event in EVENTS[1:]),
        row("exit 2 of another hook at Stop", "Stop", {"blocks": BLOCK, "stops": printing(STOP)},
            covers=("012 FR-012",)),
        row("exit 2", "PostToolUse", {"guard": printing(STOP, BLOCK)}, covers=("012 US2.3",)),
        row("an allow", "PreToolUse", {"guard": printing({**STOP, **ALLOW})},
            covers=("012 edge: fields that conflict",)),
    ],
)  # fmt: skip
async def test_continue_false_ends_the_turn_whatever_is_beside_it(
    world: World, event: str, scripts: Mapping[str, str]
) -> None:
    world.settings({event: [world.hook(name, body) for name, body in scripts.items()]})

    agent, result = await world.run([Reply(tool_calls=[make()]), DONE, DONE])

    assert world.requests == REQUESTS[event]
    assert not world.model_saw(REASON)
    assert world.exists() is (event != "PreToolUse")
    assert tools(agent)[0].success is (event != "PreToolUse")
    assert "Enough for today." in notices(agent)
    assert [message.text for message in users(agent)] == [PROMPT]
    assert "Enough for today." in [line["content"] for line in records(agent, "notice")]
    assert result.status == "stopped"


@covers("012 FR-012")
@pytest.mark.parametrize("scripts", [ONE_HOOK, TWO_HOOKS], ids=["one hook", "two hooks"])
async def test_continue_false_beside_a_block_ends_the_turn_and_erases_the_prompt(
    world: World, scripts: Mapping[str, str]
) -> None:
    world.settings({"UserPromptSubmit": [world.hook(name, body) for name, body in scripts.items()]})

    agent, result = await world.run([DONE], "The password is hunter2.")

    assert world.requests == 0
    assert world.files_with("hunter2") == []
    assert users(agent) == []
    assert (errors(agent), notices(agent)) == ([REASON], ["Enough for today."])
    assert len(records(agent, "prompt_blocked")) == 1
    assert result.status == "stopped"


FOREIGN = [
    ("UserPromptSubmit", specific("UserPromptSubmit", permissionDecision="allow"), "permissionDecision"),
    ("UserPromptSubmit", specific("UserPromptSubmit", updatedInput={"command": "ls"}), "updatedInput"),
    ("PreToolUse", specific("PreToolUse", updatedToolOutput="nothing"), "updatedToolOutput"),
    ("PostToolUse", specific("PostToolUse", updatedInput={"command": "ls"}), "updatedInput"),
    ("PostToolUse", specific("PreToolUse", additionalContext="a fact"), "additionalContext"),
    ("Stop", specific("Stop", permissionDecision="allow"), "permissionDecision"),
    ("Stop", specific("Stop", updatedToolOutput="nothing"), "updatedToolOutput"),
]


@covers("012 FR-011", "012 edge: fields of another event")
@pytest.mark.parametrize(("event", "output", "field"), FOREIGN)
async def test_a_field_that_the_event_does_not_take_is_ignored_and_the_user_is_warned(
    world: World, event: str, output: dict[str, object], field: str
) -> None:
    world.settings({event: [world.says("guard", output)]})

    agent, result = await world.run(work())

    assert roles(world.request(1)) == UNDISTURBED
    assert len(world.log("guard")) == 1
    assert world.exists()
    assert any(f"{field} was ignored" in notice for notice in notices(agent))
    assert [line["content"] for line in records(agent, "notice")] == notices(agent)
    assert result.status == "completed"


@covers("012 FR-011")
@pytest.mark.parametrize("event", ["UserPromptSubmit", "PostToolUse", "Stop"])
async def test_a_decision_that_cannot_be_read_is_a_failure_that_blocks_nothing(world: World, event: str) -> None:
    world.settings({event: [world.says("guard", {"decision": "Block", "reason": REASON})]})

    agent, result = await world.run(work())

    assert not world.model_saw(REASON)
    assert world.exists()
    assert len(errors(agent)) == 1
    assert result.hooks_failed_open == 1


ODD: Sequence[str] = [
    "{",
    "{}",
    "{]",
    '{"a"',
    "{" * 500,
    "\\u0000{",
    '{"continue": "false"}',
    '{"continue": null}',
    '\ufeff{"continue": true}',
    '{"decision": 5}',
    '{"decision": {"behavior": "allow"}}',
    '{"hookSpecificOutput": []}',
    '{"hookSpecificOutput": {"updatedInput": "ls"}}',
    '{"reason": {"deep": [1]}}',
    json.dumps({"x": "y" * 5000}),
]


@covers("012 SC-005")
@pytest.mark.parametrize("event", EVENTS)
async def test_no_output_however_odd_ends_the_agent(world: World, event: str) -> None:
    hooks: list[dict[str, Any]] = [world.hook(f"odd{number}", printing(text)) for number, text in enumerate(ODD)]
    world.settings({event: hooks})

    agent, result = await world.run(work())

    assert world.requests == 2
    assert all(len(world.log(f"odd{number}")) == 1 for number in range(len(ODD)))
    assert result.status == "completed"
    assert len(records(agent, "hook_run")) == len(ODD)
