"""Specification 011: its user stories, scenario by scenario, and its edge cases."""

from pathlib import Path

import pytest

from tests.spec.world import (
    DONE,
    EVENTS,
    PROMPT,
    World,
    errors,
    is_gone,
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
from tests.waiting import number_in

REASON = "Not like this."
BLOCK = f"echo '{REASON}' >&2; exit 2"
ONCE = f"[ -e asked ] && exit 0; touch asked; {BLOCK}"
OTHER_EVENTS = ["PreToolUse", "PostToolUse", "Stop"]
UNDISTURBED = [("user", "text"), ("assistant", "tool"), ("assistant", "text")]
LONG = 60_000
FLOOD = f"head -c {LONG} /dev/zero | tr '\\0' x"


# ------------------------------------------------------------------------------------------------------- 1: success


async def test_011_us1_scenario_1_stdout_of_a_prompt_hook_becomes_context(world: World) -> None:
    world.settings({"UserPromptSubmit": [world.hook("facts", "echo 'The build is green.'")]})

    agent, result = await world.run([DONE])

    assert world.request(0)[1] == {
        "role": "user",
        "content": wrapped("UserPromptSubmit", "facts", "The build is green."),
    }
    assert len(world.log("facts")) == 1
    assert [message.text for message in users(agent)] == [PROMPT, "The build is green."]
    assert said_in(transcript(agent), "user") == [PROMPT, "The build is green."]
    assert result.status == "completed"


@pytest.mark.parametrize("event", OTHER_EVENTS)
async def test_011_us1_scenario_2_stdout_of_any_other_hook_is_not_seen(world: World, event: str) -> None:
    world.settings({event: [world.hook("chatty", "echo 'The build is green.'")]})

    agent, _ = await world.run(work())

    assert not world.model_saw("The build is green.")
    assert len(world.log("chatty")) == 1
    assert world.exists()
    assert shape(agent) == UNDISTURBED
    assert [run["outcome"] for run in records(agent, "hook_run")] == ["none"]


@pytest.mark.parametrize("event", EVENTS)
async def test_011_us1_scenario_3_stderr_of_a_success_is_ignored(world: World, event: str) -> None:
    world.settings({event: [world.hook("chatty", "echo 'just a warning' >&2; exit 0")]})

    agent, result = await world.run(work())

    assert not world.model_saw("just a warning")
    assert len(world.log("chatty")) == 1
    assert world.exists()
    assert shape(agent) == UNDISTURBED
    assert "just a warning" not in Path(agent.transcript_path).read_text()
    assert result.status == "completed"


# ------------------------------------------------------------------------------------------------------ 2: blocking


async def test_011_us2_scenario_1_a_tool_call_is_blocked(world: World) -> None:
    world.settings({"PreToolUse": [world.hook("guard", BLOCK)]})

    agent, result = await world.run(work())

    assert REASON in world.request(1)[2]["content"]
    assert len(world.log("guard")) == 1
    assert not world.exists()
    assert tools(agent)[0].result == REASON
    assert results_in(transcript(agent))[0]["content"] == REASON
    assert (result.status, result.text) == ("completed", DONE)


async def test_011_us2_scenario_2_feedback_comes_after_the_tool(world: World) -> None:
    world.settings({"PostToolUse": [world.hook("review", BLOCK)]})

    agent, result = await world.run(work())

    assert world.request(1)[-1] == {"role": "user", "content": wrapped("PostToolUse", "review", REASON)}
    assert world.log("review")[0]["tool_input"] == {"command": "touch made.txt"}
    assert world.exists()
    assert users(agent)[-1].text == REASON
    assert said_in(transcript(agent), "user")[-1] == REASON
    assert (result.status, result.text) == ("completed", DONE)


async def test_011_us2_scenario_3_a_prompt_is_blocked_and_erased(world: World) -> None:
    world.settings({"UserPromptSubmit": [world.hook("guard", BLOCK)]})

    agent, result = await world.run([DONE], "The password is hunter2.")

    assert world.requests == 0
    assert world.log("guard")[0]["prompt"] == "The password is hunter2."
    assert world.files_with("hunter2") == []
    assert (shape(agent), errors(agent)) == ([("assistant", "error")], [REASON])
    assert said_in(transcript(agent), "user") == []
    assert result.status == "blocked"


async def test_011_us2_scenario_4_a_stop_is_blocked(world: World) -> None:
    world.settings({"Stop": [world.hook("complete", ONCE)]})

    agent, result = await world.run(["Ready.", DONE])

    assert world.request(1)[-1] == {"role": "user", "content": wrapped("Stop", "complete", REASON)}
    assert len(world.log("complete")) == 2
    assert [message.text for message in users(agent)] == [PROMPT, REASON]
    assert said_in(transcript(agent), "user") == [PROMPT, REASON]
    assert (result.status, result.text) == ("completed", DONE)


# -------------------------------------------------------------------------------------------------- 3: not blocking


@pytest.mark.parametrize("event", EVENTS)
async def test_011_us3_scenario_1_stderr_is_shown_and_the_work_goes_on(world: World, event: str) -> None:
    world.settings({event: [world.hook("guard", "echo 'Out of order.' >&2; exit 1")]})

    agent, result = await world.run(work())

    assert not world.model_saw("Out of order.")
    assert len(world.log("guard")) == 1
    assert world.exists()
    assert errors(agent) == ["Out of order."]
    assert [line["content"] for line in records(agent, "error")] == ["Out of order."]
    assert result.status == "completed"


@pytest.mark.parametrize("event", EVENTS)
async def test_011_us3_scenario_2_stdout_of_a_failure_is_ignored(world: World, event: str) -> None:
    world.settings({event: [world.hook("guard", "echo 'half the truth'; exit 1")]})

    agent, result = await world.run(work())

    assert not world.model_saw("half the truth")
    assert len(world.log("guard")) == 1
    assert world.exists()
    assert errors(agent) == ["Hook execution failed"]
    assert "half the truth" not in Path(agent.transcript_path).read_text()
    assert result.status == "completed"


# -------------------------------------------------------------------------------------------------------- edge cases


async def test_011_edge_stdout_and_stderr_with_exit_0_only_stdout_counts(world: World) -> None:
    world.settings({"UserPromptSubmit": [world.hook("facts", "echo 'a fact'; echo 'a warning' >&2")]})

    agent, _ = await world.run([DONE])

    assert world.request(0)[1]["content"] == wrapped("UserPromptSubmit", "facts", "a fact")
    assert not world.model_saw("a warning")
    assert users(agent)[1].text == "a fact"
    assert errors(agent) == []


@pytest.mark.parametrize("event", EVENTS)
async def test_011_edge_a_success_without_output_adds_nothing(world: World, event: str) -> None:
    world.settings({event: [world.hook("quiet", "exit 0")]})

    agent, _ = await world.run(work())

    assert roles(world.request(1)) == ["user", "assistant", "tool"]
    assert len(world.log("quiet")) == 1
    assert shape(agent) == UNDISTURBED


@pytest.mark.parametrize("event", EVENTS)
async def test_011_edge_a_block_without_output_still_blocks(world: World, event: str) -> None:
    world.settings({event: [world.hook("quiet", "[ -e asked ] && exit 0; touch asked; exit 2")]})

    agent, _ = await world.run([*work(), DONE])

    told = "Blocked by hook quiet"
    assert world.model_saw(told) is (event != "UserPromptSubmit")
    assert world.log("quiet")
    assert world.exists() is (event not in ("UserPromptSubmit", "PreToolUse"))
    assert told in str(agent.messages)
    assert records(agent, "hook_run")[0]["reason"] == told


@pytest.mark.parametrize("event", EVENTS)
async def test_011_edge_a_hook_that_hangs_is_ended_and_told(world: World, event: str) -> None:
    hanging = "echo 'half a fact'; sleep 600 & echo $! > child.pid; echo $$ > hook.pid; wait"
    world.settings({event: [world.hook("slow", hanging, timeout=1.5)]})

    agent, result = await world.run(work())

    assert not world.model_saw("half a fact")
    assert is_gone(await number_in(world.project / "hook.pid"))
    assert is_gone(await number_in(world.project / "child.pid"))
    assert world.exists()
    assert len(errors(agent)) == 1
    assert "slow timed out" in errors(agent)[0]
    assert [(run["exit_code"], run["failure"]) for run in records(agent, "hook_run")] == [(None, "timeout")]
    assert (result.status, result.hooks_failed_open) == ("completed", 1)


async def test_011_edge_a_hook_that_hangs_and_must_not_fail_blocks(world: World) -> None:
    world.settings({"PreToolUse": [world.hook("slow", "sleep 600", timeout=0.3, onFailure="block")]})

    agent, result = await world.run(work())

    assert "timed out" in world.request(1)[2]["content"]
    assert not world.exists()
    assert tools(agent)[0].error == "Hook blocked tool execution"
    assert result.hooks_failed_open == 0


async def test_011_edge_a_long_reason_is_cut_with_a_note_and_kept_whole(world: World) -> None:
    world.settings({"PreToolUse": [world.hook("guard", f"{FLOOD} >&2; exit 2")]})

    agent, _ = await world.run(work())

    told = world.request(1)[2]["content"]
    assert 10_000 < len(told) < 10_500
    assert f"10,000 of {LONG:,} characters; the whole is in " in told
    assert not world.exists()
    kept = tools(agent)[0].result or ""
    whole = Path(kept.rpartition("the whole is in ")[2].rstrip("]"))
    assert whole.read_text() == "x" * LONG
    assert world.home in whole.parents


async def test_011_edge_a_flood_beyond_what_is_kept_still_blocks(world: World) -> None:
    flood = "head -c 3000000 /dev/zero | tr '\\0' x"
    world.settings({"PreToolUse": [world.hook("guard", f"{flood}; {flood} >&2; exit 2")]})

    agent, _ = await world.run(work())

    assert len(world.request(1)[2]["content"]) < 10_500
    assert not world.exists()
    assert tools(agent)[0].success is False


async def test_011_edge_long_context_is_cut_with_a_note_and_the_path_of_the_whole(world: World) -> None:
    world.settings({"UserPromptSubmit": [world.hook("facts", FLOOD)]})

    agent, _ = await world.run([DONE])

    told = world.request(0)[1]["content"]
    assert 10_000 < len(told) < 10_500
    assert f"10,000 of {LONG:,} characters" in told
    assert "the whole is in " in told
    assert Path(users(agent)[1].text.rpartition("the whole is in ")[2].rstrip("]")).read_text() == "x" * LONG


@pytest.mark.parametrize("event", EVENTS)
async def test_011_edge_stderr_that_is_no_text_blocks_and_is_shown_as_far_as_it_goes(world: World, event: str) -> None:
    binary = r"printf 'before \xff\xfe\x00 after' >&2"
    world.settings({event: [world.hook("guard", f"[ -e asked ] && exit 0; touch asked; {binary}; exit 2")]})

    agent, _ = await world.run([*work(), DONE])

    assert world.model_saw("before ��") is (event != "UserPromptSubmit")
    assert not world.model_saw("\0")
    assert world.exists() is (event not in ("UserPromptSubmit", "PreToolUse"))
    assert "before ��" in str(agent.messages)
    assert "before ��" in Path(agent.transcript_path).read_text()


async def test_011_edge_terminal_escapes_in_stderr_do_not_reach_the_model(world: World) -> None:
    world.settings({"PreToolUse": [world.hook("guard", r"printf '\x1b[31mred\x1b[0m\x1b]0;title\x07' >&2; exit 2")]})

    await world.run(work())

    assert world.request(1)[2]["content"] == refused("guard", "red")
