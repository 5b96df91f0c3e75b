"""Specification 012, FR-001 to FR-010: exit codes, JSON, and which of the two counts."""

import json

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
from wave_agent.testing import Reply

REASON = "Not like this."
BLOCK = f"echo '{REASON}' >&2; exit 2"
UNDISTURBED = ["user", "assistant", "tool"]
ONCE = "[ -e asked ] && exit 0; touch asked; "


def specific(event: str, **fields: object) -> dict[str, object]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


@pytest.mark.parametrize("event", EVENTS)
async def test_012_fr_001_exit_code_0_adds_stdout_to_the_context_of_a_prompt_only(world: World, event: str) -> None:
    world.settings({event: [world.hook("facts", "echo 'a fact'")]})

    agent, result = await world.run(work())

    assert world.model_saw("a fact") is (event == "UserPromptSubmit")
    assert len(world.log("facts")) == 1
    assert world.exists()
    assert len(users(agent)) == (2 if event == "UserPromptSubmit" else 1)
    assert len(said_in(transcript(agent), "user")) == (3 if event == "UserPromptSubmit" else 2)
    assert result.status == "completed"


@pytest.mark.parametrize(
    ("event", "status", "runs", "requests"),
    [
        ("UserPromptSubmit", "blocked", False, 0),
        ("PreToolUse", "completed", False, 2),
        ("PostToolUse", "completed", True, 2),
        ("Stop", "completed", True, 3),
    ],
)
async def test_012_fr_002_exit_code_2_blocks_as_the_event_says(
    world: World, event: str, status: str, runs: bool, requests: int
) -> None:
    world.settings({event: [world.hook("guard", ONCE + BLOCK)]})

    agent, result = await world.run([*work(), DONE])

    assert world.requests == requests
    assert world.model_saw(REASON) is (event != "UserPromptSubmit")
    assert world.log("guard")
    assert world.exists() is runs
    assert REASON in str(agent.messages)
    assert records(agent, "hook_run")[0]["exit_code"] == 2
    assert result.status == status


@pytest.mark.parametrize("event", EVENTS)
async def test_012_fr_003_any_other_exit_code_tells_the_user_and_goes_on(world: World, event: str) -> None:
    world.settings({event: [world.hook("guard", "echo 'Out of order.' >&2; exit 4")]})

    agent, result = await world.run(work())

    assert not world.model_saw("Out of order.")
    assert len(world.log("guard")) == 1
    assert world.exists()
    assert errors(agent) == ["Out of order."]
    assert [line["content"] for line in records(agent, "error")] == ["Out of order."]
    assert result.status == "completed"


@pytest.mark.parametrize("event", EVENTS)
async def test_012_fr_004_continue_false_ends_the_turn_and_tells_the_user_why(world: World, event: str) -> None:
    world.settings({event: [world.says("guard", {"continue": False, "stopReason": "Enough for today."})]})

    agent, result = await world.run([Reply(tool_calls=[make()]), DONE, DONE])

    assert not world.model_saw("Enough for today.")
    assert world.requests == {"UserPromptSubmit": 0, "PreToolUse": 1, "PostToolUse": 1, "Stop": 2}[event]
    assert len(world.log("guard")) == 1
    assert world.exists() is (event in ("PostToolUse", "Stop"))
    assert notices(agent) == ["Enough for today."]
    assert [line["content"] for line in records(agent, "notice")] == ["Enough for today."]
    assert result.status == "stopped"


@pytest.mark.parametrize("event", EVENTS)
async def test_012_fr_004_continue_true_changes_nothing(world: World, event: str) -> None:
    world.settings({event: [world.says("guard", {"continue": True, "stopReason": "never used"})]})

    agent, result = await world.run(work())

    assert roles(world.request(1)) == UNDISTURBED
    assert world.exists()
    assert shape(agent) == [("user", "text"), ("assistant", "tool"), ("assistant", "text")]
    assert result.status == "completed"


@pytest.mark.parametrize("event", EVENTS)
async def test_012_fr_004_a_system_message_is_a_warning_to_the_user(world: World, event: str) -> None:
    world.settings({event: [world.says("guard", {"systemMessage": "The disk is nearly full."})]})

    agent, result = await world.run(work())

    assert not world.model_saw("The disk is nearly full.")
    assert len(world.log("guard")) == 1
    assert world.exists()
    assert notices(agent) == ["The disk is nearly full."]
    assert [(line["content"], line["level"]) for line in records(agent, "notice")] == [
        ("The disk is nearly full.", "warning")
    ]
    assert result.status == "completed"


@pytest.mark.parametrize("code", [0, 1, 2, 3])
async def test_012_fr_005_json_that_decides_counts_whatever_the_exit_code(world: World, code: int) -> None:
    deny = specific("PreToolUse", permissionDecision="deny", permissionDecisionReason="The JSON says no.")
    world.settings({"PreToolUse": [world.says("guard", deny, f"echo 'stderr' >&2; exit {code}")]})

    agent, result = await world.run(work())

    assert world.request(1)[2]["content"] == refused("guard", "The JSON says no.")
    assert not world.model_saw("stderr")
    assert not world.exists()
    assert errors(agent) == []
    assert tools(agent)[0].result == "The JSON says no."
    assert result.hooks_failed_open == 0


