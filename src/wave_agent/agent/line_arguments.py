"""Arguments of a command in a line of Bash that it runs: each is data, whatever characters it has."""

import re
import shlex
from collections.abc import Callable
from enum import Enum

_PLAIN = re.compile(r"[\w@%+=:,./-]*", re.ASCII)
"""Text that means the same inside and outside of quotes."""
_NESTED = re.compile(r"\$\(|\$\{|\$'|\$\"|<\(|>\(|(?<!<)<<(?!<)")
"""Where quotes begin anew inside others, or mean something else."""
_ARGUMENT = "\0"
_BEGIN = r"(?:^|[\s;&|({!])"
_END = r"(?=$|[\s;&|)<>])"
_EVALUATED = re.compile(
    rf"""
    \(\( | \$\[ | [\w}}]\[[^\]]*(?:\]\+?=|{_ARGUMENT})          # arithmetic, subscripts
    | \[\[ .* \s-(?:eq|ne|lt|le|gt|ge|v|R)\s
    | {_BEGIN}(?:test|\[|printf|wait)\s+-[vRp]\b
    | {_BEGIN}(?:let|declare|typeset|local|export|readonly|unset|read|mapfile|readarray|getopts){_END}  # names
    | {_BEGIN}(?:eval|trap|alias|source|\.|make|gmake|just|parallel|ssh|watch|at|batch|[gmn]?awk){_END}
    | {_BEGIN}(?:\S*/)?(?:ba|da|z|k|a|mk|c|tc|fi)?sh(?:\s+-\S+)*\s*(?:$|[;&|)<])  # a shell that reads its input
    | {_BEGIN}(?:\S*/)?(?:ba|da|z|k|a|mk|c|tc|fi)?sh\s[^;&|]*(?<=\s)-\w*[cs]
    | {_BEGIN}(?:\S*/)?(?:python[\d.]*|perl|ruby|node|php|lua|su|script|env)\s[^;&|]*(?<=\s)-\w*[ceErpS]
    """,
    re.VERBOSE | re.DOTALL,
)
"""Where Bash or a program evaluates a word once more, so that quotes do not keep it from running."""
_SPECIAL_IN_DOUBLE = re.compile(r'[\\"$`]')


class UnsafeArgumentError(ValueError):
    """An argument that cannot be put into a line without being run."""


class _Quotes(Enum):
    NONE = ""
    SINGLE = "'"
    DOUBLE = '"'


def fill_line(line: str, placeholder: re.Pattern[str], words: Callable[[re.Match[str]], list[str] | str]) -> str:
    """The line with its placeholders filled in. `words` gives the arguments that one stands for, or text that belongs
    to the line itself. Raises `UnsafeArgumentError`.

    An argument is quoted as its place in the line needs it. Where quotes may not keep it from being run, only
    plain words are accepted: with quotes inside of quotes, in a comment, in arithmetic, as the name of a variable, and
    in a line that evaluates its words once more.
    """
    seen = placeholder.sub(lambda found: _ARGUMENT if found[0] != "\\$" else "$", line)
    nested = _NESTED.search(line) is not None or _EVALUATED.search(seen) is not None or _has_comment(line)
    quotes, parts, at = _Quotes.NONE, list[str](), 0
    for found in placeholder.finditer(line):
        before = line[at : found.start()]
        quotes, at = _after(before, quotes), found.end()
        given = words(found)
        parts += [before, given if isinstance(given, str) else _quoted(given, quotes, nested=nested)]
    return "".join([*parts, line[at:]])


def _has_comment(line: str) -> bool:
    starts = (found.start() for found in re.finditer(r"(?:^|(?<=[\s;&|()]))#", line))
    return any(_after(line[:at], _Quotes.NONE) is _Quotes.NONE for at in starts)


def _after(text: str, quotes: _Quotes) -> _Quotes:
    """What is open after this text, if `quotes` is open before it."""
    escaped = False
    for character in text:
        if escaped:
            escaped = False
        elif character == "\\" and quotes is not _Quotes.SINGLE:
            escaped = True
        elif quotes is _Quotes.NONE and character in "'\"":
            quotes = _Quotes(character)
        elif character == quotes.value:
            quotes = _Quotes.NONE
    return quotes


def _quoted(words: list[str], quotes: _Quotes, *, nested: bool) -> str:
    if nested:
        for word in words:
            if not _PLAIN.fullmatch(word):
                raise UnsafeArgumentError(f"the argument {word!r} has characters that mean something to the shell")
    if quotes is _Quotes.SINGLE:
        return " ".join(words).replace("'", "'\\''")
    if quotes is _Quotes.DOUBLE:
        return _SPECIAL_IN_DOUBLE.sub(r"\\\g<0>", " ".join(words))
    return " ".join(map(shlex.quote, words))
