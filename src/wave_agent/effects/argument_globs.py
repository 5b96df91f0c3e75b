"""The patterns that an argument may be, in any dialect: as patterns of `Effects`, which match at least as much."""

import re
from collections.abc import Iterator

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.values import escape

_MOST_ALTERNATIVES = 64
_LONGEST = 512
_WILD = lazy_regex(r"[*?\[{]|[@!+]\(")
_BRACES = lazy_regex(r"\{([^{}]*)\}")
_TOKEN = lazy_regex(r"[@!+*?]\([^()]*\)|\*+|\?|\[[!^]?\]?[^\]/]*\]|(.)", re.DOTALL)
_PLAIN = lazy_regex(r"[^\W_]")
_ANY = "**"
"""Unlike `*`, it also matches at a leading dot: whether a server's wildcards do is not known."""


def is_glob(word: str) -> bool:
    return len(word) <= _LONGEST and _WILD.search(word) is not None


def says_something(word: str) -> bool:
    """Whether there is more to it than wildcards: `*` in a text is a bullet or a product, not a pattern."""
    return _PLAIN.search(re.sub(r"\[[^\]]*\]", "", word)) is not None


def as_patterns(word: str) -> tuple[str, ...]:
    """`.{env,x}` is `.env` and `.x`, and `!(x)` any name."""
    return tuple(dict.fromkeys(map(_pattern, _without_braces(word))))


def _without_braces(word: str) -> Iterator[str]:
    waiting, left = [word], _MOST_ALTERNATIVES
    while waiting:
        one = waiting.pop()
        found = _BRACES.search(one)
        if found is None:
            yield one
            continue
        choices = found[1].split(",")
        left -= len(choices)
        # A range such as `{a..z}`, or too many of them: anything.
        choices = choices if left >= 0 and ".." not in found[1] else [_ANY]
        waiting += [f"{one[: found.start()]}{choice}{one[found.end() :]}" for choice in choices]


def _pattern(word: str) -> str:
    pieces: list[str] = []
    for step in word.split("/"):
        name = ""
        for token in _TOKEN.finditer(step):
            if token[1] is not None:
                name += escape(token[1])
            elif not name or token[0][0] in "@!+" or len(token[0]) > 1:
                name = name.removesuffix(_ANY) + _ANY  # sets too: which characters they have differs by dialect
            else:
                name += token[0]
        pieces.append(name)
    return "/".join(pieces)
