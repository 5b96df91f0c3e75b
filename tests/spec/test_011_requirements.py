"""Specification 011, FR-001 to FR-015: what an exit code means, event by event.

Each test looks at the request that the model got, the hook's own log, the side effect on disk, the messages, and the
transcript, in this order.
"""

import pytest

from tests.spec.world import (
    DONE,
    EVENTS,
    PROMPT,
    World,
    errors,
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

SILENT = "exit 0"
BLOCK = "echo 'Not like this.' >&2; exit 2"
REASON = "Not like this."
UNDISTURBED = ["user", "assistant", "tool"]
"""What the model gets with its second request when no hook has anything to say."""


@pytest.mark.parametrize("event", EVENTS)
async def test_011_fr_001_exit_code_0_is_success(world: World, event: str) -> None:
    world.settings({event: [world.hook("guard", SILENT)]})

    agent, result = await world.run(work())

    assert roles(world.request(1)) == UNDISTURBED
    assert [run["hook_event_name"] for run in world.log("guard")] == [event]
    assert world.exists()
    assert shape(agent) == [("user", "text"), ("assistant", "tool"), ("assistant", "text")]
    assert [(run["exit_code"], run["outcome"], run["failure"]) for run in records(agent, "hook_run")] == [
        (0, "none", None)
    ]
    assert result.status == "completed"
    assert result.hooks_failed_open == 0


async def test_011_fr_002_exit_code_2_blocks_the_prompt(world: World) -> None:
    world.settings({"UserPromptSubmit": [world.hook("guard", BLOCK)]})

    agent, result = await world.run(work())

    assert world.requests == 0
    assert [run["prompt"] for run in world.log("guard")] == [PROMPT]
    assert not world.exists()
    assert shape(agent) == [("assistant", "error")]
    assert [(run["exit_code"], run["outcome"]) for run in records(agent, "hook_run")] == [(2, "block")]
    assert result.status == "blocked"


async def test_011_fr_002_exit_code_2_blocks_the_tool(world: World) -> None:
    world.settings({"PreToolUse": [world.hook("guard", BLOCK)]})

    agent, result = await world.run(work())

    assert world.request(1)[2]["content"] == refused("guard", REASON)
    assert [run["tool_name"] for run in world.log("guard")] == ["Bash"]
    assert not world.exists()
    assert tools(agent)[0].success is False
    assert [(run["exit_code"], run["outcome"]) for run in records(agent, "hook_run")] == [(2, "deny")]
    assert result.status == "completed"


async def test_011_fr_002_exit_code_2_blocks_the_stop(world: World) -> None:
    once = f"[ -e blocked ] && exit 0; touch blocked; {BLOCK}"
    world.settings({"Stop": [world.hook("guard", once)]})

    agent, result = await world.run(["Ready.", DONE])

    assert world.requests == 2
    assert [run["stop_hook_active"] for run in world.log("guard")] == [False, True]
    assert users(agent)[1].text == REASON
    assert [(run["exit_code"], run["outcome"]) for run in records(agent, "hook_run")] == [(2, "block"), (0, "none")]
    assert (result.status, result.text) == ("completed", DONE)


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("code", [1, 3, 126, 127, 255])
async def test_011_fr_003_any_other_exit_code_is_an_error_that_blocks_nothing(
    world: World, event: str, code: int
) -> None:
    world.settings({event: [world.hook("guard", f"echo 'Out of order.' >&2; exit {code}")]})

    agent, result = await world.run(work())

    assert roles(world.request(1)) == UNDISTURBED
    assert len(world.log("guard")) == 1
    assert world.exists()
    assert errors(agent) == ["Out of order."]
    assert [(run["exit_code"], run["failure"]) for run in records(agent, "hook_run")] == [(code, "exit")]
    assert result.status == "completed"
    assert result.hooks_failed_open == 1


async def test_011_fr_004_stdout_of_a_prompt_hook_is_given_to_the_model(world: World) -> None:
    world.settings({"UserPromptSubmit": [world.hook("facts", "echo 'The branch is main.'; echo 'It is clean.'")]})

    agent, _ = await world.run([DONE])

    told = "The branch is main.\nIt is clean."
    assert world.request(0) == [
        {"role": "user", "content": PROMPT},
        {"role": "user", "content": wrapped("UserPromptSubmit", "facts", told)},
    ]
    assert [run["prompt"] for run in world.log("facts")] == [PROMPT]
    assert [message.text for message in users(agent)] == [PROMPT, told]
    assert said_in(transcript(agent), "user") == [PROMPT, told]


async def test_011_fr_004_stdout_of_a_prompt_hook_stays_in_the_context_of_later_requests(world: World) -> None:
    world.settings({"UserPromptSubmit": [world.hook("facts", "echo 'The branch is main.'")]})

    await world.run(work())

    assert roles(world.request(1)) == ["user", *UNDISTURBED]
    assert "The branch is main." in world.request(1)[1]["content"]


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "Stop"])
@pytest.mark.parametrize("code", [0, 1, 2])
async def test_011_fr_005_stdout_of_other_hooks_is_ignored(world: World, event: str, code: int) -> None:
    once = f"echo 'only for me'; echo 'for all' >&2; [ -e asked ] && exit 0; touch asked; exit {code}"
    world.settings({event: [world.hook("chatty", once)]})

    agent, _ = await world.run([*work(), DONE])

    assert not world.model_saw("only for me")
    assert world.log("chatty")
    assert world.exists() is (event != "PreToolUse" or code != 2)
    assert "only for me" not in str(agent.messages)
    assert not any("only for me" in str(said) for said in said_in(transcript(agent), "user"))


