"""Threads that sleep until the process they serve needs them.

Handing work to an idle thread costs more than it seems: it wakes while the event loop still has the interpreter, and
has to sleep again until it gets it. A process that was just started needs nobody until it prints or ends. So its thread
is not woken, but waits for the process right where it waits for work.
"""

import os
import select
import sys
import threading
from collections.abc import Iterable

from wave_agent.system.threads import PATIENCE, DaemonThreads, Inbox, QueueInbox, Work

_CAN_WAIT = sys.platform == "linux"
_ONCE = select.EPOLLIN | select.EPOLLONESHOT if sys.platform == "linux" else 0


class _Attention:
    """An inbox that can also wait for descriptors."""

    def __init__(self) -> None:
        self._work: Work | None = None
        self._lock = threading.Lock()
        """The work closes the descriptors: it may begin when all are watched."""
        self._epoll = select.epoll()
        try:
            self._bell = os.eventfd(1)  # always readable, and watched only when it rings
        except OSError:
            self._epoll.close()
            raise
        self._epoll.register(self._bell, 0)

    def put(self, work: Work) -> None:
        self._work = work
        self._epoll.modify(self._bell, _ONCE)

    def attend(self, work: Work, descriptors: Iterable[int]) -> None:
        with self._lock:
            self._work = work
            try:
                for descriptor in descriptors:
                    self._epoll.register(descriptor, _ONCE)
            except OSError:  # This user watches too many.
                self._epoll.modify(self._bell, _ONCE)

    def get(self, seconds: float) -> Work | None:
        self._epoll.poll(seconds)
        with self._lock:
            work, self._work = self._work, None
        return work

    def close(self) -> None:
        self._epoll.close()
        os.close(self._bell)


class Attendants:
    """Threads that each serve one process, from the moment when it needs them."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience
        """Seconds after which a thread begins its work at the latest."""
        self._threads = DaemonThreads(patience, _Attention if _CAN_WAIT else QueueInbox)
        self._waiting: set[Inbox] = set()

    @property
    def can_wait(self) -> bool:
        """Whether the next process should be started before its attendant gets it, which then waits for its first sign.
        Not if another one is waiting: several at once start and end faster in threads of their own."""
        return _CAN_WAIT and not self._waiting

    def reserve(self) -> "Attendant":
        """It has to get work soon. Raises `RuntimeError` or `OSError` if resources have run out."""
        return Attendant(self._threads.reserve(), self._waiting)


class Attendant:
    """One of them, whose work is on its way."""

    def __init__(self, inbox: Inbox, waiting: set[Inbox]) -> None:
        self._inbox = inbox
        self._waiting = waiting

    def start(self, work: Work, *, when_readable: Iterable[int] = ()) -> None:
        """Now, or as soon as one of these descriptors is readable; the work then has to close them all. Where the
        system cannot wait like that, now."""
        if not (isinstance(self._inbox, _Attention) and when_readable):
            self._inbox.put(work)
            return

        def begin() -> None:
            self._waiting.discard(self._inbox)
            work()

        self._waiting.add(self._inbox)
        self._inbox.attend(begin, when_readable)


ATTENDANTS = Attendants()
"""For all processes of this one."""
