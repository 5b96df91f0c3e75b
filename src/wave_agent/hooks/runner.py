"""Hooks as processes.

A run is a plain `subprocess.Popen` in a session of its own, served by one poll loop in one daemon thread. What lies
nearer at hand breaks a promise each time: `asyncio.subprocess` waits for pipes that a background child may hold for
hours; `Popen.wait` takes a status that somebody else collected for exit 0; the threads of an executor are joined at
interpreter exit, so that a hanging hook would hold it up.
"""

import asyncio
import errno
import os
import selectors
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import IO, Literal, Self
from weakref import WeakKeyDictionary

from wave_agent.hooks.execution import HookExecutionResult, HookJob

_CAP = 1 << 20
"""Bytes kept of each stream."""
_CHUNK = 1 << 16
"""Bytes read at once: what a pipe holds on Linux."""
_AT_ONCE = 64
"""Runs at the same time. Each takes a thread, and ten descriptors while it starts."""

# Seconds:
_DRAIN = 0.25
"""For output that is still on its way when the process has ended."""
_GRACE = 0.5
"""For cleaning up between SIGTERM and SIGKILL."""
_DEATH = 1.0
"""For dying of SIGKILL. Only what we may not kill, or what hangs in the kernel, needs longer."""
_TICK = 0.002
"""Between two looks for the exit of a process that cannot be polled."""
_GLANCE = 0.01
"""Between two looks at a whole group, which cost more."""
_LONGEST_POLL = 60.0
"""A timeout may be any float, but poll() counts milliseconds in an int."""

_SPAWN_ERRORS = {
    errno.ENOENT: "it was not found",
    errno.EACCES: "it is not a file with permission to execute (chmod +x)",
    errno.ENOEXEC: "the system does not know its format (a script needs a first line such as #!/bin/sh)",
    errno.E2BIG: "its arguments or its environment are too long",
    errno.EMFILE: "this process has too many open files",
    errno.ENFILE: "the system has too many open files",
}


class Cancellation:
    """A request to end a run, made from any thread. The run polls it as it does its pipes, and closes it."""

    def __init__(self) -> None:
        self.requested = False
        self._closed = False
        self._lock = threading.Lock()
        self._receiver, self._sender = os.pipe()

    def fileno(self) -> int:
        return self._receiver

    def request(self) -> None:
        """May come more than once, and after the end of the run."""
        with self._lock:  # Or the descriptor might be closed, and another file's, by the time it is written to.
            if not (self.requested or self._closed):
                os.write(self._sender, b"\0")
            self.requested = True

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._receiver)
                os.close(self._sender)


class ProcessRunner:
    """Runs hooks as processes, a bounded number at once, beside the event loop."""

    def __init__(
        self, *, shell: str | None = None, cap: int = _CAP, at_once: int = _AT_ONCE, use_pidfd: bool = True
    ) -> None:
        self._shell = shell or shutil.which("bash") or "/bin/sh"
        self._cap = cap
        self._at_once = at_once
        self._use_pidfd = use_pidfd and hasattr(os, "pidfd_open")
        # A semaphore belongs to one event loop, a runner need not.
        self._places: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    async def run(self, job: HookJob) -> HookExecutionResult:
        """Run the job. Raises nothing but `CancelledError`, and that only when the whole group is dead."""
        loop = asyncio.get_running_loop()
        async with self._places.setdefault(loop, asyncio.Semaphore(self._at_once)):
            finished: asyncio.Future[HookExecutionResult] = loop.create_future()
            try:
                cancel = self._start_thread(job, finished)
            except (OSError, RuntimeError) as error:
                return HookExecutionResult(error=f"The hook cannot be started: {error}")
            try:
                await asyncio.wait([finished])
            except asyncio.CancelledError:
                cancel.request()
                await _wait_out(finished)
                raise
            except GeneratorExit:  # The loop died before the run ended: nothing is left to wait with.
                cancel.request()
                raise
            return finished.result()

    def execute(self, job: HookJob, cancel: Cancellation) -> HookExecutionResult:
        """Run the job in the calling thread. Never raises, and leaves `cancel` closed."""
        started = time.monotonic()
        program, argv = self._command_line(job)
        try:
            if cancel.requested:
                return HookExecutionResult(cancelled=True)
            popen = _spawn(program, argv, job)
            with _Run(popen, job.stdin, cancel, cap=self._cap, use_pidfd=self._use_pidfd) as run:
                run.serve(started + job.timeout)
                return run.result(started)
        except Exception as error:
            return HookExecutionResult(error=_explain(error, program, job.cwd), duration=_milliseconds_since(started))
        finally:
            cancel.close()

    def _start_thread(self, job: HookJob, finished: asyncio.Future[HookExecutionResult]) -> Cancellation:
        cancel = Cancellation()
        try:
            threading.Thread(target=self._work, args=(job, cancel, finished), name="hook", daemon=True).start()
        except RuntimeError:
            cancel.close()
            raise
        return cancel

    def _work(self, job: HookJob, cancel: Cancellation, finished: asyncio.Future[HookExecutionResult]) -> None:
        result = self.execute(job, cancel)
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            finished.get_loop().call_soon_threadsafe(finished.set_result, result)

    def _command_line(self, job: HookJob) -> tuple[str, list[str]]:
        """The program to start, and its arguments from the zeroth on."""
        if job.args is not None:
            return job.command, [job.command, *job.args]
        if job.arguments:
            return self._shell, [self._shell, "-c", f'{job.command} "$@"', job.command, *job.arguments]
        return self._shell, [self._shell, "-c", job.command]


