"""An agent's own tools, hooks, approver and model work for a turn: they cannot wait for the end of it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from tests.spec.world import DONE, World, errors, tools, users, work
from tests.waiting import until
from wave_agent import Agent, Allow, ArgumentError, Deny, InsideTurnError, PermissionRequest, Tool, tool
from wave_agent.events import Event, TurnEnded
from wave_agent.hooks import HookCall
from wave_agent.models.base import Delta, ModelRequest, Text
from wave_agent.testing import Reply, call

PATIENCE = 20.0
"""Seconds after which something hangs."""

Use = Callable[[Agent], Coroutine[Any, Any, Any]]


async def read(agent: Agent) -> list[Event]:
    return [event async for event in agent.stream("Again.")]


USES: dict[str, Use] = {
    "send_message": lambda agent: agent.send_message("Again."),
    "stream": read,
    "compact": lambda agent: agent.compact(),
    "undo": lambda agent: agent.undo(),
    "close": lambda agent: agent.close(),
}


class Caller:
    """Uses its agent from wherever it is called, and keeps what that raised."""

    def __init__(self, use: Use) -> None:
        self.use = use
        self.agent: Agent | None = None
        self.raised: list[BaseException] = []

    async def __call__(self, *_: object) -> None:
        assert self.agent is not None
        try:
            await self.use(self.agent)
        except Exception as error:
            self.raised.append(error)

    def from_thread(self, loop: asyncio.AbstractEventLoop) -> None:
        assert self.agent is not None
        try:
            asyncio.run_coroutine_threadsafe(self.use(self.agent), loop).result(PATIENCE)
        except Exception as error:
            self.raised.append(error)


def looked_up(caller: Caller) -> Tool:
    @tool(name="look", reads_only=True)
    async def look() -> str:
        """Looks."""
        await caller()
        return "looked"

    return look


def refused(caller: Caller, what: str) -> bool:
    (error,) = caller.raised
    assert isinstance(error, InsideTurnError)
    assert str(error).startswith(f"{what} was called by code that this agent runs in its turn")
    return True


@pytest.mark.parametrize("what", USES)
async def test_a_tool_that_uses_its_own_agent_is_refused_at_once(world: World, what: str) -> None:
    caller = Caller(USES[what])
    agent = caller.agent = await world.agent(work(call("look")), tools=[looked_up(caller)])

    result = await asyncio.wait_for(agent.send_message("First."), PATIENCE)

    assert refused(caller, what)
    assert (result.status, tools(agent)[0].result) == ("completed", "looked")
    assert [message.text for message in users(agent)] == ["First."]


async def test_a_tool_that_uses_its_own_agent_is_refused_beside_tools_that_run_at_the_same_time(world: World) -> None:
    caller = Caller(USES["send_message"])
    agent = caller.agent = await world.agent(work(call("look"), call("Glob", pattern="*")), tools=[looked_up(caller)])

    await asyncio.wait_for(agent.send_message("First."), PATIENCE)

    assert refused(caller, "send_message")


async def test_the_refusal_of_a_tool_that_uses_its_own_agent_is_the_result_of_its_call(world: World) -> None:
    agents: list[Agent] = []

    @tool
    async def ask_again() -> str:
        """Asks."""
        return str(await asyncio.gather(agents[0].send_message("Again.")))

    agents.append(await world.agent(work(call("ask_again")), tools=[ask_again]))

    await asyncio.wait_for(agents[0].send_message("First."), PATIENCE)

    assert "InsideTurnError: send_message was called by code" in str(world.request(1)[-1]["content"])


async def test_a_tool_that_is_a_plain_function_and_uses_its_own_agent_is_refused(world: World) -> None:
    caller, loop = Caller(USES["send_message"]), asyncio.get_running_loop()

    @tool
    def look() -> str:
        """Looks."""
        caller.from_thread(loop)
        return "looked"

    agent = caller.agent = await world.agent(work(call("look")), tools=[look])

    await asyncio.wait_for(agent.send_message("First."), PATIENCE)

    assert refused(caller, "send_message")


@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_a_hook_function_that_uses_its_own_agent_is_refused(world: World, kind: str) -> None:
    caller, loop = Caller(USES["send_message"]), asyncio.get_running_loop()

    async def guard(_: HookCall) -> None:
        await caller()

    def plain_guard(_: HookCall) -> None:
        caller.from_thread(loop)

    hooks = {"PreToolUse": [guard if kind == "async" else plain_guard]}
    agent = caller.agent = await world.agent(work(), hooks=hooks)

    result = await asyncio.wait_for(agent.send_message("First."), PATIENCE)

    assert refused(caller, "send_message")
    assert world.exists()
    assert result.status == "completed"


async def test_an_approver_that_uses_its_own_agent_is_refused(world: World) -> None:
    caller = Caller(USES["send_message"])

    async def may_run(_: PermissionRequest) -> Allow:
        await caller()
        return Allow()

    agent = caller.agent = await world.agent(work(), can_use_tool=may_run, permission_mode="default")

    await asyncio.wait_for(agent.send_message("First."), PATIENCE)

    assert refused(caller, "send_message")
    assert world.exists()


async def test_a_model_that_uses_its_own_agent_is_refused(world: World) -> None:
    caller = Caller(USES["send_message"])

    class Recursive:
        async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
            await caller()
            yield Text("Hello.")

        async def close(self) -> None:
            pass

    caller.agent = await Agent.create(workdir=world.project, model_client=Recursive())
    async with caller.agent as agent:
        await asyncio.wait_for(agent.send_message("First."), PATIENCE)

    assert refused(caller, "send_message")


async def test_an_async_hook_that_uses_its_own_agent_waits_its_turn(world: World) -> None:
    done = asyncio.Event()
    agents: list[Agent] = []

    async def later(_: HookCall) -> None:
        if not done.is_set():
            done.set()
            await agents[0].send_message("Second.")

    agents.append(await world.agent(["One.", "Two."], hooks={"Stop": [{"function": later, "async": True}]}))
    await agents[0].send_message("First.")
    await until(lambda: world.requests == 2)

    assert [message.text for message in users(agents[0])] == ["First.", "Second."]


async def test_a_task_that_a_callback_starts_waits_its_turn(world: World) -> None:
    """Also a callback that hears of a tool while it runs."""
    agents: list[Agent] = []
    later: list[asyncio.Task[Any]] = []

    def on_event(event: Event) -> None:
        if not later:
            later.append(asyncio.create_task(agents[0].send_message("Second.")))

    agents.append(await world.agent([*work(), "Two."], callbacks={"on_event": on_event}))
    first = await agents[0].send_message("First.")
    second = await asyncio.wait_for(later[0], PATIENCE)

    assert (first.text, second.text) == (DONE, "Two.")
    assert [message.text for message in users(agents[0])] == ["First.", "Second."]


async def test_other_tasks_still_wait_their_turn_while_a_tool_runs(world: World) -> None:
    running, gate = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Waits."""
        running.set()
        await gate.wait()
        return "waited"

    agent = await world.agent([*work(call("wait")), "Two."], tools=[wait])
    first = asyncio.create_task(agent.send_message("First."))
    await running.wait()
    second = asyncio.create_task(agent.send_message("Second."))
    gate.set()

    assert [(await first).text, (await second).text] == [DONE, "Two."]


