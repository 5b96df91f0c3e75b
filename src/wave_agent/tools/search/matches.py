"""The matching lines of a text, and how Grep shows them. Has only fast imports."""

import re
import sys
from collections.abc import Iterator
from typing import Any

from wave_agent.lazy_regex import lazy_regex

_LINE_LENGTH = 1000
_BEFORE_MATCH = 200
"""Characters of a long line shown before the match."""

_LITERAL = lazy_regex(r"[^\\\[\](){}.*+?|^$]+")

_POSIX_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "word": r"\w",
    "xdigit": "0-9A-Fa-f",
}


def compile_pattern(pattern: str, *, ignore_case: bool, multiline: bool) -> re.Pattern[str]:
    """Python's syntax, plus what else is common in grep patterns. Raises `re.error`."""
    pattern = re.sub(r"\[:(\w+):\]", lambda name: _POSIX_CLASSES.get(name[1], name[0]), pattern)
    pattern = re.sub(r"\(\?<(?=[A-Za-z_])", "(?P<", pattern)
    flags = (re.IGNORECASE if ignore_case else 0) | (re.MULTILINE | re.DOTALL if multiline else 0)
    return re.compile(pattern, flags)


class MatchedLines:
    """The lines of one text, and the matching ones with the column of the match."""

    def __init__(self, lines: list[str], matching: dict[int, int]) -> None:
        self.lines = lines
        self.matching = matching


class LineMatcher:
    """One Grep request."""

    def __init__(self, request: dict[str, Any]) -> None:
        self._multiline: bool = request["multiline"]
        self._mode: str = request["output_mode"]
        self._numbers: bool = request["numbers"]
        self._before: int = request["before"]
        self._after: int = request["after"]
        # A line that is shown takes at least one character.
        shown = min(request["head_limit"] or sys.maxsize, request["characters"])
        self._most = {"files_with_matches": 0, "content": shown}.get(self._mode, sys.maxsize)
        self.pattern = compile_pattern(
            request["pattern"], ignore_case=request["ignore_case"], multiline=self._multiline
        )
        is_literal = _LITERAL.fullmatch(request["pattern"]) and not request["ignore_case"]
        self._literal: str = request["pattern"] if is_literal else ""

    def lines(self, text: str) -> MatchedLines | None:
        """None: nothing matches. Returns only as much as is needed for the output."""
        text = text.replace("\r\n", "\n")
        if self._literal not in text:  # Much faster than checking each line.
            return None
        lines = text.removesuffix("\n").split("\n") if text else []
        matching: dict[int, int] = {}
        for line, column in self._across(text) if self._multiline else self._each(lines):
            matching.setdefault(line, column)
            if len(matching) > self._most:  # one more than is shown: so the answer says that there are more
                break
        return MatchedLines(lines, matching) if matching else None

    def _each(self, lines: list[str]) -> Iterator[tuple[int, int]]:
        search = self.pattern.search
        for number, line in enumerate(lines):
            if match := search(line):
                yield number, match.start()

    def _across(self, text: str) -> Iterator[tuple[int, int]]:
        line = counted = 0
        end = len(text.removesuffix("\n"))
        for match in self.pattern.finditer(text):
            if match.start() > end or not text:  # there is no line after the last newline
                return
            line += text.count("\n", counted, match.start())
            counted = match.start()
            last = max(match.start(), min(match.end(), len(text)) - 1)
            yield line, match.start() - (text.rfind("\n", 0, match.start()) + 1)
            for further in range(text.count("\n", match.start(), last)):
                yield line + 1 + further, 0

    def show(self, path: str, found: MatchedLines, *, first: bool) -> Iterator[str]:
        """Lines of output for one file, in the format of rg."""
        if self._mode == "files_with_matches":
            yield path
        elif self._mode == "count":
            yield f"{path}:{len(found.matching)}"
        else:
            yield from self._content(path, found, first=first)

    def _content(self, path: str, found: MatchedLines, *, first: bool) -> Iterator[str]:
        previous = None if first else -2
        shown = {
            number
            for match in found.matching
            for number in range(max(match - self._before, 0), min(match + self._after + 1, len(found.lines)))
        }
        for number in sorted(shown):
            if (self._before or self._after) and previous is not None and number != previous + 1:
                yield "--"
            previous = number
            mark = ":" if number in found.matching else "-"
            where = f"{path}{mark}{number + 1}{mark}" if self._numbers else f"{path}{mark}"
            yield where + _cut(found.lines[number], found.matching.get(number, 0))


def _cut(line: str, column: int) -> str:
    if len(line) <= _LINE_LENGTH:
        return line
    start = max(min(column - _BEFORE_MATCH, len(line) - _LINE_LENGTH), 0)
    end = start + _LINE_LENGTH
    return f"{'[…] ' if start else ''}{line[start:end]}{' […]' if end < len(line) else ''}"
