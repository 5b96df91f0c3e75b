"""The index of sessions: what is known of every transcript under a `WAVE_HOME`, so that questions need not open them.

It is derived and never the truth. Each row has the time and size of its transcript when it was read, and a row that
does not match its transcript is read again. An index that is missing, damaged, locked or read-only costs time, nothing
else: reading then finds nothing, and writing does nothing.
"""

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from msgspec import Struct

from wave_agent.sessions.touched import DIRECTORY
from wave_agent.system.private_files import keep_private, open_private

_FILE = "sessions-1.sqlite3"
"""The number is the version of the format: versions of this program do not share a file unless they share a format."""
_PATIENCE = 2.0
"""Seconds to wait for another process that writes."""
_PAGE = 1000
_SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions (
    number INTEGER PRIMARY KEY, project TEXT NOT NULL, id TEXT NOT NULL,
    mtime_ns INTEGER NOT NULL, size INTEGER NOT NULL, UNIQUE (project, id));
CREATE INDEX IF NOT EXISTS by_time ON sessions (project, mtime_ns, id, size);
CREATE TABLE IF NOT EXISTS tallies (number INTEGER PRIMARY KEY, tally BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS heads (number INTEGER PRIMARY KEY, head BLOB NOT NULL);
CREATE TRIGGER IF NOT EXISTS forget_head AFTER DELETE ON sessions BEGIN
    DELETE FROM heads WHERE number = OLD.number;
END;
"""
"""`heads` came later: a version that does not know it still deletes what a deleted session said, by the trigger."""
_PUT = """
INSERT INTO sessions (project, id, mtime_ns, size) VALUES (?, ?, ?, ?)
ON CONFLICT (project, id) DO UPDATE SET mtime_ns = excluded.mtime_ns, size = excluded.size RETURNING number
"""


class Stamp(Struct, frozen=True):
    """A transcript as it was when it was read."""

    mtime_ns: int
    size: int = -1
    """-1: only its time is known."""


class IndexedSession(Struct, frozen=True):
    session_id: str
    stamp: Stamp
    tally: bytes | None = None
    """What its transcript says, in the form of whoever asked. None: not read yet."""


class IndexFile:
    """One connection. `project` is the name of a directory in `WAVE_HOME/projects`."""

    def __init__(self, home: Path, *, create: bool = True) -> None:
        self._create = create
        self._path = home / DIRECTORY / _FILE
        self._connection: sqlite3.Connection | None = None

    def __enter__(self) -> "IndexFile":
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def order(self, project: str) -> Iterator[tuple[int, str]]:
        """Time and id of its known sessions, latest first."""
        rows = "SELECT mtime_ns, id FROM sessions WHERE project = ? ORDER BY mtime_ns DESC, id DESC"
        yield from self._read(rows, project)

    def ids(self, project: str) -> set[str]:
        """All of its known sessions, in one text: a row for each would take five times as long."""
        found = [row[0] for row in self._read("SELECT group_concat(id, '/') FROM sessions WHERE project = ?", project)]
        return set(found[0].split("/")) if found and found[0] else set()

    def tallies(self, project: str) -> Iterator[IndexedSession]:
        """In pages: all of them may not fit into memory, and between two pages others can write."""
        rows = """
            SELECT mtime_ns, id, size, tally FROM sessions JOIN tallies USING (number)
            WHERE project = ? AND (mtime_ns, id) > (?, ?) ORDER BY mtime_ns, id LIMIT ?"""
        last: tuple[int, str] = (-(1 << 62), "")
        while page := list(self._read(rows, project, *last, _PAGE)):
            for mtime_ns, name, size, tally in page:
                yield IndexedSession(name, Stamp(mtime_ns, size), tally)
            last = page[-1][0], page[-1][1]

    def heads(self, project: str) -> Iterator[tuple[str, bytes]]:
        """Id and beginning of its sessions, as far as they were read."""
        yield from self._read("SELECT id, head FROM sessions JOIN heads USING (number) WHERE project = ?", project)

    def put_heads(self, project: str, heads: Iterable[tuple[str, int, bytes]]) -> None:
        """Id, time of the last use and beginning. The time only counts for a session that is not known yet."""

        def write(connection: sqlite3.Connection) -> None:
            for name, mtime_ns, head in heads:
                connection.execute(
                    "INSERT OR IGNORE INTO sessions (project, id, mtime_ns, size) VALUES (?, ?, ?, -1)",
                    (project, name, mtime_ns),
                )
                connection.execute(
                    "INSERT OR REPLACE INTO heads SELECT number, ? FROM sessions WHERE project = ? AND id = ?",
                    (head, project, name),
                )

        self._write(write)

    def used_before(self, mtime_ns: int) -> list[tuple[str, str]]:
        """Project and id of the known sessions that were not used since."""
        return list(self._read("SELECT project, id FROM sessions WHERE mtime_ns < ?", mtime_ns))

    def put(self, project: str, sessions: Iterable[IndexedSession]) -> None:
        """Adds or replaces. A session without a tally loses the one it had: its transcript has changed."""

        def write(connection: sqlite3.Connection) -> None:
            for one in sessions:
                row = (project, one.session_id, one.stamp.mtime_ns, one.stamp.size)
                [number] = connection.execute(_PUT, row).fetchone()
                if one.tally is None:
                    connection.execute("DELETE FROM tallies WHERE number = ?", (number,))
                else:
                    connection.execute("INSERT OR REPLACE INTO tallies VALUES (?, ?)", (number, one.tally))

        self._write(write)

    def forget(self, project: str, ids: Iterable[str]) -> None:
        def write(connection: sqlite3.Connection) -> None:
            for name in ids:
                where = "SELECT number FROM sessions WHERE project = ? AND id = ?"
                connection.execute(f"DELETE FROM tallies WHERE number IN ({where})", (project, name))
                connection.execute("DELETE FROM sessions WHERE project = ? AND id = ?", (project, name))

        self._write(write)

    def _open(self) -> None:
        if not self._create and not self._path.exists():
            return
        with suppress(OSError, sqlite3.Error):
            keep_private(self._path.parent)
            self._make_private()
            try:
                self._connect()
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):  # locked, read-only, no room: not damaged
                    raise
                self._remove()
                self._make_private()
                self._connect()

    def _make_private(self) -> None:
        os.close(open_private(self._path, os.O_RDWR | os.O_CREAT))

    def _connect(self) -> None:
        connection = sqlite3.connect(self._path, timeout=_PATIENCE, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA secure_delete = ON")  # what a deleted session said is overwritten
            connection.executescript(_SCHEMA)
        except sqlite3.Error:
            connection.close()
            raise
        self._connection = connection

    def _read(self, rows: str, *values: Any) -> Iterator[Any]:
        if self._connection is None:
            return
        try:
            yield from self._connection.execute(rows, values)
        except sqlite3.Error as error:
            self._fail(error)

    def _write(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """All of it, or nothing."""
        if self._connection is None:
            return
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            with self._connection:
                work(self._connection)
        except sqlite3.Error as error:
            self._fail(error)

    def _fail(self, error: sqlite3.Error) -> None:
        """From now on nothing is known. What is damaged is removed, for the next one to build a new index."""
        self._close()
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            self._remove()

    def _remove(self) -> None:
        for file in (self._path, self._path.with_name(f"{_FILE}-journal")):
            with suppress(OSError):
                file.unlink()

    def _close(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None
