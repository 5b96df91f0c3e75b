"""Exports sessions to Parquet: a file for each table, day and source, so that an export can be repeated at any time.

A session whose transcript has changed since is exported again, and its former rows are replaced. Rows of sessions that
no longer exist here stay: an export is also the archive of what was cleaned up. A session's row in `sessions` is
written last, so that an export that is interrupted is completed by the next one.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from wave_agent.errors import ExportError
from wave_agent.replay.export_place import ExportPlace, without_globs
from wave_agent.replay.export_rows import DAY, HOOK_RUNS, SESSIONS, TABLES, TOOL_CALLS, ExportColumn, RowOrigin, rows_of
from wave_agent.replay.facts import read_facts
from wave_agent.replay.fleet_extra import load
from wave_agent.replay.selection import project_directories
from wave_agent.sessions.index import SUFFIX, stamps, transcript_ids
from wave_agent.sessions.touched import DIRECTORY
from wave_agent.system.many import each
from wave_agent.system.private_files import keep_private, open_private, write_private

_SOURCE = "source"
"""The file with the name of this `WAVE_HOME`."""
_IS_SOURCE = re.compile("[0-9a-f]{16}")
_BATCH = 500
"""Sessions whose rows are collected before they are compressed."""
_MEMORY = "256MB"
"""For DuckDB. What needs more goes through a temporary file."""

Report = Callable[[int, int], None]


class Exported(Struct, frozen=True, kw_only=True):
    """What an export has done."""

    sessions: int
    hook_runs: int
    tool_calls: int
    days: int
    """Days whose files were written."""
    unchanged: int
    """Sessions that had not changed."""
    removed: int = 0
    """Sessions whose rows were removed."""


class SessionRows(Struct, frozen=True):
    """The rows of a session as JSON lines, for each table."""

    session_id: str
    tables: Mapping[str, bytes]
    counts: Mapping[str, int]


def source_of(home: Path) -> str:
    """Names this `WAVE_HOME` among all that export to the same place: by chance, and kept in it.

    Neither its path nor the host's name would do. The same directory has many where containers mount it.
    """
    file = home / DIRECTORY / _SOURCE
    keep_private(file.parent)
    for _ in range(2):
        with suppress(FileNotFoundError):
            if _IS_SOURCE.fullmatch(found := file.read_text(errors="replace")):
                return found
            file.unlink()  # damaged
        new = file.with_name(f".{_SOURCE}-{os.urandom(6).hex()}.tmp")
        try:
            write_private(new, os.urandom(8).hex().encode())
            os.link(new, file)
        except FileExistsError:  # of several at once, the first one wins
            pass
        except OSError:  # a file system without links
            new.replace(file)
        finally:
            new.unlink(missing_ok=True)
    return file.read_text()


def export_sessions(
    home: Path, place: ExportPlace, report: Report, *, content: bool = False, prune: bool = False
) -> Exported:
    """Brings the export up to date with all sessions of this `WAVE_HOME`.

    With `content`, prompts, inputs and results are part of it, masked. With `prune`, sessions that no longer exist here
    are removed, and so is what other sources have of those that do: the same home, under a name that it lost.
    Raises `ExportError`.
    """
    load("duckdb")
    with _alone(home):
        place.prepare()
        return _Export(home, place, report, content=content).run(prune=prune)


class _Export:
    def __init__(self, home: Path, place: ExportPlace, report: Report, *, content: bool) -> None:
        self._home = home
        self._place = place
        self._report = report
        self._content = content
        self._source = source_of(home)

    def run(self, *, prune: bool) -> Exported:
        with TemporaryDirectory(prefix="wave-export-") as scratch, connection(self._place, Path(scratch)) as database:
            changed = dict(self._transcripts())  # and those that have not changed are forgotten: there may be millions
            present = len(changed)
            ids = set(changed) if prune else set[str]()
            days_of: dict[str, list[str]] = {}
            gone: list[str] = []
            for one in self._known(database):
                now = changed.get(one.session_id)
                if now is None:
                    gone += [one.session_id] if prune else []
                elif now.stamp == one.stamp and one.content >= self._content:
                    del changed[one.session_id]
                    continue
                days_of[one.session_id] = one.days
            counts, read = self._stage(database, [one.path for one in changed.values()], Path(scratch))
            replaced = [*read, *gone]
            days = {day for name in replaced for day in days_of.get(name, ())}
            written = self._merge(database, replaced, days, Path(scratch))
            if prune:
                written |= self._take_over(database, ids, Path(scratch))
        return Exported(
            **counts,
            days=len(written),
            unchanged=present - len(read),
            removed=len(gone),
        )

    def _transcripts(self) -> "Iterator[tuple[str, _Transcript]]":
        for directory in project_directories(self._home):
            for one in stamps(directory, transcript_ids(directory)):
                path = os.path.join(directory, f"{one.session_id}{SUFFIX}")
                yield one.session_id, _Transcript((one.mtime_ns, one.size), path)

    def _known(self, database: Any) -> "Iterator[_ExportedSession]":
        """What was exported before."""
        if not self._place.days(SESSIONS, self._source):
            return
        files = quoted(self._place.url(f"{SESSIONS}/day=*/{self._source}.parquet"))
        columns = "session_id, transcript_mtime_ns, transcript_size, content, days::VARCHAR[]"
        found = database.execute(f"SELECT {columns} FROM read_parquet({files})")
        while rows := found.fetchmany(_BATCH):
            for session_id, mtime_ns, size, content, days in rows:
                yield _ExportedSession(session_id, (mtime_ns, size), content, days)

    def _take_over(self, database: Any, present: Collection[str], scratch: Path) -> set[str]:
        """Removes from other sources what is exported by this one. Returns the days of which something was removed."""
        if not self._place.days(SESSIONS, "*"):
            return set()
        _name_sessions(database, "present", present, scratch)
        for staged in (scratch / "staged").glob("*"):
            shutil.rmtree(staged)
        files = quoted(self._place.url(f"{SESSIONS}/day=*/*.parquet"))
        own = quoted(self._source)
        rows = database.execute(
            f"SELECT source, session_id, days::VARCHAR[] FROM read_parquet({files}, union_by_name=true) "
            f"WHERE source != {own} AND session_id IN (SELECT session_id FROM present)"
        ).fetchall()
        written: set[str] = set()
        for source in sorted({row[0] for row in rows if _IS_SOURCE.fullmatch(row[0])}):
            theirs = [(name, days) for who, name, days in rows if who == source]
            days = {day for _, some in theirs for day in some}
            written |= self._merge(database, [name for name, _ in theirs], days, scratch, source)
        return written

    def _stage(self, database: Any, paths: Sequence[str], scratch: Path) -> tuple[dict[str, int], list[str]]:
        """Reads the transcripts; their rows are in Parquet files in `scratch` afterwards, by day.

        Returns the number of rows, and the sessions that could be read: the rows of others are not replaced."""
        counts: dict[str, int] = dict.fromkeys(TABLES, 0)
        sessions: list[str] = []
        read = partial(read_rows, source=self._source, content=self._content)
        rest = enumerate(each(read, paths), 1)
        batches = 0
        while batch := list(islice(rest, _BATCH)):
            batches += 1
            sessions += [rows.session_id for _, rows in batch if rows.counts[SESSIONS]]
            for table in TABLES:
                lines = scratch / f"{table}.jsonl"
                with lines.open("wb") as file:
                    for _, rows in batch:
                        file.write(rows.tables[table])
                        counts[table] += rows.counts[table]
                if lines.stat().st_size:
                    _compress(database, table, lines, scratch / "staged" / table, batches)
                lines.unlink()
            self._report(batch[-1][0], len(paths))
        return counts, sessions

    def _merge(
        self, database: Any, replaced: Sequence[str], days: set[str], scratch: Path, source: str = ""
    ) -> set[str]:
        """Writes the files of all days with new rows, or with rows that are replaced. Returns these days."""
        source = source or self._source
        _name_sessions(database, "replaced", replaced, scratch)
        written: set[str] = set()
        for table in (HOOK_RUNS, TOOL_CALLS, SESSIONS):
            staged = {path.name.removeprefix("day="): path for path in (scratch / "staged" / table).glob("day=*")}
            before = self._place.days(table, source)
            for day in sorted(staged.keys() | (days & before)):
                name = f"{table}/day={day}/{source}.parquet"
                self._write(database, table, name, staged.get(day), scratch, is_new=day not in before)
                written.add(day)
        return written

    def _write(self, database: Any, table: str, name: str, staged: Path | None, scratch: Path, *, is_new: bool) -> None:
        columns = ", ".join(f'"{column.name}"' for column in TABLES[table])
        parts: list[str] = []
        if not is_new:
            old = f"read_parquet({quoted(self._place.url(name))}, hive_partitioning=false, union_by_name=true)"
            parts.append(f"SELECT {columns} FROM {old} WHERE session_id NOT IN (SELECT session_id FROM replaced)")
        if staged is not None:
            files = quoted(without_globs(str(staged)) + "/*.parquet")
            parts.append(f"SELECT {columns} FROM read_parquet({files}, hive_partitioning=false)")
        file = scratch / "day.parquet"
        rows = " UNION ALL ".join(parts)
        [count] = database.execute(
            f"COPY ({rows}) TO {quoted(str(file))} (FORMAT parquet, COMPRESSION zstd)"
        ).fetchone()
        if count:
            self._place.put(file, name)
        else:
            self._place.remove(name)


def _name_sessions(database: Any, table: str, ids: Collection[str], scratch: Path) -> None:
    """Makes a table of these ids."""
    file = scratch / f"{table}.json"
    file.write_bytes(b"\n".join(msgspec.json.encode({"session_id": name}) for name in ids))
    kind = "columns={session_id: 'VARCHAR'}"
    rows = f"FROM read_json({quoted(without_globs(str(file)))}, format='newline_delimited', {kind})"
    nothing = "SELECT ''::VARCHAR AS session_id WHERE false"
    database.execute(f"CREATE OR REPLACE TEMP TABLE {table} AS {rows if ids else nothing}")


class _Transcript(NamedTuple):
    """A transcript as it is now."""

    stamp: tuple[int, int]
    """Time and size."""
    path: str


class _ExportedSession(NamedTuple):
    """A session as it was exported."""

    session_id: str
    stamp: tuple[int, int]
    content: bool
    days: list[str]


def read_rows(place: str, *, source: str, content: bool) -> SessionRows:
    """The rows of one transcript. There are none if it cannot be read: it is exported next time."""
    path = Path(place)
    try:
        with path.open("rb") as file:
            facts = os.fstat(file.fileno())
            found = read_facts(file)
    except OSError:
        return SessionRows(path.stem, dict.fromkeys(TABLES, b""), dict.fromkeys(TABLES, 0))
    origin = RowOrigin(source, path.stem, facts.st_mtime_ns, facts.st_size, content)
    tables = rows_of(found, origin)
    encode = msgspec.json.encode
    return SessionRows(
        path.stem,
        {table: b"".join(encode(row) + b"\n" for row in rows) for table, rows in tables.items()},
        {table: len(rows) for table, rows in tables.items()},
    )


def _compress(database: Any, table: str, lines: Path, target: Path, number: int) -> None:
    """JSON lines to Parquet files by day."""
    types = {DAY: "VARCHAR", **{column.name: _json_type(column) for column in TABLES[table]}}
    listed = ", ".join(f"{quoted(name)}: {quoted(kind)}" for name, kind in types.items())
    source = f"read_json({quoted(without_globs(str(lines)))}, format='newline_delimited', columns={{{listed}}})"
    columns = ", ".join(_converted(column) for column in TABLES[table])
    target.mkdir(parents=True, exist_ok=True)
    options = f"FORMAT parquet, PARTITION_BY ({DAY}), OVERWRITE_OR_IGNORE, FILENAME_PATTERN {quoted(f'{number}-{{i}}')}"
    database.execute(f"COPY (SELECT {DAY}, {columns} FROM {source}) TO {quoted(str(target))} ({options})")


def _json_type(column: ExportColumn) -> str:
    return "DOUBLE" if column.type == "TIMESTAMP" else column.type


def _converted(column: ExportColumn) -> str:
    if column.type != "TIMESTAMP":
        return f'"{column.name}"'
    return f'make_timestamp(CAST("{column.name}" * 1000000 AS BIGINT)) AS "{column.name}"'


@contextmanager
def connection(place: ExportPlace, scratch: Path) -> Generator[Any]:
    """DuckDB without extensions from the network, and with little memory."""
    duckdb = load("duckdb")
    settings = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    try:
        with duckdb.connect(config={**settings, "memory_limit": _MEMORY, "temp_directory": str(scratch)}) as found:
            place.attach(found)
            found.execute("SET preserve_insertion_order = false")
            yield found
    except duckdb.Error as error:
        raise ExportError(f"{place.name} cannot be used: {str(error).splitlines()[0]}") from error


@contextmanager
def _alone(home: Path) -> Generator[None]:
    """One export of a `WAVE_HOME` at a time: two would overwrite each other's files."""
    keep_private(home / DIRECTORY)
    descriptor = open_private(home / DIRECTORY / "export.lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def quoted(text: str) -> str:
    """As a string in SQL."""
    return "'" + text.replace("'", "''") + "'"