async def test_011_fr_006_a_tool_that_a_hook_blocks_does_not_run(world: World) -> None:
    world.settings({"PreToolUse": [world.hook("guard", BLOCK)]})

    agent, result = await world.run(work())

    assert roles(world.request(1)) == UNDISTURBED
    assert len(world.log("guard")) == 1
    assert not world.exists()
    assert (tools(agent)[0].success, tools(agent)[0].error) == (False, "Hook blocked tool execution")
    assert [line["is_error"] for line in results_in(transcript(agent))] == [True]
    assert result.status == "completed"


async def test_011_fr_006_a_tool_that_a_hook_blocks_keeps_its_parameters(world: World) -> None:
    world.settings({"PreToolUse": [world.hook("guard", BLOCK)]})

    agent, _ = await world.run(work())

    assert world.request(1)[1]["tool_calls"][0]["function"]["arguments"] == '{"command":"touch made.txt"}'
    assert tools(agent)[0].parameters == {"command": "touch made.txt"}


async def test_011_fr_006_no_after_hook_runs_for_a_tool_that_did_not(world: World) -> None:
    world.settings({"PreToolUse": [world.hook("guard", BLOCK)], "PostToolUse": [world.hook("after", SILENT)]})

    await world.run(work())

    assert world.log("after") == []


async def test_011_fr_007_the_model_reads_why_its_call_was_blocked(world: World) -> None:
    world.settings({"PreToolUse": [world.hook("guard", BLOCK)]})

    agent, _ = await world.run(work())

    assert world.request(1)[2]["content"] == refused("guard", REASON)
    assert len(world.log("guard")) == 1
    assert not world.exists()
    assert tools(agent)[0].result == REASON
    assert results_in(transcript(agent))[0]["content"] == REASON


async def test_011_fr_008_feedback_on_a_tool_is_a_message_in_the_users_role(world: World) -> None:
    world.settings({"PostToolUse": [world.hook("review", BLOCK)]})

    agent, result = await world.run(work())

    assert roles(world.request(1)) == [*UNDISTURBED, "user"]
    assert world.request(1)[3]["content"] == wrapped("PostToolUse", "review", REASON)
    assert world.log("review")[0]["tool_response"]["success"] is True
    assert world.exists()
    assert [message.text for message in users(agent)] == [PROMPT, REASON]
    assert said_in(transcript(agent), "user")[-1] == REASON
    assert (result.status, result.text) == ("completed", DONE)


async def test_011_fr_008_the_result_of_the_tool_stays_what_it_was(world: World) -> None:
    world.settings({"PostToolUse": [world.hook("review", BLOCK)]})

    agent, _ = await world.run(work())

    assert REASON not in world.request(1)[2]["content"]
    assert (tools(agent)[0].success, tools(agent)[0].error) == (True, None)


async def test_011_fr_009_a_blocked_prompt_is_not_processed(world: World) -> None:
    stop = world.hook("stop", SILENT)
    world.settings({"UserPromptSubmit": [world.hook("guard", BLOCK)], "Stop": [stop]})

    agent, result = await world.run(work())

    assert world.requests == 0
    assert len(world.log("guard")) == 1
    assert world.log("stop") == []
    assert not world.exists()
    assert errors(agent) == [REASON]
    assert said_in(transcript(agent), "assistant") == []
    assert (result.status, result.turns, result.text) == ("blocked", 0, None)


async def test_011_fr_010_a_blocked_prompt_is_erased(world: World) -> None:
    guard = world.hook("guard", f"[ -e asked ] && exit 0; touch asked; {BLOCK}")
    world.settings({"UserPromptSubmit": [guard]})
    agent, _ = await world.run([DONE], "The password is hunter2.")

    await agent.send_message("Say hello.")

    assert world.request(0) == [{"role": "user", "content": "Say hello."}]
    assert [run["prompt"] for run in world.log("guard")] == ["The password is hunter2.", "Say hello."]
    assert world.files_with("hunter2") == []
    assert [message.text for message in users(agent)] == ["Say hello."]
    assert said_in(transcript(agent), "user") == ["Say hello."]


