"""Arguments of a command in a line of Bash that it runs: each is data, whatever characters it has."""

import re
import shlex
from collections.abc import Callable
from enum import Enum

from wave_agent.agent.line_places import check_places, check_sed_scripts
from wave_agent.agent.line_words import ONE, SEVERAL, UNCLEAR, NotDataError

_PLAIN = re.compile(r"[\w@%+=:,./-]*", re.ASCII)
"""Text that means the same inside and outside of quotes, and is no code in any language that matters."""
_ONE_WORD = re.compile(r"(?:(?:^|[\s;&|({])[A-Za-z_]\w*\+?=|[<>]\s*)\Z", re.ASCII)
"""Before the value of a variable, or a file: a second word after it would be a command."""
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

    An argument is quoted as its place in the line needs it. If one is more than a plain word, each has to be in a place
    where it is data.
    """
    quotes, parts, marked, at = _Quotes.NONE, list[str](), list[str](), 0
    arguments: list[list[str]] = []
    for found in placeholder.finditer(line):
        before = line[at : found.start()]
        quotes, at = _after(before, quotes), found.end()
        given = words(found)
        if isinstance(given, str):
            parts += [before, given]
            marked += [before, given]
            continue
        is_one = len(given) < 2 or quotes is not _Quotes.NONE or _ONE_WORD.search(line[: found.start()]) is not None
        arguments.append(given)
        parts += [before, _quoted([" ".join(given)] if given and is_one else given, quotes)]
        marked += [before, ONE if is_one else SEVERAL]
    if any(arguments):
        _check("".join([*marked, line[at:]]), arguments)
    return "".join([*parts, line[at:]])


def _check(marked: str, arguments: list[list[str]]) -> None:
    """`marked` is the line with a mark for each of the arguments."""
    words = [word for given in arguments for word in given]
    unusual = next((word for word in words if not _PLAIN.fullmatch(word)), None)
    try:
        if sum(map(marked.count, (ONE, SEVERAL))) != len(arguments):
            raise NotDataError(UNCLEAR)  # the line itself has such characters
        if unusual is None:
            check_sed_scripts(marked, [" ".join(given) for given in arguments])
        else:
            check_places(marked, options=any(word.startswith("-") for word in words))
    except NotDataError as error:
        shown = " ".join(words) if unusual is None else unusual
        raise UnsafeArgumentError(
            f"the argument {shown!r} has characters that mean something to the shell or to a program, and {error}"
        ) from None


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


def _quoted(words: list[str], quotes: _Quotes) -> str:
    if quotes is _Quotes.SINGLE:
        return " ".join(words).replace("'", "'\\''")
    if quotes is _Quotes.DOUBLE:
        return _SPECIAL_IN_DOUBLE.sub(r"\\\g<0>", " ".join(words))
    return " ".join(map(shlex.quote, words))
