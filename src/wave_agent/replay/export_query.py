"""Asks an export: in SQL that can read its tables and nothing else, or for the figures of `wave hooks stats`."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

from wave_agent.errors import ExportError
from wave_agent.replay.export import connection, quoted
from wave_agent.replay.export_place import ExportPlace
from wave_agent.replay.export_rows import DAY, HOOK_RUNS, SESSIONS, TABLES, TOOL_CALLS
from wave_agent.replay.figures import HookFigures, figures
from wave_agent.replay.fleet_extra import load
from wave_agent.replay.outcomes import FAILED, SAYS_NO
from wave_agent.replay.overview import MOST_DENIED, DayFigures, HookOverview
from wave_agent.replay.tally import ENFORCE, SHADOW, DeniedTally, HookTally

_MOST_ROWS = 100_000
_PLAIN = frozenset({
    *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
    *("HUGEINT", "FLOAT", "DOUBLE", "VARCHAR"),
})  # fmt: skip
"""Types whose values are the same in JSON. Others become text."""


class QueryResult(Struct, frozen=True):
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    cut: bool
    """There were more rows."""


def ask(place: ExportPlace, sql: str, most: int = _MOST_ROWS) -> QueryResult:
    """The result of one SELECT. It can neither change anything nor reach other files, or the network."""
    duckdb = load("duckdb")
    with _restricted(place) as database:
        try:
            statements = database.extract_statements(sql)
            if [one.type for one in statements] != [duckdb.StatementType.SELECT]:
                raise ExportError("Only one SELECT is allowed: it reads, and changes nothing.")
            found = database.sql(statements[0].query)
            if found is None:
                raise ExportError("Only one SELECT is allowed: it reads, and changes nothing.")
            columns, types = [str(name) for name in found.columns], [str(kind) for kind in found.types]
            shown = (f"#{at}" if kind in _PLAIN else _as_number_or_text(at, kind) for at, kind in enumerate(types, 1))
            plain = found.project(", ".join(f"{value} AS c{at}" for at, value in enumerate(shown)))
            rows = plain.limit(most + 1).fetchall()
        except duckdb.Error as error:
            raise ExportError(f"This cannot be answered: {_without_hints(str(error))}") from None
    return QueryResult(columns, rows[:most], len(rows) > most)


_FIGURES_MEMORY = "128MB"
"""What counts sessions writes to the disk what does not fit, and is no slower."""


def hook_figures(place: ExportPlace, since: float = 0) -> tuple[int, list[HookFigures]]:
    """The number of sessions that were used since, and the figures of their hooks."""
    with _restricted(place, _FIGURES_MEMORY) as database:
        return _figures(database, since)


def export_overview(place: ExportPlace, since: float = 0) -> HookOverview:
    """The data of `wave hooks report`."""
    with _restricted(place) as database:
        sessions, hooks = _figures(database, since)
        rows = database.execute(_DAYS.format(which=_which(since))).fetchall()
        days = [DayFigures(**dict(zip(DayFigures.__struct_fields__, row, strict=True))) for row in rows]
        denied = [
            DeniedTally(day="", tool=row[0], text=row[1], by=row[2], count=row[3])
            for row in database.execute(_DENIED.format(which=_which(since))).fetchall()
        ]
    return HookOverview(sessions=sessions, days=days, hooks=hooks, denied=denied)


def _figures(database: Any, since: float) -> tuple[int, list[HookFigures]]:
    """DuckDB groups durations to three digits, so that memory does not grow with the number of runs."""
    [[sessions]] = database.execute(f"SELECT count(*) FROM {SESSIONS} WHERE {_used(since)}").fetchall()
    rows = database.execute(_TALLIES.format(which=_which(since))).fetchall()
    counts = database.execute(_SESSION_COUNTS.format(which=_which(since))).fetchall()
    return sessions, figures([*map(_tally, rows), *map(_session_count, counts)])


def _used(since: float) -> str:
    return f"ended >= make_timestamp({int(since * 1e6)})" if since else "true"


def _which(since: float) -> str:
    return f"session_id IN (SELECT session_id FROM {SESSIONS} WHERE {_used(since)})" if since else "true"


_MODE = f"CASE WHEN mode = '{SHADOW}' THEN '{SHADOW}' ELSE '{ENFORCE}' END"
_TALLIES = f"""
SELECT event, name, layer, {_MODE} AS kind, printf('%.3g', duration_ms)::DOUBLE AS time_ms,
       count(*), count(*) FILTER {SAYS_NO},
       count(*) FILTER {FAILED}, count(*) FILTER (let_through),
       coalesce(sum(tokens), 0)::BIGINT, coalesce(sum(duration_ms) FILTER (NOT is_async), 0),
       coalesce(sum(turn_ms), 0) / 1000
