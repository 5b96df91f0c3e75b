"""Specification 012, FR-011 to FR-015 and the success criteria: what is valid where, what wins, and who reads it."""

import json
from typing import Any

import pytest

from tests.spec.world import (
    DONE,
    EVENTS,
    PROMPT,
    World,
    errors,
    make,
    notices,
    records,
    refused,
    results_in,
    roles,
    said_in,
    shape,
    tools,
    transcript,
    users,
    work,
    wrapped,
)
from wave_agent import Allow, PermissionRequest
from wave_agent.testing import Reply

REASON = "Not like this."
BLOCK = f"echo '{REASON}' >&2; exit 2"
ONCE = "[ -e asked ] && exit 0; touch asked; "
STOP = {"continue": False, "stopReason": "Enough for today."}
UNDISTURBED = ["user", "assistant", "tool"]


def specific(event: str, **fields: object) -> dict[str, object]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


FOREIGN = [
    ("UserPromptSubmit", specific("UserPromptSubmit", permissionDecision="allow"), "permissionDecision"),
    ("UserPromptSubmit", specific("UserPromptSubmit", updatedInput={"command": "ls"}), "updatedInput"),
    ("PreToolUse", specific("PreToolUse", updatedToolOutput="nothing"), "updatedToolOutput"),
    ("PostToolUse", specific("PostToolUse", updatedInput={"command": "ls"}), "updatedInput"),
    ("PostToolUse", specific("PreToolUse", additionalContext="a fact"), "additionalContext"),
    ("Stop", specific("Stop", permissionDecision="allow"), "permissionDecision"),
    ("Stop", specific("Stop", updatedToolOutput="nothing"), "updatedToolOutput"),
]


@pytest.mark.parametrize(("event", "output", "field"), FOREIGN)
async def test_012_fr_011_a_field_that_the_event_does_not_take_is_dropped_and_told(
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


@pytest.mark.parametrize("fields", [{"permissionDecision": "allow"}, {"updatedInput": {"command": "touch other.txt"}}])
async def test_012_fr_011_what_loosens_under_a_wrong_event_name_does_not_count(
    world: World, fields: dict[str, Any]
) -> None:
    world.settings({"PreToolUse": [world.says("guard", specific("PostToolUse", **fields))]})

    agent, _ = await world.run(work(), permission_mode="default")

    assert "nobody can confirm it in this run" in world.request(1)[2]["content"]
    assert not world.exists()
    assert not world.exists("other.txt")
    assert any('hookEventName must be "PreToolUse"' in notice for notice in notices(agent))


async def test_012_fr_011_what_restricts_under_a_wrong_event_name_counts_and_is_told(world: World) -> None:
    deny = specific("PostToolUse", permissionDecision="deny", permissionDecisionReason=REASON)
    world.settings({"PreToolUse": [world.says("guard", deny)]})

    agent, _ = await world.run(work())

    assert world.request(1)[2]["content"] == refused("guard", REASON)
    assert not world.exists()
    assert any("permissionDecision was honoured" in notice for notice in notices(agent))


@pytest.mark.parametrize("event", EVENTS)
async def test_012_fr_011_a_field_of_the_wrong_type_is_dropped_and_the_rest_stands(world: World, event: str) -> None:
    world.settings({event: [world.says("guard", {"systemMessage": "Look here.", "suppressOutput": "yes"})]})

    agent, _ = await world.run(work())

    assert roles(world.request(1)) == UNDISTURBED
    assert world.exists()
    assert "Look here." in notices(agent)
    assert any("suppressOutput must be" in notice for notice in notices(agent))


async def test_012_fr_011_a_decision_that_cannot_be_read_is_a_question_before_a_tool(world: World) -> None:
    world.settings({"PreToolUse": [world.says("guard", specific("PreToolUse", permissionDecision="Deny"))]})

    agent, _ = await world.run(work())

    assert "nobody can confirm it in this run" in world.request(1)[2]["content"]
    assert not world.exists()
    assert any("permissionDecision" in notice for notice in notices(agent))


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PostToolUse", "Stop"])
async def test_012_fr_011_a_decision_that_cannot_be_read_is_a_failure_elsewhere(world: World, event: str) -> None:
    world.settings({event: [world.says("guard", {"decision": "Block", "reason": REASON})]})

    agent, result = await world.run(work())

    assert not world.model_saw(REASON)
    assert world.exists()
    assert len(errors(agent)) == 1
    assert result.hooks_failed_open == 1


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "Stop"])
@pytest.mark.parametrize("together", [True, False], ids=["one hook", "two hooks"])
async def test_012_fr_012_continue_false_beats_a_block(world: World, event: str, together: bool) -> None:
    block = {"decision": "block", "reason": REASON}
    one = [world.says("both", {**STOP, **block})]
    two = [world.says("blocks", block), world.says("stops", STOP)]
    world.settings({event: one if together else two})

    agent, result = await world.run([Reply(tool_calls=[make()]), DONE, DONE])

    assert world.requests == {"PreToolUse": 1, "PostToolUse": 1, "Stop": 2}[event]
    assert not world.model_saw(REASON)
    assert world.exists() is (event != "PreToolUse")
    assert "Enough for today." in notices(agent)
    assert len(users(agent)) == 1
    assert "Enough for today." in [line["content"] for line in records(agent, "notice")]
    assert result.status == "stopped"


