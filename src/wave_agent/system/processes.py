"""Processes: each runs in its own session, and one poll loop in one thread serves it until it ends.

The usual tools each break a promise: `asyncio.subprocess` waits for pipes that a background child may hold open for
hours; `Popen.wait` reports exit 0 if other code collected the status; `Popen.communicate` waits for the pipes too, and
kills a single process instead of the whole group.
"""

import errno
import math
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import IO, Literal, Self, TypeAlias

from wave_agent.system.which import which

StreamName: TypeAlias = Literal["stdout", "stderr"]
Receive: TypeAlias = Callable[[StreamName, bytes], None]
"""Called with output as it arrives, never with an empty chunk."""
Feed: TypeAlias = Callable[[int], bool]
"""Writes to stdin's non-blocking descriptor; False when there is nothing left to write."""

Ledger: TypeAlias = Callable[[], AbstractContextManager[Callable[[int], object]]]
"""Tracks running processes, so that they can be ended if this program is killed: entered before a process starts,
given its group's number immediately, and exited when the process has ended."""

_CHUNK = 1 << 16
"""Bytes per read: the capacity of a pipe on Linux."""

# Seconds:
_DRAIN = 0.25
"""For output still in flight when the process has ended."""
GRACE = 0.5
"""To clean up between SIGTERM and SIGKILL."""
DEATH = 1.0
"""To die of SIGKILL. Only processes we may not kill, or that hang in the kernel, need longer."""
ENDING = ((signal.SIGTERM, GRACE), (signal.SIGKILL, DEATH))
_TICK = 0.002
"""Between two checks for the exit of a process that cannot be polled."""
GLANCE = 0.01
"""Between two checks of a whole group that is being ended: they cost more."""
_WATCH = 0.25
"""Between two checks of a group that outlives its leader."""
_LONGEST_POLL = 60.0
"""A deadline may be any float, but poll() counts milliseconds in an int."""

_SPAWN_ERRORS = {
    errno.ENOENT: "it was not found",
    errno.EACCES: "it is not a file with permission to execute (chmod +x)",
    errno.ENOEXEC: "the system cannot execute this format (a script needs a first line such as #!/bin/sh)",
    errno.E2BIG: "its arguments or its environment are too long",
    errno.EMFILE: "this process has too many open files",
    errno.ENFILE: "the system has too many open files",
}


def spawn(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    program: str | None = None,
    fed: bool = False,
    kept: Sequence[int] = (),
    hold: bool = False,
) -> "Child":
    """Start a program in its own session and group. Unless `fed`, its stdin is empty.

    `env` is its whole environment; `program` is its file, if already looked up; `kept` are descriptors it gets besides
    its streams. With `hold`, its output does not end before `Child.let_go`. Raises the exceptions that `explain`
    describes.
    """
    program = program or find_program(argv[0], env, cwd)
    # Our own pipes: when descriptors run out, Popen in Python 3.11.2 leaks those it has already created.
    pipes: list[tuple[int, int]] = []
    try:
        while len(pipes) < (3 if fed else 2):
            pipes.append(os.pipe())
        process = Child(
            argv,
            executable=program,
            stdin=pipes[2][0] if fed else subprocess.DEVNULL,
            stdout=pipes[0][1],
            stderr=pipes[1][1],
            cwd=cwd,
            env=env,
            start_new_session=True,
            pass_fds=kept,
        )
    except BaseException:
        for descriptor in (end for pipe in pipes for end in pipe):
            os.close(descriptor)
        raise
    process.held = (pipes[0][1], pipes[1][1])
    if not hold:
        process.let_go()
    for theirs in (one[0] for one in pipes[2:]):
        os.close(theirs)
    process.stdout, process.stderr = (os.fdopen(ours, "rb", 0) for ours, _ in pipes[:2])
    if fed:
        process.stdin = os.fdopen(pipes[2][1], "wb", 0)
    return process


