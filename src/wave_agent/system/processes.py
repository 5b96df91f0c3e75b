"""Processes: each in a session of its own, served to its end by one poll loop in one thread.

What lies nearer at hand breaks a promise each time: `asyncio.subprocess` waits for pipes that a background child may
hold for hours; `Popen.wait` takes a status that somebody else collected for exit 0; `Popen.communicate` waits for the
pipes too, and kills one process where a whole group is to end.
"""

import errno
import math
import os
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import IO, Literal, Self, TypeAlias

StreamName: TypeAlias = Literal["stdout", "stderr"]
Receive: TypeAlias = Callable[[StreamName, bytes], None]
"""Is given what was printed, as it comes, and never nothing."""
Feed: TypeAlias = Callable[[int], bool]
"""Writes to the descriptor of stdin, which does not block; False when it has no more to write."""

Ledger: TypeAlias = Callable[[], AbstractContextManager[Callable[[int], object]]]
"""Keeps account of what runs, for whoever has to end it when this program is killed: entered before a process is
started, told its group's number at once, and left when it has ended."""

_CHUNK = 1 << 16
"""Bytes read at once: what a pipe holds on Linux."""

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
"""Between two looks at a whole group that has been told to end: they cost more."""
_WATCH = 0.25
"""Between two looks at a group that lives on without its leader."""
_LONGEST_POLL = 60.0
"""A deadline may be any float, but poll() counts milliseconds in an int."""

