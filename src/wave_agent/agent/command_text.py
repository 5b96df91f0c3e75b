"""What a command's text says: where arguments go, which files to attach, which lines to run. One pass; nothing in an
argument is read again."""

import re
import shlex
from collections.abc import Sequence

from msgspec import Struct

from wave_agent.agent.line_arguments import fill_line

_PLACEHOLDER = r"\\\$|\$ARGUMENTS\[(?P<item>\d{1,3})\]|\$ARGUMENTS(?!\w)|\$(?P<number>\d{1,2})(?!\w)"
_ARGUMENTS = re.compile(_PLACEHOLDER)
_TOKEN = re.compile(rf"(?:^|(?<=\s))!`(?P<line>[^`\n]+)`|(?:^|(?<=\s))@(?P<path>[^\s@`]+)|{_PLACEHOLDER}", re.MULTILINE)
_TRAILING = ".,;:!?)]}'\""
"""Punctuation after a path, which belongs to the sentence."""


class RunLine(Struct, frozen=True):
    """A line of Bash whose output takes its place."""

    line: str


class AttachFile(Struct, frozen=True):
    """A file that the text mentions."""

    path: str
    written: str
    """The mention itself, for a path that leads nowhere."""


CommandPiece = str | RunLine | AttachFile


def split_arguments(arguments: str) -> list[str]:
    """Words as a shell would split them."""
    try:
        return shlex.split(arguments)
    except ValueError:  # a quote that is not closed
        return arguments.split()


def command_pieces(body: str, arguments: str) -> tuple[CommandPiece, ...]:
    """The text with its arguments filled in, and what is to be done for it. Arguments that it does not use follow it.

    `$1` is the first argument, but in a text that uses `$0` the second one. `$ARGUMENTS[0]` is always the first. In
    lines to run, arguments are quoted; raises `UnsafeArgumentError` if one cannot be.
    """
    filler = _Filler(body, arguments)
    pieces: list[CommandPiece] = []
    at = 0
    for token in _TOKEN.finditer(body):
        pieces.append(body[at : token.start()])
        at = token.end()
        if token["line"] is not None:
            pieces.append(RunLine(fill_line(token["line"], _ARGUMENTS, filler.words)))
        elif token["path"] is not None:
            path = token["path"].rstrip(_TRAILING)
            pieces += [AttachFile(filler.fill(path), filler.fill(f"@{path}")), filler.fill(token["path"][len(path) :])]
        else:
            pieces.append(filler.value(token))
    pieces.append(body[at:])
    if arguments and not filler.used:
        pieces.append(f"\n\n{arguments}")
    return _joined(pieces)


def unfilled_pieces(body: str) -> tuple[CommandPiece, ...]:
    """What is to be done for the text, for a person to see: the lines and paths as they are written."""
    found: list[CommandPiece] = []
    for token in _TOKEN.finditer(body):
        if token["line"] is not None:
            found.append(RunLine(token["line"]))
        elif token["path"] is not None:
            path = token["path"].rstrip(_TRAILING)
            found.append(AttachFile(path, f"@{path}"))
    return tuple(found)


def empty_placeholders(body: str, arguments: str) -> tuple[str, ...]:
    """The placeholders of a text for which there is no argument, as they are written."""
    filler = _Filler(body, arguments)
    found = (token[0] for token in _ARGUMENTS.finditer(body) if token[0] != "\\$" and not filler.value(token))
    return tuple(dict.fromkeys(found))


def fill_arguments(body: str, arguments: str, *, keeps_empty: bool = False) -> str:
    """The text with its arguments filled in, and nothing else done. `keeps_empty`: a placeholder for which there is
    no argument stays as it is written."""
    filler = _Filler(body, arguments, keeps_empty=keeps_empty)
    filled = filler.fill(body)
    return f"{filled}\n\n{arguments}" if arguments and not filler.used else filled


class _Filler:
    def __init__(self, body: str, arguments: str, *, keeps_empty: bool = False) -> None:
        self._arguments = arguments
        self._keeps_empty = keeps_empty
        self._words = split_arguments(arguments)
        self._first = 0 if any(found["number"] in ("0", "00") for found in _ARGUMENTS.finditer(body)) else 1
        self.used = False

    def fill(self, text: str) -> str:
        return _ARGUMENTS.sub(self.value, text)

    def value(self, token: re.Match[str]) -> str:
        """The text for a placeholder."""
        if token[0] == "$ARGUMENTS":
            self.used = True
            found = self._arguments
        else:
            found = "".join(self.words(token))
        return found or (token[0] if self._keeps_empty else "")

    def words(self, token: re.Match[str]) -> list[str] | str:
        """The arguments for a placeholder; a dollar sign that was escaped is text."""
        if token[0] == "\\$":
            return "$"
        self.used = True
        if token["item"] is not None:
            return self._word(int(token["item"]))
        return self._words if token["number"] is None else self._word(int(token["number"]) - self._first)

    def _word(self, index: int) -> list[str]:
        return self._words[index : index + 1] if index >= 0 else []


def _joined(pieces: Sequence[CommandPiece]) -> tuple[CommandPiece, ...]:
    """With neighbouring texts in one."""
    found: list[CommandPiece] = []
    for piece in pieces:
        last = found[-1] if found else None
        if isinstance(piece, str) and isinstance(last, str):
            found[-1] = last + piece
        elif piece != "":
            found.append(piece)
    return tuple(found)
