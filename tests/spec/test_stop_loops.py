"""Stop hooks: how long they can keep an agent working, and when they are not asked at all."""

import itertools
import json

import pytest

from tests.spec.world import (
    DONE,
    MADE,
    PROMPT,
    World,
    errors,
    make,
    notices,
    records,
    tools,
    transcript,
    users,
    work,
    wrapped,
)
from wave_agent import ModelError
from wave_agent.testing import Reply, call

ALWAYS = "echo 'Go on.' >&2; exit 2"
ENDLESS = itertools.repeat(DONE)


async def test_the_ninth_stop_block_for_one_prompt_ends_the_turn(world: World) -> None:
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
async def test_the_limit_of_stop_blocks_is_a_setting(world: World, limit: int) -> None:
    world.settings({"Stop": [world.hook("complete", ALWAYS)]}, maxStopBlocks=limit)

    _, result = await world.run(ENDLESS)

    assert world.requests == limit + 1
    assert len(world.log("complete")) == limit + 1
    assert result.status == "stop_limit"


async def test_a_limit_of_0_stop_blocks_means_no_limit(world: World) -> None:
    until_twelve = f'[ "$(wc -l < complete.log)" -gt 12 ] && exit 0; {ALWAYS}'
    world.settings({"Stop": [world.hook("complete", until_twelve)]}, maxStopBlocks=0)

    _, result = await world.run(ENDLESS)

    assert world.requests == 13
    assert result.status == "completed"


async def test_stop_blocks_are_counted_anew_for_each_prompt(world: World) -> None:
    odd = f"[ $(( $(wc -l < complete.log) % 2 )) -eq 0 ] && exit 0; {ALWAYS}"
    world.settings({"Stop": [world.hook("complete", odd)]}, maxStopBlocks=1)
    agent, first = await world.run(ENDLESS)

    second = await agent.send_message("Again.")

    assert [run["stop_block_count"] for run in world.log("complete")] == [0, 1, 0, 1]
    assert [run["stop_hook_active"] for run in world.log("complete")] == [False, True, False, True]
    assert (first.status, second.status) == ("completed", "completed")


async def test_a_tool_call_between_two_stop_blocks_resets_the_row_but_not_the_total(world: World) -> None:
    world.settings({"Stop": [world.hook("complete", ALWAYS)]}, maxStopBlocks=2)

    _, result = await world.run(["One.", *work(answer="Two."), "Three.", "Four."])

    assert [run["stop_block_count"] for run in world.log("complete")] == [0, 1, 2, 3]
    assert [run["last_assistant_message"] for run in world.log("complete")] == ["One.", "Two.", "Three.", "Four."]
    assert result.status == "stop_limit"


async def test_ten_times_the_limit_of_stop_blocks_ends_the_turn_whatever_the_tools_do(world: World) -> None:
    world.settings({"Stop": [world.hook("complete", ALWAYS)]}, maxStopBlocks=1)

    agent, result = await world.run(itertools.chain.from_iterable(work(make(f"{number}.txt")) for number in range(20)))

    assert [run["stop_block_count"] for run in world.log("complete")] == list(range(11))
    assert "10 times" in notices(agent)[0]
    assert result.status == "stop_limit"


async def test_a_turn_whose_stop_gate_stays_red_is_never_completed(world: World) -> None:
    tests = world.hook("tests", "echo 'test_sum FAILED'; echo 'make: Error 1' >&2; exit 1", onFailure="block")
    world.settings({"Stop": [tests]}, maxStopBlocks=2)
    agent, first = await world.run(ENDLESS)

    second = await agent.send_message("Again.")

    told = "Hook tests failed with exit code 1\ntest_sum FAILED\nmake: Error 1"
    assert world.request(1)[-1] == {"role": "user", "content": wrapped("Stop", "tests", told)}
    assert world.requests == 6
    assert [run["stop_block_count"] for run in world.log("tests")] == [0, 1, 2, 0, 1, 2]
    assert [message.text for message in users(agent)] == [PROMPT, told, told, "Again.", told, told]
    assert not any(run["let_through"] for run in records(agent, "hook_run"))
    for result in (first, second):
        assert (result.status, result.hooks_failed_open) == ("stop_limit", 0)
        assert result.error == "The turn has ended, but hook tests did not pass."
    assert errors(agent)[-1] == second.error


async def test_a_turn_whose_stop_gate_turns_green_completes(world: World) -> None:
    world.settings({"Stop": [world.hook("tests", f"[ -e {MADE} ] || exit 1", onFailure="block")]})

    _, result = await world.run([DONE, *work()])

    assert world.request(1)[-1]["content"] == wrapped("Stop", "tests", "Hook tests failed with exit code 1")
    assert [run["stop_block_count"] for run in world.log("tests")] == [0, 1]
    assert (result.status, result.error) == ("completed", None)


