"""Agents that share an event loop leave it to others often enough, and one that is alone loses nothing."""

import asyncio

from wave_agent.system.fairness import SLICE, Fairness, fairness


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def longest_wait(agents: int, piece: float) -> float:
    """How long something else has to wait for the loop while each of these has ten pieces of work, in the seconds of a
    clock that only their work moves."""
    clock = Clock()
    fair = Fairness(asyncio.get_running_loop(), clock)
    waits: list[float] = []

    async def work() -> None:
        with fair.at_work():
            await asyncio.sleep(0)
            for _ in range(10):
                await fair.breathe()
                clock.now += piece
                await asyncio.sleep(0)

    async def something_else() -> None:
        while True:
            before = clock.now
            await asyncio.sleep(0)
            waits.append(clock.now - before)

    other = asyncio.create_task(something_else())
    await asyncio.gather(*(work() for _ in range(agents)))
    other.cancel()
    assert round(clock.now / piece) == 10 * agents
    return max(waits)


async def test_nobody_waits_for_a_hundred_agents() -> None:
    piece = SLICE / 5
    assert await longest_wait(100, piece) <= 2 * SLICE + 2 * piece


async def test_one_agent_alone_goes_on_at_once() -> None:
    loop = asyncio.get_running_loop()
    fair = Fairness(loop, Clock())
    rounds = 0

    def count() -> None:
        nonlocal rounds
        rounds += 1

    with fair.at_work():
        loop.call_soon(count)
        for _ in range(100):
            await fair.breathe()
    assert rounds == 0
    assert not fair.is_shared


async def test_each_loop_has_its_own() -> None:
    assert fairness() is fairness()
    other = await asyncio.to_thread(lambda: asyncio.run(_of_this_loop()))
    assert other is not fairness()


async def _of_this_loop() -> Fairness:
    return fairness()
