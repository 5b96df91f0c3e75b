"""Notes on the sessions that agents open and close, so that the index knows which transcripts may have changed.

One line each, in `WAVE_HOME/index/touched`:

    + -home-ada-app/4f1c…      an existing session was opened: its transcript changes until further notice
    = -home-ada-app/4f1c…      it was closed, or a new one was

A note costs one small write, without the index itself and without a lock: agents write it on their event loops. Whoever
brings the index up to date moves the notes aside first, to `touched.taken`, and leaves what is still open in
`touched.before`; until then, the notes are those of all three. So nothing is lost if it is killed.

Every note may get lost with the system: the transcripts are the truth, and whoever counts something compares all of
them with the index.
"""

import fcntl
import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from wave_agent.system.private_files import keep_private, open_private, write_private

DIRECTORY = "index"
"""In `WAVE_HOME`: these notes, and the index."""
_FILE, _TAKEN, _BEFORE = "touched", "touched.taken", "touched.before"
_LOCK = "touched.lock"
_TRIES = 8
_OPENED, _CLOSED = "+", "="
_MOST = 1 << 20
"""Bytes of notes. Beyond that, no more are taken, and every transcript is looked at."""


class Touched(Struct, frozen=True):
    """Sessions, each as the project's directory and the id."""

    open: frozenset[tuple[str, str]] = frozenset()
    closed: frozenset[tuple[str, str]] = frozenset()
    overflowed: bool = False
    """There were too many notes: any session may have changed."""

    def of(self, project: str) -> set[str]:
        return {name for place, name in self.open | self.closed if place == project}


def note_opened(transcript: Path) -> None:
    """Before an existing session is continued."""
    _note(transcript, _OPENED)


def note_closed(transcript: Path) -> None:
    _note(transcript, _CLOSED)


def touched(home: Path) -> Touched:
    """The notes so far."""
    # In this order, notes that are moved meanwhile are read twice, which changes nothing, and not missed.
    new, taken, before = (_read(home / DIRECTORY / name) for name in (_FILE, _TAKEN, _BEFORE))
    return _parsed(before + taken + new)


@contextmanager
def taken(home: Path) -> Generator[Touched | None]:
    """The notes so far, which are crossed out at the end, except for those on sessions that are still open. None if
    another process is at it. New notes can be made meanwhile."""
    directory = home / DIRECTORY
    if not directory.is_dir():
        yield Touched()
        return
    lock = open_private(directory / _LOCK, os.O_RDWR | os.O_CREAT)
    try:
        try:
            with _unless_unsupported():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        if not (directory / _TAKEN).exists():  # else somebody was killed: that comes first, the rest next time
            with suppress(FileNotFoundError):
                (directory / _FILE).rename(directory / _TAKEN)
        found = _parsed(_read(directory / _BEFORE) + _read(directory / _TAKEN))
        yield found
        write_private(directory / _BEFORE, _lines(_OPENED, sorted(found.open)), sync=False)
        (directory / _TAKEN).unlink(missing_ok=True)
    finally:
        os.close(lock)


@contextmanager
def _unless_unsupported() -> Generator[None]:
    """A file system without locks is none to wait for."""
    try:
        yield
    except BlockingIOError:
        raise
    except OSError:
        pass


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _note(transcript: Path, mark: str) -> None:
    if transcript.parents[1].name != "projects":  # of a subagent, or not in a WAVE_HOME
        return
    directory = transcript.parents[2] / DIRECTORY
    line = _lines(mark, [(transcript.parent.name, transcript.stem)])
    with suppress(OSError):
        keep_private(directory)
        for _ in range(_TRIES):
            if _add(directory / _FILE, line):
                return


def _add(file: Path, line: bytes) -> bool:
    """Whether the note is where the next one who takes notes finds it: not if they were moved aside meanwhile."""
    descriptor = open_private(file, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    try:
        facts = os.fstat(descriptor)
        # A guard of another agent closes its session after every event.
        if facts.st_size <= _MOST and os.pread(descriptor, len(line), max(0, facts.st_size - len(line))) != line:
            os.write(descriptor, line)
        with suppress(FileNotFoundError):
            return os.path.samestat(facts, file.stat())
        return False
    finally:
        os.close(descriptor)


def _lines(mark: str, sessions: Iterable[tuple[str, str]]) -> bytes:
    return "".join(f"{mark} {project}/{name}\n" for project, name in sessions).encode()


def _parsed(notes: bytes) -> Touched:
    opened: set[tuple[str, str]] = set()
    closed: set[tuple[str, str]] = set()
    for line in notes.decode(errors="replace").splitlines():
        mark, _, session = line.partition(" ")
        project, _, name = session.partition("/")
        if mark == _OPENED:
            opened.add((project, name))
        elif mark == _CLOSED:
            opened.discard((project, name))
            closed.add((project, name))
    return Touched(frozenset(opened), frozenset(closed), len(notes) > _MOST)