async def test_012_fr_005_an_allow_stands_against_exit_code_2_and_the_user_is_told(world: World) -> None:
    allow = specific("PreToolUse", permissionDecision="allow")
    world.settings({"PreToolUse": [world.says("guard", allow, "exit 2")]})

    agent, _ = await world.run(work(), permission_mode="default")

    assert roles(world.request(1)) == UNDISTURBED
    assert world.exists()
    assert len(notices(agent)) == 1
    assert "printed allow and exited with 2" in notices(agent)[0]


async def test_012_fr_005_json_without_a_decision_leaves_exit_code_2_a_block(world: World) -> None:
    world.settings({"PreToolUse": [world.says("guard", {"systemMessage": "Look here."}, BLOCK)]})

    agent, _ = await world.run(work())

    assert world.request(1)[2]["content"] == refused("guard", REASON)
    assert not world.exists()
    assert notices(agent) == ["Look here."]


@pytest.mark.parametrize("event", EVENTS)
async def test_012_fr_005_json_without_a_decision_makes_other_exit_codes_no_error(world: World, event: str) -> None:
    world.settings({event: [world.says("guard", {"systemMessage": "Look here."}, "echo oops >&2; exit 1")]})

    agent, result = await world.run(work())

    assert world.exists()
    assert (errors(agent), notices(agent)) == ([], ["Look here."])
    assert result.hooks_failed_open == 0


async def test_012_fr_006_allow_runs_the_tool_unasked(world: World) -> None:
    allow = specific("PreToolUse", permissionDecision="allow", permissionDecisionReason="Known to be safe.")
    world.settings({"PreToolUse": [world.says("guard", allow)]})

    agent, _ = await world.run(work(), permission_mode="default")

    assert not world.model_saw("Known to be safe.")
    assert len(world.log("guard")) == 1
    assert world.exists()
    assert (tools(agent)[0].success, notices(agent)) == (True, ["Known to be safe."])
    assert records(agent, "hook_run")[0]["outcome"] == "allow"


async def test_012_fr_006_deny_blocks_the_tool(world: World) -> None:
    deny = specific("PreToolUse", permissionDecision="deny", permissionDecisionReason=REASON)
    world.settings({"PreToolUse": [world.says("guard", deny)]})

    agent, _ = await world.run(work())

    assert world.request(1)[2]["content"] == refused("guard", REASON)
    assert len(world.log("guard")) == 1
    assert not world.exists()
    assert (tools(agent)[0].result, tools(agent)[0].success) == (REASON, False)
    assert results_in(transcript(agent))[0]["content"] == REASON


async def test_012_fr_006_updated_input_is_what_the_tool_gets(world: World) -> None:
    """Only the named field changes; what the model asked for stays on record."""
    rewrite = specific("PreToolUse", updatedInput={"command": "touch other.txt"})
    world.settings({"PreToolUse": [world.says("guard", rewrite)], "PostToolUse": [world.hook("after", "exit 0")]})
    asked = make()

    agent, _ = await world.run(work(asked))

    assert world.request(1)[1]["tool_calls"][0]["function"]["arguments"] == '{"command":"touch made.txt"}'
    assert world.log("after")[0]["tool_input"] == {"command": "touch other.txt"}
    assert (world.exists(), world.exists("other.txt")) == (False, True)
    assert tools(agent)[0].parameters == {"command": "touch made.txt"}
    run = records(agent, "hook_run")[0]
    assert (run["before"], run["after"]) == ({"command": "touch made.txt"}, {"command": "touch other.txt"})


async def test_012_fr_007_a_block_after_a_tool_prompts_the_model_with_the_reason(world: World) -> None:
    world.settings({"PostToolUse": [world.says("review", {"decision": "block", "reason": REASON})]})

    agent, result = await world.run(work())

    assert world.request(1)[-1] == {"role": "user", "content": wrapped("PostToolUse", "review", REASON)}
    assert len(world.log("review")) == 1
    assert world.exists()
    assert (users(agent)[-1].text, tools(agent)[0].success) == (REASON, True)
    assert said_in(transcript(agent), "user")[-1] == REASON
    assert result.status == "completed"


async def test_012_fr_007_additional_context_after_a_tool_reaches_the_model(world: World) -> None:
    told = specific("PostToolUse", additionalContext="The file is watched.")
    world.settings({"PostToolUse": [world.says("review", told)]})

    agent, _ = await world.run(work())

    assert world.request(1)[-1] == {"role": "user", "content": wrapped("PostToolUse", "review", "The file is watched.")}
    assert world.exists()
    assert users(agent)[-1].text == "The file is watched."
    assert said_in(transcript(agent), "user")[-1] == "The file is watched."


