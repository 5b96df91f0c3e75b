"""Splits a long answer into Markdown segments short enough to redraw with every new word.

A segment ends at a blank line, or inside a very long code block, which continues in the next segment.
"""

import re

LONG = 1200
"""Beyond this many characters, a segment ends at the next blank line."""
LONG_CODE = 80
"""Maximum lines of one code block per segment."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


class Segmenter:
    """Takes streaming text and says where a new segment starts."""

    def __init__(self, long: int = LONG, long_code: int = LONG_CODE) -> None:
        self._long = long
        self._long_code = long_code
        self._size = 0
        self._line = ""
        """The incomplete last line."""
        self._fence = ""
        self._opening = ""
        self._code_lines = 0

    def feed(self, text: str) -> list[str]:
        """The text for the current segment, followed by the text so far of each segment that starts in it."""
        pieces = [""]
        for line in text.splitlines(keepends=True):
            pieces[-1] += line
            self._line += line
            self._size += len(line)
            if line.endswith("\n"):
                self._complete(pieces)
        return pieces

    def _complete(self, pieces: list[str]) -> None:
        line, self._line = self._line.rstrip("\n"), ""
        found = _FENCE.fullmatch(line)
        if self._fence:
            self._code_lines += 1
            if found and not found[2].strip() and found[1].startswith(self._fence):
                self._fence = ""
            elif self._code_lines >= self._long_code:
                pieces[-1] += f"{self._fence}\n"
                self._begin(pieces, f"{self._opening}\n")
        elif found and "`" not in found[2]:
            self._fence, self._opening, self._code_lines = found[1], line, 0
        elif not line.strip() and self._size > self._long:
            self._begin(pieces, "")

    def _begin(self, pieces: list[str], start: str) -> None:
        pieces.append(start)
        self._size = self._code_lines = 0
