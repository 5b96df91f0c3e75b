"""Commands as processes, each served by a daemon thread.

Executor threads are not used: they are joined at interpreter exit, so a hanging command would block it.
"""

import asyncio
import errno
import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.system.processes import (
    Cancellation,
    Ledger,
    Receive,
    Service,
    StreamName,
    explain_directory,
    no_ledger,
    spawn,
)
from wave_agent.system.threads import start_in_thread

__all__ = [
    "Ending",
    "Launch",
    "Orphan",
    "Process",
    "Receive",
    "StreamName",
    "Watch",
    "named",
]  # Includes re-exports for the tools.


_NAMED = 3
"""How many orphans are named; the rest is counted."""


class Orphan(Struct, frozen=True):
    """A process that a command left behind."""

    pid: int
    born: int
    """Ticks since boot."""
    command: str

    def __str__(self) -> str:
        return f"{self.pid} ({self.command})"


def named(orphans: Sequence[Orphan]) -> str:
    """A few of them by name, for a reader."""
    more = len(orphans) - _NAMED
    return ", ".join(map(str, orphans[:_NAMED])) + (f" and {more} more" if more > 0 else "")


class Watch(Protocol):
    """Finds what one command leaves behind: see `stray_processes`."""

    def look(self, group: int, note: Callable[[int], object]) -> tuple[Orphan, ...]:
        """Processes still running after the command ended. `note` is called with each group except the command's."""
        ...

    def end_all(self) -> tuple[Orphan, ...]:
        """Ends processes outside the group of a command that was cut short. Returns those that could not be ended."""
        ...

    def release_later(self, release: Callable[[], None]) -> None:
        """Registers a call for when the orphans have been ended."""
        ...


class Launch(Struct, frozen=True, kw_only=True):
    """What to start, and how long it may run."""

    argv: Sequence[str]
    """The program, as a path, and its arguments."""
    cwd: str
    environment: Mapping[str, str]
    seconds: float = math.inf
    whole_group: bool = False
    """It has ended only when no process in its group is alive (if the system can say). Otherwise, when its leader has
    ended."""
    use_pidfd: bool = True
    ledger: Ledger = no_ledger
    complaint: Callable[[], str] = str
    """Called when it has ended: returns what it did that is forbidden, or nothing."""
    watch: Watch | None = None
    """Finds what it leaves running, and ends that too if the command is cut short."""
    kept: Sequence[int] = ()
    """Descriptors passed to it in addition to its streams."""
    released: Callable[[], str] = str
    """Called once, when it has ended or could not be started: releases what was opened for it, and returns a remark for
    whoever reads its output, or nothing."""


class Ending(Struct, frozen=True, kw_only=True):
    """How it ended."""

    exit_code: int | None = None
    """128 + n for signal n, as in shells. None: never started, or unknown."""
    cut_short: Literal["timeout", "cancellation"] | None = None
    """Why the group was killed."""
    error: str | None = None
    """Why it could not be started, why the exit code is unknown, or what forbidden thing it did."""
    left: tuple[Orphan, ...] = ()
    """What it left running."""
    remark: str = ""
    """About something that was kept from it."""


class Process:
    """One command. It starts immediately, and runs until it ends or is killed."""

    def __init__(self, launch: Launch, receive: Receive, at_end: Callable[[], None] = lambda: None) -> None:
        """Both functions are called in the serving thread, and neither may raise.

        Raises `OSError` or `RuntimeError` if resources have run out.
        """
        self._ended: Future[Ending] = Future()
        self._ended.set_running_or_notify_cancel()
        self._cancel = Cancellation()
        work = partial(self._work, launch, receive, at_end)
        try:
            start_in_thread(work)
        except RuntimeError:
            self._cancel.close()
            launch.released()
            raise

    @property
    def running(self) -> bool:
        return not self._ended.done()

    @property
    def ending(self) -> Ending | None:
        """None while it runs."""
        return self._ended.result() if self._ended.done() else None

    def when_ended(self, call: Callable[[], object]) -> None:
        """Registers a call for when the ending is known: in the serving thread, or immediately."""
        self._ended.add_done_callback(lambda _: call())

    async def run(self) -> Ending:
        """Waits for the end. A cancellation kills the group, and takes effect when the group is dead."""
        ended = asyncio.wrap_future(self._ended)
        try:
            await asyncio.wait([ended])
        except asyncio.CancelledError:
            await self.kill()
            raise
        except GeneratorExit:  # The loop died before the command ended: there is nothing left to wait with.
            self._cancel.request()
            raise
        return ended.result()

    async def kill(self) -> Ending:
        """Kills the group and waits for its end, which is near, however often the task is cancelled meanwhile."""
        self._cancel.request()
        ended = asyncio.wrap_future(self._ended)
        cancelled = False
        while not ended.done():
            try:
                await asyncio.wait([ended])
            except asyncio.CancelledError:
                cancelled = True
        if cancelled:
            raise asyncio.CancelledError
        return ended.result()

    def _work(self, launch: Launch, receive: Receive, at_end: Callable[[], None]) -> None:
        try:
            ending = _run(launch, receive, self._cancel)
        except Exception as error:
            ending = Ending(error=_explain(error, launch))
        finally:
            self._cancel.close()
        ending = replace(ending, remark=_released(launch))
        at_end()
        self._ended.set_result(ending)


def _released(launch: Launch) -> str:
    try:
        return launch.released()
    except Exception as error:
        return f"Not everything that was opened for the command could be closed: {error}"


def _run(launch: Launch, receive: Receive, cancel: Cancellation) -> Ending:
    if cancel.requested:
        return Ending(cut_short="cancellation")
    started = time.monotonic()
    with ExitStack() as account:
        note = account.enter_context(launch.ledger())
        popen = spawn(launch.argv, cwd=launch.cwd, env=launch.environment, kept=launch.kept)
        note(popen.pid)
        with Service(popen, cancel, receive, whole_group=launch.whole_group, use_pidfd=launch.use_pidfd) as service:
            service.serve(started + launch.seconds)
            status = service.group.status
            code = status if status is None or status >= 0 else 128 - status
            error = launch.complaint() or service.why_unknown("exit code")
        left: tuple[Orphan, ...] = ()
        if launch.watch is not None:
            cut_short = service.cut_short is not None
            left = launch.watch.end_all() if cut_short else launch.watch.look(popen.pid, note)
            if left:  # It stays in the ledger until the session ends it.
                launch.watch.release_later(account.pop_all().close)
        return Ending(exit_code=code, cut_short=service.cut_short, error=error, left=left)


def _explain(error: Exception, launch: Launch) -> str:
    """One sentence for the model that says what it can do."""
    program = launch.argv[0]
    if sentence := explain_directory(error, program, launch.cwd):
        return sentence
    if isinstance(error, OSError) and error.errno == errno.E2BIG:
        return "The command or its environment is too long for the system: put it in a file and run that"
    if isinstance(error, ValueError):
        return f"The command cannot be passed to the system ({error})"
    return f"{program!r} cannot be run: {error}"