_SPAWN_ERRORS = {
    errno.ENOENT: "it was not found",
    errno.EACCES: "it is not a file with permission to execute (chmod +x)",
    errno.ENOEXEC: "the system does not know its format (a script needs a first line such as #!/bin/sh)",
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
) -> subprocess.Popen[bytes]:
    """Start a program in a session and a group of its own. Unless it is to be fed, its stdin is empty.

    `env` is its whole environment; `program` is its file, if that has been looked up already; `kept` are descriptors
    that it gets beside its streams. Raises what `explain` has a sentence for.
    """
    program = program or find_program(argv[0], env, cwd)
    # Pipes of our own: where descriptors run out, Popen in Python 3.11.2 leaves those open that it has made so far.
    pipes: list[tuple[int, int]] = []
    try:
        while len(pipes) < (3 if fed else 2):
            pipes.append(os.pipe())
        process = subprocess.Popen(
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
    for theirs in (pipes[0][1], pipes[1][1], *(one[0] for one in pipes[2:])):
        os.close(theirs)
    process.stdout, process.stderr = (os.fdopen(ours, "rb", 0) for ours, _ in pipes[:2])
    if fed:
        process.stdin = os.fdopen(pipes[2][1], "wb", 0)
    return process


def no_ledger() -> AbstractContextManager[Callable[[int], object]]:
    return nullcontext(_unheard)


def _unheard(_: int) -> None:
    pass


def find_program(program: str, env: Mapping[str, str], cwd: str) -> str:
    """The file that a program's name stands for in its own environment and directory.

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


def explain(error: Exception, program: str, cwd: str) -> str:
    """One sentence for the user. Names are quoted as Python does it, since they may hold anything."""
    if sentence := explain_directory(error, program, cwd):
        return sentence
    if isinstance(error, FileNotFoundError) and "/" in program and os.path.exists(os.path.join(cwd, program)):
        reason = "the interpreter named in its first line was not found"
    elif isinstance(error, OSError):
        reason = _SPAWN_ERRORS.get(error.errno or 0, str(error))
    elif isinstance(error, ValueError):
        reason = f"its arguments, environment or directory cannot be passed on ({error})"
    else:
        reason = repr(error)
    return f"Program {program!r} cannot be started: {reason}"


def explain_directory(error: Exception, program: str, cwd: str) -> str | None:
    """The same if it is the directory that is at fault, otherwise None."""
    if not (isinstance(error, OSError) and error.filename == cwd != program):
        return None
    reason = "does not exist" if error.errno == errno.ENOENT else f"cannot be entered: {error.strerror}"
    return f"Working directory {cwd!r} {reason}"


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


class ProcessGroup:
    """The process that was started, and what it starts in its group, whose number is that leader's pid."""

    def __init__(self, popen: subprocess.Popen[bytes], *, use_pidfd: bool) -> None:
        self.number = popen.pid
        self.pidfd: int | None = None
        """Readable when the leader has ended. None: ask `reap` again and again."""
        self.leader_ended = False
        """To be set when the pidfd says so."""
        self.reaped = False
        self.status: int | None = None
        """The leader's exit code or negative signal. Stays None if somebody else collects it."""
        self._popen = popen
        if use_pidfd and hasattr(os, "pidfd_open"):
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

    def end(self, wait: Callable[[float], None]) -> None:
        """SIGTERM, a grace, SIGKILL; returns when the group is dead. `wait` serves it until a given time.

        The leader is reaped after the last signal: until then nobody else can get the group's number.
        """
        self.signal(signal.SIGTERM)
        end = time.monotonic() + _GRACE
        while self.lives() is not False and time.monotonic() < end:
            wait(time.monotonic() + _GLANCE)
        self.signal(signal.SIGKILL)  # Always: by forking, a member can hide from a look at the group.
        end = time.monotonic() + _DEATH
        while not (self.reap() and not self.lives()) and time.monotonic() < end:
            wait(time.monotonic() + _GLANCE)

    def destroy(self) -> None:
        """Kill and reap, without a grace."""
        if not self.reaped:
            self.signal(signal.SIGKILL)
            self.leader_ended = True
            self.reap()

    def signal(self, number: int) -> bool:
        """Signal every process of the group; False if none could be."""
        try:
            os.killpg(self.number, number)
        except (ProcessLookupError, PermissionError):  # The latter also for a group of zombies on macOS.
            return False
        return True

    def lives(self) -> bool | None:
        """Whether any process of the group lives; zombies do not. None where that cannot be told."""
        if self.pidfd is not None and not self.leader_ended:
            return True
        with suppress(OSError):  # No /proc: not Linux. Or one mounted for another container, with other numbers.
            if os.readlink("/proc/self") == str(os.getpid()):
                return any(_is_live_member(pid, self.number) for pid in os.listdir("/proc") if pid.isdigit())
        return self.signal(0) if self.reaped else None  # A leader not yet reaped takes signals too.

    def close(self) -> None:
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None


def _is_live_member(pid: str, group: int) -> bool:
    try:
        if os.getpgid(int(pid)) != group:  # One call; opening and reading a file takes twenty times as long.
            return False
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The second field is a name in parentheses, which may hold blanks and parentheses of its own.
            state, _, its_group = file.read().rpartition(b")")[2].split()[:3]
    except OSError:  # Gone by now.
        return False
    return int(its_group) == group and state not in (b"Z", b"X")


class Service:
    """A process from `spawn`, served to its end by one thread. Leaving the context closes the pipes; leaving it by an
    exception kills the group as well.

    It has ended with its leader, and what that left running is left alone; with `whole_group` only when nothing in
    its group lives any more (where the system tells).
    """

    def __init__(
        self,
        popen: subprocess.Popen[bytes],
        cancel: Cancellation,
        receive: Receive,
        *,
        feed: Feed | None = None,
        whole_group: bool = False,
        use_pidfd: bool = True,
    ) -> None:
        """`feed` belongs to a process that was spawned to be fed. What either function raises comes through `serve`."""
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
        self._poll = select.poll()  # Unlike epoll it takes no descriptor.
        self._handlers: dict[int, Callable[[], None]] = {}
        if popen.stdin is not None and feed is not None:
            self._feed = partial(self._write, popen.stdin, feed)
            self._watch(popen.stdin.fileno(), select.POLLOUT, self._feed)
        self._watch(popen.stdout.fileno(), select.POLLIN, partial(self._read, "stdout", popen.stdout))
        self._watch(popen.stderr.fileno(), select.POLLIN, partial(self._read, "stderr", popen.stderr))
        self._watch(cancel.fileno(), select.POLLIN, partial(self._note_cancellation, cancel))
        if (pidfd := self.group.pidfd) is not None:
            self._watch(pidfd, select.POLLIN, partial(self._note_exit, pidfd))
        for stream in self._streams:
            os.set_blocking(stream.fileno(), False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if failure is not None:  # Whatever went wrong in here, the process does not outlive it.
            self.group.destroy()
        for stream in self._streams:
            stream.close()
        self.group.close()

    def serve(self, deadline: float) -> None:
        """Feed and read the process until it ends; at the deadline or a cancellation, end its group."""
        if self._feed is not None:
            self._feed()  # Most of what is fed fits into the empty pipe: then there is nothing to poll for.
        while not (self._has_ended() or self._cancelled or time.monotonic() >= deadline):
            self._handle_events(min(deadline, time.monotonic() + self._patience()))
        if not self._has_ended():
            self._handle_events(0)  # One more look: an exit that comes together with the deadline counts.
        if not self._has_ended():
            self.cut_short = "cancellation" if self._cancelled else "timeout"
            self.group.end(self._handle_events)
        self._drain()

    def why_unknown(self, what: str) -> str | None:
        """Why the group's status does not tell `what` ("exit code"), in one sentence; None if it does."""
        if not self.group.reaped:
            return f"Process {self.group.number} is still there after SIGKILL"
        if self.group.status is None and self.cut_short is None:
            return f"The {what} is unknown: this program ignores SIGCHLD, or something in it took the status"
        return None

    def _has_ended(self) -> bool:
        """The leader of a whole group is not reaped before its last member: that keeps the number ours to signal."""
        if self._whole_group and not self.group.reaped and self.group.lives():
            return False
        return self.group.reap()

    def _patience(self) -> float:
        if self.group.pidfd is None:
            return _TICK
        return _WATCH if self.group.leader_ended else _LONGEST_POLL

    def _drain(self) -> None:
        """Read what is left, but not for long: a background child may hold the pipes, and is left alone."""
        end = time.monotonic() + _DRAIN
        while self._unread and not (self._cancelled or time.monotonic() >= end):
            self._handle_events(end)

    def _handle_events(self, until: float) -> None:
        """Wait for something to happen, but not beyond `until`, and deal with it."""
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

    def _note_cancellation(self, cancel: Cancellation) -> None:
        self._cancelled = True
        self._unwatch(cancel.fileno())


def kill_children() -> None:
    """Ends every process group of a direct child at once. For a process that is about to end itself."""
    own = str(os.getpid())
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            _, parent, group, *_ = stat.read_text().rsplit(")", 1)[1].split()
            if parent == own and int(group) != os.getpgrp():
                os.killpg(int(group), signal.SIGKILL)
