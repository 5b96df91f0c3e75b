"""The work an agent is doing now, and how it is interrupted."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from wave_agent.system.reentrancy import Inside
from wave_agent.system.threads import is_running_here


class CurrentWork:
    """One task at a time: a turn, or a compaction."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        self._task: asyncio.Task[Any] | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None

    async def attend(self, work: asyncio.Task[Any], beside: Coroutine[Any, Any, None] | None = None) -> None:
        """Waits for the work to end; an interrupt can end it. `beside` runs along with it, at most as long."""
        other = None if beside is None else asyncio.create_task(beside)
        self._task = work
        try:
            with self._inside.entered(work):
                await _end_of(work)
        finally:
            self._task = None
            if other is not None:
                other.cancel()

    def interrupt(self) -> None:
        """May be called from anywhere: a task, another thread, a signal handler."""
        task = self._task
        if task is None:
            return
        loop = task.get_loop()
        here = is_running_here(loop)
        if here:
            task.cancel()
        with suppress(RuntimeError):  # the loop is closed, so nothing is running any more
            # Wakes a waiting loop, even if a signal handler cancelled the task in the loop's own thread.
            loop.call_soon_threadsafe(_nothing if here else task.cancel)


def _nothing() -> None:
    pass


async def _end_of(work: asyncio.Task[Any]) -> None:
    """If the caller gives up, cancels the work and still waits for it to end."""
    try:
        await asyncio.wait({work})
    except asyncio.CancelledError:
        work.cancel()
        while not work.done():
            with suppress(asyncio.CancelledError):  # may happen again
                await asyncio.wait({work})
        raise
