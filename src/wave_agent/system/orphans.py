"""Processes left running by a killed agent; the next start ends them.

Hooks and commands run in their own sessions, so a `kill -9` of the agent does not reach them. Each agent therefore
has a file in `WAVE_HOME/running`, locked while it lives, with a line for every process event:

    {"pid":4711,"transcript":"/home/ada/.wave/projects/…", "project": …}      the first line
    ?3 812345                   process 3 is about to start, at this time in ticks since boot
    +3 4800 812346              it is running, as group 4800
    +3 4807 812399              it has left group 4807 behind
    -3                          it has ended, along with leftovers that end with the session

An unlocked file belongs to a dead agent. Process ids are reused, so a group is taken for the dead agent's only if its
leader's start time matches the file, or if a member has the session's id in its environment and is not older than the
line. Needs /proc: without it, nothing is ended.

When an agent ends, or is found dead, its session's time span is recorded in `WAVE_HOME/ended`: see `presence`.
"""

import fcntl
import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from wave_agent.system.private_files import keep_private, open_private
from wave_agent.system.processes import end_groups

_SLACK = 1
"""Ticks by which our clock and the kernel's start time of a process may differ."""
_TICKS = os.sysconf("SC_CLK_TCK")
_STARTING = 5 * _TICKS
"""Ticks that a start may take. Later processes with the session's id in their environment belong to someone else: a
terminal that a hook opened, for example."""


_ENDED_SIZE = 8192
"""Bytes of a project's notes before old ones are dropped."""
_ENDED_KEPT = 64


class SessionSpan(Struct, frozen=True):
    """The time span of a session of a project. Times in ticks since boot."""

    begun: int
    ended: int | None = None
    """None: still running."""
    unattended: bool = True


def sessions_of(home: Path, project: str) -> list[SessionSpan]:
    """The running sessions of this project, and the known ended ones of this boot."""
    found: list[SessionSpan] = []
    for path in _run_files(home):
        with suppress(OSError, ValueError, KeyError, TypeError, IndexError):
            facts = json.loads(path.read_bytes().splitlines()[0])
            if facts["project"] == project and facts["boot"] == _boot():
                # A killed session's processes may have lived until now.
                ended = None if _is_locked(path) else _now()
                found.append(SessionSpan(int(facts["begun"]), ended, bool(facts["unattended"])))
    with suppress(OSError):
        boot = _boot()
        for line in _ended_file(home, project).read_text().splitlines():
            with suppress(ValueError):
                noted, begun, ended, unattended = line.split()
                found += [SessionSpan(int(begun), int(ended), unattended == "1")] if noted == boot else []
    return found


def has_ended(home: Path, project: str) -> bool:
    """Whether there are notes on sessions of this project, from any boot."""
    return _ended_file(home, project).exists() or bool(_run_files(home))


def guards_noted(home: Path) -> list[Any]:
    """The user's guards as found at the start of unattended sessions that are running or were killed."""
    found: list[Any] = []
    for path in _run_files(home):
        with suppress(OSError, ValueError, KeyError, TypeError, IndexError):
            facts = json.loads(path.read_bytes().splitlines()[0])
            found += [facts["guards"]] if facts["unattended"] else []
    return found


def _note_end(home: Path, header: bytes) -> None:
    """Records the time span of an ended session. `header` is the first line of its run file."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        facts = json.loads(header)
        file = _ended_file(home, facts["project"])
        if facts["boot"] != _boot():
            return
        line = f"{facts['boot']} {int(facts['begun'])} {_now()} {int(facts['unattended'])}\n"
        keep_private(file.parent)
        descriptor = open_private(file, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            os.write(descriptor, line.encode())
            if (size := os.fstat(descriptor).st_size) > _ENDED_SIZE:
                kept = os.pread(descriptor, _ENDED_SIZE, size - _ENDED_SIZE).splitlines(keepends=True)[-_ENDED_KEPT:]
                os.ftruncate(descriptor, 0)
                os.write(descriptor, b"".join(kept))
        finally:
            os.close(descriptor)


def _ended_file(home: Path, project: str) -> Path:
    return home / "ended" / hashlib.sha256(os.fsencode(project)).hexdigest()[:32]


def _boot() -> str:
    """Ticks are only comparable within one boot."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() or "?"
    except OSError:
        return "?"