@pytest.mark.parametrize("together", [True, False], ids=["one hook", "two hooks"])
async def test_012_fr_012_continue_false_beside_a_block_stops_and_erases_the_prompt(
    world: World, together: bool
) -> None:
    block = {"decision": "block", "reason": REASON}
    one = [world.says("both", {**STOP, **block})]
    two = [world.says("blocks", block), world.says("stops", STOP)]
    world.settings({"UserPromptSubmit": one if together else two})

    agent, result = await world.run([DONE], "The password is hunter2.")

    assert world.requests == 0
    assert world.files_with("hunter2") == []
    assert users(agent) == []
    assert (errors(agent), notices(agent)) == ([REASON], ["Enough for today."])
    assert len(records(agent, "prompt_blocked")) == 1
    assert result.status == "stopped"


async def test_012_fr_013_exit_code_2_of_a_tool_hook_blocks_and_the_model_reads_why(world: World) -> None:
    world.settings({"PreToolUse": [world.hook("guard", BLOCK)]})
    agent, _ = await world.run(work())
    assert world.request(1)[2]["content"] == refused("guard", REASON)
    assert len(world.log("guard")) == 1
    assert not world.exists()
    assert tools(agent)[0].result == REASON
    assert results_in(transcript(agent))[0]["content"] == REASON


async def test_012_fr_013_exit_code_2_after_a_tool_is_read_by_the_model(world: World) -> None:
    world.settings({"PostToolUse": [world.hook("review", BLOCK)]})
    agent, _ = await world.run(work())
    assert world.request(1)[-1] == {"role": "user", "content": wrapped("PostToolUse", "review", REASON)}
    assert world.exists()
    assert users(agent)[-1].text == REASON


async def test_012_fr_013_exit_code_2_of_a_prompt_hook_is_read_by_the_user_only(world: World) -> None:
    world.settings({"UserPromptSubmit": [world.hook("guard", ONCE + BLOCK)]})
    agent, _ = await world.run([DONE])
    await agent.send_message("Again.")
    assert world.request(0) == [{"role": "user", "content": "Again."}]
    assert errors(agent) == [REASON]


async def test_012_fr_013_exit_code_2_of_a_stop_hook_blocks_and_the_model_reads_why(world: World) -> None:
    world.settings({"Stop": [world.hook("complete", ONCE + BLOCK)]})
    agent, result = await world.run(["Ready.", DONE])
    assert world.request(1)[-1]["content"] == wrapped("Stop", "complete", REASON)
    assert users(agent)[-1].text == REASON
    assert result.turns == 2


async def test_012_fr_014_the_reason_of_an_allow_is_for_the_user(world: World) -> None:
    allow = specific("PreToolUse", permissionDecision="allow", permissionDecisionReason="Only in June.")
    world.settings({"PreToolUse": [world.says("guard", allow)]})

    agent, _ = await world.run(work())

    assert not world.model_saw("Only in June.")
    assert world.exists()
    assert notices(agent) == ["Only in June."]
    assert [line["content"] for line in records(agent, "notice")] == ["Only in June."]


