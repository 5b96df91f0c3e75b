"""Selects which sessions to read."""

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from heapq import merge
from pathlib import Path

from wave_agent.replay.subagent_lines import is_of_subagent
from wave_agent.sessions.index import SessionUse, session_files, session_uses
from wave_agent.sessions.transcript import transcripts

_SINCE = re.compile(r"(\d{1,6})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_since(text: str) -> timedelta:
    """Parse `90m`, `12h`, `7d` or `4w`. Raises `ValueError` with a message for the user."""
    found = _SINCE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f'"{text}" is not a time span; write a number and m, h, d or w, such as 7d')
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def sessions_of(home: Path, project: str, since: timedelta | None = None) -> list[Path]:
    """The transcripts of a project, latest first."""
    return _since(list(session_files(transcripts(home, project))), since)


def project_directories(home: Path) -> list[Path]:
    """The directories with the transcripts of each project."""
    try:
        with os.scandir(home / "projects") as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir())
    except OSError:
        return []


def all_sessions(home: Path) -> Iterator[SessionUse]:
    """The sessions of all projects, latest first."""
    return merge(*map(session_uses, project_directories(home)), reverse=True)


def foreign_sessions(directory: Path, since: timedelta | None = None) -> list[Path]:
    """Every session below a directory, sorted by path. Subagents are part of theirs."""
    found = (path for path in directory.rglob("*.jsonl") if path.is_file() and not is_of_subagent(path))
    return _since(sorted(found), since)


def _since(paths: list[Path], since: timedelta | None) -> list[Path]:
    if since is None:
        return paths
    limit = (datetime.now(UTC) - since).timestamp()
    return [path for path in paths if _modified(path) >= limit]


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
