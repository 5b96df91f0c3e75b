"""Hooks as processes, each served by a daemon thread."""

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from weakref import WeakKeyDictionary

from wave_agent.hooks.execution import HookExecutionResult, HookJob
from wave_agent.processes import Cancellation, Ledger, Service, StreamName, explain, no_ledger, spawn
from wave_agent.threads import Delivery, Mailbox, start_in_thread

_CAP = 1 << 20
"""Bytes kept of each stream."""
_AT_ONCE = 64
"""Runs at the same time. Each takes a thread, and ten descriptors while it starts."""


class ProcessRunner:
    """Runs hooks as processes, a bounded number at once, beside the event loop."""

    def __init__(
        self,
        *,
        shell: str | None = None,
        cap: int = _CAP,
        at_once: int = _AT_ONCE,
        use_pidfd: bool = True,
        ledger: Ledger = no_ledger,
    ) -> None:
        self._shell = shell or shutil.which("bash") or "/bin/sh"
        # What a program sees of its shell is known of Bash, and tried on Linux.
        self._may_do_without = os.path.basename(self._shell) == "bash" and sys.platform == "linux"
        self._cap = cap
        self._at_once = at_once
        self._use_pidfd = use_pidfd
        self._ledger = ledger
        # These belong to one event loop, a runner need not.
        self._places: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
        self._mailboxes: WeakKeyDictionary[asyncio.AbstractEventLoop, Mailbox] = WeakKeyDictionary()

    async def run(self, job: HookJob) -> HookExecutionResult:
        """Run the job. Raises nothing but `CancelledError`, and that only when the whole group is dead."""
        loop = asyncio.get_running_loop()
        async with self._places.setdefault(loop, asyncio.Semaphore(self._at_once)):
            delivery = Delivery[HookExecutionResult](loop, self._mailboxes.setdefault(loop, Mailbox()))
            try:
                cancel = self._start_thread(job, delivery)
            except (OSError, RuntimeError) as error:
                return HookExecutionResult(error=f"The hook cannot be started: {error}")
            try:
                return await delivery.wait()
            except asyncio.CancelledError:
                cancel.request()
                await delivery.wait_out()
                raise
            except GeneratorExit:  # The loop died before the run ended: nothing is left to wait with.
                cancel.request()
                raise

    def execute(self, job: HookJob, cancel: Cancellation) -> HookExecutionResult:
        """Run the job in the calling thread. Never raises, and leaves `cancel` closed."""
        started = time.monotonic()
        argv = self._command_line(job)
        outputs: dict[StreamName, _Output] = {"stdout": _Output(self._cap), "stderr": _Output(self._cap)}
        try:
            if cancel.requested:
                return HookExecutionResult(cancelled=True)
            with self._ledger() as note:
                popen = self._spawn(job, argv)
                note(popen.pid)
                with Service(
                    popen,
                    cancel,
                    lambda name, data: outputs[name].add(data),
                    feed=_Input(job.stdin).send,
                    use_pidfd=self._use_pidfd,
                ) as service:
                    service.serve(started + job.timeout)
                    return _result(service, outputs["stdout"], outputs["stderr"], started)
        except Exception as error:
            return HookExecutionResult(error=explain(error, argv[0], job.cwd), duration=_milliseconds_since(started))
        finally:
            cancel.close()

    def _start_thread(self, job: HookJob, delivery: Delivery[HookExecutionResult]) -> Cancellation:
        cancel = Cancellation()
        try:
            start_in_thread(lambda: delivery.send(self.execute(job, cancel)))
        except RuntimeError:
            cancel.close()
            raise
        return cancel

    def _spawn(self, job: HookJob, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        if self._may_do_without and job.args is None:
            from wave_agent.hooks.direct import without_shell  # lazy: most starts run no hook

            start = without_shell(job.command, job.env, job.cwd)
            if start is not None:
                words = (*start.words, *job.arguments)
                with suppress(OSError):  # Bash can run what the system cannot, and says what is wrong with the rest.
                    return spawn(words, program=start.program, cwd=job.cwd, env=start.environment, fed=True)
        return spawn(argv, cwd=job.cwd, env=job.env, fed=True)

    def _command_line(self, job: HookJob) -> list[str]:
        """The program to start, and its arguments."""
        if job.args is not None:
            return [job.command, *job.args]
        if job.arguments:
            return [self._shell, "-c", f'{job.command} "$@"', job.command, *job.arguments]
        return [self._shell, "-c", job.command]


class _Input:
    """The payload, given as the hook takes it. That it takes none of it is no error."""

    def __init__(self, payload: bytes) -> None:
        self._unsent = memoryview(payload)

    def send(self, stdin: int) -> bool:
        """Write as much as fits into the pipe; False when nothing is left to write."""
        try:
            sent = os.write(stdin, self._unsent)
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False
        self._unsent = self._unsent[sent:]
        return len(self._unsent) > 0


class _Output:
    """One stream: its first bytes, and the number of the others."""

    def __init__(self, cap: int) -> None:
        self.dropped = 0
        self._kept = bytearray()
        self._room = cap

    def add(self, data: bytes) -> None:
        kept = data[: self._room]
        self._kept += kept
        self._room -= len(kept)
        self.dropped += len(data) - len(kept)

    def text(self) -> str:
        return self._kept.decode(errors="replace").strip()


def _result(service: Service, stdout: _Output, stderr: _Output, started: float) -> HookExecutionResult:
    status = service.group.status
    exited = status is not None and status >= 0 and service.cut_short is None
    return HookExecutionResult(
        exit_code=status if exited else None,
        signal=-status if status is not None and status < 0 else None,
        error=service.why_unknown("exit status"),
        timed_out=service.cut_short == "timeout",
        cancelled=service.cut_short == "cancellation",
        stdout=stdout.text(),
        stderr=stderr.text(),
        stdout_dropped=stdout.dropped,
        stderr_dropped=stderr.dropped,
        duration=_milliseconds_since(started),
    )


def _milliseconds_since(start: float) -> float:
    return (time.monotonic() - start) * 1000