class Child(subprocess.Popen[bytes]):
    """A process from `spawn`."""

    held: tuple[int, ...] = ()
    """Our own copies of the ends of the pipes that it writes to."""

    def let_go(self) -> None:
        """From now on, the pipes end with the last process that holds them."""
        held, self.held = self.held, ()
        for descriptor in held:
            os.close(descriptor)


def no_ledger() -> AbstractContextManager[Callable[[int], object]]:
    return nullcontext(_unheard)


def _unheard(_: int) -> None:
    pass


def find_program(program: str, env: Mapping[str, str], cwd: str) -> str:
    """The file that a program's name refers to in its own environment and directory.

    Popen would find it too, but changes the process-wide warning filters meanwhile, which is not thread-safe.
    """
    if "/" in program:
        return program
    directories = env.get("PATH", os.defpath).split(os.pathsep)
    path = os.pathsep.join(os.path.join(cwd, directory) for directory in directories)
    found = which(program, path=path)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
    return found


def explain(error: Exception, program: str, cwd: str) -> str:
    """One sentence for the user. Names are quoted with `repr`, since they may contain anything."""
    if sentence := explain_directory(error, program, cwd):
        return sentence
    if isinstance(error, FileNotFoundError) and "/" in program and os.path.exists(os.path.join(cwd, program)):
        reason = "the interpreter named in its first line was not found"
    elif isinstance(error, OSError):
        reason = _SPAWN_ERRORS.get(error.errno or 0, str(error))
    elif isinstance(error, ValueError):
        reason = f"its arguments, environment or directory are invalid ({error})"
    else:
        reason = repr(error)
    return f"Program {program!r} cannot be started: {reason}"


def explain_directory(error: Exception, program: str, cwd: str) -> str | None:
    """The same if the directory is at fault, otherwise None."""
    if not (isinstance(error, OSError) and error.filename == cwd != program):
        return None
    reason = "does not exist" if error.errno == errno.ENOENT else f"cannot be entered: {error.strerror}"
    return f"Working directory {cwd!r} {reason}"


class Cancellation:
    """A request to end a run, made from any thread. The run polls it like its pipes, and closes it."""

    def __init__(self) -> None:
        self.requested = False
        self._closed = False
        self._lock = threading.Lock()
        self._receiver, self._sender = os.pipe()

    def fileno(self) -> int:
        return self._receiver

    def request(self) -> None:
        """May be called more than once, and after the end of the run."""
        with self._lock:  # Otherwise the descriptor might be closed, and reused by another file, before the write.
            if not (self.requested or self._closed):
                os.write(self._sender, b"\0")
            self.requested = True

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._receiver)
                os.close(self._sender)


class ProcessGroup:
    """The process that was started and its group, whose number is the leader's pid."""

    def __init__(self, popen: subprocess.Popen[bytes], *, use_pidfd: bool) -> None:
        self.number = popen.pid
        self.pidfd: int | None = None
        """Readable when the leader has ended. None: poll with `reap`."""
        self.leader_ended = False
        """Set this when the pidfd says so."""
        self.reaped = False
        self.status: int | None = None
        """The leader's exit code or negative signal. Stays None if other code collects it."""
        self._popen = popen
        if use_pidfd and hasattr(os, "pidfd_open"):
            with suppress(OSError):  # An old kernel, a sandbox, or no descriptor left.
                self.pidfd = os.pidfd_open(popen.pid)

    def reap(self) -> bool:
        """Collect the leader's status if it has ended, and return whether it has. Its pid may then be reused.

        Does not use `Popen.poll`, which reports exit 0 if other code collected the status.
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
            self._popen.returncode = self.status or 0  # Otherwise Popen would warn, and wait again.
        return self.reaped

    def end(self, wait: Callable[[float], None]) -> None:
        """SIGTERM, a grace period, SIGKILL; returns when the group is dead. `wait` serves it until a given time.

        The leader is reaped after the last signal: until then the group's number cannot be reused.
        """
        self.signal(signal.SIGTERM)
        end = time.monotonic() + GRACE
        while self.lives() is not False and time.monotonic() < end:
            wait(time.monotonic() + GLANCE)
        self.signal(signal.SIGKILL)  # Always: a member that forks can be missed when the group is checked.
        end = time.monotonic() + DEATH
        while not (self.reap() and not self.lives()) and time.monotonic() < end:
            wait(time.monotonic() + GLANCE)

    def destroy(self) -> None:
        """Kill and reap, without a grace period."""
        if not self.reaped:
            self.signal(signal.SIGKILL)
            self.leader_ended = True
            self.reap()

    def signal(self, number: int) -> bool:
        """Signal every process of the group; False if there was none to signal."""
        return signal_group(self.number, number)

    def lives(self) -> bool | None:
        """Whether any process of the group is alive; zombies are not. None if that cannot be determined."""
        if self.pidfd is not None and not self.leader_ended:
            return True
        with suppress(OSError):  # No /proc: not Linux. Or one of another container, with different pids.
            if os.readlink("/proc/self") == str(os.getpid()):
                return any(_is_live_member(pid, self.number) for pid in os.listdir("/proc") if pid.isdigit())
        return self.signal(0) if self.reaped else None  # An unreaped leader accepts signals too.

    def close(self) -> None:
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None


def signal_group(group: int, number: int) -> bool:
    """Signal every process of the group; False if there was none to signal."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # The latter also for a group of zombies on macOS.
        return False
    return True