async def test_a_tool_may_use_another_agent(world: World) -> None:
    @tool
    async def delegate() -> str:
        """Delegates."""
        other = await world.agent(["From the other one."])
        return (await other.send_message("Help.")).text or ""

    agent = await world.agent(work(call("delegate")), tools=[delegate])
    await asyncio.wait_for(agent.send_message("First."), PATIENCE)

    assert tools(agent)[0].result == "From the other one."


# -------------------------------------------------------------------------------------------- interrupts by a thread


async def test_another_thread_can_interrupt(world: World) -> None:
    agent = await world.agent([Reply("One.", gate=asyncio.Event()), "Two."])
    first = asyncio.create_task(agent.send_message("First."))
    await until(lambda: world.requests == 1)

    thread = threading.Thread(target=agent.interrupt)
    thread.start()
    # No task does anything from here on: unless it is woken, the loop waits for ever.
    result = await asyncio.wait_for(first, PATIENCE)
    thread.join()

    assert result.status == "interrupted"
    assert (await agent.send_message("Second.")).text == "Two."


async def test_a_thread_that_interrupts_an_idle_or_closed_agent_does_nothing(world: World) -> None:
    agent, _ = await world.run([DONE])
    await asyncio.to_thread(agent.interrupt)
    await agent.close()
    await asyncio.to_thread(agent.interrupt)


