"""Whether two patterns of paths can name the same path: an entry of `Effects`, and the pattern of a rule."""

import re
from collections.abc import Sequence
from functools import lru_cache

from wave_agent.lazy_regex import lazy_regex

_TOKEN = lazy_regex(r"/\*\*/|\*\*+|\*|\?|\[([!^]?\]?[^\]]*)\]|.", re.DOTALL)
_MOST_STEPS = 200_000
"""Beyond this product of lengths, patterns are taken to meet."""


class _Set:
    """Characters that one place in a pattern may be."""

    __slots__ = ("characters", "negated")

    def __init__(self, characters: frozenset[str], *, negated: bool = False) -> None:
        self.characters = characters
        self.negated = negated

    def meets(self, other: "_Set") -> bool:
        if self.negated and other.negated:
            return True
        if self.negated or other.negated:
            allowed, excluded = (other, self) if self.negated else (self, other)
            return bool(allowed.characters - excluded.characters)
        return not self.characters.isdisjoint(other.characters)


_IN_NAME = _Set(frozenset("/"), negated=True)
_ANY = _Set(frozenset(), negated=True)
_SLASH = _Set(frozenset("/"))
_Step = tuple[_Set, bool]
"""A place, and whether it may be repeated or left out."""


def may_meet(entry: str, pattern: str) -> bool:
    """Whether some path matches both. Errs on the side of yes."""
    one, other = _literal(entry), _literal(pattern)
    common = min(len(one), len(other))
    if one[:common] != other[:common]:
        return False
    entry, pattern = entry[common:], pattern[common:]
    if len(entry) * len(pattern) > _MOST_STEPS:
        return True
    return any(_meet(one, other) for one in _forms(entry) for other in _forms(pattern))


def _literal(pattern: str) -> str:
    """What it starts with, before anything that has a meaning."""
    plain = _SIGN.split(pattern, maxsplit=1)[0]
    return plain if plain == pattern else plain.removesuffix("/")


_SIGN = lazy_regex(r"[*?\[]")


def _meet(one: Sequence[_Step], other: Sequence[_Step]) -> bool:
    # Positions in the second pattern that can be reached together with the current one in the first.
    reached = _skipped({0}, other)
    for place, repeated in one:
        reached = _moved(reached, other, place, repeated=repeated)
        if not reached:
            return False
    return len(other) in reached


def _moved(reached: set[int], other: Sequence[_Step], place: _Set, *, repeated: bool) -> set[int]:
    """The positions after this place of the first pattern."""
    found = set(reached) if repeated else set[int]()
    waiting = list(reached)
    while waiting:
        at = waiting.pop()
        if at < len(other) and place.meets(other[at][0]):
            # A repeated place in the second pattern may take more.
            for after in _skipped({at + 1, at} if other[at][1] else {at + 1}, other):
                if after not in found:
                    found.add(after)
                    waiting += [after] if repeated else []
    return found


def _skipped(positions: set[int], other: Sequence[_Step]) -> set[int]:
    """With the positions behind places that may be left out."""
    found = set(positions)
    for at in range(min(positions), len(other)):
        if at in found and other[at][1]:
            found.add(at + 1)
    return found


@lru_cache(maxsize=512)
def _forms(pattern: str) -> tuple[tuple[_Step, ...], ...]:
    """`/**/` is one slash, or two with anything between them."""
    found: list[list[_Step]] = [[]]
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        if text == "/**/" and len(found) < _MOST_FORMS:
            found = [[*form, *more] for form in found for more in ([(_SLASH, False)], _BETWEEN_SLASHES)]
            continue
        for form in found:
            form.extend(_steps(text, token[1]))
    return tuple(map(tuple, found))


_MOST_FORMS = 16
_BETWEEN_SLASHES = [(_SLASH, False), (_ANY, True), (_SLASH, False)]


def _steps(text: str, inside: str | None) -> list[_Step]:
    if text == "/**/":
        return [(_SLASH, False), (_ANY, True)]
    if text.startswith("**"):
        return [(_ANY, True)]
    if text in ("*", "?"):
        return [(_IN_NAME, text == "*")]
    return [(_Set(frozenset(text)) if inside is None else _characters(inside), False)]


def _characters(inside: str) -> _Set:
    negated = inside[:1] in ("!", "^") and len(inside) > 1
    plain = inside[1:] if negated else inside
    if not plain or re.search(r".-.|\[:", plain):
        return _IN_NAME  # ranges and classes: any character of a name
    excluded = {"/"} if negated else set[str]()
    return _Set(frozenset(plain) | excluded, negated=negated)
