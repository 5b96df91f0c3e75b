"""Searches files for the lines that match, and stops when the answer is full. Has only fast imports."""

import os
import re
from collections.abc import Generator, Iterator
from typing import Any

from wave_agent.tools.encoding import decode, printable
from wave_agent.tools.search.answer import ShownLines, answer, notes_about, shown_path
from wave_agent.tools.search.file_reader import FileReader, KeptBackError
from wave_agent.tools.search.gitignore import GlobPattern
from wave_agent.tools.search.matches import LineMatcher
from wave_agent.tools.search.ripgrep import FEW, batches, ripgrep_for
from wave_agent.tools.search.walk import FileRun, Walk


def grep(request: dict[str, Any], *, few: int = FEW) -> dict[str, Any]:
    """See `Grep` for the fields. `few`: files that are searched without rg."""
    try:
        matcher = LineMatcher(request)
    except (re.error, OverflowError, RecursionError) as error:
        literally = "To match a bracket or another special character itself, put a backslash before it: \\("
        return {"error": f"the pattern is not a valid regular expression: {error}. {literally}"}
    search = _GrepSearch(request, matcher)
    files = search.files_below(few) if os.path.isdir(request["real"]) else search.the_file()
    for path, data in files:
        if not search.add(path, data):
            break
    files.close()  # ends what is searched ahead
    return search.answer()


class _GrepSearch:
    """One search, and what it has found so far."""

    def __init__(self, request: dict[str, Any], matcher: LineMatcher) -> None:
        self._request = request
        self._root: str = request["path"]
        self._matcher = matcher
        self._walk = Walk(request["real"], request["project"])
        self._reader = FileReader(request)
        self._wanted = GlobPattern(request["glob"]) if request["glob"] else None
        self._lines = ShownLines(request)
        self._filenames: list[str] = []
        self._not_read = 0

    def the_file(self) -> Generator[tuple[str, bytes | None]]:
        """The only file to search, with its content."""
        name = os.path.basename(self._root)
        if self._wanted is None or self._wanted.matches(name):
            yield from self._contents([""])

    def files_below(self, few: int) -> Generator[tuple[str, bytes | None]]:
        """The files of a directory that may match, sorted, with their contents."""
        rest = batches(self._runs(), few)
        if few and (first := next(rest, None)):
            yield from self._contents(first.paths)
        rg = ripgrep_for(self._request, self._request["real"], self._matcher.pattern)
        narrowed = (batch.paths for batch in rest) if rg is None else rg.narrowed(rest)
        for paths in narrowed:
            yield from self._contents(paths)

    def _runs(self) -> Iterator[FileRun]:
        for run in self._walk.in_order():
            yield self._reader.allowed_run(run if self._wanted is None else _only(run, self._wanted))

    def _contents(self, paths: list[str]) -> Iterator[tuple[str, bytes | None]]:
        for path in paths:
            try:
                yield path, self._reader.read(path)
            except KeptBackError:
                continue

    def add(self, path: str, data: bytes | None) -> bool:
        """False: the answer is full."""
        self._not_read += data is None
        text = _text(data) if data else None
        if text is None or not (found := self._matcher.lines(text)):
            return True
        absolute = os.path.join(self._root, path) if path else self._root
        self._filenames.append(printable(absolute))
        shown = shown_path(absolute, self._request["cwd"])
        return all(self._lines.add(line) for line in self._matcher.show(shown, found, first=not self._lines.shown))

    def answer(self) -> dict[str, Any]:
        notes = notes_about(self._walk, kept_back=self._reader.kept_back, not_read=self._not_read)
        return answer(self._lines, self._filenames, notes)


def _text(data: bytes) -> str | None:
    """None: a binary file. So are, as for rg, UTF-32 and what is not the UTF-16 that its first bytes promise."""
    text = decode(data)
    if text is None or (data.startswith((b"\xff\xfe", b"\xfe\xff", b"\0")) and "16" not in text.encoding):
        return None
    return text.content


def _only(run: FileRun, wanted: GlobPattern) -> FileRun:
    names = [name for name in run.names if wanted.matches(run.directory + name)]
    return FileRun(run.directory, names, run.is_whole and len(names) == len(run.names))
