"""What is done after a session: its figures go into the index, and old sessions are deleted."""

from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from wave_agent.replay.selection import project_directories
from wave_agent.sessions.clean_up import forget_old_sessions
from wave_agent.sessions.index import SUFFIX, stamps, transcript_ids
from wave_agent.sessions.touched import taken, touched

if TYPE_CHECKING:
    from wave_agent.sessions.index_file import IndexedSession, IndexFile

_ENOUGH = 32
"""Sessions to wait for before the index is opened: that takes as long as reading several of them."""
_MOST = 64
"""Sessions to read at once, of those that the index is behind."""
_LARGEST = 16 << 20
"""Bytes of a transcript that is read then. A larger one waits until someone asks for figures."""


def after_session(home: Path, cleanup_days: int) -> None:
    """Never fails: all of it can be done next time."""
    with suppress(OSError):
        notes = touched(home)
        if notes.overflowed or len(notes.closed) >= _ENOUGH:
            update_index(home)
        forget_old_sessions(home, cleanup_days)


def update_index(home: Path) -> None:
    """Adds the sessions that were closed since the last time, unless another process is at it."""
    from wave_agent.sessions.index_file import IndexFile  # lazy: loads SQLite

    with taken(home) as notes, IndexFile(home) as index:
        if notes is None:
            return
        closed = _changed(home, index) if notes.overflowed else notes.closed
        left = 0 if notes.overflowed else _MOST
        for project, sessions in groupby(sorted(closed), key=itemgetter(0)):
            paths = [home / "projects" / project / f"{name}{SUFFIX}" for _, name in sessions]
            read = [_read(path, tally=at < left) for at, path in enumerate(paths)]
            index.put(project, filter(None, read))
            index.forget(project, [path.stem for path, one in zip(paths, read, strict=True) if one is None])
            left -= len(paths)


def _read(path: Path, *, tally: bool) -> "IndexedSession | None":
    """None if it is gone. Without a tally, it is only known when it was used."""
    from wave_agent.sessions.index_file import IndexedSession, Stamp  # lazy: see above

    try:
        facts = path.stat()
    except OSError:
        return None
    if tally and facts.st_size <= _LARGEST:
        from wave_agent.replay.tallies import read_session  # lazy: loads all that reads transcripts

        found = read_session(str(path))
        if found.tally:
            return IndexedSession(path.stem, found.stamp, found.tally)
    return IndexedSession(path.stem, Stamp(facts.st_mtime_ns))


def _changed(home: Path, index: "IndexFile") -> list[tuple[str, str]]:
    """Project and id of every session whose time is not that of the index."""
    found: list[tuple[str, str]] = []
    for directory in project_directories(home):
        known = {name: time for time, name in index.order(directory.name)}
        current = stamps(directory, transcript_ids(directory))
        found += [(directory.name, one.session_id) for one in current if known.get(one.session_id) != one.mtime_ns]
    return found