def holder_of(home: Path, transcript: Path) -> int | None:
    """The process whose agent uses this transcript."""
    for path in _run_files(home):
        with suppress(OSError, ValueError, KeyError, TypeError):
            facts = json.loads(path.read_bytes().splitlines()[0])
            if facts["transcript"] == str(transcript) and _is_locked(path):
                return int(facts["pid"])
    return None


class Leftovers:
    """The run file of one agent, and the cleanup of those of dead ones."""

    def __init__(
        self, home: Path, transcript: Path, *, project: str = "", unattended: bool = True, guards: Any = None
    ) -> None:
        """`guards`: the guards in the user's settings when the session starts, for `guards_noted`."""
        self._home = home
        self._transcript = transcript
        self._facts: dict[str, Any] = {"project": project, "unattended": unattended}
        self._facts |= {} if guards is None else {"guards": guards}
        self._path: Path | None = None
        self._descriptor: int | None = None
        self._first_line = b""
        self._lock = threading.Lock()
        self._started = 0
        self._running: set[int] = set()

    def open(self) -> int:
        """Ends what dead agents have left running, and returns the number of groups. Never raises: an unwritable disk
        costs only this safety net, not the agent."""
        if self._descriptor is not None:
            return 0
        with suppress(OSError):
            keep_private(self._home / "running")
            ended = sum(_end_of_dead(path) for path in _run_files(self._home))
            self._create()
            return ended
        return 0

    def entry(self) -> "ProcessNote":
        """The note for one process: see `processes.Ledger`."""
        return ProcessNote(self)

    def close(self) -> None:
        """Call it when nothing is running any more."""
        if self._descriptor is not None and self._path is not None:
            with self._lock:
                descriptor, self._descriptor = self._descriptor, None
            _note_end(self._home, self._first_line)
            with suppress(OSError):
                self._path.unlink()
            os.close(descriptor)

    def _create(self) -> None:
        facts = {
            "pid": os.getpid(),
            "transcript": str(self._transcript),
            **self._facts,
            "boot": _boot(),
            "begun": _now(),
        }
        header = json.dumps(facts).encode() + b"\n"
        while self._descriptor is None:
            path = self._home / "running" / f"{self._transcript.stem}.{os.urandom(6).hex()}"
            descriptor = open_private(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.write(descriptor, header)
                os.stat(path)  # Before it was locked, another agent may have taken it for a dead one's.
            except (BlockingIOError, FileNotFoundError):
                os.close(descriptor)
                continue
            except OSError:
                os.close(descriptor)
                raise
            self._path, self._descriptor, self._first_line = path, descriptor, header

    def begin(self) -> int:
        with self._lock:
            self._started += 1
            self._running.add(self._started)
            self._write(b"?%d %d\n" % (self._started, _now()))
            return self._started

    def note(self, number: int, group: int) -> None:
        with self._lock:
            self._write(b"+%d %d %d\n" % (number, group, _now()))

    def end(self, number: int) -> None:
        with self._lock:
            self._running.discard(number)
            self._write(b"-%d\n" % number)
            if not self._running and self._started % 1024 == 0 and self._descriptor is not None:
                with suppress(OSError):  # Its content no longer matters: it need not grow forever.
                    os.ftruncate(self._descriptor, len(self._first_line))

    def _write(self, line: bytes) -> None:
        if self._descriptor is not None:
            with suppress(OSError):
                os.write(self._descriptor, line)


class ProcessNote:
    """Spans the life of one process."""

    __slots__ = ("_file", "_number")

    def __init__(self, file: Leftovers) -> None:
        self._file = file
        self._number = 0

    def __enter__(self) -> "ProcessNote":
        self._number = self._file.begin()
        return self

    def __call__(self, group: int) -> None:
        self._file.note(self._number, group)

    def __exit__(self, *_: object) -> None:
        self._file.end(self._number)


def _now() -> int:
    """Ticks since boot, the unit of start times in /proc."""
    clock: int | None = getattr(time, "CLOCK_BOOTTIME", None)
    return 0 if clock is None else int(time.clock_gettime(clock) * _TICKS)


def _run_files(home: Path) -> list[Path]:
    try:
        return list((home / "running").iterdir())
    except OSError:
        return []


def _is_locked(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


# --------------------------------------------------------------------------------------------------- those of the dead


class _Left(Struct):
    """A process that was running, according to the file."""

    begun: int
    groups: list[tuple[int, int]]
    """Its own group and those it left behind, each with the time of its note."""


class LiveProcess(Struct, frozen=True):
    pid: int
    parent: int
    group: int
    session: int
    born: int
    """Ticks since boot."""


def _end_of_dead(path: Path) -> int:
    """Ends what this file's agent has left running, if it is dead, and deletes the file."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        session_id, left = _read(path)
        groups = _still_ours(session_id, left)
        end_groups(groups, lambda: {process.group for process in live_processes()})
        _note_end(path.parents[1], path.read_bytes().partition(b"\n")[0])
        path.unlink()
        return len(groups)
    except OSError:  # The agent lives, or another one is cleaning up.
        return 0
    finally:
        os.close(descriptor)


def _read(path: Path) -> tuple[str, list[_Left]]:
    """An incomplete last line is ignored: its process already has an about-to-start note."""
    header, *lines = path.read_bytes().splitlines() or [b""]
    running: dict[int, _Left] = {}
    session_id = ""
    with suppress(ValueError, KeyError, TypeError):
        session_id = Path(json.loads(header)["transcript"]).stem
    for line in lines:
        with suppress(ValueError, KeyError, IndexError):
            number, *facts = map(int, line[1:].split())
            if line.startswith(b"?"):
                running[number] = _Left(facts[0], [])
            elif line.startswith(b"+"):
                running[number].groups.append((facts[0], facts[1]))
            elif line.startswith(b"-"):
                del running[number]
    return session_id, list(running.values())


def _still_ours(session_id: str, left: Sequence[_Left]) -> list[int]:
    """The noted groups that are alive and certainly still ours."""
    # Signalling group 0 or 1 would mean something else; our own group is never a leftover, whatever the file says.
    not_ours = (0, 1, os.getpgrp())
    processes = [process for process in live_processes() if process.group not in not_ours] if left else []
    marks = [f"WAVE_SESSION_ID={session_id}"] if session_id else []
    return sorted({process.group for one in left for process in processes if _is_of(process, one, marks)})


def _is_of(process: LiveProcess, one: _Left, marks: Sequence[str]) -> bool:
    if process.born < one.begun - _SLACK:
        return False
    if not one.groups:  # The agent was killed before it could record the number.
        is_early = process.born <= one.begun + _STARTING
        return is_early and process.group == process.session and was_given(process.pid, *marks)
    noted = [when for group, when in one.groups if group == process.group]
    is_leader = process.pid == process.group and any(process.born <= when + _SLACK for when in noted)
    return is_leader or (bool(noted) and was_given(process.pid, *marks))


def live_processes() -> Iterator[LiveProcess]:
    """The live processes; none without /proc, or if its process ids differ from ours."""
    try:
        if os.readlink("/proc/self") != str(os.getpid()):
            return
        names = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return
    for name in names:
        with suppress(OSError):
            # The second field is a name in parentheses, which may itself contain blanks and parentheses.
            fields: list[Any] = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
            if fields[0] not in (b"Z", b"X"):
                yield LiveProcess(int(name), *map(int, (fields[1], fields[2], fields[3], fields[19])))


def birth_of(pid: int) -> int | None:
    """Ticks since boot; None if the process does not exist or cannot be inspected."""
    try:
        if os.readlink("/proc/self") != str(os.getpid()):
            return None
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
    except OSError:
        return None


def was_given(pid: int, *variables: str) -> bool:
    """Whether one of these (`NAME=value`) was in the process's initial environment."""
    environment = environment_of(pid)
    return any(variable.encode() in environment for variable in variables)


def environment_of(pid: int) -> list[bytes]:
    """The process's initial environment; empty if it has exited or may not be inspected."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
