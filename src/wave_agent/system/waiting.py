"""Waiting for several things at once."""

import asyncio
from collections.abc import Coroutine, Sequence
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
