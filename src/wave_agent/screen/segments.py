"""Splits a long answer into Markdown segments short enough to redraw with every new word.

A segment ends at a blank line. Where there is none for long, it ends before a line that is not indented, or at a blank
in a very long line; a code block and a table continue in the next segment.
"""

import re

LONG = 1200
"""Beyond this many characters, a segment ends at the next blank line."""
LONG_CODE = 80
"""Maximum lines of one code block per segment."""
VERY_LONG = 2
"""Beyond this many times `LONG`, a segment ends at the end of a line; beyond twice that, at any line or word."""
LINES = 20
"""A line counts at least as one in this many of `LONG`, however short it is: in a list or table it is a few widgets."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_UNDER_TABLE_HEAD = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")


class Segmenter:
    """Takes streaming text and says where a new segment starts. The same text gives the same segments, however it is
    cut into pieces."""

    def __init__(self, long: int = LONG, long_code: int = LONG_CODE) -> None:
        self._long = long
        self._very_long = VERY_LONG * long
        self._long_code = long_code
        self._size = 0
        self._lines = 0
        """Complete lines in this segment outside of code."""
        self._line = ""
        """The incomplete last line, as far as it is in this segment."""
        self._line_before = ""
        self._fence = ""
        self._opening = ""
        self._code_lines = 0
        self._table_head = ""
        """The first two lines of the current table."""

    def feed(self, text: str) -> list[str]:
        """The text for the current segment, followed by the text so far of each segment that starts in it."""
        pieces = [""]
        for line in text.splitlines(keepends=True):
            self._add(line, pieces)
        return pieces

    def _add(self, line: str, pieces: list[str]) -> None:
        if not self._line:
            self._line_starts(line, pieces)
        while (room := self._very_long - len(self._line)) < len(line.rstrip("\n")):
            cut = self._cut(line, max(room, 0))
            if cut is None:
                break
            pieces[-1] += line[:cut]
            line = line[cut:]
            self._continue(pieces)
        pieces[-1] += line
        self._line += line
        self._size += len(line)
        if line.endswith("\n"):
            self._line_ends(pieces)

    def _line_starts(self, line: str, pieces: list[str]) -> None:
        if self._fence or line[0] == "\n":  # a blank line ends a segment by itself
            return
        size = self._size + self._lines * (self._long // LINES)
        if size > (2 if line[0].isspace() else 1) * self._very_long:
            self._begin(pieces, self._table_head)

    def _cut(self, line: str, room: int) -> int | None:
        """Where to cut a very long line: after the first blank beyond the limit, or at twice the limit."""
        blank = line.find(" ", room)
        most = 2 * self._very_long - len(self._line)
        if 0 <= blank < most:
            return blank + 1
        return most if most < len(line.rstrip("\n")) else None

    def _continue(self, pieces: list[str]) -> None:
        """The line goes on in the next segment."""
        self._line = ""
        if self._fence:
            pieces[-1] += f"\n{self._fence}\n"
            self._begin(pieces, f"{self._opening}\n")
        else:
            self._begin(pieces, "")

    def _line_ends(self, pieces: list[str]) -> None:
        line, self._line = self._line.rstrip("\n"), ""
        found = _FENCE.fullmatch(line)
        if self._fence:
            self._code_lines += 1
            if found and not found[2].strip() and found[1].startswith(self._fence):
                self._fence = ""
            elif self._code_lines >= self._long_code:
                pieces[-1] += f"{self._fence}\n"
                self._begin(pieces, f"{self._opening}\n")
            return
        self._lines += 1
        if found and "`" not in found[2]:
            self._fence, self._opening, self._code_lines = found[1], line, 0
        elif not line.strip() and self._size > self._long:
            self._begin(pieces, "")
        self._note_table(line)

    def _note_table(self, line: str) -> None:
        if "|" not in line:
            self._table_head = ""
        elif "|" in self._line_before and not self._table_head and _UNDER_TABLE_HEAD.fullmatch(line):
            self._table_head = f"{self._line_before}\n{line}\n"
        self._line_before = line

    def _begin(self, pieces: list[str], start: str) -> None:
        pieces.append(start)
        self._size = self._lines = self._code_lines = 0
