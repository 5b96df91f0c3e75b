"""Waiting for several things at once."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

Value = TypeVar("Value")


async def together_or_none(work: Sequence[Coroutine[Any, Any, Value]]) -> list[Value]:
    """The results of all, in order. Ends only when all have ended, also when one fails or the whole is cancelled.

    Raises what the first of them raised, as itself and not in a group.
    """
    if len(work) == 1:
        return [await work[0]]
    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(one) for one in work]
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    return [task.result() for task in running]
