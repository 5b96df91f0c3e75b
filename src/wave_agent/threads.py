"""Daemon threads for work that blocks, kept a while for the next.

To start a thread takes a third of the time that starting a shell does, and a call may have fifty hooks at once. The
threads of an executor would do, if they were not joined at interpreter exit: what hangs in one would hold that up.
"""

import os
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeAlias

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
