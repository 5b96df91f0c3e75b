"""The answer of a search: lines to show, up to a limit, and notes about what was left out. Has only fast imports."""

import sys
from typing import Any

from wave_agent.tools.encoding import printable
from wave_agent.tools.room import size_of
from wave_agent.tools.search.file_reader import LARGEST
from wave_agent.tools.search.walk import Walk


class ShownLines:
    """The lines to show, up to a limit."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.shown: list[str] = []
        self.cut = False
        self.by_limit = False
        """Cut by the requested number of lines, and not for lack of room."""
        self._limit: int = request["head_limit"] or sys.maxsize
        self._characters: int = request["characters"]
        self._size: int = request["size"]

    def add(self, line: str) -> bool:
        """False: this line, and everything after it, is omitted."""
        line = printable(line)
        characters, size = self._characters - len(line) - 1, self._size - size_of(line) - 1
        if self.cut or len(self.shown) >= self._limit or characters < 0 or size < 0:
            self.by_limit = self.by_limit or (not self.cut and len(self.shown) >= self._limit)
            self.cut = True
            return False
        self._characters, self._size = characters, size
        self.shown.append(line)
        return True


def answer(lines: ShownLines, filenames: list[str], notes: list[str]) -> dict[str, Any]:
    return {
        "lines": lines.shown,
        "filenames": filenames,
        "cut": lines.cut,
        "by_limit": lines.by_limit,
        "notes": notes,
    }


def notes_about(walk: Walk, *, kept_back: int, not_read: int = 0) -> list[str]:
    """What was left out. `not_read`: files that are too large, or could not be opened."""
    notes: list[str] = []
    if walk.unreadable:
        notes.append(f"{walk.unreadable} directories could not be read")
    notes += [f"{file} was not used: it {why}" for file, why in walk.skipped]
    if kept_back:
        files, them = ("1 file is", "it") if kept_back == 1 else (f"{kept_back:,} files are", "them")
        notes.append(f"{files} not shown: a permission rule denies reading {them}")
    if not_read:
        files = "1 file was" if not_read == 1 else f"{not_read:,} files were"
        notes.append(f"{files} skipped: larger than {LARGEST >> 20} MiB, or unreadable")
    return notes


def shown_path(path: str, directory: str) -> str:
    """Relative to where the agent was started: every tool accepts that."""
    return path.removeprefix(directory.rstrip("/") + "/")
