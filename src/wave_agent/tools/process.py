"""Commands as processes, each served by a daemon thread.

Executor threads are not used: they are joined at interpreter exit, so a hanging command would block it.
"""

import asyncio
import errno
import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from functools import partial
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.system.attendants import ATTENDANTS
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
        try:
            attendant = ATTENDANTS.reserve()
        except (OSError, RuntimeError):
            self._cancel.close()
            launch.released()
            raise
        run = _CommandRun(launch, receive, self._cancel)
        if ATTENDANTS.can_wait:
            run.start()  # That delays nothing here: a new process stops the interpreter, whichever thread starts it.
        attendant.start(partial(self._serve, run, at_end), when_readable=run.first_signs())

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
        try:
            await self._wait()
        except asyncio.CancelledError:
            await self.kill()
            raise
        except GeneratorExit:  # The loop died before the command ended: there is nothing left to wait with.
            self._cancel.request()
            raise
        return self._ended.result()

    async def kill(self) -> Ending:
        """Kills the group and waits for its end, which is near, however often the task is cancelled meanwhile."""
        self._cancel.request()
        cancelled = False
        while self.running:
            try:
                await self._wait()
            except asyncio.CancelledError:
                cancelled = True
        if cancelled:
            raise asyncio.CancelledError
        return self._ended.result()

    async def _wait(self) -> None:
        """For the end, in one round of the event loop: `asyncio.wrap_future` takes three."""
        loop = asyncio.get_running_loop()
        woken = loop.create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        def post(_: object) -> None:
            with suppress(RuntimeError):  # The loop is closed: there is no waiter any more.
                loop.call_soon_threadsafe(wake)

        self._ended.add_done_callback(post)
        await woken

    def _serve(self, run: "_CommandRun", at_end: Callable[[], None]) -> None:
        ending = run.serve()
        at_end()
        self._ended.set_result(ending)


def _released(launch: Launch) -> str:
    try:
        return launch.released()
    except Exception as error:
        return f"Not everything that was opened for the command could be closed: {error}"


class _CommandRun:
    """From the start of a command to its end."""

    def __init__(self, launch: Launch, receive: Receive, cancel: Cancellation) -> None:
        self._launch = launch
        self._receive = receive
        self._cancel = cancel
        self._deadline = time.monotonic() + launch.seconds
        self._account = ExitStack()
        self._note: Callable[[int], object] = lambda _: None
        self._service: Service | None = None
        self._failure: Exception | None = None

    def start(self) -> None:
        """In any thread. What goes wrong is in its ending."""
        launch = self._launch
        try:
            self._note = self._account.enter_context(launch.ledger())
            popen = spawn(launch.argv, cwd=launch.cwd, env=launch.environment, kept=launch.kept, hold=True)
            self._note(popen.pid)
            self._service = Service(
                popen, self._cancel, self._receive, whole_group=launch.whole_group, use_pidfd=launch.use_pidfd
            )
        except Exception as error:
            self._failure = error

    def first_signs(self) -> tuple[int, ...]:
        """See `Service.first_signs`. Empty if `serve` has to come soon for another reason."""
        if self._service is None or self._launch.seconds <= ATTENDANTS.patience:
            return ()
        return self._service.first_signs()

    def serve(self) -> Ending:
        """Until it has ended. Starts it if that has not happened. Does not raise."""
        try:
            with self._account:
                ending = self._served()
        except Exception as error:
            ending = Ending(error=_explain(error, self._launch))
        finally:
            self._cancel.close()
        return replace(ending, remark=_released(self._launch))

    def _served(self) -> Ending:
        if self._service is None and self._failure is None:
            if self._cancel.requested:
                return Ending(cut_short="cancellation")
            self.start()
        if self._service is None:
            assert self._failure is not None
            raise self._failure
        launch = self._launch
        with self._service as service:
            service.serve(self._deadline)
            status = service.group.status
            code = status if status is None or status >= 0 else 128 - status
            error = launch.complaint() or service.why_unknown("exit code")
        left: tuple[Orphan, ...] = ()
        if launch.watch is not None:
            cut_short = service.cut_short is not None
            left = launch.watch.end_all() if cut_short else launch.watch.look(service.group.number, self._note)
            if left:  # It stays in the ledger until the session ends it.
                launch.watch.release_later(self._account.pop_all().close)
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
