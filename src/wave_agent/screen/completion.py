"""What can be completed at the cursor: commands after `/`, files after `@`."""

import os
import re
import time
from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple

from wave_agent.tools.search.walk import Walk

SHOWN = 8
FILES = 20_000
"""Files of a project that are looked at."""
FRESH = 10.0
"""Seconds for which a list of files is good enough."""
_FILE = re.compile(r"(?:^|(?<=\s))@([^\s@]*)$")
_COMMAND = re.compile(r"/([\w:-]*)$")


class CompletionItem(NamedTuple):
    insert: str
    """What replaces the word at the cursor."""
    note: str = ""


class CompletionList(NamedTuple):
    """What fits, best first."""

    start: int
    """Where the word at the cursor begins."""
    candidates: Sequence[CompletionItem]
    submits: bool
    """Enter sends it, as well."""


class Files:
    """The project's files, without those that git ignores. Listed when they are first wanted, in another thread."""

    def __init__(self, project: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._project = project
        self._clock = clock
        self._paths: list[str] = []
        self._listed = float("-inf")

    @property
    def stale(self) -> bool:
        return self._clock() - self._listed > FRESH

    def refresh(self) -> None:
        """Lists them anew. Slow in a large project: not for the event loop."""
        walk = Walk(self._project, self._project)
        names = (path for path, _ in islice(walk.files(), FILES) if path.isprintable())
        self._paths = sorted(names, key=lambda path: (path.count("/"), path))
        self._listed = self._clock()

    def matching(self, word: str) -> list[str]:
        """A name that begins so comes before one that has it inside, and that before a path that has it anywhere."""
        word = word.lower()

        def rank(path: str) -> int:
            name = os.path.basename(path).lower()
            return 0 if name.startswith(word) else 1 if word in name else 2

        found = [path for path in self._paths if word in path.lower()]
        return sorted(found, key=rank)[:SHOWN]


def complete(before: str, commands: Sequence[CompletionItem], files: Files) -> CompletionList | None:
    """`before` is the prompt up to the cursor."""
    if word := _COMMAND.fullmatch(before):
        fitting = [one for one in commands if one.insert.startswith(f"/{word[1]}")]
        return CompletionList(0, fitting[:SHOWN], True) if fitting else None
    if word := _FILE.search(before):
        names = files.matching(word[1])
        return CompletionList(word.start(), [CompletionItem(f"@{name} ") for name in names], False) if names else None
    return None


def wants_files(before: str) -> bool:
    return _FILE.search(before) is not None
