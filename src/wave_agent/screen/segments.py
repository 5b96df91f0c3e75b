"""A long answer as pieces of Markdown, each short enough to be drawn again with every word that comes.

A piece ends at a blank line, or inside a very long block of code, which then goes on in the next piece.
"""

import re

LONG = 1200
"""Characters from which on a piece ends at the next blank line."""
LONG_CODE = 80
"""Lines of one block of code in one piece."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


class Segmenter:
    """Takes text as it comes and says where a new piece begins."""

    def __init__(self, long: int = LONG, long_code: int = LONG_CODE) -> None:
        self._long = long
        self._long_code = long_code
        self._size = 0
        self._line = ""
        """The last line, as far as it has come."""
        self._fence = ""
        self._opening = ""
        self._code_lines = 0

    def feed(self, text: str) -> list[str]:
        """What belongs to the piece that was begun and, for each piece that begins in the text, what it has so far."""
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
