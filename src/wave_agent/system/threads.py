"""Daemon threads for blocking work, reused for a while, and the way their results reach an event loop.

A call may run fifty hooks at once, and starting fifty threads takes longer than everything else we add to their
processes. An executor's threads would do, but they are joined at interpreter exit, which a hanging one would block.
"""

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Generic, Protocol, TypeAlias, TypeVar

Value = TypeVar("Value")
Work: TypeAlias = Callable[[], object]
"""Must not raise."""

PATIENCE = 10.0
"""Seconds that an idle thread waits for more work."""


class Inbox(Protocol):
    """Where a thread waits for work."""

    def put(self, work: Work) -> None:
        """Wakes the thread."""
        ...

    def get(self, seconds: float) -> Work | None:
        """Waits for work, at most for these seconds; None if there is none."""
        ...

    def close(self) -> None: ...


class QueueInbox:
    """An inbox without descriptors."""

    def __init__(self) -> None:
        self._works = SimpleQueue[Work]()

    def put(self, work: Work) -> None:
        self._works.put(work)

    def get(self, seconds: float) -> Work | None:
        try:
            return self._works.get(timeout=seconds)
        except Empty:
            return None

    def close(self) -> None:
        pass


class DaemonThreads:
    """Runs each piece of work in a separate thread, reusing an idle one if there is any."""

    def __init__(self, patience: float = PATIENCE, inbox: Callable[[], Inbox] = QueueInbox) -> None:
        self._patience = patience
        self._inbox = inbox
        self._idle: deque[Inbox] = deque()
        self._process = os.getpid()

    def start(self, work: Work) -> None:
        """Raises `RuntimeError` if no more threads can be started."""
        self.reserve().put(work)

    def reserve(self) -> Inbox:
        """A thread, which has to get work soon. Raises `RuntimeError` if no more threads can be started, `OSError` if
        its inbox cannot be opened."""
        if self._process != os.getpid():  # A fork has this object, but not the threads.
            self._idle.clear()
            self._process = os.getpid()
        try:
            return self._idle.pop()
        except IndexError:
            inbox = self._inbox()
        try:
            threading.Thread(target=self._serve, args=(inbox,), name="wave-work", daemon=True).start()
        except RuntimeError:
            inbox.close()
            raise
        return inbox

    def _serve(self, inbox: Inbox) -> None:
        while True:
            work = inbox.get(self._patience)
            if work is not None:
                work()
                del work  # Do not keep its references alive while the thread is idle.
                self._idle.append(inbox)
                continue
            try:
                self._idle.remove(inbox)
            except ValueError:  # It is reserved, and the work is on its way.
                continue
            inbox.close()
            return


_SHARED = DaemonThreads()


def start_in_thread(work: Work) -> None:
    """In a daemon thread. Raises `RuntimeError` if no more can be started."""
    _SHARED.start(work)


def is_running_here(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether this thread runs the event loop."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


class Mailbox:
    """Messages from threads to one event loop, which is woken once for all pending ones: with fifty of them, waking it
    takes longer than handling them."""

    def __init__(self) -> None:
        self._posted: deque[Work] = deque()
        self._called = False

    def post(self, loop: asyncio.AbstractEventLoop, take: Work) -> None:
        """From any thread. Messages for a closed loop are dropped: nothing is waiting for them."""
        self._posted.append(take)
        if not self._called:
            self._called = True
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._empty)

    def _empty(self) -> None:
        self._called = False  # First: messages posted from here on may be too late for this round.
        while self._posted:
            self._posted.popleft()()


class Delivery(Generic[Value]):
    """One result on its way from a thread. Unlike with a future, being cancelled while waiting does not lose it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, mailbox: Mailbox) -> None:
        self._loop = loop
        self._mailbox = mailbox
        self._results: list[Value] = []
        self._waiter: asyncio.Future[None] | None = None

    def send(self, result: Value) -> None:
        """From the thread, once."""
        self._mailbox.post(self._loop, partial(self._arrive, result))

    @property
    def has_arrived(self) -> bool:
        return bool(self._results)

    async def wait(self) -> Value:
        while not self._results:
            self._waiter = self._loop.create_future()
            await self._waiter
        return self._results[0]

    async def wait_out(self) -> None:
        """Wait for it, however often the task is cancelled meanwhile; it must be about to finish."""
        while not self._results:
            with suppress(asyncio.CancelledError):
                await self.wait()

    def _arrive(self, result: Value) -> None:
        self._results.append(result)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