async def _wait_out(finished: asyncio.Future[HookExecutionResult]) -> None:
    """Wait for the end, which is near, however often the task is cancelled meanwhile."""
    while not finished.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([finished])


def _spawn(program: str, argv: list[str], job: HookJob) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv,
        executable=_find(program, job.env, job.cwd),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        cwd=job.cwd,
        env=job.env,
        start_new_session=True,
    )


def _find(program: str, env: Mapping[str, str], cwd: str) -> str:
    """The file that a program's name stands for in the hook's own environment and directory.

    Popen would find it too, but changes the warning filters of the whole process meanwhile: not a thing for threads.
    """
    if "/" in program:
        return program
    directories = env.get("PATH", os.defpath).split(os.pathsep)
    path = os.pathsep.join(os.path.join(cwd, directory) for directory in directories)
    found = shutil.which(program, path=path)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
    return found


def _explain(error: Exception, program: str, cwd: str) -> str:
    """One sentence for the user. Names are quoted as Python does it, since they may hold anything."""
    if isinstance(error, OSError) and error.filename == cwd != program:
        reason = "does not exist" if error.errno == errno.ENOENT else f"cannot be entered: {error.strerror}"
        return f"Working directory {cwd!r} {reason}"
    if isinstance(error, FileNotFoundError) and "/" in program and os.path.exists(os.path.join(cwd, program)):
        reason = "the interpreter named in its first line was not found"
    elif isinstance(error, OSError):
        reason = _SPAWN_ERRORS.get(error.errno or 0, str(error))
    elif isinstance(error, ValueError):
        reason = f"its arguments, environment or directory cannot be passed on ({error})"
    else:
        reason = repr(error)
    return f"Program {program!r} cannot be started: {reason}"


class _Output:
    """One stream: its first bytes, and the number of the others."""

    def __init__(self, stream: IO[bytes], cap: int) -> None:
        self.stream = stream
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


class _Group:
    """The process that was started, and what it starts in its group, whose number is that leader's pid."""

    def __init__(self, popen: subprocess.Popen[bytes], *, use_pidfd: bool) -> None:
        self.number = popen.pid
        self.pidfd: int | None = None
        """Readable when the leader has ended. None: ask `reap` again and again."""
        self.leader_ended = False
        self.reaped = False
        self.status: int | None = None
        """The leader's exit code or negative signal. Stays None if somebody else collects it."""
        self._popen = popen
        if use_pidfd:
            with suppress(OSError):  # An old kernel, a sandbox, no descriptor left.
                self.pidfd = os.pidfd_open(popen.pid)

    def reap(self) -> bool:
        """Collect the leader's status if it has ended, and say if it has. Its number may then be given away.

        Not by `Popen.poll`, which takes a status that somebody else collected for exit 0.
        """
        if self.reaped or (self.pidfd is not None and not self.leader_ended):
            return self.reaped
        try:
            pid, status = os.waitpid(self.number, 0 if self.leader_ended else os.WNOHANG)
        except ChildProcessError:
            self.reaped = True
        else:
            self.reaped = pid == self.number
            self.status = os.waitstatus_to_exitcode(status) if self.reaped else None
        if self.reaped:
            self._popen.returncode = self.status or 0  # Or Popen would warn, and wait once more.
        return self.reaped

    def destroy(self) -> None:
        """Kill and reap, without a grace."""
        if not self.reaped:
            self.signal(signal.SIGKILL)
            self.leader_ended = True
            self.reap()

    def signal(self, number: int) -> None:
        # EPERM: only zombies are left (macOS), or only processes that have become another user's.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.number, number)

    def lives(self) -> bool | None:
        """Whether any process of the group lives; zombies do not. None where the system does not tell."""
        if self.pidfd is not None and not self.leader_ended:
            return True
        try:
            if os.readlink("/proc/self") != str(os.getpid()):
                return None  # Mounted for another container: its numbers mean other processes.
            return any(_is_live_member(pid, self.number) for pid in os.listdir("/proc") if pid.isdigit())
        except OSError:
            return None


