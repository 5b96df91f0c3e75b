"""Stop hooks: how long they can keep an agent working, and when they are not asked at all."""

import itertools

import pytest

from tests.spec.world import (
    DONE,
    PROMPT,
    World,
    errors,
    make,
    notices,
    records,
    shape,
    tools,
    transcript,
    users,
    work,
    wrapped,
)
from wave_agent import ModelError
from wave_agent.testing import Reply

ALWAYS = "echo 'Go on.' >&2; exit 2"
ENDLESS = itertools.repeat(DONE)


async def test_the_ninth_block_for_one_prompt_ends_the_turn(world: World) -> None:
    world.settings({"Stop": [world.hook("complete", ALWAYS)]})

    agent, result = await world.run(ENDLESS)

    assert world.requests == 9
    assert [run["stop_block_count"] for run in world.log("complete")] == list(range(9))
    assert [run["stop_hook_active"] for run in world.log("complete")] == [False, *[True] * 8]
    assert [message.text for message in users(agent)] == [PROMPT, *["Go on."] * 8]
    assert len(notices(agent)) == 1
    assert "8 times" in notices(agent)[0]
    assert [line["content"] for line in records(agent, "notice")] == notices(agent)
    assert (result.status, result.turns) == ("stop_limit", 9)


@pytest.mark.parametrize("limit", [1, 3])
async def test_the_limit_is_a_setting(world: World, limit: int) -> None:
    world.settings({"Stop": [world.hook("complete", ALWAYS)]}, maxStopBlocks=limit)

    _, result = await world.run(ENDLESS)

    assert world.requests == limit + 1
    assert len(world.log("complete")) == limit + 1
    assert result.status == "stop_limit"


async def test_a_limit_of_0_is_none(world: World) -> None:
    until_twelve = f'[ "$(wc -l < complete.log)" -gt 12 ] && exit 0; {ALWAYS}'
    world.settings({"Stop": [world.hook("complete", until_twelve)]}, maxStopBlocks=0)

    _, result = await world.run(ENDLESS)

    assert world.requests == 13
    assert result.status == "completed"


async def test_blocks_are_counted_for_each_prompt_anew(world: World) -> None:
    odd = f"[ $(( $(wc -l < complete.log) % 2 )) -eq 0 ] && exit 0; {ALWAYS}"
    world.settings({"Stop": [world.hook("complete", odd)]}, maxStopBlocks=1)
    agent, first = await world.run(ENDLESS)

    second = await agent.send_message("Again.")

    assert [run["stop_block_count"] for run in world.log("complete")] == [0, 1, 0, 1]
    assert [run["stop_hook_active"] for run in world.log("complete")] == [False, True, False, True]
    assert (first.status, second.status) == ("completed", "completed")


async def test_tools_between_two_stops_do_not_reset_the_count(world: World) -> None:
    world.settings({"Stop": [world.hook("complete", ALWAYS)]}, maxStopBlocks=2)

    _, result = await world.run(["One.", *work(answer="Two."), "Three."])

    assert [run["stop_block_count"] for run in world.log("complete")] == [0, 1, 2]
    assert [run["last_assistant_message"] for run in world.log("complete")] == ["One.", "Two.", "Three."]
    assert result.status == "stop_limit"


async def test_a_hook_that_must_not_fail_and_fails_blocks_once_for_each_prompt(world: World) -> None:
    world.settings({"Stop": [world.hook("complete", "echo 'Out of order.' >&2; exit 1", onFailure="block")]})
    agent, first = await world.run(ENDLESS)

    second = await agent.send_message("Again.")

    assert world.request(1)[-1] == {"role": "user", "content": wrapped("Stop", "complete", "Out of order.")}
    assert world.requests == 4
    assert [run["stop_block_count"] for run in world.log("complete")] == [0, 0, 0, 0]
    assert [run["stop_hook_active"] for run in world.log("complete")] == [False, True, False, True]
    assert [message.text for message in users(agent)] == [PROMPT, "Out of order.", "Again.", "Out of order."]
    assert [run["let_through"] for run in records(agent, "hook_run")] == [False, True, False, True]
    assert [(one.status, one.hooks_failed_open) for one in (first, second)] == [("completed", 1), ("completed", 1)]
    assert errors(agent)