async def test_012_fr_008_a_block_erases_the_prompt(world: World) -> None:
    world.settings({"UserPromptSubmit": [world.says("guard", {"decision": "block", "reason": REASON})]})

    agent, result = await world.run([DONE], "The password is hunter2.")

    assert world.requests == 0
    assert world.log("guard")[0]["prompt"] == "The password is hunter2."
    assert world.files_with("hunter2") == []
    assert (shape(agent), errors(agent)) == ([("assistant", "error")], [REASON])
    assert [line["reason"] for line in records(agent, "prompt_blocked")] == [REASON]
    assert result.status == "blocked"


async def test_012_fr_008_additional_context_comes_with_the_prompt(world: World) -> None:
    told = specific("UserPromptSubmit", additionalContext="It is Friday.")
    world.settings({"UserPromptSubmit": [world.says("facts", told)]})

    agent, _ = await world.run([DONE])

    assert world.request(0) == [
        {"role": "user", "content": PROMPT},
        {"role": "user", "content": wrapped("UserPromptSubmit", "facts", "It is Friday.")},
    ]
    assert len(world.log("facts")) == 1
    assert [message.text for message in users(agent)] == [PROMPT, "It is Friday."]
    assert said_in(transcript(agent), "user") == [PROMPT, "It is Friday."]


async def test_012_fr_009_a_block_with_a_reason_keeps_the_agent_from_stopping(world: World) -> None:
    block = '{"decision": "block", "reason": "Run the tests first."}'
    world.settings({"Stop": [world.hook("complete", f"{ONCE} echo '{block}'")]})

    agent, result = await world.run(["Ready.", DONE])

    assert world.request(1)[-1]["content"] == wrapped("Stop", "complete", "Run the tests first.")
    assert len(world.log("complete")) == 2
    assert users(agent)[-1].text == "Run the tests first."
    assert said_in(transcript(agent), "user")[-1] == "Run the tests first."
    assert (result.status, result.turns) == ("completed", 2)


@pytest.mark.parametrize("output", [{"decision": "block"}, {"decision": "block", "reason": "  "}])
async def test_012_fr_009_a_block_without_a_reason_has_the_default_one_and_is_told(
    world: World, output: dict[str, str]
) -> None:
    once = f"[ -e told ] || echo '{json.dumps(output)}'; touch told"
    world.settings({"Stop": [world.hook("complete", once)]})

    agent, result = await world.run([DONE, DONE])

    assert world.request(1)[-1]["content"] == wrapped("Stop", "complete", "Blocked by hook complete")
    assert [run["stop_block_count"] for run in world.log("complete")] == [0, 1]
    assert len(notices(agent)) == 1
    assert 'needs a "reason"' in notices(agent)[0]
    assert [run["outcome"] for run in records(agent, "hook_run")] == ["block", "none"]
    assert (result.status, result.hooks_failed_open) == ("completed", 0)


MALFORMED = {
    "cut off": '{"decision": "block", "reason": "half',
    "single quotes": "{'decision': 'block'}",
    "a comma too many": '{"decision": "block",}',
    "not a number": '{"continue": NaN}',
    "something after it": '{"decision": "block"} done',
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED.keys())
@pytest.mark.parametrize("event", EVENTS)
async def test_012_fr_010_malformed_json_with_exit_0_is_told_and_is_no_context(
    world: World, event: str, text: str
) -> None:
    world.settings({event: [world.hook("guard", f"cat <<'END'\n{text}\nEND\nexit 0")]})

    agent, result = await world.run(work())

    assert roles(world.request(1)) == UNDISTURBED
    assert len(world.log("guard")) == 1
    assert world.exists()
    assert len(notices(agent)) == 1
    assert "guard: stdout looks like JSON but is not" in notices(agent)[0]
    assert [run["failure"] for run in records(agent, "hook_run")] == ["json"]
    assert (result.status, result.hooks_failed_open) == ("completed", 0)


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED.keys())
async def test_012_fr_010_malformed_json_with_exit_2_still_blocks(world: World, text: str) -> None:
    world.settings({"PreToolUse": [world.hook("guard", f"cat <<'END'\n{text}\nEND\n{BLOCK}")]})

    agent, _ = await world.run(work())

    assert world.request(1)[2]["content"] == refused("guard", REASON)
    assert not world.exists()
    assert tools(agent)[0].result == REASON
    assert "looks like JSON but is not" in notices(agent)[0]


async def test_012_fr_010_malformed_json_with_another_exit_code_is_its_error(world: World) -> None:
    world.settings({"PreToolUse": [world.hook("guard", "echo '{oops'; echo 'Out of order.' >&2; exit 1")]})

    agent, result = await world.run(work())

    assert world.exists()
    assert errors(agent) == ["Out of order."]
    assert result.hooks_failed_open == 1


@pytest.mark.parametrize("text", ["[1, 2]", '"a word"', "42", "null"])
async def test_012_fr_010_json_that_is_no_object_is_plain_text(world: World, text: str) -> None:
    world.settings({"UserPromptSubmit": [world.hook("facts", f"echo '{text}'")]})

    agent, _ = await world.run([DONE])

    assert world.request(0)[1]["content"] == wrapped("UserPromptSubmit", "facts", text)
    assert users(agent)[1].text == text
