"""The second reader of Bash: quotes, operators and brackets, character by character. It shares nothing with the
grammar, so that a restriction does not depend on the mistake of one of them.

It finds simple commands and redirections, and knows when it is unsure. It does not check which keyword closes which:
finding too many commands is not a mistake here.
"""

import re

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.effort import spend
from wave_agent.shell.printing import decode
from wave_agent.shell.values import Word

_MOST_COMMANDS = 800
_MOST_PARTS = 6000
"""Total number of words. People do not write longer lines."""
_DEEPEST = 30
DECLARING = frozenset({"declare", "typeset", "export", "readonly", "local", "unset", "unsetenv"})
"""Commands that take assignments. The grammar treats them specially."""
TESTING = frozenset({"[", "test", "[["})
_BLANK = lazy_regex(r"(?:[ \t]|\\\n)+")
_ANY_BLANK = lazy_regex(r"(?:[ \t\n]|\\\n|(?<=[ \t\n])#[^\n]*)+")
_PLAIN = lazy_regex(r"[^ \t\n;&|<>()$`'\"\\]+")
_PLAIN_WORD = lazy_regex(r"[^ \t\n;&|<>()$`'\"\\]+(?=[ \t\n;&|<>]|\Z)")
_OPERATOR = lazy_regex(r";;&|;;|;&|&&|\|\||\|&|[;&|]")
_REDIRECT = lazy_regex(r"(?:[0-9]+|\{[A-Za-z_]\w*\})?(<<<|<<-|<<|<&|<>|>>|>&|>\||&>>|&>|<(?!\()|>(?!\())")
_ASSIGNMENT = lazy_regex(r"[A-Za-z_]\w*(?:\[[^\]\s]*\])?\+?=")
_OPEN_SUBSCRIPT = lazy_regex(r"[A-Za-z_]\w*\[[^\]]*")
_NAME = lazy_regex(r"[A-Za-z_]\w*")
_PARAMETER = lazy_regex(r"[A-Za-z_]\w*|[0-9@*#?$!_-]")
_FUNCTION = lazy_regex(r"[ \t]*\([ \t]*\)")
_HEADER = lazy_regex(r"[ \t\n]*(?:([A-Za-z_]\w*)|(\(\())")
_TWO_WORDS = lazy_regex(r"\w[ \t\n]+[A-Za-z_]")
_OPENING = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{"})
_CLOSING = frozenset({"fi", "done", "}"})
_UNMODELLED = frozenset({"coproc", "esac", "in", "]]"})
"""If one of these is in command position, something was read differently from Bash."""
_COMPOUND = frozenset({*_OPENING, "for", "select", "case", "[[", "time", "coproc", "function"})
_STRING_PART = lazy_regex(r'[^"\\$`]+')
_ESCAPED = lazy_regex(r'\\([$`"\\\n])')
_EXPANDING = lazy_regex(r"\\.|\$\(\(|\$\(|\$\{|`|[(){}'\"\\]|[^\\$`(){}'\"]+|\$", re.DOTALL)
_TO_UNESCAPE = lazy_regex(r"\\([$`\\])")
_BACKQUOTED = lazy_regex(r"`((?:[^`\\]|\\.)*+)`", re.DOTALL)


class SimpleCommand:
    """A simple command: its words, and what is around them."""

    __slots__ = ("assignments", "fed", "piped", "redirections", "stdin", "words")

    def __init__(self) -> None:
        self.words: list[Word] = []
        self.assignments: list[Word] = []
        self.redirections: list[tuple[str, Word]] = []
        self.stdin: Word | None = None
        """The text of its here-document or here-string."""
        self.piped = False
        """There was a pipe on the line before it."""
        self.fed = False
        """It reads the output of another command: `>(…)`."""


class _UnsureError(Exception):
    """The rest cannot be read reliably."""


class SimpleReading:
    """What the simple reader found in a text."""

    def __init__(self, text: str) -> None:
        self.commands: list[SimpleCommand] = []
        self.exact = True
        """False: there may be more commands, or different ones."""
        self.parts = 0
        self.functions: list[str] = []
        try:
            _LineScanner(text, self, 0).run()
        except _UnsureError:
            self.exact = False

    def signature(self) -> list[tuple[str | None, ...]]:
        """What the other reader must find as well, in any order. Unknown words are None."""
        found: list[tuple[str | None, ...]] = []
        for one in self.commands:
            words = one.words
            if words and not (words[0].static and (words[0].text in DECLARING or words[0].text in TESTING)):
                found.append(tuple(word.text if word.static else None for word in words))
            found += ((operator, word.text if word.static else None) for operator, word in one.redirections)
        return found


class _LineScanner:
    def __init__(self, text: str, reading: SimpleReading, depth: int) -> None:
        self.text = text
        self.at = 0
        self.reading = reading
        self.depth = depth
        self.command = SimpleCommand()
        self.piped = self.fed = False
        self.documents: list[tuple[str, bool, bool, SimpleCommand]] = []
        """Here-documents that start on the next line: delimiter, whether tabs are stripped, whether it is literal."""

    def run(self) -> None:
        self._list("")
        if self.documents:
            raise _UnsureError

    def _doubt(self) -> None:
        self.reading.exact = False

    def _count(self) -> None:
        spend(2)
        self.reading.parts += 1
        if self.reading.parts > _MOST_PARTS:
            raise _UnsureError

    # ----------------------------------------------------------------------------------------------------------- lists

    def _list(self, closing: str) -> str:
        """Commands up to what closes them: a bracket, `;;` of a case, or the end. Returns the closing token."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _UnsureError
        outer, self.command = self.command, SimpleCommand()
        closed = None
        while closed is None:
            closed = self._step(closing)
        self._finish()
        self.command = outer
        self.depth -= 1
        return closed

    def _step(self, closing: str) -> str | None:
        spend(1)
        text = self.text
        if blank := _BLANK.match(text, self.at):
            self.at = blank.end()
        if self.at >= len(text):
            if closing:
                raise _UnsureError
            return ""
        character = text[self.at]
        if character == "\n":
            self._newline()
        elif character == "#":
            end = text.find("\n", self.at)
            self.at = len(text) if end < 0 else end
        elif character in "()":
            return self._bracket(character, closing)
        elif redirect := _REDIRECT.match(text, self.at):
            self._redirect(redirect)
        elif operator := _OPERATOR.match(text, self.at):
            return self._operator(operator, closing)
        else:
            return self._next_word(closing)
        return None

    def _newline(self) -> None:
        self._finish()
        self.at += 1
        documents, self.documents = self.documents, []
        for delimiter, tabs, literal, owner in documents:
            self._document(delimiter, tabs, literal, owner)

    def _operator(self, operator: re.Match[str], closing: str) -> str | None:
        self._finish()
        self.at = operator.end()
        self.piped |= operator[0] in ("|", "|&")
        if operator[0] in (";;", ";&", ";;&"):
            if closing != "case":
                raise _UnsureError
            return operator[0]
        return None

    def _bracket(self, character: str, closing: str) -> str | None:
        if character == ")":
            if closing != ")":
                raise _UnsureError
            self.at += 1
            return ")"
        if self.command.words or self.command.assignments:
            function = _FUNCTION.match(self.text, self.at)
            if function is None or len(self.command.words) != 1:
                raise _UnsureError
            self.reading.functions.append(self.command.words[0].text)
            self.command = SimpleCommand()
            self.at = function.end()
        elif self.text.startswith("((", self.at) and self._is_arithmetic(self.at + 2):
            self.at += 2
            start = self.at
            self._arithmetic()
            if _TWO_WORDS.search(self.text, start, self.at):
                self._doubt()
        else:
            self.at += 1
            self._list(")")
        return None

    def _finish(self) -> None:
        command = self.command
        if not (command.words or command.assignments or command.redirections):
            return
        command.piped, command.fed = self.piped, self.fed
        self.reading.commands.append(command)
        if len(self.reading.commands) > _MOST_COMMANDS:
            raise _UnsureError
        self.command = SimpleCommand()

    # --------------------------------------------------------------------------------------------------------- keywords

    def _next_word(self, closing: str) -> str | None:
        start = self.at
        word = self._word()
        command = self.command
        if command.words:
            command.words.append(word)
            return None
        raw = self.text[start : self.at]
        if _ASSIGNMENT.match(raw):
            command.assignments.append(word)
            return None
        if _OPEN_SUBSCRIPT.fullmatch(raw):
            raise _UnsureError  # `a[1 + 2]=x` is one word
        if command.assignments or command.redirections:
            command.words.append(word)
            return None
        if raw == "esac" and closing == "case":
            return "esac"
        return self._keyword(raw, word)

    def _keyword(self, raw: str, word: Word) -> None:
        if raw in _OPENING:
            return
        if raw in _CLOSING:
            self._closed()
        elif raw in ("for", "select"):
            self._loop()
        elif raw == "case":
            self._case()
        elif raw == "[[":
            self._condition()
        elif raw == "function":
            self._blanks()
            self.reading.functions.append(self._word().text)
            if brackets := _FUNCTION.match(self.text, self.at):
                self.at = brackets.end()
        elif raw in _UNMODELLED or (raw == "time" and self._before_compound()):
            self._doubt()
        else:
            self.command.words.append(word)

    def _blanks(self) -> None:
        if blank := _ANY_BLANK.match(self.text, self.at):
            self.at = blank.end()

    def _before_compound(self) -> bool:
        follows = re.compile(r"[ \t]+(?:-p[ \t]+)?(\(|[^ \t\n;&|<>()]*)").match(self.text, self.at)
        return follows is None or follows[1] == "(" or follows[1] in _COMPOUND

    def _closed(self) -> None:
        """After `fi`, `done` and `}` there are only redirections, operators and other closing keywords."""
        follows = re.compile(r"(?:[ \t]|\\\n)*([^ \t\n;&|<>()0-9#{]*)").match(self.text, self.at)
        if follows is not None and follows[1] and follows[1] not in _CLOSING | {"then", "do", "esac", "else", "elif"}:
            raise _UnsureError

    def _loop(self) -> None:
        header = _HEADER.match(self.text, self.at)
        if header is None:
            raise _UnsureError
        self.at = header.end()
        if header[2]:
            self._arithmetic()
            return
        self._blanks()
        if not re.compile(r"in(?=[ \t\n;])").match(self.text, self.at):
            return
        self.at += 2
        values = SimpleCommand()
        self.reading.commands.append(values)
        while True:
            if blank := _BLANK.match(self.text, self.at):
                self.at = blank.end()
            if self.at >= len(self.text) or self.text[self.at] in "()<>&|":
                if not self.text.startswith(("<(", ">("), self.at):
                    raise _UnsureError
            elif self.text[self.at] in ";\n":
                return
            value = self._word()
            glob = value.glob and f"{header[1]}={value.glob}"
            values.assignments.append(Word(f"{header[1]}={value.text}", value.static, glob))

    def _case(self) -> None:
        self._blanks()
        self._word()
        self._blanks()
        if not re.compile(r"in(?=[ \t\n(])").match(self.text, self.at):
            raise _UnsureError
        self.at += 2
        closed = ";;"
        while closed != "esac":
            self._blanks()
            if re.compile(r"esac(?![^ \t\n;&|<>()])").match(self.text, self.at):
                self.at += 4
                return
            self._patterns()
            closed = self._list("case")

    def _patterns(self) -> None:
        if self.text.startswith("(", self.at):
            self.at += 1
        while True:
            self._blanks()
            self._word()
            self._blanks()
            sign = self.text[self.at : self.at + 1]
            self.at += 1
            if sign == ")":
                return
            if sign != "|":
                raise _UnsureError

    def _condition(self) -> None:
        """`[[ … ]]`: operators do not separate commands in it, but expansions are performed."""
        while True:
            self._blanks()
            if self.at >= len(self.text):
                raise _UnsureError
            if self.text[self.at] in ";&|<>()" and not self.text.startswith(("<(", ">("), self.at):
                self.at += 1
            elif (word := self._word(condition=True)) and word.static and word.text == "]]":
                return

    # ----------------------------------------------------------------------------------------------------- redirections

    def _redirect(self, redirect: re.Match[str]) -> None:
        operator = redirect[1]
        self.at = redirect.end()
        if blank := _BLANK.match(self.text, self.at):
            self.at = blank.end()
        if self.at >= len(self.text) or self.text[self.at] in "\n;&|()":
            raise _UnsureError
        start = self.at
        word = self._word()
        if operator not in ("<<", "<<-"):
            if operator == "<<<":
                self.command.stdin = word
            self.command.redirections.append((operator, word))
            return
        raw = self.text[start : self.at]
        if not word.static and not re.fullmatch(r"[\w$]+", raw):
            raise _UnsureError
        literal = any(character in raw for character in "'\"\\")
        self.command.redirections.append(("<<", Word(raw)))
        self.documents.append((word.text, operator == "<<-", literal, self.command))

    def _document(self, delimiter: str, tabs: bool, literal: bool, owner: SimpleCommand) -> None:
        front = r"^\t*" if tabs else "^"
        end = re.compile(rf"{front}{re.escape(delimiter)}(?:\n|\Z)", re.MULTILINE).search(self.text, self.at)
        if end is None:
            self._doubt()
        body = self.text[self.at : end.start() if end else len(self.text)]
        self.at = end.end() if end else len(self.text)
        plain = literal or ("$" not in body and "`" not in body and "\\" not in body)
        if tabs:
            body = re.sub(r"(?m)^\t+", "", body)
        owner.stdin = Word(body, static=plain)
        if not plain:
            _LineScanner(body, self.reading, self.depth).inside_text()

    def inside_text(self) -> None:
        """The expansions in a text where nothing else has a meaning."""
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == "\\":
                self.at += 2
            elif character in "$`":
                self._count()
                self._expansion(quoted=True)
            else:
                ends = re.compile(r"[\\$`]").search(self.text, self.at)
                self.at = ends.start() if ends else len(self.text)

    # ------------------------------------------------------------------------------------------------------------ words

    def _word(self, *, condition: bool = False) -> Word:
        self._count()
        text, start = self.text, self.at
        if plain := _PLAIN_WORD.match(text, start):
            self.at = plain.end()
            return Word(plain[0], glob=plain[0] if "*" in plain[0] or "?" in plain[0] else None)
        parts: list[str] = []
        static = True
        while self.at < len(text):
            character = text[self.at]
            if plain := _PLAIN.match(text, self.at):
                parts.append(plain[0])
                self.at = plain.end()
            elif character in "<>" and self.at == start and text.startswith("(", self.at + 1):
                self.at += 2
                outer, self.fed = self.fed, self.fed or character == ">"
                self._list(")")
                self.fed = outer
                static = False
            elif character in " \t\n;&|<>)" or (character == "(" and self._names_function(start)):
                break
            elif character == "(":
                self._inner_bracket(start, condition=condition)
                static = False
            else:
                self._count()
                known = self._quoted(character)
                static &= known is not None
                parts.append(known or "")
        if self.at == start:
            raise _UnsureError
        return Word("".join(parts)) if static else Word(text[start : self.at], static=False)

    def _inner_bracket(self, start: int, *, condition: bool) -> None:
        """`a=(…)`; anywhere else it is a pattern or an expression."""
        raw = self.text[start : self.at]
        declares = not self.command.words or self.command.words[0].text in DECLARING
        if condition:
            self.at += 1
        elif declares and _ASSIGNMENT.fullmatch(raw):
            self.at += 1
            self._array()
        else:
            raise _UnsureError

    def _names_function(self, start: int) -> bool:
        return self.at > start and not self.command.words and _FUNCTION.match(self.text, self.at) is not None

    def _array(self) -> None:
        while True:
            self._blanks()
            if self.text.startswith(")", self.at):
                self.at += 1
                return
            if self.text.startswith("#", self.at):
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
                continue
            self._word()

    def _quoted(self, character: str) -> str | None:
        """The value of a quote, a backslash or an expansion. None: unknown."""
        text = self.text
        if character == "\\":
            self.at += 2
            escaped = text[self.at - 1 : self.at]
            return "" if escaped == "\n" else escaped or "\\"
        if character == "'":
            end = text.find("'", self.at + 1)
            if end < 0:
                raise _UnsureError
            found, self.at = text[self.at + 1 : end], end + 1
            return found
        if character == '"':
            self.at += 1
            return self._string()
        return self._expansion()

    def _string(self) -> str | None:
        parts: list[str] = []
        static = True
        while True:
            if plain := _STRING_PART.match(self.text, self.at):
                parts.append(plain[0])
                self.at = plain.end()
            if self.at >= len(self.text):
                raise _UnsureError
            character = self.text[self.at]
            if character == '"':
                self.at += 1
                return "".join(parts) if static else None
            if character == "\\":
                escaped = self.text[self.at : self.at + 2]
                parts.append(_ESCAPED.sub(lambda found: found[1].strip("\n"), escaped))
                self.at += 2
            else:
                self._count()
                known = self._expansion(quoted=True)
                static &= known is not None
                parts.append(known or "")

    # ------------------------------------------------------------------------------------------------------- expansions

    def _expansion(self, *, quoted: bool = False) -> str | None:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _UnsureError
        known = self._expanded(quoted=quoted)
        self.depth -= 1
        return known

    def _expanded(self, *, quoted: bool) -> str | None:
        text = self.text
        if text[self.at] == "`":
            self._backquotes(quoted=quoted)
            return None
        follows = text[self.at + 1 : self.at + 2]
        if follows == "(":
            if text.startswith("((", self.at + 1) and self._is_arithmetic(self.at + 3):
                self.at += 3
                self._arithmetic()
            else:
                self.at += 2
                self._list(")")
            return None
        if follows == "{":
            self.at += 2
            self._parameter()
            return None
        if follows and not quoted and follows in "'\"":
            return self._ansi() if follows == "'" else self._translated()
        if follows == "[":
            raise _UnsureError  # the old arithmetic
        if parameter := _PARAMETER.match(text, self.at + 1):
            self.at = parameter.end()
            return None
        self.at += 1
        return "$"

    def _translated(self) -> str | None:
        self.at += 2
        return self._string()

    def _ansi(self) -> str:
        end = re.compile(r"(?:[^'\\]|\\.)*+'", re.DOTALL).match(self.text, self.at + 2)
        if end is None:
            raise _UnsureError
        inside = self.text[self.at + 2 : end.end() - 1]
        self.at = end.end()
        return decode(inside)

    def _backquotes(self, *, quoted: bool) -> None:
        found = _BACKQUOTED.match(self.text, self.at)
        if found is None:
            raise _UnsureError
        self.at = found.end()
        inside = _TO_UNESCAPE.sub(r"\1", found[1])
        if quoted:
            inside = inside.replace('\\"', '"')
        _LineScanner(inside, self.reading, self.depth + 1).run()

    def _is_arithmetic(self, at: int) -> bool:
        """Whether `((` is closed by `))`, rather than being nested brackets."""
        depth = 0
        for sign in re.compile(r"[()]").finditer(self.text, at):
            self._count()
            depth += 1 if sign[0] == "(" else -1
            if depth < 0:
                return self.text.startswith("))", sign.start())
        return False

    def _arithmetic(self) -> None:
        """Up to `))`. Substitutions run commands here too."""
        self._through("(", ")")
        if not self.text.startswith(")", self.at):
            raise _UnsureError
        self.at += 1

    def _parameter(self) -> None:
        """Up to `}`. The meaning of quotes in it depends on the operator and the context."""
        self._through("{", "}")

    def _through(self, opening: str, closing: str) -> None:
        depth = 0
        while found := _EXPANDING.match(self.text, self.at):
            sign: str = found[0]
            self._count()
            if sign in ("$(", "$((", "${", "`"):
                self._expansion()
                continue
            self.at = found.end()
            if sign in ("'", '"') or sign.startswith("\\"):
                self._doubt()
            depth += (sign == opening) - (sign == closing)
            if depth < 0:
                return
        raise _UnsureError