def end_groups(groups: Iterable[int], alive: Callable[[], Container[int]]) -> None:
    """SIGTERM, a grace period, SIGKILL; returns when they are dead. `alive` returns the groups that live now."""
    for number, seconds in ENDING:
        end = time.monotonic() + seconds
        living = [group for group in groups if signal_group(group, number)]
        while living and time.monotonic() < end:
            time.sleep(GLANCE)
            now = alive()
            living = [group for group in living if group in now]


def _is_live_member(pid: str, group: int) -> bool:
    try:
        if os.getpgid(int(pid)) != group:  # One call; opening and reading a file takes twenty times as long.
            return False
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The second field is a name in parentheses, which may itself contain blanks and parentheses.
            state, _, its_group = file.read().rpartition(b")")[2].split()[:3]
    except OSError:  # It has exited.
        return False
    return int(its_group) == group and state not in (b"Z", b"X")


class Service:
    """A process from `spawn`, served by one thread until it ends. Leaving the context closes the pipes; leaving it with
    an exception also kills the group.

    It ends with its leader, and processes the leader left running are left alone; with `whole_group` it ends only when
    nothing in its group is alive any more (if the system can tell).
    """

    def __init__(
        self,
        popen: Child,
        cancel: Cancellation,
        receive: Receive,
        *,
        feed: Feed | None = None,
        whole_group: bool = False,
        use_pidfd: bool = True,
    ) -> None:
        """`feed` is for a process spawned with `fed`. Exceptions of either function are raised by `serve`."""
        assert popen.stdout is not None and popen.stderr is not None and (popen.stdin is None) == (feed is None)
        self.group = ProcessGroup(popen, use_pidfd=use_pidfd)
        self.cut_short: Literal["timeout", "cancellation"] | None = None
        """Why the group was killed."""
        self._whole_group = whole_group and self.group.pidfd is not None
        self._receive = receive
        self._streams = [stream for stream in (popen.stdin, popen.stdout, popen.stderr) if stream is not None]
        self._unread = {"stdout", "stderr"}
        self._cancelled = False
        self._feed: Callable[[], None] | None = None
        self._poll = select.poll()  # Unlike epoll, it needs no descriptor.
        self._handlers: dict[int, Callable[[], None]] = {}
        if popen.stdin is not None and feed is not None:
            self._feed = partial(self._write, popen.stdin, feed)
            self._watch(popen.stdin.fileno(), select.POLLOUT, self._feed)
        self._watch(popen.stdout.fileno(), select.POLLIN, partial(self._read, "stdout", popen.stdout))
        self._watch(popen.stderr.fileno(), select.POLLIN, partial(self._read, "stderr", popen.stderr))
        self._watch(cancel.fileno(), select.POLLIN, partial(self._note_cancellation, cancel))
        self._let_go = popen.let_go
        if (pidfd := self.group.pidfd) is not None:
            self._watch(pidfd, select.POLLIN, partial(self._note_exit, pidfd))
        else:
            popen.let_go()
        for stream in self._streams:
            os.set_blocking(stream.fileno(), False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if failure is not None:  # Whatever went wrong here, the process must not outlive it.
            self.group.destroy()
        self._let_go()
        for stream in self._streams:
            stream.close()
        self.group.close()

    def first_signs(self) -> tuple[int, ...]:
        """Descriptors, one of which becomes readable when `serve` has something to do before its deadline. None of
        them: it has from the start."""
        return tuple(self._handlers) if self.group.pidfd is not None and self._feed is None else ()

    def serve(self, deadline: float) -> None:
        """Feed and read the process until it ends; at the deadline or on cancellation, end its group."""
        if self._feed is not None:
            self._feed()  # Most input fits into the empty pipe: then there is nothing to poll for.
        while not (self._has_ended() or self._cancelled or time.monotonic() >= deadline):
            self._handle_events(min(deadline, time.monotonic() + self._patience()))
        if not self._has_ended():
            self._handle_events(0)  # One last check: an exit at the deadline is accepted.
        if not self._has_ended():
            self.cut_short = "cancellation" if self._cancelled else "timeout"
            self.group.end(self._handle_events)
        self._drain()

    def why_unknown(self, what: str) -> str | None:
        """Why the group's status does not say `what` ("exit code"), in one sentence; None if it does."""
        if not self.group.reaped:
            return f"Process {self.group.number} still exists after SIGKILL"
        if self.group.status is None and self.cut_short is None:
            return f"The {what} is unknown: this program ignores SIGCHLD, or other code in it collected the status"
        return None

    def _has_ended(self) -> bool:
        """With a whole group, the leader is reaped after its last member, so that the number stays ours to signal."""
        if self._whole_group and not self.group.reaped and self.group.lives():
            return False
        return self.group.reap()

    def _patience(self) -> float:
        if self.group.pidfd is None:
            return _TICK
        return _WATCH if self.group.leader_ended else _LONGEST_POLL

    def _drain(self) -> None:
        """Read remaining output, but not for long: a background child may hold the pipes, and is left alone."""
        end = time.monotonic() + _DRAIN
        while self._unread and not (self._cancelled or time.monotonic() >= end):
            self._handle_events(end)

    def _handle_events(self, until: float) -> None:
        """Wait for an event, at most until `until`, and handle it."""
        milliseconds = max(0, math.ceil((until - time.monotonic()) * 1000))
        for descriptor, _ in self._poll.poll(milliseconds):
            self._handlers[descriptor]()

    def _watch(self, descriptor: int, what: int, handle: Callable[[], None]) -> None:
        self._poll.register(descriptor, what)
        self._handlers[descriptor] = handle

    def _unwatch(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)
        del self._handlers[descriptor]

    def _write(self, stream: IO[bytes], feed: Feed) -> None:
        if not feed(stream.fileno()):
            self._close(stream)

    def _read(self, name: StreamName, stream: IO[bytes]) -> None:
        try:
            data = os.read(stream.fileno(), _CHUNK)
        except BlockingIOError:
            return
        if data:
            self._receive(name, data)
        else:
            self._unread.remove(name)
            self._close(stream)

    def _close(self, stream: IO[bytes]) -> None:
        self._unwatch(stream.fileno())
        stream.close()

    def _note_exit(self, pidfd: int) -> None:
        self.group.leader_ended = True
        self._unwatch(pidfd)
        self._let_go()  # Not before: the exit wakes us once, not again for each pipe.

    def _note_cancellation(self, cancel: Cancellation) -> None:
        self._cancelled = True
        self._unwatch(cancel.fileno())


def kill_children() -> None:
    """Kills every process group of a direct child immediately. For a process that is about to exit."""
    own = str(os.getpid())
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            _, parent, group, *_ = stat.read_text().rsplit(")", 1)[1].split()
            if parent == own and int(group) != os.getpgrp():
                os.killpg(int(group), signal.SIGKILL)
