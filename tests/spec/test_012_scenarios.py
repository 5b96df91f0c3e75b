"""Specification 012: its user stories, scenario by scenario, and its edge cases."""

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
from wave_agent import Allow, Deny, PermissionRequest
from wave_agent.events import PermissionRequested
from wave_agent.testing import Reply

REASON = "Not like this."
BLOCK = f"echo '{REASON}' >&2; exit 2"
ONCE = "[ -e asked ] && exit 0; touch asked; "
UNDISTURBED = ["user", "assistant", "tool"]
NO_TRACE = [("user", "text"), ("assistant", "tool"), ("assistant", "text")]


def permission(decision: str, reason: str = REASON, **fields: object) -> dict[str, object]:
    stated = {"permissionDecision": decision, "permissionDecisionReason": reason}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **stated, **fields}}


def context(event: str, text: str) -> dict[str, object]:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


# ---------------------------------------------------------------------------------------------------- 1: exit codes


@pytest.mark.parametrize("event", EVENTS)
async def test_012_us1_scenario_1_exit_0_goes_on_and_stdout_is_context_for_a_prompt(world: World, event: str) -> None:
    world.settings({event: [world.hook("facts", "echo 'a fact'")]})

    agent, result = await world.run(work())

    assert world.model_saw("a fact") is (event == "UserPromptSubmit")
    assert len(world.log("facts")) == 1
    assert world.exists()
    assert ("a fact" in str(agent.messages)) is (event == "UserPromptSubmit")
    assert result.status == "completed"


@pytest.mark.parametrize("event", EVENTS)
async def test_012_us1_scenario_2_exit_2_blocks_as_the_event_says(world: World, event: str) -> None:
    world.settings({event: [world.hook("guard", ONCE + BLOCK)]})

    agent, result = await world.run([*work(), DONE])

    assert world.model_saw(REASON) is (event != "UserPromptSubmit")
    assert world.exists() is (event not in ("UserPromptSubmit", "PreToolUse"))
    assert errors(agent) == ([REASON] if event == "UserPromptSubmit" else [])
    assert result.status == ("blocked" if event == "UserPromptSubmit" else "completed")


@pytest.mark.parametrize("event", EVENTS)
async def test_012_us1_scenario_3_any_other_code_is_shown_and_goes_on(world: World, event: str) -> None:
    world.settings({event: [world.hook("guard", "echo 'Out of order.' >&2; exit 9")]})

    agent, result = await world.run(work())

    assert roles(world.request(1)) == UNDISTURBED
    assert world.exists()
    assert errors(agent) == ["Out of order."]
    assert result.status == "completed"


# ---------------------------------------------------------------------------------------------------------- 2: JSON


@pytest.mark.parametrize("event", EVENTS)
async def test_012_us2_scenario_1_continue_false_stops_and_shows_why(world: World, event: str) -> None:
    world.settings({event: [world.says("guard", {"continue": False, "stopReason": "Enough."})]})

    agent, result = await world.run([Reply(tool_calls=[make()]), DONE])

    assert not world.model_saw("Enough.")
    assert len(world.log("guard")) == 1
    assert notices(agent) == ["Enough."]
    assert [run["outcome"] for run in records(agent, "hook_run")] == ["stop"]
    assert result.status == "stopped"


@pytest.mark.parametrize("event", EVENTS)
async def test_012_us2_scenario_2_a_system_message_is_shown(world: World, event: str) -> None:
    world.settings({event: [world.says("guard", {"systemMessage": "Mind the gap."})]})

    agent, result = await world.run(work())

    assert not world.model_saw("Mind the gap.")
    assert world.exists()
    assert notices(agent) == ["Mind the gap."]
    assert result.status == "completed"


