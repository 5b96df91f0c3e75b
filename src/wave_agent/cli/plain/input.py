"""What the lines that a user enters add up to: a prompt may have several."""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from wave_agent.cli.plain.terminal import LONGEST

QUOTES = '"""'


class Wanted(Enum):
    """What the next line is."""

    PROMPT = "You: "
    CONTINUED = "More: "


class Entered(NamedTuple):
    prompt: str | None
    """Complete, if not None."""
    notice: str = ""
    is_literal: bool = False
    """It was pasted or quoted: nothing in it is a command."""


class PromptLines:
    """A line is a prompt. A backslash at its end continues it; between two lines of three quotes, everything is one
    prompt; and lines that were pasted wait for an empty line."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._in_quotes = self._pasted = False

    @property
    def wanted(self) -> Wanted:
        return Wanted.CONTINUED if self._lines or self._in_quotes else Wanted.PROMPT

    def drop(self) -> bool:
        """Whether there was anything."""
        dropped = self.wanted is Wanted.CONTINUED
        self._lines, self._in_quotes, self._pasted = [], False, False
        return dropped

    def add(self, lines: Sequence[str]) -> Entered:
        """`lines` were entered together."""
        for line in lines:
            if len(line.encode()) >= LONGEST:
                self.drop()
                limit = f"The terminal cut this line after {LONGEST:,} bytes, so it was not sent."
                return Entered(None, f"{limit} Put the text into a file, and say where it is.")
        if self._in_quotes or lines[0].strip() == QUOTES:
            return self._quoted(lines)
        if len(lines) > 1:
            self._lines += lines
            self._pasted = True
            count = len(self._lines)  # below the last line of the paste, which the terminal shows and has not sent
            return Entered(None, f"\n{count:,} lines, not sent yet. An empty line sends them, Ctrl-C discards them.")
        return self._single(lines[0])

    def _quoted(self, lines: Sequence[str]) -> Entered:
        for at, line in enumerate(lines):
            if line.strip() != QUOTES:
                self._lines.append(line)
            elif self._in_quotes:
                rest = [one for one in lines[at + 1 :] if one.strip()]
                dropped = "Text after the closing quotes was discarded." if rest else ""
                return Entered(self._done(), dropped, is_literal=True)
            else:
                self._in_quotes = True
        return Entered(None)

    def _single(self, line: str) -> Entered:
        if self._pasted:
            if not line.strip():
                return Entered(self._done(), is_literal=True)
            self._lines.append(line)
            return Entered(None)
        if line.endswith("\\") and not line.endswith("\\\\"):
            self._lines.append(line[:-1])
            return Entered(None)
        self._lines.append(line)
        return Entered(self._done())

    def _done(self) -> str:
        prompt = "\n".join(self._lines).strip()
        self.drop()
        return prompt