async def test_a_failure_does_not_use_up_the_blocks_of_other_hooks(world: World) -> None:
    broken = world.hook("broken", "exit 1", onFailure="block")
    late = world.hook("late", f'[ "$(wc -l < late.log)" -ne 2 ] && exit 0; {ALWAYS}')
    world.settings({"Stop": [broken, late]}, maxStopBlocks=1)

    _, result = await world.run(ENDLESS)

    assert [run["stop_block_count"] for run in world.log("late")] == [0, 0, 1]
    assert result.status == "completed"


async def test_context_of_a_stop_hook_waits_for_the_next_prompt(world: World) -> None:
    output = {"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "Two tests are red."}}
    world.settings({"Stop": [world.says("tests", output)]})
    agent, result = await world.run(ENDLESS)
    assert (world.requests, result.status) == (1, "completed")
    assert shape(agent) == [("user", "text"), ("assistant", "text")]

    await agent.send_message("And now?")

    assert world.request(1)[2:] == [
        {"role": "user", "content": "And now?"},
        {"role": "user", "content": wrapped("Stop", "tests", "Two tests are red.")},
    ]
    assert [message.text for message in users(agent)] == [PROMPT, "And now?", "Two tests are red."]


async def test_continue_false_ends_the_turn_even_against_a_block(world: World) -> None:
    stop = world.says("stops", {"continue": False, "stopReason": "Enough."})
    world.settings({"Stop": [world.hook("blocks", ALWAYS), stop]})

    agent, result = await world.run(ENDLESS)

    assert world.requests == 1
    assert users(agent)[0].text == PROMPT
    assert len(users(agent)) == 1
    assert "Enough." in notices(agent)
    assert result.status == "stopped"


# ---------------------------------------------------------------------------------------------------- the turn's limit


async def test_at_the_limit_of_turns_the_tools_have_run_and_no_stop_hook_does(world: World) -> None:
    world.settings({"Stop": [world.hook("complete", ALWAYS)]})

    agent, result = await world.run([Reply(tool_calls=[make()])], max_turns=1)

    assert world.requests == 1
    assert world.log("complete") == []
    assert world.exists()
    assert tools(agent)[0].success is True
    assert len(notices(agent)) == 1
    assert "Stopped after 1 " in notices(agent)[0]
    assert (result.status, result.turns) == ("max_turns", 1)


async def test_a_forced_continuation_counts_as_a_turn(world: World) -> None:
    world.settings({"Stop": [world.hook("complete", ALWAYS)]})

    agent, result = await world.run(ENDLESS, max_turns=3)

    assert world.requests == 3
    assert [message.text for message in users(agent)][:3] == [PROMPT, "Go on.", "Go on."]
    assert (result.status, result.turns) == ("max_turns", 3)


async def test_an_answer_within_the_limit_completes(world: World) -> None:
    world.settings({"Stop": [world.hook("complete", "exit 0")]})

    _, result = await world.run(work(), max_turns=2)

    assert result.status == "completed"


async def test_the_limit_is_one_for_each_prompt(world: World) -> None:
    agent, first = await world.run(ENDLESS, max_turns=1)

    second = await agent.send_message("Again.")

    assert (first.status, second.status) == ("completed", "completed")


# ------------------------------------------------------------------------------------------------------- model errors


@pytest.mark.parametrize("reply", [ModelError("The server is down."), Reply("Half", error=ModelError("It broke off."))])
async def test_after_an_error_of_the_model_no_stop_hook_runs(world: World, reply: ModelError | Reply) -> None:
    world.settings({"Stop": [world.hook("complete", ALWAYS)]})

    agent, result = await world.run([reply, DONE, DONE])

    assert world.requests == 1
    assert world.log("complete") == []
    told = "It broke off." if isinstance(reply, Reply) else "The server is down."
    assert errors(agent) == [told]
    assert [line["content"] for line in records(agent, "error")] == [told]
    assert (result.status, result.error) == ("error", told)


async def test_after_an_error_of_the_model_the_next_prompt_works_and_does_not_show_it(world: World) -> None:
    agent, _ = await world.run([Reply("Half", error=ModelError("It broke off.")), DONE])

    result = await agent.send_message("Again.")

    assert [message["content"] for message in world.request(1)] == [PROMPT, "Half", "Again."]
    assert not world.model_saw("It broke off.")
    assert [line["type"] for line in transcript(agent)].count("assistant") == 2
    assert (result.status, result.text) == ("completed", DONE)
