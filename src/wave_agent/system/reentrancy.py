"""Where a call comes from: from a turn's own work, which must not wait for the end of that turn, or from elsewhere.

Tasks and threads are recorded individually when they enter the program's code. A `ContextVar` would also mark every
task that the code starts and leaves behind, and those may well wait their turn.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeAlias

from wave_agent.errors import InsideTurnError

Door: TypeAlias = Callable[[], AbstractContextManager[None]]
"""Entered around code of the program: a tool, a hook, an approver."""
no_door: Door = nullcontext


class Inside:
    """The tasks and threads that work for a turn."""

    def __init__(self) -> None:
        self._workers = Counter[object]()
        """Tasks, and ids of threads without an event loop; each as often as it has entered."""
        self._left = 0

    @contextmanager
    def entered(self, task: "asyncio.Task[Any] | None" = None) -> Generator[None]:
        """While this task works for a turn; without one, the calling task or thread."""
        worker = task or _current_task() or threading.get_ident()
        self._workers[worker] += 1
        try:
            yield
        finally:
            self._workers[worker] -= 1
            if not self._workers[worker]:
                del self._workers[worker]

    @contextmanager
    def left(self) -> Generator[None]:
        """While a callback runs on the event loop: it cannot wait, so anything it starts is a separate task."""
        self._left += 1
        try:
            yield
        finally:
            self._left -= 1

    def require_outside(self, what: str) -> None:
        """Raises `InsideTurnError` if the caller works for a turn of this agent."""
        task = None if self._left else _current_task()
        if task in self._workers or threading.get_ident() in self._workers:
            raise InsideTurnError(what)


def _current_task() -> "asyncio.Task[Any] | None":
    try:
        return asyncio.current_task()
    except RuntimeError:  # no event loop in this thread
        return None
