"""Completion at the cursor: commands after `/`, files and resources of MCP servers after `@`."""

import os
import re
import time
from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple

from wave_agent.tools.search.walk import Walk

SHOWN = 8
FILES = 20_000
"""Maximum number of project files considered."""
FRESH = 10.0
"""Seconds before the file list is refreshed."""
_FILE = re.compile(r"(?:^|(?<=\s))@([^\s@]*)$")
_COMMAND = re.compile(r"/([\w:-]*)$")


class CompletionItem(NamedTuple):
    insert: str
    """The text that replaces the word at the cursor."""
    note: str = ""


class CompletionList(NamedTuple):
    """The matches, best first."""

    start: int
    """Where the word at the cursor starts."""
    candidates: Sequence[CompletionItem]
    submits: bool
    """Enter also sends the prompt."""


class Files:
    """The project's files, except those ignored by git. Listed on first use, in another thread."""

    def __init__(self, project: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._project = project
        self._clock = clock
        self._paths: list[str] = []
        self._listed = float("-inf")

    @property
    def stale(self) -> bool:
        return self._clock() - self._listed > FRESH

    def refresh(self) -> None:
        """List the files again. Slow in a large project: do not call from the event loop."""
        walk = Walk(self._project, self._project)
        names = (path for path, _ in islice(walk.files(), FILES) if path.isprintable())
        self._paths = sorted(names, key=lambda path: (path.count("/"), path))
        self._listed = self._clock()

    def matching(self, word: str) -> list[str]:
        """Names that start with the word come first, then names that contain it, then paths that contain it."""
        word = word.lower()

        def rank(path: str) -> int:
            name = os.path.basename(path).lower()
            return 0 if name.startswith(word) else 1 if word in name else 2

        found = [path for path in self._paths if word in path.lower()]
        return sorted(found, key=rank)[:SHOWN]


def complete(before: str, known: Sequence[CompletionItem], files: Files) -> CompletionList | None:
    """`before` is the prompt up to the cursor. `known` are commands, and mentions that are not files."""
    if word := _COMMAND.fullmatch(before):
        fitting = [one for one in known if one.insert.startswith(f"/{word[1]}")]
        return CompletionList(0, fitting[:SHOWN], True) if fitting else None
    if word := _FILE.search(before):
        found = [one for one in known if word[1] and one.insert.startswith(f"@{word[1]}")]
        found += [CompletionItem(f"@{name} ") for name in files.matching(word[1])]
        return CompletionList(word.start(), found[:SHOWN], False) if found else None
    return None


def wants_files(before: str) -> bool:
    return _FILE.search(before) is not None