async def test_012_us2_scenario_3_json_fields_come_before_the_exit_code(world: World) -> None:
    """Exit 2 would give the model stderr; the JSON ends the turn instead, and the model reads nothing."""
    stop = world.says("guard", {"continue": False, "stopReason": "Enough."}, BLOCK)
    world.settings({"PostToolUse": [stop]})

    agent, result = await world.run([Reply(tool_calls=[make()])])

    assert world.requests == 1
    assert world.exists()
    assert "Enough." in notices(agent)
    assert len(users(agent)) == 1
    assert result.status == "stopped"


# ---------------------------------------------------------------------------------------------------- 3: permission


async def test_012_us3_scenario_1_allow_runs_the_tool_without_the_user(world: World) -> None:
    world.settings({"PreToolUse": [world.says("guard", permission("allow", "Known to be safe."))]})
    asked: list[PermissionRequest] = []

    async def user(request: PermissionRequest) -> Deny:
        asked.append(request)
        return Deny()

    agent, _ = await world.run(work(), permission_mode="default", can_use_tool=user)

    assert not world.model_saw("Known to be safe.")
    assert len(world.log("guard")) == 1
    assert world.exists()
    assert asked == []
    assert (notices(agent), tools(agent)[0].success) == (["Known to be safe."], True)
    assert [line["content"] for line in records(agent, "notice")] == ["Known to be safe."]


async def test_012_us3_scenario_2_deny_blocks_and_the_model_reads_why(world: World) -> None:
    world.settings({"PreToolUse": [world.says("guard", permission("deny"))]})

    agent, result = await world.run(work())

    assert world.request(1)[2]["content"] == refused("guard", REASON)
    assert len(world.log("guard")) == 1
    assert not world.exists()
    assert (tools(agent)[0].result, tools(agent)[0].success) == (REASON, False)
    assert results_in(transcript(agent))[0] == {
        "type": "tool_result",
        "tool_use_id": tools(agent)[0].id,
        "content": REASON,
        "is_error": True,
    }
    assert result.status == "completed"


@pytest.mark.parametrize("consents", [True, False], ids=["yes", "no"])
async def test_012_us3_scenario_3_ask_leaves_it_to_the_user(world: World, consents: bool) -> None:
    world.settings({"PreToolUse": [world.says("guard", permission("ask", "Is this meant?"))]})
    asked: list[PermissionRequest] = []

    async def user(request: PermissionRequest) -> Allow | Deny:
        asked.append(request)
        return Allow() if consents else Deny("The user says no.")

    agent, _ = await world.run(work(), can_use_tool=user)

    assert not world.model_saw("Is this meant?")
    assert ("The user says no." in world.request(1)[2]["content"]) is not consents
    assert [(one.tool_name, one.tool_input, one.reason) for one in asked] == [
        ("Bash", {"command": "touch made.txt"}, "Is this meant?")
    ]
    assert [event.reason for event in world.events if isinstance(event, PermissionRequested)] == ["Is this meant?"]
    assert world.exists() is consents
    assert tools(agent)[0].success is consents
    assert results_in(transcript(agent))[0]["is_error"] is not consents


async def test_012_us3_scenario_4_the_tool_gets_the_updated_input(world: World) -> None:
    rewritten = permission("allow", "Elsewhere.", updatedInput={"command": "touch other.txt"})
    world.settings({"PreToolUse": [world.says("guard", rewritten)], "PostToolUse": [world.hook("after", "exit 0")]})

    agent, _ = await world.run(work(), permission_mode="default")

    assert roles(world.request(1)) == UNDISTURBED
    assert world.log("after")[0]["tool_input"] == {"command": "touch other.txt"}
    assert (world.exists(), world.exists("other.txt")) == (False, True)
    assert tools(agent)[0].parameters == {"command": "touch made.txt"}
    assert records(agent, "hook_run")[0]["after"] == {"command": "touch other.txt"}


# ------------------------------------------------------------------------------------------------------ 4: feedback


