"""Wildcards as Bash reads them, in the form that patterns of paths have here.

In a pattern, brackets contain plain characters and ranges of ASCII letters or digits, perhaps after `!`. Whatever else
Bash knows (classes such as `[[:alpha:]]`, `[[=e=]]`, `[[.e.]]`, quoted members) becomes `?`: it may match anything.
"""

import re
from collections.abc import Iterable

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.values import Word

_QUOTED, _UNKNOWN = 0xF0000, "\U0010ffff"
"""A quoted character is moved to a plane for private use; an unknown part is a character that is in no text."""
_BRACKET = lazy_regex(
    r"\[[!^]?(?P<members>\]?(?:\[(?P<kind>[:=.]).{0,32}?(?P=kind)\]|\\.|[^\]\\])*)\]|\[|\\(?P<escaped>.)", re.DOTALL
)
_PLAIN = lazy_regex(f"(?:[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]|[^\\[\\]\\\\!^{chr(_QUOTED)}-{_UNKNOWN}-])+")


def glob_pattern(parts: Iterable[tuple[str, bool, bool]]) -> str:
    """The pattern of a word: the text of its parts, whether each is quoted, and whether it is known.

    The text of an unknown part is a pattern already.
    """
    plain, unknown = "", list[str]()
    for text, quoted, known in parts:
        if not known:
            unknown.append(text)
            plain += _UNKNOWN
        else:
            plain += "".join(map(_quoted, text)) if quoted else text
    if "[" in plain or "\\" in plain:
        plain = "/".join(map(_name, plain.split("/")))
    rest = iter(unknown)
    return "".join(next(rest, "*") if one == _UNKNOWN else _shown(one) for one in plain)


def as_written(word: Word) -> Word | None:
    """The word itself, if its pattern does not match it: it stays as it is if no file has a matching name."""
    if word.glob is None or not word.static or word.glob.count("[[]") >= word.text.count("["):
        return None
    return Word(word.text)


def _name(text: str) -> str:
    """One name of a path. After its last `]`, no bracket is closed."""
    end = text.rfind("]") + 1
    return _BRACKET.sub(_translated, text[:end]) + _BRACKET.sub(_translated, text[end:].replace("[", _quoted("[")))


def _quoted(character: str) -> str:
    return chr(_QUOTED + ord(character)) if character in "*?[]\\-!^" else character


def _shown(character: str) -> str:
    """Quoted wildcards are in brackets."""
    if ord(character) < _QUOTED or ord(character) >= _QUOTED + 0x80:
        return character
    plain = chr(ord(character) - _QUOTED)
    return f"[{plain}]" if plain in "*?[" else plain


def _translated(found: re.Match[str]) -> str:
    if found["escaped"] is not None:
        return _quoted(found["escaped"])  # in the value of a variable, before a wildcard
    members = found["members"]
    if not members:
        return f"{_quoted('[')}{found[0][1:]}"  # it is not closed: a character like any other
    if _UNKNOWN in members:
        return _UNKNOWN * (members.count(_UNKNOWN) + 1)
    return found[0] if _PLAIN.fullmatch(members) else "?"
