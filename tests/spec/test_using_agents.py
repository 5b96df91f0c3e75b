"""Using an agent from a program: several prompts at once, streams, closing."""

import asyncio
import gc
from contextlib import aclosing

import pytest

from tests.spec.world import (
    DONE,
    World,
    errors,
    is_gone,
    make,
    notices,
    roles,
    shape,
    tools,
    users,
    work,
)
from tests.waiting import number_in, until
from wave_agent import AgentClosedError, Message, run
from wave_agent.events import (
    HookFinished,
    HookStarted,
    SessionStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from wave_agent.testing import Reply, ScriptedModel, call

HANGS = "echo $$ > hook.pid; sleep 600"


# ------------------------------------------------------------------------------------------------------------ at once


async def test_two_prompts_at_once_run_one_after_the_other(world: World) -> None:
    gate = asyncio.Event()
    agent = await world.agent([Reply("One.", gate=gate), "Two."])
    first = asyncio.create_task(agent.send_message("First."))
    await until(lambda: world.requests == 1)
    second = asyncio.create_task(agent.send_message("Second."))
    await asyncio.sleep(0)
    assert [message.text for message in users(agent)] == ["First."]

    gate.set()
    results = await asyncio.gather(first, second)

    assert [message["content"] for message in world.request(1)] == ["First.", "One.", "Second."]
    assert [result.text for result in results] == ["One.", "Two."]
    turns = [event for event in world.events if isinstance(event, TurnStarted | TurnEnded)]
    assert [type(event) for event in turns] == [TurnStarted, TurnEnded] * 2
    assert [message.text for message in agent.messages] == ["First.", "One.", "Second.", "Two."]


async def test_an_interrupt_ends_the_prompt_that_runs_and_not_the_one_that_waits(world: World) -> None:
    agent = await world.agent([Reply("One.", gate=asyncio.Event()), "Two."])
    first = asyncio.create_task(agent.send_message("First."))
    await until(lambda: world.requests == 1)
    second = asyncio.create_task(agent.send_message("Second."))

    agent.interrupt()
    results = await asyncio.gather(first, second)

    assert [result.status for result in results] == ["interrupted", "completed"]


async def test_each_result_has_the_hooks_of_its_own_prompt(world: World) -> None:
    world.settings({"Stop": [world.hook("complete", "exit 0")]})
    agent = await world.agent(["One.", "Two."])

    results = [await agent.send_message("First."), await agent.send_message("Second.")]

    assert [len(result.hooks) for result in results] == [1, 1]
    assert len(agent.hook_runs) == 2


# ------------------------------------------------------------------------------------------------------------- streams


async def test_a_stream_yields_what_happens_in_its_order(world: World) -> None:
    world.settings({"PreToolUse": [world.hook("guard", "exit 0")]})
    agent = await world.agent([Reply(tool_calls=[make()]), "All done."])

    kinds = [type(event) async for event in agent.stream("First.")]

    assert kinds == [
        SessionStarted, TurnStarted, ToolStarted, HookStarted, HookFinished, ToolFinished, TextDelta, TextDelta,
        TurnEnded,
    ]  # fmt: skip
    assert world.exists()
    assert shape(agent) == [("user", "text"), ("assistant", "tool"), ("assistant", "text")]


async def test_a_stream_of_a_blocked_prompt_ends_with_its_status(world: World) -> None:
    world.settings({"UserPromptSubmit": [world.hook("guard", "echo no >&2; exit 2")]})
    agent = await world.agent([])

    events = [event async for event in agent.stream("First.")]

    assert events[-1] == TurnEnded(status="blocked")
    assert errors(agent) == ["no"]


@pytest.mark.parametrize("way", ["closed", "left"])
async def test_leaving_a_stream_early_interrupts_the_turn(world: World, way: str) -> None:
    agent = await world.agent([Reply(tool_calls=[call("Bash", command=HANGS)]), DONE])

    async def leave() -> None:
        async for event in agent.stream("First."):
            if isinstance(event, ToolStarted):
                await number_in(world.project / "hook.pid")
                return

    async def close() -> None:
        async with aclosing(agent.stream("First.")) as events:  # pyright: ignore[reportArgumentType]
            async for event in events:
                if isinstance(event, ToolStarted):
                    await number_in(world.project / "hook.pid")
                    return

    await (leave() if way == "left" else close())
    process = await number_in(world.project / "hook.pid")
    if way == "left":  # the loop closes what nobody holds any more
        gc.collect()
        await until(lambda: is_gone(process))

    assert is_gone(process)
    after = await agent.send_message("Second.")
    assert [block.success for block in tools(agent)] == [False]
    assert roles(world.request(1)) == ["user", "assistant", "tool", "user"]
    assert after.status == "completed"


async def test_two_streams_at_once_each_yield_their_own_turn(world: World) -> None:
    gate = asyncio.Event()
    agent = await world.agent([Reply("One.", gate=gate), "Two."])

    async def collect(prompt: str) -> list[object]:
        return [event async for event in agent.stream(prompt)]

    first = asyncio.create_task(collect("First."))
    await until(lambda: world.requests == 1)
    second = asyncio.create_task(collect("Second."))
    await asyncio.sleep(0)
    gate.set()
    streams = await asyncio.gather(first, second)

    for prompt, events in zip(("First.", "Second."), streams, strict=True):
        assert [event.prompt for event in events if isinstance(event, TurnStarted)] == [prompt]
        assert len([event for event in events if isinstance(event, TurnEnded)]) == 1


# ------------------------------------------------------------------------------------------------------------- closing


async def test_closing_twice_is_fine(world: World) -> None:
    agent, _ = await world.run([DONE])

    await agent.close()
    await agent.close()

    assert world.model.closed


async def test_a_closed_agent_takes_no_prompt_and_keeps_its_messages(world: World) -> None:
    agent, _ = await world.run([DONE])
    await agent.close()

    with pytest.raises(AgentClosedError):
        await agent.send_message("Again.")
    with pytest.raises(AgentClosedError):
        async for _event in agent.stream("Again."):
            pass

    assert world.requests == 1
    assert len(agent.messages) == 2


async def test_closing_interrupts_what_runs_and_refuses_what_waits(world: World) -> None:
    agent = await world.agent([Reply(tool_calls=[call("Bash", command=HANGS)])])
    first = asyncio.create_task(agent.send_message("First."))
    process = await number_in(world.project / "hook.pid")
    second = asyncio.create_task(agent.send_message("Second."))
    await asyncio.sleep(0)

    await agent.close()

    assert is_gone(process)
    assert (await first).status == "interrupted"
    with pytest.raises(AgentClosedError):
        await second
    assert [message.text for message in users(agent)] == ["First."]


async def test_an_agent_closes_at_the_end_of_its_block(world: World) -> None:
    async with await world.agent([DONE]) as agent:
        await agent.send_message("First.")

    with pytest.raises(AgentClosedError):
        await agent.send_message("Second.")


async def test_callbacks_hear_of_every_change(world: World) -> None:
    world.settings({"UserPromptSubmit": [world.hook("guard", "echo no >&2; exit 2")]})
    seen: list[list[Message]] = []
    loading: list[bool] = []
    callbacks = {"on_messages_change": seen.append, "on_loading_change": loading.append}

    agent, _ = await world.run([], "First.", callbacks=callbacks)

    assert [len(messages) for messages in seen] == [1, 0, 1]
    assert seen[-1] == agent.messages
    assert loading == [True, False]


def test_one_prompt_can_be_run_without_a_loop(world_without_loop: World) -> None:
    world = world_without_loop
    world.settings({"UserPromptSubmit": [world.hook("facts", "echo 'It is Friday.'")]})
    model = ScriptedModel([DONE])

    result = run("First.", workdir=world.project, model_client=model, trust=True)

    assert [message["content"] for message in model.requests[0].messages][1] == "First."
    assert (result.status, result.text, model.closed) == ("completed", DONE, True)


async def test_hooks_can_be_given_in_code(world: World) -> None:
    group = {"matcher": "Bash", "hooks": [world.hook("guard", "echo no >&2; exit 2")]}

    agent, _ = await world.run(work(), hooks={"PreToolUse": [group]}, trust=False)

    assert not world.exists()
    assert tools(agent)[0].result == "no"
    assert notices(agent) == []