def _is_live_member(pid: str, group: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The second field is a name in parentheses, which may hold blanks and parentheses of its own.
            state, _, its_group = file.read().rpartition(b")")[2].split()[:3]
    except OSError:  # Gone by now.
        return False
    return int(its_group) == group and state not in (b"Z", b"X")


class _Run:
    """A started process, served to its end by one thread."""

    def __init__(
        self, popen: subprocess.Popen[bytes], payload: bytes, cancel: Cancellation, *, cap: int, use_pidfd: bool
    ) -> None:
        assert popen.stdin is not None and popen.stdout is not None and popen.stderr is not None
        self._group = _Group(popen, use_pidfd=use_pidfd)
        self._stdin = popen.stdin
        self._unsent = memoryview(payload)
        self._stdout = _Output(popen.stdout, cap)
        self._stderr = _Output(popen.stderr, cap)
        self._cancelled = False
        self._cut_short: Literal["timeout", "cancellation"] | None = None
        self._selector = selectors.PollSelector()  # Unlike epoll it takes no descriptor.
        self._selector.register(popen.stdin, selectors.EVENT_WRITE, self._feed)
        self._selector.register(popen.stdout, selectors.EVENT_READ, partial(self._read, self._stdout))
        self._selector.register(popen.stderr, selectors.EVENT_READ, partial(self._read, self._stderr))
        self._selector.register(cancel, selectors.EVENT_READ, partial(self._note_cancellation, cancel))
        if (pidfd := self._group.pidfd) is not None:
            self._selector.register(pidfd, selectors.EVENT_READ, partial(self._note_exit, pidfd))
        for stream in (popen.stdin, popen.stdout, popen.stderr):
            os.set_blocking(stream.fileno(), False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if failure is not None:  # Whatever went wrong in here, the hook does not outlive it.
            self._group.destroy()
        for stream in (self._stdin, self._stdout.stream, self._stderr.stream):
            stream.close()
        if self._group.pidfd is not None:
            os.close(self._group.pidfd)

    def serve(self, deadline: float) -> None:
        """Feed and read the process until it ends; at the deadline or a cancellation, end its group."""
        longest = _TICK if self._group.pidfd is None else _LONGEST_POLL
        while not (self._group.reap() or self._cancelled or time.monotonic() >= deadline):
            self._handle_events(min(deadline, time.monotonic() + longest))
        self._handle_events(0)  # One more look: an exit that comes together with the deadline counts.
        if not self._group.reap():
            self._cut_short = "cancellation" if self._cancelled else "timeout"
            self._end_group()
        self._drain()

    def result(self, started: float) -> HookExecutionResult:
        status = self._group.status
        exited = status is not None and status >= 0 and self._cut_short is None
        return HookExecutionResult(
            exit_code=status if exited else None,
            signal=-status if status is not None and status < 0 else None,
            error=self._why_unknown(),
            timed_out=self._cut_short == "timeout",
            cancelled=self._cut_short == "cancellation",
            stdout=self._stdout.text(),
            stderr=self._stderr.text(),
            stdout_dropped=self._stdout.dropped,
            stderr_dropped=self._stderr.dropped,
            duration=_milliseconds_since(started),
        )

    def _why_unknown(self) -> str | None:
        if not self._group.reaped:
            return f"Process {self._group.number} is still there after SIGKILL"
        if self._group.status is None and self._cut_short is None:
            return "The exit status is unknown: this program ignores SIGCHLD, or something in it took the status"
        return None

    def _drain(self) -> None:
        """Read what is left, but not for long: a background child may hold the pipes, and is left alone."""
        end = time.monotonic() + _DRAIN
        while not (self._all_read() or self._cancelled or time.monotonic() >= end):
            self._handle_events(end)

    def _end_group(self) -> None:
        """SIGTERM, a grace, SIGKILL; returns when the group is dead.

        The leader is reaped after the last signal: until then nobody else can get the group's number.
        """
        self._group.signal(signal.SIGTERM)
        end = time.monotonic() + _GRACE
        while self._group.lives() is not False and time.monotonic() < end:
            self._handle_events(time.monotonic() + _GLANCE)
        self._group.signal(signal.SIGKILL)  # Always: by forking, a member can hide from a look at the group.
        end = time.monotonic() + _DEATH
        while not (self._group.reap() and not self._group.lives()) and time.monotonic() < end:
            self._handle_events(time.monotonic() + _GLANCE)

    def _handle_events(self, until: float) -> None:
        """Wait for something to happen, but not beyond `until`, and deal with it."""
        for key, _ in self._selector.select(until - time.monotonic()):
            handle: Callable[[], None] = key.data
            handle()

    def _feed(self) -> None:
        try:
            sent = os.write(self._stdin.fileno(), self._unsent)
        except BlockingIOError:
            return
        except BrokenPipeError:  # A hook need not read its input.
            sent = len(self._unsent)
        self._unsent = self._unsent[sent:]
        if not self._unsent:
            self._close(self._stdin)

    def _read(self, output: _Output) -> None:
        try:
            data = os.read(output.stream.fileno(), _CHUNK)
        except BlockingIOError:
            return
        output.add(data)
        if not data:
            self._close(output.stream)

    def _all_read(self) -> bool:
        return self._stdout.stream.closed and self._stderr.stream.closed

    def _close(self, stream: IO[bytes]) -> None:
        self._selector.unregister(stream)
        stream.close()

    def _note_exit(self, pidfd: int) -> None:
        self._group.leader_ended = True
        self._selector.unregister(pidfd)

    def _note_cancellation(self, cancel: Cancellation) -> None:
        self._cancelled = True
        self._selector.unregister(cancel)


def _milliseconds_since(start: float) -> float:
    return (time.monotonic() - start) * 1000
