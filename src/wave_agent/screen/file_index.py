"""The project's files, found by a part of their names while the user types."""

import threading
import time
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice

from wave_agent.tools.search.walk import Walk

BLOCK = 5_000
"""Files that are added to the index together: joining them takes a millisecond or two."""
FRESH = 10.0
"""Seconds before the files are listed again."""
SHARE = 20.0
"""The files are listed for at most one in this many seconds."""


class FileIndex:
    """The project's files, except those ignored by git, however many there are. Listed on first use, in another thread;
    what is listed can be found at once."""

    def __init__(self, project: str, clock: Callable[[], float] = time.monotonic, block: int = BLOCK) -> None:
        self._project = project
        self._clock = clock
        self._block = block
        self._blocks: list[_Block] = []
        self._fresh_until = float("-inf")
        self._listing = threading.Lock()

    @property
    def stale(self) -> bool:
        return self._clock() > self._fresh_until and not self._listing.locked()

    def refresh(self) -> None:
        """List the files again, unless another thread does. Slow in a large project: do not call from the event
        loop."""
        if not self._listing.acquire(blocking=False):
            return
        try:
            started = self._clock()
            self._list()
            took = self._clock() - started
            self._fresh_until = self._clock() + max(FRESH, SHARE * took)
        finally:
            self._listing.release()

    def _list(self) -> None:
        is_first = not self._blocks
        blocks: list[_Block] = []
        paths = (
            (run.directory + name, name)
            for run in Walk(self._project, self._project).by_depth()
            for name in run.names
            if run.directory.isprintable() and name.isprintable()
        )
        while some := list(islice(paths, self._block)):
            blocks.append(_Block(some))
            if is_first:
                self._blocks = blocks.copy()
        self._blocks = blocks

    def matching(self, word: str, most: int) -> list[str]:
        """Names that start with the word come first, then names that contain it, then paths that contain it."""
        word = word.lower()
        blocks = self._blocks  # another thread may replace it
        every = chain(
            (path for block in blocks for path in block.starting_with(word)),
            (path for block in blocks for path in block.with_name(word)),
            (path for block in blocks for path in block.with_path(word)),
        )
        return list(islice(dict.fromkeys(islice(every, 3 * most)), most))


class _Block:
    """Some files. Their names are searched as one text, which takes a thousandth of comparing them one by one."""

    def __init__(self, files: Sequence[tuple[str, str]]) -> None:
        """Paths and names."""
        self._shown = _Lines([path for path, _ in files])
        self._paths = _Lines([path.lower() for path, _ in files])
        self._names = _Lines([name.lower() for _, name in files])

    def starting_with(self, word: str) -> Iterator[str]:
        return map(self._shown.line, self._names.with_part(f"\n{word}"))

    def with_name(self, word: str) -> Iterator[str]:
        return map(self._shown.line, self._names.with_part(word))

    def with_path(self, word: str) -> Iterator[str]:
        return map(self._shown.line, self._paths.with_part(word))


class _Lines:
    """Lines in one text: each begins with a newline."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._text = "\n" + "\n".join(lines)
        self._starts = array("L")
        start = 0
        for line in lines:
            self._starts.append(start)
            start += len(line) + 1

    def line(self, number: int) -> str:
        start = self._starts[number] + 1
        end = self._starts[number + 1] if number + 1 < len(self._starts) else len(self._text)
        return self._text[start:end]

    def with_part(self, part: str) -> Iterator[int]:
        """The numbers of the lines with this part; a newline in front of it means that they begin with it."""
        at = self._text.find(part)
        while at >= 0:
            number = bisect_right(self._starts, at) - 1
            yield number
            if number + 1 == len(self._starts):
                return
            at = self._text.find(part, self._starts[number + 1])
