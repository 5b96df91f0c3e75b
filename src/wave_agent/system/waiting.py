"""Waiting for several things at once."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

Value = TypeVar("Value")


async def together_or_none(work: Sequence[Coroutine[Any, Any, Value]]) -> list[Value]:
    """All results, in order. Ends only when all have ended, even if one fails or the whole is cancelled.

    Raises the first exception as it is, not in a group.
    """
    if len(work) == 1:
        return [await work[0]]
    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(one) for one in work]
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    return [task.result() for task in running]


class SideBySide:
    """Work that only reads runs side by side, any other work alone."""

    def __init__(self) -> None:
        self._reading = 0
        self._acting = False
        self._free = asyncio.Condition()

    @asynccontextmanager
    async def running(self, *, reads: bool) -> AsyncGenerator[None]:
        """Waits for those that must not run meanwhile."""
        async with self._free:
            await self._free.wait_for(lambda: not self._acting and (reads or not self._reading))
            self._reading += reads
            self._acting = not reads
        try:
            yield
        finally:
            self._reading -= reads
            self._acting = False
            async with self._free:
                self._free.notify_all()