async def test_012_us4_scenario_1_a_block_prompts_the_model(world: World) -> None:
    world.settings({"PostToolUse": [world.says("review", {"decision": "block", "reason": REASON})]})

    agent, result = await world.run(work())

    assert world.request(1)[-1] == {"role": "user", "content": wrapped("PostToolUse", "review", REASON)}
    assert world.log("review")[0]["tool_response"]["success"] is True
    assert world.exists()
    assert users(agent)[-1].text == REASON
    assert said_in(transcript(agent), "user")[-1] == REASON
    assert (result.status, result.text) == ("completed", DONE)


async def test_012_us4_scenario_2_context_is_for_the_model_to_consider(world: World) -> None:
    world.settings({"PostToolUse": [world.says("review", context("PostToolUse", "Twelve tests cover it."))]})

    agent, _ = await world.run(work())

    assert world.request(1)[-1]["content"] == wrapped("PostToolUse", "review", "Twelve tests cover it.")
    assert world.exists()
    assert users(agent)[-1].text == "Twelve tests cover it."


@pytest.mark.parametrize("output", [{}, {"reason": REASON}, {"decision": None, "reason": REASON}])
async def test_012_us4_scenario_3_no_decision_prompts_nothing(world: World, output: dict[str, Any]) -> None:
    world.settings({"PostToolUse": [world.says("review", output)]})

    agent, result = await world.run(work())

    assert roles(world.request(1)) == UNDISTURBED
    assert len(world.log("review")) == 1
    assert world.exists()
    assert shape(agent) == NO_TRACE
    assert result.status == "completed"


# ----------------------------------------------------------------------------------------------- 5: prompt and stop


async def test_012_us5_scenario_1_a_blocked_prompt_is_erased_and_the_user_reads_why(world: World) -> None:
    block = '{"decision": "block", "reason": "Not like this."}'
    world.settings({"UserPromptSubmit": [world.hook("guard", f"{ONCE} echo '{block}'")]})
    agent, result = await world.run([DONE], "The password is hunter2.")

    await agent.send_message("Say hello.")

    assert world.request(0) == [{"role": "user", "content": "Say hello."}]
    assert world.log("guard")[0]["prompt"] == "The password is hunter2."
    assert world.files_with("hunter2") == []
    assert errors(agent) == [REASON]
    assert [(line["reason"], line["length"]) for line in records(agent, "prompt_blocked")] == [(REASON, 24)]
    assert result.status == "blocked"


async def test_012_us5_scenario_2_context_is_added_to_a_prompt_that_passes(world: World) -> None:
    world.settings({"UserPromptSubmit": [world.says("facts", context("UserPromptSubmit", "It is Friday."))]})

    agent, _ = await world.run([DONE])

    assert world.request(0)[1]["content"] == wrapped("UserPromptSubmit", "facts", "It is Friday.")
    assert [message.text for message in users(agent)] == [PROMPT, "It is Friday."]


async def test_012_us5_scenario_2_context_is_not_added_to_a_prompt_that_is_blocked(world: World) -> None:
    facts = world.says("facts", context("UserPromptSubmit", "It is Friday."))
    world.settings({"UserPromptSubmit": [facts, world.hook("guard", ONCE + BLOCK)]})
    agent, _ = await world.run([DONE], "First.")
    assert shape(agent) == [("assistant", "error")]

    await agent.send_message("Second.")

    assert [message["content"] for message in world.request(0)] == [
        "Second.",
        wrapped("UserPromptSubmit", "facts", "It is Friday."),
    ]


async def test_012_us5_scenario_3_a_stop_is_prevented_until_the_reason_is_dealt_with(world: World) -> None:
    block = '{"decision": "block", "reason": "The file is missing."}'
    world.settings({"Stop": [world.hook("complete", f"[ -e made.txt ] || echo '{block}'")]})

    agent, result = await world.run(["Ready.", *work()])

    assert world.request(1)[-1]["content"] == wrapped("Stop", "complete", "The file is missing.")
    assert [run["stop_block_count"] for run in world.log("complete")] == [0, 1]
    assert world.exists()
    assert users(agent)[-1].text == "The file is missing."
    assert (result.status, result.text) == ("completed", DONE)


