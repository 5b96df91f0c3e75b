"""Notes on the sessions that agents open and close, so that the index knows which transcripts may have changed.

One line each, in `WAVE_HOME/index/touched`:

    + -home-ada-app/4f1c…      an existing session was opened: its transcript changes until further notice
    = -home-ada-app/4f1c…      it was closed, or a new one was

A note costs one small write, without the index itself. Every note may get lost: the transcripts are the truth, and
whoever counts something compares all of them with the index.
"""

import fcntl
import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from wave_agent.system.private_files import keep_private, open_private

DIRECTORY = "index"
"""In `WAVE_HOME`: these notes, and the index."""
_FILE = "touched"
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
    try:
        return _parsed((home / DIRECTORY / _FILE).read_bytes())
    except OSError:
        return Touched()


@contextmanager
def taken(home: Path) -> Generator[Touched]:
    """The notes so far, which are crossed out at the end, except for those on sessions that are still open."""
    try:
        descriptor = os.open(home / DIRECTORY / _FILE, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        yield Touched()
        return
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        with os.fdopen(os.dup(descriptor), "rb") as file:
            found = _parsed(file.read())
        yield found
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, _lines(_OPENED, sorted(found.open)), 0)
    finally:
        os.close(descriptor)


def _note(transcript: Path, mark: str) -> None:
    if transcript.parents[1].name != "projects":  # of a subagent, or not in a WAVE_HOME
        return
    directory = transcript.parents[2] / DIRECTORY
    line = _lines(mark, [(transcript.parent.name, transcript.stem)])
    with suppress(OSError):
        keep_private(directory)
        descriptor = open_private(directory / _FILE, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            size = os.fstat(descriptor).st_size
            # A guard of another agent closes its session after every event.
            if size <= _MOST and os.pread(descriptor, len(line), max(0, size - len(line))) != line:
                os.write(descriptor, line)
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