FROM {HOOK_RUNS} WHERE {{which}} GROUP BY event, name, layer, kind, time_ms
"""
"""`printf` rounds as `three_digits` does; DuckDB's `round` differs where a duration ends in 5."""


_SESSION_COUNTS = f"""
SELECT event, name, layer, kind, count(*), count(*) FILTER (blocked)
FROM (SELECT event, name, layer, {_MODE} AS kind, bool_or({SAYS_NO}) AS blocked
      FROM {HOOK_RUNS} WHERE {{which}} GROUP BY event, name, layer, kind, source, session_id)
GROUP BY event, name, layer, kind
"""
_DAYS = f"""
SELECT CAST(day AS VARCHAR), count(*), count(*) FILTER ({_MODE} = '{ENFORCE}'),
       count(*) FILTER ({SAYS_NO} AND {_MODE} = '{ENFORCE}'), count(*) FILTER ({SAYS_NO} AND {_MODE} = '{SHADOW}'),
       count(*) FILTER {FAILED}, count(*) FILTER (let_through)
FROM {HOOK_RUNS} WHERE {{which}} GROUP BY day ORDER BY day
"""
_DENIED = f"""
SELECT tool, coalesce(TRY(input ->> '$.command'), TRY(input ->> '$.file_path'), program, '') AS call,
       coalesce(denied_by, '') AS hook, count(*) AS calls
FROM {TOOL_CALLS} WHERE denied IS NOT NULL AND {{which}}
GROUP BY ALL ORDER BY calls DESC, tool, call, hook LIMIT {MOST_DENIED}
"""


def _tally(row: Sequence[Any]) -> HookTally:
    event, name, layer, mode, time_ms, runs, blocks, failures, let_through, tokens, waited_ms, turn_seconds = row
    return HookTally(
        day="",
        event=event,
        name=name,
        layer=layer,
        mode=mode,
        runs=runs,
        blocks=blocks if mode == ENFORCE else 0,
        would_block=blocks if mode == SHADOW else 0,
        failures=failures,
        let_through=let_through,
        tokens=tokens,
        waited_ms=waited_ms,
        turn_seconds=turn_seconds,
        times=[float(time_ms)],
        counts=[runs],
    )


def _session_count(row: Sequence[Any]) -> HookTally:
    event, name, layer, mode, sessions, blocked = row
    return HookTally(
        day="",
        event=event,
        name=name,
        layer=layer,
        mode=mode,
        sessions=sessions,
        blocked_sessions=blocked,
        times=[],
        counts=[],
    )


@contextmanager
def _restricted(place: ExportPlace, memory: str = "") -> Generator[Any]:
    """The tables as views. From then on, DuckDB opens no other file, and its configuration is locked. `memory`: less
    than usual, for what is known to do with it."""
    if not place.is_export():
        raise ExportError(f"{place.name} is not an export; make one with: wave hooks export {place.name}")
    with TemporaryDirectory(prefix="wave-query-") as scratch, connection(place, Path(scratch)) as database:
        for table in TABLES:
            database.execute(f"CREATE VIEW {table} AS {_rows(place, table)}")
        database.execute("SET preserve_insertion_order = true")
        if memory:
            database.execute(f"SET memory_limit = '{memory}'")
        database.execute("SET python_enable_replacements = false")
        allowed = (place.base + "/", place.url(""), scratch + "/")  # of a pattern, DuckDB checks what it is, too
        database.execute(f"SET allowed_directories = [{', '.join(map(quoted, allowed))}]")
        database.execute("SET enable_external_access = false")
        database.execute("SET lock_configuration = true")
        yield database


def _rows(place: ExportPlace, table: str) -> str:
    columns = [(DAY, "DATE"), *((column.name, column.type) for column in TABLES[table])]
    if not place.days(table, "*"):
        empty = ", ".join(f'CAST(NULL AS {kind}) AS "{name}"' for name, kind in columns)
        return f"SELECT {empty} WHERE false"
    files = quoted(place.url(f"{table}/day=*/*.parquet"))
    options = "hive_partitioning = true, hive_types = {day: DATE}, union_by_name = true"
    return f"SELECT {', '.join(chr(34) + name + chr(34) for name, _ in columns)} FROM read_parquet({files}, {options})"


def _as_number_or_text(at: int, kind: str) -> str:
    return f"CAST(#{at} AS DOUBLE)" if kind.startswith("DECIMAL") else f"CAST(#{at} AS VARCHAR)"


def _without_hints(message: str) -> str:
    """The first paragraph: what follows points at a place in the query."""
    return " ".join(message.split("\n\n", maxsplit=1)[0].split())