# -------------------------------------------------------------------------------------------------------- edge cases


@pytest.mark.parametrize(("decision", "runs"), [("allow", True), ("deny", False)])
@pytest.mark.parametrize("code", [0, 1, 2])
async def test_012_edge_valid_json_beside_an_exit_code_the_json_decides(
    world: World, decision: str, runs: bool, code: int
) -> None:
    world.settings({"PreToolUse": [world.says("guard", permission(decision), f"exit {code}")]})

    agent, _ = await world.run(work())

    assert world.model_saw(REASON) is not runs
    assert world.exists() is runs
    assert tools(agent)[0].success is runs


@pytest.mark.parametrize(("code", "runs"), [(0, True), (1, True), (2, False)])
async def test_012_edge_malformed_json_leaves_it_to_the_exit_code(world: World, code: int, runs: bool) -> None:
    world.settings({"PreToolUse": [world.hook("guard", f"echo '{{\"permissionDecision\": '; exit {code}")]})

    agent, result = await world.run(work())

    assert world.exists() is runs
    assert "looks like JSON but is not" in notices(agent)[0]
    assert result.status == "completed"


async def test_012_edge_conflicting_fields_the_stricter_holds(world: World) -> None:
    """`continue: false` beside an allow."""
    world.settings({"PreToolUse": [world.says("guard", {"continue": False, **permission("allow")})]})

    agent, result = await world.run([Reply(tool_calls=[make()])])

    assert world.requests == 1
    assert not world.exists()
    assert tools(agent)[0].success is False
    assert result.status == "stopped"


@pytest.mark.parametrize(
    ("top", "inner", "runs"), [("block", "allow", False), ("approve", "deny", False), ("approve", "allow", True)]
)
async def test_012_edge_two_decisions_in_one_output_the_stricter_holds(
    world: World, top: str, inner: str, runs: bool
) -> None:
    world.settings({"PreToolUse": [world.says("guard", {"decision": top, **permission(inner)})]})

    await world.run(work(), permission_mode="default")

    assert world.exists() is runs


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PostToolUse", "Stop"])
async def test_012_edge_a_permission_belongs_to_tools_a_deny_counts_elsewhere_too(world: World, event: str) -> None:
    """Fields of another event: what restricts is honoured and told, what loosens is dropped and told."""
    output = {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": REASON}}
    hook = world.says("guard", output)
    hook["command"] = "[ -e asked ] || { touch asked; ./guard.sh; }"
    world.settings({event: [hook]})

    agent, _ = await world.run([*work(), DONE])

    assert world.model_saw(REASON) is (event != "UserPromptSubmit")
    assert REASON in str(agent.messages)
    assert any("permissionDecision was honoured" in notice for notice in notices(agent))


@pytest.mark.parametrize("event", EVENTS)
async def test_012_edge_a_hook_without_any_output_has_no_opinion(world: World, event: str) -> None:
    world.settings({event: [world.hook("quiet", "exit 0")]})

    agent, result = await world.run(work())

    assert roles(world.request(1)) == UNDISTURBED
    assert len(world.log("quiet")) == 1
    assert world.exists()
    assert shape(agent) == NO_TRACE
    assert [run["outcome"] for run in records(agent, "hook_run")] == ["none"]
    assert result.status == "completed"


async def test_012_edge_silence_is_not_approval(world: World) -> None:
    world.settings({"PreToolUse": [world.hook("quiet", "exit 0")]})

    agent, _ = await world.run(work(), permission_mode="default")

    assert "nobody can confirm it in this run" in world.request(1)[2]["content"]
    assert not world.exists()
    assert tools(agent)[0].success is False
