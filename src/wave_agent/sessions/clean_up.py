"""Deletes the user's own old sessions, at most once a day.

A `WAVE_HOME` can be shared. So a session is only deleted by the user who owns the file and whom its first line names:
whatever someone else's settings say, nobody loses data to them. One that waits to be uploaded stays until it is sent.
"""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from wave_agent.errors import SessionError
from wave_agent.sessions.index import FEW, SUFFIX, forget_in_index, remove_files, transcript_ids
from wave_agent.sessions.outbox import waiting_ids
from wave_agent.sessions.touched import DIRECTORY
from wave_agent.sessions.transcript import is_session_id
from wave_agent.system.identity import user_name
from wave_agent.system.private_files import keep_private, open_private

_DAY = 86_400
_LONGEST_HEAD = 64 << 10
"""Bytes of a first line."""


def forget_old_sessions(home: Path, days: int, now: datetime | None = None, *, few: int = FEW) -> int:
    """Deletes this user's sessions, of all projects, that were not used for `days` days. 0: none."""
    moment = (now or datetime.now(UTC)).timestamp()
    if not days or _was_done(home, days, moment):
        return 0
    limit = moment - days * _DAY
    forgotten: dict[str, list[str]] = {}
    unsent = waiting_ids(home)
    for path in list(_candidates(home, limit, few)):
        with suppress(OSError, SessionError):  # anything that cannot be deleted now is tried again next time
            facts = path.stat()
            is_old = facts.st_mtime < limit and path.stem not in unsent
            if is_old and stat.S_ISREG(facts.st_mode) and _is_own(path, facts):
                remove_files(path)
                forgotten.setdefault(path.parent.name, []).append(path.stem)
    for project, ids in forgotten.items():
        forget_in_index(home, project, ids)
    return sum(map(len, forgotten.values()))


def _was_done(home: Path, days: int, now: float) -> bool:
    """Whether this user's sessions were cleaned today, with the same setting. If not, that is noted."""
    note = home / DIRECTORY / f"cleaned-{os.geteuid()}"
    with suppress(OSError):
        if now - note.stat().st_mtime < _DAY and note.read_text() == str(days):
            return True
    with suppress(OSError):
        keep_private(note.parent)
        with os.fdopen(open_private(note, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as file:
            file.write(str(days))
    return False


def _candidates(home: Path, limit: float, few: int) -> Iterator[Path]:
    """All sessions that may be that old. Those in large directories are looked up in the index."""
    large: dict[str, set[str]] = {}
    for directory in _directories(home):
        ids = transcript_ids(directory)
        if len(ids) > few:
            large[directory.name] = ids
        else:
            yield from (directory / f"{name}{SUFFIX}" for name in ids)
    if not large:
        return
    from wave_agent.sessions.index_file import IndexFile  # lazy: few directories are that large

    with IndexFile(home) as index:
        for project, ids in large.items():
            yield from (home / "projects" / project / f"{name}{SUFFIX}" for name in ids - index.ids(project))
        for project, name in index.used_before(int(limit * 1e9)):
            if name in large.get(project, ()):
                yield home / "projects" / project / f"{name}{SUFFIX}"


def _directories(home: Path) -> list[Path]:
    try:
        with os.scandir(home / "projects") as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir()]
    except OSError:
        return []


def _is_own(path: Path, facts: os.stat_result) -> bool:
    """By the owner of the file and, since several people may share an account, by the recorded user."""
    if facts.st_uid != os.geteuid() or not is_session_id(path.stem):
        return False
    with path.open("rb") as file:
        first = file.readline(_LONGEST_HEAD)
    try:
        head: Any = json.loads(first)
    except (ValueError, RecursionError):
        return True
    recorded: Any = cast(dict[str, Any], head).get("user") if isinstance(head, dict) else None
    return recorded is None or recorded == user_name()
