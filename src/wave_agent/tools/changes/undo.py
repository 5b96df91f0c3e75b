"""Undoing what a turn did to files."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

from msgspec import Struct

from wave_agent.system.real_files import opened_directory
from wave_agent.tools.changes.restoring import CHANGED_SINCE, NotRestoredError, is_as, take_back
from wave_agent.tools.changes.versions import (
    Content,
    ContentDigest,
    FileVersion,
    HeldContent,
    NotKeptError,
    read_all,
    same_content,
)

_ENTRY = 500
"""Bytes of memory for a file changed by a command, approximately. Its content is not in memory."""

_Former = bytes | NotKeptError | None


class NotedFile(Struct):
    """One file over one turn."""

    before: FileVersion | None
    """None: it did not exist."""
    after: FileVersion | None
    """None: it was deleted."""
    by_tool: bool
    """Write, Edit or a hook after them changed it."""
    mixed: bool = False
    """Something else changed it in between."""

    @property
    def is_changed(self) -> bool:
        """False: created and deleted again, or changed and restored."""
        if self.before is None or self.after is None:
            return self.before is not self.after
        modes = {self.before.mode, self.after.mode}
        return len(modes - {None}) > 1 or same_content(self.before.content, self.after.content) is not True

    @property
    def size(self) -> int:
        versions = (version for version in (self.before, self.after) if version is not None)
        return sum(version.content.size for version in versions) + (0 if self.by_tool else _ENTRY)

    def followed_by(self, later: "NotedFile") -> "NotedFile":
        """Both together."""
        if self.by_tool and not later.by_tool and _is_same(self.after, later.after):
            return self  # the tool's own change, seen a second time
        mixed = self.mixed or _differs(self.after, later.before)
        return NotedFile(self.before, later.after, self.by_tool or later.by_tool, mixed)


def noted_by_tool(before: bytes | None, after: bytes | None) -> NotedFile:
    old = None if before is None else FileVersion(None, HeldContent(before))
    new = None if after is None else FileVersion(None, ContentDigest(after))
    return NotedFile(old, new, by_tool=True)


def _is_same(one: FileVersion | None, other: FileVersion | None) -> bool:
    if one is None or other is None:
        return one is other
    return not other.is_link and same_content(one.content, other.content) is True


def _differs(left: FileVersion | None, found: FileVersion | None) -> bool:
    """Whether the file was changed between the end of one change and the start of the next."""
    if left is None or found is None:
        return left is not found
    if left.signature and left.signature == found.signature:
        return False
    return same_content(left.content, found.content) is False


class Undo:
    """Takes a turn back, as far as it can."""

    def __init__(self) -> None:
        self.restored: list[str] = []
        self.removed: list[str] = []
        self.refused: dict[str, str] = {}
        """Paths of files that were left as they are, and why."""

    def run(self, files: Mapping[str, NotedFile], directories: Iterable[str]) -> None:
        """`directories` were made in the turn: those that are empty afterwards are removed."""
        changed = [(path, file) for path, file in files.items() if file.is_changed]
        # What is in the way of a deleted file, such as a directory with its name, goes first.
        self._take_back([(path, file) for path, file in changed if file.after is not None])
        for path in sorted(directories, reverse=True):  # inner ones first
            with suppress(OSError):  # not empty, or already gone
                os.rmdir(path)
        self._take_back([(path, file) for path, file in changed if file.after is None])

    def _take_back(self, files: Sequence[tuple[str, NotedFile]]) -> None:
        for path, file, data in _with_contents(files):
            try:
                if file.mixed or isinstance(data, NotKeptError):
                    _refuse(path, file, data)
                else:
                    take_back(path, file.before, file.after, data)
            except NotRestoredError as refusal:
                self.refused[path] = str(refusal)
            except OSError as error:
                self.refused[path] = error.strerror or str(error)
            else:
                (self.removed if file.before is None else self.restored).append(path)


def _with_contents(files: Sequence[tuple[str, NotedFile]]) -> Iterator[tuple[str, NotedFile, _Former]]:
    wanted: list[Content] = [file.before.content for _, file in files if file.before is not None]
    contents = read_all(wanted)
    for path, file in files:
        yield path, file, None if file.before is None else next(contents)


def _refuse(path: str, file: NotedFile, data: _Former) -> NoReturn:
    """Raises `NotRestoredError`: a later change is a better reason."""
    with suppress(FileNotFoundError), opened_directory(os.path.dirname(path)) as parent:
        if not is_as(parent, os.path.basename(path), file.after):
            raise NotRestoredError(CHANGED_SINCE)
    if isinstance(data, NotKeptError):
        raise NotRestoredError(f"its former content {data}")
    raise NotRestoredError("it was changed from outside between two changes of this turn")
