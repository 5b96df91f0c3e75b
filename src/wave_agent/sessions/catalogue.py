"""How each session of a project begins: what a person finds one by, without opening every transcript.

The first prompt and the branch of a session do not change once they are written, so the index keeps them. Everything is
derived: a session that the index does not know is read from its transcript.
"""

import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import Struct

from wave_agent.sessions.index import SUFFIX, prompt_in, session_uses
from wave_agent.sessions.index_file import IndexFile
from wave_agent.sessions.masking import mask

_LONGEST = 400
"""Characters of a first prompt that are kept."""
_LONGEST_LINE = 1 << 20
"""Bytes of a line that may hold a prompt or the opening."""
_FIRST_LINES = 400
"""Lines in which a session has to begin: hooks may write some before the first prompt."""
_BRANCH = re.compile(rb'\\nGit branch: ([^"\\]{1,300})')


class SessionHead(Struct, frozen=True, array_like=True):
    """What does not change in a session."""

    prompt: str = ""
    """The beginning of the first prompt."""
    branch: str = ""
    """The branch at the first request."""
    host: str = ""
    """The agent whose session it is, if it is another one."""


class FoundSession(NamedTuple):
    """A session in the catalogue."""

    mtime_ns: int
    session_id: str
    head: SessionHead
    text: str
    """What is searched, in one case."""

    @property
    def used(self) -> datetime:
        """When it was last used, in local time."""
        return datetime.fromtimestamp(self.mtime_ns / 1e9).astimezone()


class Catalogue(NamedTuple):
    """The sessions of a project."""

    known: list[FoundSession]
    """Latest first."""
    unread: list[tuple[int, str]]
    """Time and id of the others, latest first: `read` tells about them."""


def catalogue(directory: Path) -> Catalogue:
    """All sessions in a directory of transcripts, as far as the index knows them."""
    listed = [(one.mtime_ns, one.session_id) for one in session_uses(directory)]
    with IndexFile(directory.parents[1], create=False) as index:
        heads = dict(index.heads(directory.name))
    known: list[FoundSession] = []
    unread: list[tuple[int, str]] = []
    for time, name in listed:
        head = _decoded(heads.get(name))
        if head is None:
            unread.append((time, name))
        else:
            known.append(_found(time, name, head))
    return Catalogue(known, unread)


def latest(directory: Path, most: int) -> list[FoundSession]:
    """The latest ones, without reading the rest of the index."""
    first = islice(session_uses(directory), most)
    read_now = ((one, read_head(one.path)) for one in first)
    return [_found(one.mtime_ns, one.session_id, head) for one, head in read_now if head is not None]


def read(directory: Path, sessions: Iterable[tuple[int, str]]) -> list[FoundSession]:
    """Reads how these sessions begin, and adds that to the index. Leaves out what cannot be read."""
    found = [(time, name, read_head(directory / f"{name}{SUFFIX}")) for time, name in sessions]
    # A session without a prompt may still get one.
    new = [(name, time, msgspec.json.encode(head)) for time, name, head in found if head is not None and head.prompt]
    with IndexFile(directory.parents[1]) as index:
        index.put_heads(directory.name, new)
    return [_found(time, name, head) for time, name, head in found if head is not None]


def matching(sessions: Sequence[FoundSession], words: str) -> list[FoundSession]:
    """Those that have every word somewhere: in the prompt, the id, the branch, the date or the agent's name."""
    wanted = words.casefold().split()
    for word in wanted:
        sessions = [one for one in sessions if word in one.text]
    return list(sessions)


def _found(time: int, name: str, head: SessionHead) -> FoundSession:
    date = datetime.fromtimestamp(time / 1e9).strftime("%Y-%m-%d %H:%M")
    return FoundSession(time, name, head, f"{head.prompt}\n{head.branch}\n{name}\n{date}\n{head.host}".casefold())


def _decoded(text: bytes | None) -> SessionHead | None:
    if text is None:
        return None
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):
        return msgspec.json.decode(text, type=SessionHead)
    return None


def read_head(path: Path) -> SessionHead | None:
    """None if it cannot be read."""
    prompt, branch, host = "", "", ""
    try:
        with path.open("rb") as file:
            for number in range(_FIRST_LINES):
                line = file.readline(_LONGEST_LINE)
                if not line or (prompt and line.startswith(b'{"type":"assistant"')):
                    break
                if number == 0 and b'"host"' in line:
                    host = _host(line)
                elif not prompt and b'"type":"user"' in line:
                    prompt = mask(prompt_in(line)[:_LONGEST])
                elif not branch and b'"subtype":"opening"' in line and (named := _BRANCH.search(line)):
                    branch = named[1].decode(errors="replace").rpartition(", ")[0] or named[1].decode(errors="replace")
                if prompt and branch:
                    break
    except OSError:
        return None
    return SessionHead(_sound(prompt), _sound(branch), host)


def _host(line: bytes) -> str:
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    value: Any = cast(dict[str, Any], found).get("host") if isinstance(found, dict) else None
    return _sound(value) if isinstance(value, str) else ""


def _sound(text: str) -> str:
    """An escaped lone surrogate could not be stored."""
    return text.encode(errors="replace").decode()


class SessionTotals(NamedTuple):
    """What a session came to."""

    turns: int
    dollars: float | None
    """None: unknown."""


class _Usage(Struct, frozen=True):
    cost_usd: float | None = None


def totals(path: Path) -> SessionTotals | None:
    """Reads the whole transcript. None if it cannot be read."""
    turns, dollars, counted = 0, 0.0, 0
    known = True
    try:
        with path.open("rb") as file:
            for line in file:
                if line.startswith(b'{"type":"user"') and b'"source":"user"' in line:
                    turns += 1
                elif line.startswith(b'{"type":"system","subtype":"usage"'):
                    with suppress(msgspec.MsgspecError):
                        cost = msgspec.json.decode(line, type=_Usage).cost_usd
                        counted += 1
                        known = known and cost is not None
                        dollars += cost or 0.0
    except OSError:
        return None
    return SessionTotals(turns, dollars if known and counted else None)
