"""A regular expression for the bytes of a file that matches at least where the one for its text does.

`rg` reads bytes, while Grep decodes files: UTF-8 with stray bytes, Latin-1, lines that end with CRLF. (Both understand
byte order marks and UTF-16.) So every part of the pattern is replaced by one that accepts whatever bytes a matching
character may have. There is nothing negative in the syntax understood here, so replacing a part by a wider one makes
the whole wider. Has only fast imports.
"""

import re

from wave_agent.lazy_regex import lazy_regex

_HIGH = r"\x80-\xff"
"""The bytes of characters that are not ASCII: one to four for each."""
_CHARACTER = f"[{_HIGH}]{{1,4}}"
_SEPARATORS = r"\x1c-\x1f"
"""Whitespace in a text, but not in bytes."""
_CLASSES = {
    "w": r"\w",
    "W": r"\W",
    "d": r"\d",
    "D": r"\D",
    "s": r"\s" + _SEPARATORS,
    "S": r"\S",
}
_ALSO = {"i": r"\xc4[\xb0\xb1]", "k": r"\xe2\x84\xaa", "s": r"\xc5\xbf"}
"""I with and without a dot, the sign for kelvin, and the long s: the only letters outside ASCII that one in ASCII
matches if case is ignored."""

_PARTS = lazy_regex(
    r"""(?P<escape> \\[dDwWsS])
      | (?P<boundary> \\[bB])
      | (?P<same> \\[t.\\\-+*?()\[\]{}|^] | \\\$ | \{\d+(?:,\d*)?\} | [|*+?^)])
      | (?P<group> \((?:\?:|\?P<\w+>|(?!\?)))
      | (?P<members> \[\^?(?:[^\\\[\]&~|^-]|-(?!-)|\\[dDwWsSt.\\\-+*?()\[\]{}|^$])+\])
      | (?P<any> \.)
      | (?P<end> \$)
      | (?P<literal> [^\\\[\](){}\x00-\x08\x0a-\x1f])
    """,
    re.VERBOSE,
)


def byte_pattern(pattern: str, *, ignore_case: bool) -> str | None:
    """For a pattern that matches within a line, in syntax that Python and rg share. None: it has other syntax."""
    out: list[str] = []
    at = 0
    while at < len(pattern):
        part = _PARTS.match(pattern, at)
        if part is None:
            return None
        at = part.end()
        out.append(_wider(part, ignore_case=ignore_case, is_repeated=pattern[at : at + 1] in ("*", "+")))
    return "".join(out)


def _wider(part: "re.Match[str]", *, ignore_case: bool, is_repeated: bool) -> str:
    """`is_repeated`: as often as one likes, so the bytes of a character need no group of their own."""
    text = part[0]
    match part.lastgroup:
        case "escape":
            return _one_of(_CLASSES[text[1]], is_repeated=is_repeated)
        case "boundary":
            return "(?:)"  # which neighbours are letters depends on the encoding
        case "group":
            return "(?:"
        case "members":
            return _class(text, ignore_case=ignore_case, is_repeated=is_repeated)
        case "any":
            return "." if is_repeated else "(?:.{1,4})"
        case "end":
            return r"\r?$"
        case "literal":
            return _literal(text, ignore_case=ignore_case)
        case _:
            return text


def _one_of(members: str, *, is_repeated: bool) -> str:
    return f"[{members}{_HIGH}]" if is_repeated else f"(?:[{members}]|{_CHARACTER})"


def _class(text: str, *, ignore_case: bool, is_repeated: bool) -> str:
    if not text.isascii():
        return "(?:.{1,4})"
    if ignore_case or text.startswith("[^") or "\\" in text:
        return f"(?:{text}|{_one_of(_SEPARATORS, is_repeated=is_repeated)})"
    return text


def _literal(character: str, *, ignore_case: bool) -> str:
    if not character.isascii():
        return f"(?:{_CHARACTER}|[iks])" if ignore_case else f"(?:{_CHARACTER})"
    also = _ALSO.get(character.lower()) if ignore_case else None
    return f"(?:{character}|{also})" if also else character
