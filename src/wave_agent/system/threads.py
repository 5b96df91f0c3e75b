"""Daemon threads for work that blocks, kept a while for the next, and how their results reach an event loop.

A call may have fifty hooks at once, and to start fifty threads takes longer than anything else that we add to their
processes. The threads of an executor would do, if they were not joined at interpreter exit: what hangs in one would
hold that up.
"""

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Generic, TypeAlias, TypeVar

Value = TypeVar("Value")
Work: TypeAlias = Callable[[], object]
"""Must not raise."""

_PATIENCE = 10.0
"""Seconds that a thread waits for more."""


class DaemonThreads:
    """Hands each work to a thread of its own, one that is idle if there is any."""

    def __init__(self, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self._idle: deque[SimpleQueue[Work]] = deque()
        self._process = os.getpid()

    def start(self, work: Work) -> None:
        """Raises `RuntimeError` where no more threads can be had."""
        if self._process != os.getpid():  # A fork has this object, but not the threads.
            self._idle.clear()
            self._process = os.getpid()
        try:
            inbox = self._idle.pop()
        except IndexError:
            inbox = SimpleQueue[Work]()
            threading.Thread(target=self._serve, args=(inbox,), name="wave-work", daemon=True).start()
        inbox.put(work)

    def _serve(self, inbox: SimpleQueue[Work]) -> None:
        work: Work | None = inbox.get()
        while work is not None:
            work()
            del work  # What it holds must not live on because a thread is idle.
            self._idle.append(inbox)
            work = self._next(inbox)

    def _next(self, inbox: SimpleQueue[Work]) -> Work | None:
        try:
            return inbox.get(timeout=self._patience)
        except Empty:
            pass
        try:
            self._idle.remove(inbox)
        except ValueError:  # Somebody took it just now, and the work is on its way.
            return inbox.get()
        return None


_SHARED = DaemonThreads()


def start_in_thread(work: Work) -> None:
    """In a daemon thread. Raises `RuntimeError` where no more can be had."""
    _SHARED.start(work)


def is_running_here(loop: asyncio.AbstractEventLoop) -> bool:
    """This thread is the one that runs the event loop."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


class Mailbox:
    """What threads have for one event loop. It is woken once for all that has come by then: with fifty of them, waking
    it takes more of everybody's time than what it is woken for."""

    def __init__(self) -> None:
        self._posted: deque[Work] = deque()
        self._called = False

    def post(self, loop: asyncio.AbstractEventLoop, take: Work) -> None:
        """From any thread. What comes when the loop is closed is dropped: nobody waits any more."""
        self._posted.append(take)
        if not self._called:
            self._called = True
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._empty)

    def _empty(self) -> None:
        self._called = False  # First: what is posted from here on may come too late for this time.
        while self._posted:
            self._posted.popleft()()


class Delivery(Generic[Value]):
    """One result on its way from a thread. To be cancelled while waiting for it does not lose it, as it would with a
    future."""

    def __init__(self, loop: asyncio.AbstractEventLoop, mailbox: Mailbox) -> None:
        self._loop = loop
        self._mailbox = mailbox
        self._results: list[Value] = []
        self._waiter: asyncio.Future[None] | None = None

    def send(self, result: Value) -> None:
        """From the thread, once."""
        self._mailbox.post(self._loop, partial(self._arrive, result))

    async def wait(self) -> Value:
        while not self._results:
            self._waiter = self._loop.create_future()
            await self._waiter
        return self._results[0]

    async def wait_out(self) -> None:
        """Wait for it however often the task is cancelled meanwhile: the end must be near."""
        while not self._results:
            with suppress(asyncio.CancelledError):
                await self.wait()

    def _arrive(self, result: Value) -> None:
        self._results.append(result)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