async def test_a_plain_tool_can_interrupt_its_own_turn(world: World) -> None:
    agents: list[Agent] = []

    @tool
    def give_up() -> str:
        """Gives up."""
        agents[0].interrupt()
        return "late"

    agents.append(await world.agent(work(call("give_up")), tools=[give_up]))

    assert (await asyncio.wait_for(agents[0].send_message("First."), PATIENCE)).status == "interrupted"


# --------------------------------------------------------------------------------------------------- a plain approver


async def test_a_plain_approver_does_not_hold_the_event_loop(world: World) -> None:
    asked, answered = threading.Event(), threading.Event()

    def may_run(_: PermissionRequest) -> Allow:
        asked.set()
        assert answered.wait(PATIENCE)
        return Allow()

    agent = await world.agent(work(), can_use_tool=may_run, permission_mode="default")
    turn = asyncio.create_task(agent.send_message("First."))
    await until(asked.is_set)  # a loop that is held would never look
    assert not world.exists()
    answered.set()

    assert (await asyncio.wait_for(turn, PATIENCE)).status == "completed"
    assert world.exists()


async def test_an_interrupt_ends_the_wait_for_an_approver_that_is_a_plain_function(world: World) -> None:
    asked, answered = threading.Event(), threading.Event()

    def may_run(_: PermissionRequest) -> Allow:
        asked.set()
        answered.wait(PATIENCE)
        return Allow()

    agent = await world.agent(work(), can_use_tool=may_run, permission_mode="default")
    turn = asyncio.create_task(agent.send_message("First."))
    await until(asked.is_set)
    agent.interrupt()
    result = await asyncio.wait_for(turn, PATIENCE)
    answered.set()  # too late: nobody waits for it

    assert result.status == "interrupted"
    assert not world.exists()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (True, "can_use_tool must return Allow() or Deny(message), not True; Bash was not run."),
        (None, "can_use_tool must return Allow() or Deny(message), not None; Bash was not run."),
        (
            Allow,
            "can_use_tool must return Allow() or Deny(message), not <class 'wave_agent.permissions.decision.Allow'>;",
        ),
    ],
    ids=["True", "None", "Allow"],
)
async def test_an_approver_that_returns_no_answer_denies_and_is_named(world: World, answer: object, told: str) -> None:
    agent, _ = await world.run(work(), can_use_tool=lambda _: answer, permission_mode="default")

    assert world.request(1)[-1]["content"] == (
        "Not run: the permission to run this could not be obtained. Do without it, or tell the user."
    )
    assert not world.exists()
    (error,) = errors(agent)
    assert error.startswith(told)


async def test_an_approver_that_exits_denies(world: World) -> None:
    def may_run(_: PermissionRequest) -> Allow:
        raise SystemExit(1)

    agent, result = await world.run(work(), can_use_tool=may_run, permission_mode="default")

    assert (errors(agent), result.status) == (["can_use_tool failed: RuntimeError: SystemExit: 1"], "completed")
    assert not world.exists()


async def test_an_approver_that_only_returns_something_to_await_is_awaited(world: World) -> None:
    async def decide(request: PermissionRequest) -> Deny:
        return Deny(f"Not {request.tool_name}.")

    def may_run(request: PermissionRequest) -> Coroutine[Any, Any, Deny]:
        return decide(request)

    await world.run(work(), can_use_tool=may_run, permission_mode="default")

    assert world.request(1)[-1]["content"] == "Not run: Not Bash."


async def test_a_callback_that_turns_out_to_be_async_is_named(world: World) -> None:
    async def hear(event: Event) -> None:
        raise AssertionError("nobody awaits it")

    def on_event(event: Event) -> Coroutine[Any, Any, None]:
        return hear(event)

    agent = await world.agent([DONE], callbacks={"on_event": on_event})

    with pytest.raises(ArgumentError, match="on_event returned a coroutine"):
        await agent.send_message("First.")


async def test_the_last_event_of_a_turn_may_start_the_next(world: World) -> None:
    agents: list[Agent] = []
    later: list[asyncio.Task[Any]] = []

    def on_event(event: Event) -> None:
        if isinstance(event, TurnEnded) and not later:
            later.append(asyncio.create_task(agents[0].send_message("Second.")))

    agents.append(await world.agent(["One.", "Two."], callbacks={"on_event": on_event}))
    await agents[0].send_message("First.")

    assert (await later[0]).text == "Two."