async def test_011_fr_011_only_the_user_reads_why_a_prompt_was_blocked(world: World) -> None:
    guard = world.hook("guard", f"[ -e asked ] && exit 0; touch asked; {BLOCK}")
    world.settings({"UserPromptSubmit": [guard]})
    agent, _ = await world.run([DONE], "First.")

    await agent.send_message("Second.")

    assert not world.model_saw(REASON)
    assert len(world.log("guard")) == 2
    assert errors(agent) == [REASON]
    assert [line["content"] for line in records(agent, "error")] == [REASON]


async def test_011_fr_012_a_blocked_stop_keeps_the_agent_working(world: World) -> None:
    unfinished = f"[ -e made.txt ] && exit 0; {BLOCK}"
    world.settings({"Stop": [world.hook("complete", unfinished)]})

    agent, result = await world.run(["I stop here.", *work()])

    assert world.requests == 3
    assert [run["last_assistant_message"] for run in world.log("complete")] == ["I stop here.", DONE]
    assert world.exists()
    assert shape(agent) == [
        ("user", "text"), ("assistant", "text"), ("user", "text"), ("assistant", "tool"), ("assistant", "text"),
    ]  # fmt: skip
    assert [run["outcome"] for run in records(agent, "hook_run")] == ["block", "none"]
    assert (result.status, result.text) == ("completed", DONE)


async def test_011_fr_013_the_model_reads_why_it_may_not_stop(world: World) -> None:
    unfinished = f"[ -e asked ] && exit 0; touch asked; {BLOCK}"
    world.settings({"Stop": [world.hook("complete", unfinished)]})

    agent, _ = await world.run(["I stop here.", DONE])

    assert world.request(1)[1:] == [
        {"role": "assistant", "content": "I stop here."},
        {"role": "user", "content": wrapped("Stop", "complete", REASON)},
    ]
    assert len(world.log("complete")) == 2
    assert users(agent)[1].text == REASON
    assert said_in(transcript(agent), "user")[1] == REASON


@pytest.mark.parametrize("event", EVENTS)
async def test_011_fr_014_the_user_reads_of_an_error_that_blocks_nothing(world: World, event: str) -> None:
    world.settings({event: [world.hook("guard", "echo 'Out of order.' >&2; exit 1")]})

    agent, result = await world.run(work())

    assert not world.model_saw("Out of order.")
    assert len(world.log("guard")) == 1
    assert world.exists()
    assert errors(agent) == ["Out of order."]
    assert [line["content"] for line in records(agent, "error")] == ["Out of order."]
    assert (result.status, result.text) == ("completed", DONE)


@pytest.mark.parametrize("event", EVENTS)
async def test_011_fr_014_an_error_without_a_word_is_told_all_the_same(world: World, event: str) -> None:
    world.settings({event: [world.hook("guard", "exit 1")]})

    agent, _ = await world.run(work())

    assert errors(agent) == ["Hook execution failed"]


async def test_011_fr_015_the_same_script_means_something_else_at_each_event(world: World) -> None:
    """One script, exit 2, at all four events: who is stopped and who is told differs."""
    scripts = {event: world.hook(event, f"[ -e {event} ] && exit 0; touch {event}; {BLOCK}") for event in EVENTS}
    world.settings({event: [hook] for event, hook in scripts.items()})
    agent, first = await world.run([*work(), *work(), DONE], "First.")

    second = await agent.send_message("Second.")

    assert (first.status, second.status) == ("blocked", "completed")
    assert roles(world.request(0)) == ["user"]
    assert roles(world.request(1)) == UNDISTURBED
    assert roles(world.request(2)) == [*UNDISTURBED, "assistant", "user"]
    assert roles(world.request(3))[-3:] == ["assistant", "tool", "user"]
    assert {event: len(world.log(event)) for event in EVENTS} == {
        "UserPromptSubmit": 2, "PreToolUse": 2, "PostToolUse": 1, "Stop": 2,
    }  # fmt: skip
    assert world.exists()
    assert errors(agent) == [REASON]
    assert [block.success for block in tools(agent)] == [False, True]
    assert [message.text for message in users(agent)] == ["Second.", REASON, REASON]
    assert [run["outcome"] for run in records(agent, "hook_run")] == [
        "block", "none", "deny", "block", "none", "block", "none",
    ]  # fmt: skip
    assert notices(agent) == []


async def test_011_fr_015_a_hook_runs_at_its_own_event_only(world: World) -> None:
    world.settings({event: [world.hook(event, SILENT)] for event in EVENTS})

    await world.run(work())

    assert {event: [run["hook_event_name"] for run in world.log(event)] for event in EVENTS} == {
        event: [event] for event in EVENTS
    }
