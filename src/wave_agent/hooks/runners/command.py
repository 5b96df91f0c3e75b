"""Command hooks: runs each as a process, served by a daemon thread."""

import asyncio
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from weakref import WeakKeyDictionary

from wave_agent.hooks.execution import HookExecutionResult, HookJob, HookKind
from wave_agent.system.processes import Cancellation, Child, Ledger, Service, StreamName, explain, no_ledger, spawn
from wave_agent.system.slots import Slots
from wave_agent.system.threads import Delivery, Mailbox, start_in_thread
from wave_agent.system.which import which

_CAP = 1 << 20
"""Maximum bytes stored of each stream."""
_JSON_CAP = 8
"""Factor for a stdout that starts like JSON: half an object is useless."""
_END = 1 << 14
"""Bytes stored of the end of a longer stream: that is where it says why a check failed."""
_AT_ONCE = 64
"""Maximum concurrent runs. Each takes a thread, and ten file descriptors while it starts."""


class ProcessRunner:
    """Runs hooks as processes outside the event loop, up to a limit at a time."""

    def __init__(
        self,
        *,
        shell: str | None = None,
        cap: int = _CAP,
        at_once: int = _AT_ONCE,
        use_pidfd: bool = True,
        ledger: Ledger = no_ledger,
    ) -> None:
        self._shell = shell or which("bash") or "/bin/sh"
        # Running without a shell imitates Bash, and is tested on Linux only.
        self._may_do_without = os.path.basename(self._shell) == "bash" and sys.platform == "linux"
        self._cap = cap
        self._use_pidfd = use_pidfd
        self._ledger = ledger
        self._slots = Slots(at_once)
        # A mailbox belongs to one event loop; a runner may be used from several.
        self._mailboxes: WeakKeyDictionary[asyncio.AbstractEventLoop, Mailbox] = WeakKeyDictionary()

    async def run(self, job: HookJob) -> HookExecutionResult:
        """Run the job. Raises only `CancelledError`, and only once the whole process group is dead."""
        if job.kind is not HookKind.COMMAND:  # a prompt must never reach a shell
            return HookExecutionResult(error=f"hooks of type {job.kind} do not run as processes")
        loop = asyncio.get_running_loop()
        async with self._slots.one():
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
            except GeneratorExit:  # The loop died before the run ended, so there is no way to wait.
                cancel.request()
                raise

    def execute(self, job: HookJob, cancel: Cancellation) -> HookExecutionResult:
        """Run the job in the calling thread. Never raises, and leaves `cancel` closed."""
        started = time.monotonic()
        argv = self._command_line(job)
        outputs: dict[StreamName, _StreamCapture] = {
            "stdout": _StreamCapture(self._cap, _JSON_CAP),
            "stderr": _StreamCapture(self._cap),
        }
        payload = _Input(job.stdin)
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
                    feed=payload.send,
                    use_pidfd=self._use_pidfd,
                ) as service:
                    service.serve(started + job.timeout)
                    return _result(service, outputs["stdout"], outputs["stderr"], started, payload.left)
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

    def _spawn(self, job: HookJob, argv: Sequence[str]) -> Child:
        if self._may_do_without and job.args is None:
            from wave_agent.hooks.runners.without_shell import without_shell  # lazy: most starts run no hook

            start = without_shell(job.command, job.env, job.cwd)
            if start is not None:
                words = (*start.words, *job.arguments)
                with suppress(OSError):  # Bash can run files the system cannot, and reports what is wrong otherwise.
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
    """The payload, written as the hook reads it. Not reading it is not an error."""

    def __init__(self, payload: bytes) -> None:
        self._unsent = memoryview(payload)

    @property
    def left(self) -> int:
        """Bytes that were not read."""
        return len(self._unsent)

    def send(self, stdin: int) -> bool:
        """Write as much as fits in the pipe; False when nothing is left to write."""
        try:
            sent = os.write(stdin, self._unsent)
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False
        self._unsent = self._unsent[sent:]
        return len(self._unsent) > 0


class _StreamCapture:
    """One stream: its first bytes, its last bytes, and the number of bytes dropped."""

    def __init__(self, cap: int, json_factor: int = 1) -> None:
        self.dropped = 0
        self._kept = bytearray()
        self._cap = cap
        self._json_factor = json_factor
        self._last = b""

    def add(self, data: bytes) -> None:
        room = self._cap - len(self._kept)
        if room < len(data) and self._json_factor > 1 and _begins_like_json(self._kept or data):
            self._cap, self._json_factor = self._cap * self._json_factor, 1
            room = self._cap - len(self._kept)
        self._kept += data[:room]
        if room < len(data):
            self.dropped += len(data) - room
            self._last = (self._last + data[room:])[-_END:]

    def text(self) -> str:
        return _decoded(self._kept).strip()

    def end(self) -> str:
        """The last lines, if anything was dropped."""
        return (bytes(self._kept[-_END:]) + self._last)[-_END:].decode(errors="replace").strip() if self.dropped else ""


def _decoded(data: bytes | bytearray) -> str:
    """UTF-8, or UTF-16 if a byte order mark or the start of an object says so, and it is valid: PowerShell and others
    write it, and a block must not be lost in it."""
    encoding = _WIDE.get(bytes(data[:2]))
    if encoding is not None:
        with suppress(UnicodeDecodeError):
            return data.decode(encoding)
    return data.decode(errors="replace")


_WIDE: Mapping[bytes, str] = {
    **dict.fromkeys((b"\xff\xfe", b"\xfe\xff"), "utf-16"),
    **{b"{\0": "utf-16-le", b"\0{": "utf-16-be"},
}


def _begins_like_json(data: bytes | bytearray) -> bool:
    return bytes(data[:64]).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")


def _result(
    service: Service, stdout: _StreamCapture, stderr: _StreamCapture, started: float, left: int
) -> HookExecutionResult:
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
        stdin_left=left,
        stdout_end=stdout.end(),
        stderr_end=stderr.end(),
        duration=_milliseconds_since(started),
    )


def _milliseconds_since(start: float) -> float:
    return (time.monotonic() - start) * 1000
