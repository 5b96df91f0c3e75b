"""How many of something may run at the same time."""

import asyncio
from weakref import WeakKeyDictionary


class Slots:
    """A number of slots: `async with slots.one()` waits for a free one. First come, first served."""

    def __init__(self, count: int) -> None:
        self._count = count
        # A semaphore belongs to one event loop; slots may be used from several.
        self._free: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def one(self) -> asyncio.Semaphore:
        """One slot, taken as long as the context lasts."""
        return self._free.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._count))