BROKEN = {
    "killed": "kill -9 $$",
    "not found": "exit 127",
    "not executable": "exit 126",
    "not JSON": "echo '{oops'",
    "unreadable": """echo '{"decision": "Block"}'""",
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN.keys())
async def test_a_broken_stop_gate_blocks_once_for_each_prompt_and_the_turn_is_never_completed(
    world: World, body: str
) -> None:
    world.settings({"Stop": [world.hook("tests", body, onFailure="block")]})
    agent, first = await world.run(ENDLESS)

    second = await agent.send_message("Again.")

    assert world.requests == 4
    assert [run["stop_block_count"] for run in world.log("tests")] == [0, 0, 0, 0]
    assert [run["stop_hook_active"] for run in world.log("tests")] == [False, True, False, True]
    assert not any(run["let_through"] for run in records(agent, "hook_run"))
    for result in (first, second):
        assert (result.status, result.hooks_failed_open) == ("stop_limit", 0)
        assert "hook tests" in (result.error or "")


async def test_a_turn_whose_broken_stop_gate_the_model_repairs_completes(world: World) -> None:
    world.settings({"Stop": [world.hook("gate", f"./{MADE}", onFailure="block")]})

    fix = call("Bash", command=f"printf '#!/bin/sh\\n' > {MADE}; chmod +x {MADE}")
    _, result = await world.run([DONE, *work(fix)])

    assert "No such file" in world.request(1)[-1]["content"]
    assert [run["stop_block_count"] for run in world.log("gate")] == [0, 0]
    assert (world.requests, result.status) == (3, "completed")


async def test_at_the_limit_of_turns_a_red_stop_gate_does_not_change_the_status(world: World) -> None:
    world.settings({"Stop": [world.hook("tests", "exit 1", onFailure="block")]})

    _, result = await world.run(ENDLESS, max_turns=2)

    assert (result.status, result.turns) == ("max_turns", 2)


async def test_each_broken_stop_hook_blocks_once(world: World) -> None:
    first = world.hook("first", "kill -9 $$", onFailure="block")
    late = world.hook("late", '[ "$(wc -l < late.log)" -ne 2 ] && exit 0; kill -9 $$', onFailure="block")
    world.settings({"Stop": [first, late]})

    _, result = await world.run(ENDLESS)

    assert world.requests == 3
    assert "late" in world.request(2)[-1]["content"]
    assert result.error == "The turn has ended, but hook first did not pass."


async def test_a_broken_stop_hook_does_not_use_up_the_blocks_of_other_hooks(world: World) -> None:
    broken = world.hook("broken", '[ "$(wc -l < broken.log)" -gt 1 ] && exit 0; exit 127', onFailure="block")
    late = world.hook("late", f'[ "$(wc -l < late.log)" -ne 2 ] && exit 0; {ALWAYS}')
    world.settings({"Stop": [broken, late]}, maxStopBlocks=1)

    _, result = await world.run(ENDLESS)

    assert [run["stop_block_count"] for run in world.log("late")] == [0, 0, 1]
    assert result.status == "completed"


async def test_context_of_a_stop_hook_keeps_the_agent_working(world: World) -> None:
    output = {"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "Two tests are red."}}
    once = f"[ -e told ] || echo '{json.dumps(output)}'; touch told"
    world.settings({"Stop": [world.hook("tests", once)]})

    agent, result = await world.run([DONE, DONE])

    assert world.request(1)[-1] == {"role": "user", "content": wrapped("Stop", "tests", "Two tests are red.")}
    assert [run["stop_block_count"] for run in world.log("tests")] == [0, 1]
    assert [message.text for message in users(agent)] == [PROMPT, "Two tests are red."]
    assert result.status == "completed"


async def test_endless_context_of_a_stop_hook_is_limited_like_blocks(world: World) -> None:
    world.settings({"Stop": [world.says("tests", {"additionalContext": "One more."})]}, maxStopBlocks=2)

    agent, result = await world.run(ENDLESS)

    assert world.requests == 3
    assert [message.text for message in users(agent)] == [PROMPT, "One more.", "One more."]
    assert result.status == "stop_limit"


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


async def test_a_continuation_that_a_stop_hook_forces_is_a_turn(world: World) -> None:
    world.settings({"Stop": [world.hook("complete", ALWAYS)]})

    agent, result = await world.run(ENDLESS, max_turns=3)

    assert world.requests == 3
    assert [message.text for message in users(agent)][:3] == [PROMPT, "Go on.", "Go on."]
    assert (result.status, result.turns) == ("max_turns", 3)


async def test_an_answer_within_the_limit_of_turns_completes(world: World) -> None:
    world.settings({"Stop": [world.hook("complete", "exit 0")]})

    _, result = await world.run(work(), max_turns=2)

    assert result.status == "completed"


async def test_the_limit_of_turns_is_for_each_prompt(world: World) -> None:
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