async def test_012_fr_014_the_reason_of_an_ask_is_for_the_user(world: World) -> None:
    ask = specific("PreToolUse", permissionDecision="ask", permissionDecisionReason="Only in June.")
    world.settings({"PreToolUse": [world.says("guard", ask)]})
    asked: list[PermissionRequest] = []

    async def user(request: PermissionRequest) -> Allow:
        asked.append(request)
        return Allow()

    await world.run(work(), can_use_tool=user)

    assert not world.model_saw("Only in June.")
    assert [(request.tool_name, request.reason) for request in asked] == [("Bash", "Only in June.")]
    assert world.exists()


@pytest.mark.parametrize("mode", ["default", "bypassPermissions", "dontAsk"])
async def test_012_fr_014_the_reason_of_an_ask_that_nobody_hears_is_for_the_user(world: World, mode: str) -> None:
    ask = specific("PreToolUse", permissionDecision="ask", permissionDecisionReason="Only in June.")
    world.settings({"PreToolUse": [world.says("guard", ask)]})

    agent, _ = await world.run(work(), permission_mode=mode)

    assert not world.model_saw("Only in June.")
    assert "nobody can confirm it in this run" in world.request(1)[2]["content"]
    assert not world.exists()
    assert any("Only in June." in notice for notice in notices(agent))
    assert any("Only in June." in line["content"] for line in records(agent, "notice"))


async def test_012_fr_014_the_reason_of_a_deny_is_for_the_model(world: World) -> None:
    deny = specific("PreToolUse", permissionDecision="deny", permissionDecisionReason="Only in June.")
    world.settings({"PreToolUse": [world.says("guard", deny)]})

    agent, _ = await world.run(work())

    assert world.request(1)[2]["content"] == refused("guard", "Only in June.")
    assert not world.exists()
    assert (notices(agent), errors(agent)) == ([], [])
    assert tools(agent)[0].result == "Only in June."


async def test_012_fr_015_both_ways_to_give_context_end_in_one_message(world: World) -> None:
    told = specific("UserPromptSubmit", additionalContext="from JSON")
    world.settings({"UserPromptSubmit": [world.hook("text", "echo 'from stdout'"), world.says("object", told)]})

    agent, _ = await world.run([DONE])

    assert roles(world.request(0)) == ["user", "user"]
    assert world.request(0)[1]["content"] == "\n\n".join(
        [
            wrapped("UserPromptSubmit", "text", "from stdout"),
            wrapped("UserPromptSubmit", "object", "from JSON"),
        ]
    )
    assert (len(world.log("text")), len(world.log("object"))) == (1, 1)
    assert shape(agent) == [("user", "text"), ("user", "text", "text"), ("assistant", "text")]
    assert said_in(transcript(agent), "user") == [
        PROMPT,
        [{"type": "text", "text": "from stdout"}, {"type": "text", "text": "from JSON"}],
    ]


# ---------------------------------------------------------------------------------------------------- success criteria


async def test_012_sc_002_all_fields_of_one_output_count_together(world: World) -> None:
    output = {
        "systemMessage": "a warning",
        **specific(
            "PreToolUse",
            permissionDecision="allow",
            permissionDecisionReason="a reason",
            updatedInput={"command": "touch other.txt"},
            additionalContext="a fact",
        ),
    }
    world.settings({"PreToolUse": [world.says("guard", output)]})

    agent, _ = await world.run(work(), permission_mode="default")

    assert world.request(1)[-1]["content"] == wrapped("PreToolUse", "guard", "a fact")
    assert (world.exists(), world.exists("other.txt")) == (False, True)
    assert sorted(notices(agent)) == ["a reason", "a warning"]
    assert records(agent, "hook_run")[0]["rewrote"] is True


ODD = [
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


@pytest.mark.parametrize("event", EVENTS)
async def test_012_sc_005_no_output_however_odd_ends_the_agent(world: World, event: str) -> None:
    hooks = [world.hook(f"odd{number}", f"cat <<'END'\n{text}\nEND") for number, text in enumerate(ODD)]
    world.settings({event: hooks})

    agent, result = await world.run(work())

    assert world.requests == 2
    assert all(len(world.log(f"odd{number}")) == 1 for number in range(len(ODD)))
    assert result.status == "completed"
    assert len(records(agent, "hook_run")) == len(ODD)
