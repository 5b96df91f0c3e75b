"""At most so many of something run at the same time, also if they are started from several event loops."""

import asyncio

from wave_agent.system.slots import Slots


async def test_no_more_run_at_once_than_there_are_slots() -> None:
    slots, running, most = Slots(3), 0, 0

    async def work() -> None:
        nonlocal running, most
        async with slots.one():
            running, most = running + 1, max(most, running + 1)
            await asyncio.sleep(0)
            running -= 1

    await asyncio.gather(*(work() for _ in range(10)))
    assert most == 3


def test_places_can_be_used_on_one_event_loop_after_another() -> None:
    slots = Slots(1)

    async def work() -> None:
        async with slots.one():
            await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(work(), work())

    asyncio.run(both())
    asyncio.run(both())
