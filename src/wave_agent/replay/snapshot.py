"""The sessions that a run replays, as they were when it began: in a directory, or in an object store (by fsspec)."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from wave_agent.errors import WaveError
from wave_agent.replay.units import RecordedSession
from wave_agent.system.extras import install_extra

_SUFFIX = ".jsonl"
_WHEN = ("mtime", "LastModified", "last_modified", "updated", "created")
"""Where file systems of fsspec say when a file was changed."""


class _Store(Protocol):
    """What we use of a file system of fsspec, which has no types."""

    def exists(self, path: str) -> bool: ...
    def walk(self, path: str, *, detail: bool) -> Iterable[tuple[str, Any, dict[str, dict[str, Any]]]]: ...
    def info(self, path: str) -> dict[str, Any]: ...
    def cat_file(self, path: str, *, start: int, end: int) -> bytes: ...
    def unstrip_protocol(self, name: str) -> str: ...


class SessionChangedError(WaveError):
    """A session is not what it was when the run began. The message says how."""


class SessionContent(Struct, frozen=True):
    """What a session held when the run began."""

    content: bytes = b""
    grown: bool = False
    problem: str = ""
    """Why it cannot be replayed."""


class StoreError(WaveError):
    """An object store cannot be read."""


def is_url(place: str) -> bool:
    return "://" in place


def snapshot_of(paths: Iterable[Path]) -> list[RecordedSession]:
    """These sessions as they are now, in an order that does not depend on when they were changed."""
    found: list[RecordedSession] = []
    for path in paths:
        with suppress(OSError):  # deleted since it was listed
            found.append(RecordedSession(os.path.abspath(path), path.stat().st_size))
    return sorted(found, key=lambda session: session.place)


def sessions_at(
    url: str, since: timedelta | None = None, on_found: Callable[[int], object] = lambda _: None
) -> list[RecordedSession]:
    """Every transcript below a URL. `on_found` is called with their number as it grows."""
    limit = None if since is None else datetime.now(UTC) - since
    system, root = _system(url)
    found: list[RecordedSession] = []
    try:
        for path, facts in _files(system, root):
            if path.endswith(_SUFFIX) and (limit is None or _changed(facts) >= limit):
                found.append(RecordedSession(system.unstrip_protocol(path), int(facts["size"] or 0)))
                on_found(len(found))
    except FileNotFoundError:
        raise StoreError(f"{url} does not exist.") from None
    except Exception as error:  # each store has its own errors
        raise _unreadable(url, error) from error
    return sorted(found, key=lambda session: session.place)


def read_session(session: RecordedSession) -> tuple[bytes, bool]:
    """What the session held when the run began, and whether it has grown since. Raises `SessionChangedError`."""
    try:
        content, size = _read_url(session) if is_url(session.place) else _read_file(session)
    except FileNotFoundError:
        raise SessionChangedError("it was deleted") from None
    except OSError as error:
        raise SessionChangedError(f"it cannot be read: {error.strerror or error}") from None
    if size < session.size:
        raise SessionChangedError("it is shorter than when the run began")
    grown = size > session.size
    if grown and not content.endswith(b"\n"):  # a line was being written when the run began
        content = content[: content.rfind(b"\n") + 1]
    return content, grown


def content_of(session: RecordedSession) -> SessionContent:
    """The same as a value, to be sent to where it is replayed."""
    try:
        return SessionContent(*read_session(session))
    except SessionChangedError as error:
        return SessionContent(problem=str(error))


def _read_file(session: RecordedSession) -> tuple[bytes, int]:
    with open(session.place, "rb") as file:
        content = file.read(session.size)
        return content, max(len(content), os.fstat(file.fileno()).st_size)


def _read_url(session: RecordedSession) -> tuple[bytes, int]:
    system, path = _system(session.place)
    try:
        size = int(system.info(path)["size"] or 0)
        return (system.cat_file(path, start=0, end=session.size) if size else b""), size
    except OSError:
        raise
    except Exception as error:  # each store has its own errors
        raise OSError(str(error)) from error


def _files(system: _Store, root: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """One directory after another: a bucket may hold millions."""
    if not system.exists(root):
        raise FileNotFoundError(root)
    for _, _, files in system.walk(root, detail=True):
        for facts in files.values():
            yield str(facts["name"]), facts


def _changed(facts: dict[str, Any]) -> datetime:
    """When a file was changed; a store that does not say leaves nothing out."""
    value = next((facts[name] for name in _WHEN if facts.get(name) is not None), None)
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, UTC)
    with suppress(ValueError):
        value = datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(value, datetime):
        return datetime.max.replace(tzinfo=UTC)
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _system(url: str) -> tuple[_Store, str]:
    try:
        url_to_fs = import_module("fsspec.core").url_to_fs  # lazy: from an extra, and only for URLs
    except ImportError:
        raise StoreError(f"Transcripts at a URL need the extra: {install_extra('fleet')}") from None
    try:
        # What a store listed before is of no use: sessions come and go.
        return url_to_fs(url, use_listings_cache=False)
    except ImportError as error:
        raise StoreError(f"{url.partition('://')[0]}:// needs another package: {error}") from None
    except Exception as error:  # an unknown protocol, or missing credentials
        raise _unreadable(url, error) from error


def _unreadable(url: str, error: Exception) -> StoreError:
    return StoreError(f"{url} cannot be read: {str(error) or type(error).__name__}")
