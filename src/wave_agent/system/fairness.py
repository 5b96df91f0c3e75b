"""Several agents on one event loop: none of them keeps it from the others for long.

What one agent does between two waits takes milliseconds. If a hundred can go on at the same moment, the loop would be
busy for a hundred times as long before it looks at anything else, such as a key press or a connection.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import monotonic
from weakref import WeakKeyDictionary

SLICE = 0.01
"""Seconds of work between two looks of the loop at everything else."""


class Fairness:
    """What the agents on one event loop share."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = monotonic) -> None:
        self._loop = loop
        self._clock = clock
        self._at_work = 0
        self._slice_began: float | None = None

    @contextmanager
    def at_work(self) -> Generator[None]:
        """Around the turn of an agent. Those of its subagents are part of it."""
        self._at_work += 1
        try:
            yield
        finally:
            self._at_work -= 1

    @property
    def is_shared(self) -> bool:
        """More than one agent is at work."""
        return self._at_work > 1

    async def breathe(self) -> None:
        """To be awaited before work of a millisecond or more: leaves it for later if others have just worked for long.
        Costs nothing for an agent that is alone."""
        while self._at_work > 1 and self._is_used_up():  # noqa: ASYNC110 - it is the next round that is waited for
            await asyncio.sleep(0)

    def _is_used_up(self) -> bool:
        now = self._clock()
        if self._slice_began is None:
            self._slice_began = now
            self._loop.call_soon(self._next_slice)  # the loop looks at everything else before it calls this
        return now - self._slice_began >= SLICE

    def _next_slice(self) -> None:
        self._slice_began = None


class _Loops:
    """The one of each event loop in this process."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[asyncio.AbstractEventLoop, Fairness] = WeakKeyDictionary()

    def of(self, loop: asyncio.AbstractEventLoop) -> Fairness:
        found = self._known.get(loop)
        if found is None:
            found = self._known[loop] = Fairness(loop)
        return found


_LOOPS = _Loops()


def fairness() -> Fairness:
    """That of the running event loop."""
    return _LOOPS.of(asyncio.get_running_loop())
