"""Words and operators of a line of Bash with marks in the places of its arguments. Understands simple lines only."""

import re
from typing import NamedTuple

ONE, SEVERAL = "\0", "\1"
"""Marks of arguments in a line: what becomes one word at most, and what may become several where it is not quoted."""
HELD, SPLIT = "\2", "\3"
"""Marks of variables: in quotes, and where Bash splits them."""
MARKS = (ONE, SEVERAL)
VARIABLES = (HELD, SPLIT)
UNCLEAR = "the line is too complex to be sure that none of it is run"


class NotDataError(Exception):
    """An argument may be run, or change what is run. The message says why, in words that may follow "and"."""


class LineWord(NamedTuple):
    text: str
    """Without its quotes, and with marks."""
    bare: bool
    """It has no quotes and no backslashes."""


class LineSign(NamedTuple):
    """An operator."""

    text: str


Token = LineWord | LineSign

_BLANKS = re.compile(r"[ \t]*")
_SIGN = re.compile(r"&>>|<<<|&&|\|\||;;|\|&|&>|>>|>\||>&|<&|<>|[;|&()<>]")
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]", re.ASCII)
_LITERAL = re.compile(r"[^\s'\"\\$`;|&()<>{}#\0\1\2\3]+|#")
_NOT_AFTER_DOLLAR = ("(", "{", "[", "$", "'", '"', *MARKS)


def tokens(line: str) -> list[Token]:
    """Raises `NotDataError` for whatever is more than words and operators."""
    return list(_Lexer(line).tokens())


class _Lexer:
    def __init__(self, line: str) -> None:
        self.line = line
        self.at = 0

    def tokens(self) -> list[Token]:
        found: list[Token] = []
        while self._skip_blanks():
            if self.line.startswith(("#", "((", "<(", ">("), self.at) or self._is_heredoc():
                raise NotDataError(UNCLEAR)
            if sign := _SIGN.match(self.line, self.at):
                self.at = sign.end()
                found.append(LineSign(sign[0]))
                continue
            word = self._word()
            numbers_a_redirection = word.bare and word.text.isdecimal() and self._peek() in ("<", ">")
            if not numbers_a_redirection:
                found.append(word)
        return found

    def _skip_blanks(self) -> bool:
        blanks = _BLANKS.match(self.line, self.at)
        self.at = blanks.end() if blanks else self.at
        return self.at < len(self.line)

    def _is_heredoc(self) -> bool:
        return self.line.startswith("<<", self.at) and not self.line.startswith("<<<", self.at)

    def _peek(self) -> str:
        return self.line[self.at : self.at + 1]

    def _word(self) -> LineWord:
        start, pieces, bare = self.at, list[str](), True
        while (character := self._peek()) and character not in " \t;|&()<>":
            if literal := _LITERAL.match(self.line, self.at):
                self.at = literal.end()
                pieces.append(literal[0])
                continue
            self.at += 1
            if character == "$":
                pieces.append(self._expansion(SPLIT))
            elif character in MARKS:
                pieces.append(character)
            elif character == "'":
                bare = False
                pieces.append(self._until_quote())
            elif character == '"':
                bare = False
                pieces += self._in_quotes()
            elif character == "\\" and self._peek():
                bare = False
                pieces.append(self._take())
            elif character in "{}":
                pieces.append(character)
            else:
                raise NotDataError(UNCLEAR)
        text = "".join(pieces)
        if bare and len(text) > 1 and text != "{}" and ("{" in text or "}" in text):  # words in braces are several
            raise NotDataError(UNCLEAR)
        return LineWord(text, bare and self.at > start)

    def _take(self) -> str:
        self.at += 1
        return self.line[self.at - 1]

    def _expansion(self, mark: str) -> str:
        if name := _NAME.match(self.line, self.at):
            self.at = name.end()
            return mark
        if self._peek().startswith(_NOT_AFTER_DOLLAR) and not (mark == HELD and self._peek() in ("'", '"')):
            raise NotDataError(UNCLEAR)
        return "$"

    def _until_quote(self) -> str:
        end = self.line.find("'", self.at)
        if end < 0:
            raise NotDataError(UNCLEAR)
        inside = self.line[self.at : end].replace(SEVERAL, ONE)
        self.at = end + 1
        return inside

    def _in_quotes(self) -> list[str]:
        pieces: list[str] = []
        while character := self._peek():
            self.at += 1
            if character == '"':
                return pieces
            if character == "`":
                break
            if character == "$":
                pieces.append(self._expansion(HELD))
            elif character == "\\" and self._peek() and self._peek() in '\\"$`':
                pieces.append(self._take())
            else:
                pieces.append(ONE if character == SEVERAL else character)
        raise NotDataError(UNCLEAR)
