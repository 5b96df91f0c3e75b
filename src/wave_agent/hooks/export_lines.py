"""The variables in the lines that hooks write to `CLAUDE_ENV_FILE`.

The file is data. No shell reads it, since a file name or anything else that a hook put into a line without quotes would
then run as a command, which no guard has seen. Read here are assignments in the syntax of Bash, with the variables they
refer to. Whatever else is in the file is left out and reported.
"""

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

LONGEST_VALUE = 100 * 1024
"""Maximum characters of a value: the system refuses to start a program with a much longer one."""
_MOST_WORK = 16 * LONGEST_VALUE
"""Maximum characters of all values together."""
_DEEPEST = 20
"""Maximum levels of `${A:-${B:-…}}`."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TARGET = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_PLAIN = re.compile(r"[^ \t\r\n'\"\\$`;&|<>()]+")
_IN_QUOTES = re.compile(r"[^\"\\$`]+")
_OPERAND = re.compile(r"[^'\"\\$`}]+")
_EXPANSION = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:?[-+])?")
_ESCAPE = re.compile(
    r"\\(?:x(?P<hex>[0-9A-Fa-f]{1,2})|u(?P<short>[0-9A-Fa-f]{1,4})|U(?P<long>[0-9A-Fa-f]{1,8})"
    r"|(?P<octal>[0-7]{1,3})|c(?P<control>.)|(?P<one>.))",
    re.DOTALL,
)
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_COMPOUND = frozenset({"if", "for", "while", "until", "case", "select", "function", "{", "[[", "time", "coproc", "!"})
"""Words that begin something that may reach over several lines, whose assignments depend on a condition."""
_NO_ASSIGNMENT = "not an assignment"
_COMPUTED = "its value is computed"
_TOO_LONG = f"its value is longer than {LONGEST_VALUE // 1024} KiB"
_NO_END = "a quote or bracket is not closed"


class IgnoredLine(Struct, frozen=True):
    """Something in the file that sets no variable."""

    number: int
    text: str
    why: str


class Exports(Struct, frozen=True):
    """What a file says."""

    variables: Mapping[str, str | None]
    """None: the variable is to be removed."""
    ignored: tuple[IgnoredLine, ...] = ()


def read_exports(text: str, environment: Mapping[str, str]) -> Exports:
    """The variables that the lines of `text` set, in an environment that has these ones. Never raises."""
    return _File(text.replace("\0", ""), environment).read()


class _Word(Struct):
    """A word of a statement. An assignment has a `name`; the text is then its value."""

    text: str
    name: str = ""


class _UnreadableError(Exception):
    """The file cannot be read from here on."""


class _File:
    def __init__(self, text: str, environment: Mapping[str, str]) -> None:
        self._text = text
        self._at = 0
        self._values: dict[str, str | None] = dict(environment)
        self._pending: dict[str, str | None] = {}
        """What the current statement has set so far."""
        self._exported: dict[str, str | None] = {}
        self._ignored: list[IgnoredLine] = []
        self._counted = (0, 1)
        """A position, and its line."""
        self._work = 0
        self._depth = 0
        self._why = ""
        """Why the current statement is ignored, if it is."""

    def read(self) -> Exports:
        while self._at < len(self._text):
            start = self._at
            self._why = ""
            try:
                self._take(self._statement())
            except _UnreadableError as error:
                self._at = len(self._text)
                self._why = f"{error}; nothing is read from here on"
            if self._why:
                self._ignore(start)
        return Exports(self._exported, tuple(self._ignored))

    def _ignore(self, start: int) -> None:
        text = self._text[start : self._at]
        at, number = start + len(text) - len(text.lstrip()), self._counted[1]
        number += self._text.count("\n", self._counted[0], at)
        self._counted = (at, number)
        self._ignored.append(IgnoredLine(number, text.strip().partition("\n")[0], self._why))

    # -------------------------------------------------------------------------------------------------- what is meant

    def _take(self, commands: Iterator[list[_Word]]) -> None:
        """Apply the commands of one statement: all of them, or none if one is not understood."""
        found: dict[str, str | None] = {}
        self._pending = {}
        for words in commands:
            problem = self._read_command(words, found)
            self._why = self._why or problem
        if not self._why:
            self._values |= self._pending
            self._exported |= found

    def _read_command(self, words: list[_Word], found: dict[str, str | None]) -> str:
        """Adds to `found` what the command exports. Returns a problem."""
        if not words:
            return ""
        if words[0].name:
            return self._assign(words, found) if all(word.name for word in words) else _NO_ASSIGNMENT
        command, options, rest = words[0].text, *_options(words[1:])
        if command in _COMPOUND:
            raise _UnreadableError(_NO_ASSIGNMENT)
        if command == "export" and not options.strip("p"):
            return self._assign(rest, found)
        if command in ("declare", "typeset", "readonly"):
            return self._assign(rest, found if "x" in options else {})
        if command == "unset" and options in ("", "v") and all(map(_is_name, rest)):
            gone = dict.fromkeys(word.text for word in rest)
            found |= gone
            self._pending |= gone
            return ""
        return _NO_ASSIGNMENT

    def _assign(self, words: list[_Word], to: dict[str, str | None]) -> str:
        """Adds the variables to `to`. A name alone exports the value that the variable has. Returns a problem."""
        for word in words:
            if not word.name and not _is_name(word):
                return _NO_ASSIGNMENT
            value = word.text if word.name else self._value(word.text)
            if value is not None:
                to[word.name or word.text] = self._pending[word.name or word.text] = value
        return ""

    def _value(self, name: str) -> str | None:
        return self._pending[name] if name in self._pending else self._values.get(name)

    # ------------------------------------------------------------------------------------------------ how it is written

    def _statement(self) -> Iterator[list[_Word]]:
        """Its commands, up to the end of the line or a semicolon."""
        words: list[_Word] = []
        while True:
            self._skip_blanks()
            sign = self._text[self._at : self._at + 1]
            if sign in ("", "\n", ";"):
                self._at += len(sign)
                yield words
                return
            if self._text.startswith("&&", self._at):
                self._at += 2
                yield words
                words = []
            elif self._text.startswith("<<", self._at) or sign == "(":
                raise _UnreadableError(_NO_ASSIGNMENT)
            elif sign in "&|<>)":
                self._at += 1
                self._why = self._why or _NO_ASSIGNMENT
            else:
                words.append(self._word())

    def _skip_blanks(self) -> None:
        while True:
            if self._text.startswith("\\\n", self._at):
                self._at += 2
            elif self._text[self._at : self._at + 1] in (" ", "\t", "\r"):
                self._at += 1
            elif self._text.startswith("#", self._at):
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            else:
                return

    def _word(self) -> _Word:
        target = _TARGET.match(self._text, self._at)
        if target is None:
            return _Word("".join(self._pieces(_PLAIN)))
        name, adds = target.groups()
        self._at = target.end()
        if self._text.startswith("(", self._at):
            self._why = self._why or "an array cannot be exported"
            self._skip("(", ")")
            return _Word("", name)
        before = self._value(name) or "" if adds else ""
        value = before + "".join(self._pieces(_PLAIN, is_value=True))
        if len(value) > LONGEST_VALUE:
            self._why = self._why or _TOO_LONG
        return _Word(value, name)

    def _pieces(self, plain: re.Pattern[str], *, is_value: bool = False, quoted: bool = False) -> Iterator[str]:
        """The text up to where `plain` and quotes end."""
        size = 0
        while self._at < len(self._text):
            start = self._at
            piece = self._piece(plain, is_value=is_value, quoted=quoted)
            if self._at == start:
                return
            size += len(piece)
            self._work += len(piece)
            if self._work > _MOST_WORK:
                raise _UnreadableError(_TOO_LONG)
            if size > LONGEST_VALUE:  # `A=$A$A` in every line doubles it
                self._why = self._why or _TOO_LONG
            else:
                yield piece

    def _piece(self, plain: re.Pattern[str], *, is_value: bool, quoted: bool) -> str:
        """The next piece; at the end of the word nothing is consumed."""
        if found := plain.match(self._text, self._at):
            self._at = found.end()
            return self._with_home(found) if is_value else found[0]
        sign, two = self._text[self._at], self._text[self._at : self._at + 2]
        if sign == "$":
            return self._after_dollar(quoted)
        if sign == "`":
            self._why = self._why or _COMPUTED
            self._at = self._end_of("`", self._at + 1)
            return ""
        if sign == "\\":
            self._at += 2
            is_kept = quoted and two[1:] not in ('"', "\\", "$", "`", "\n")
            return two if is_kept else two[1:].replace("\n", "")
        if sign == '"' and not quoted:
            return self._string()
        if sign == "'" and not quoted:
            start, self._at = self._at + 1, self._end_of("'", self._at + 1)
            return self._text[start : self._at - 1]
        return ""

    def _string(self) -> str:
        self._at += 1
        text = "".join(self._pieces(_IN_QUOTES, quoted=True))
        if not self._text.startswith('"', self._at):
            raise _UnreadableError(_NO_END)
        self._at += 1
        return text

    def _with_home(self, found: re.Match[str]) -> str:
        """`~` stands for the home directory at the beginning of a value, and after a colon."""
        home = self._value("HOME") or "~"
        starts = self._text[found.start() - 1] == "="
        parts = found[0].split(":")
        return ":".join(
            home + part[1:] if (at or starts) and (part == "~" or part.startswith("~/")) else part
            for at, part in enumerate(parts)
        )

    def _after_dollar(self, quoted: bool) -> str:
        following = self._text[self._at + 1 : self._at + 2]
        if following == "'" and not quoted:
            return self._ansi()
        if following == '"' and not quoted:
            self._at += 1
            return self._string()
        if following == "{":
            return self._expansion(quoted)
        if following == "(":
            self._why = self._why or _COMPUTED
            self._at += 1
            self._skip("(", ")")
            return ""
        if found := _NAME.match(self._text, self._at + 1):
            self._at = found.end()
            return self._value(found[0]) or ""
        self._at += 1
        if following and following in "0123456789@*#?$!-":
            self._why = self._why or _COMPUTED
        return "$"

    def _expansion(self, quoted: bool) -> str:
        """`${NAME}`, with or without a default."""
        found = _EXPANSION.match(self._text, self._at)
        if found is None:
            return self._unknown_expansion()
        start, self._at = self._at, found.end()
        name, operator = found.groups()
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _UnreadableError(_COMPUTED)
        operand = "".join(self._pieces(_OPERAND, quoted=quoted)) if operator else ""
        self._depth -= 1
        if not self._text.startswith("}", self._at):
            self._at = start
            return self._unknown_expansion()
        self._at += 1
        value = self._value(name)
        is_there = value is not None and (value != "" or ":" not in (operator or ""))
        if operator in ("+", ":+"):
            return operand if is_there else ""
        return value or "" if is_there or not operator else operand

    def _unknown_expansion(self) -> str:
        self._why = self._why or _COMPUTED
        self._at += 1
        self._skip("{", "}")
        return ""

    def _ansi(self) -> str:
        """`$'…'`, as `printf %q` and direnv write it. Bytes of one character may be written one by one."""
        found = re.compile(r"\$'((?:[^'\\]|\\.)*+)'", re.DOTALL).match(self._text, self._at)
        if found is None:
            raise _UnreadableError(_NO_END)
        self._at = found.end()
        parts, at = bytearray(), 0
        for escape in _ESCAPE.finditer(found[1]):
            parts += found[1][at : escape.start()].encode(errors="replace") + _decoded(escape)
            at = escape.end()
        parts += found[1][at:].encode(errors="replace")
        return parts.decode(errors="replace").replace("\0", "")

    def _skip(self, opening: str, closing: str) -> None:
        """Skip a bracket and what is in it."""
        depth = 0
        for found in re.compile(f"[{re.escape(opening + closing)}]").finditer(self._text, self._at):
            depth += 1 if found[0] == opening else -1
            if depth == 0:
                self._at = found.end()
                return
        raise _UnreadableError(_NO_END)

    def _end_of(self, quote: str, start: int) -> int:
        end = self._text.find(quote, start)
        if end < 0:
            raise _UnreadableError(_NO_END)
        return end + 1


def _is_name(word: _Word) -> bool:
    return not word.name and _NAME.fullmatch(word.text) is not None


def _options(words: list[_Word]) -> tuple[str, list[_Word]]:
    """The letters of the options, and the words after them."""
    letters = ""
    for at, word in enumerate(words):
        if word.name or not word.text.startswith("-"):
            return letters, words[at:]
        if word.text == "--":
            return letters, words[at + 1 :]
        letters += word.text[1:]
    return letters, []


def _decoded(escape: re.Match[str]) -> bytes:
    if digits := escape["short"] or escape["long"]:
        return chr(min(int(digits, 16), 0x10FFFF)).encode(errors="replace")
    if escape["hex"]:
        return bytes([int(escape["hex"], 16)])
    if escape["octal"]:
        return bytes([int(escape["octal"], 8) & 0xFF])
    if escape["control"]:
        return bytes([ord(escape["control"]) & 0x1F])
    return _NAMED.get(escape["one"], escape["one"] if escape["one"] in "\\'\"?" else f"\\{escape['one']}").encode()
