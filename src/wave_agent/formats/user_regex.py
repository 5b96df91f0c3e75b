"""Regular expressions in settings, and limits on how long one of them can take.

Python's `re` backtracks: `(a+)+$` on thirty letters takes a minute, and a hook's matcher would block the agent that
long on every call. Such an expression is rejected when it is loaded. The rest are fast, because they are only matched
against short names.
"""

import re
import warnings
from collections.abc import Callable, Iterable
from importlib import import_module
from math import log2
from typing import Any

_MANY = 8
"""A repeat that can run longer multiplies all choices inside it."""
_LONGEST = 128
_MOST_BITS = 28.5
"""Upper limit of the ways to try: three unbounded repeats, or four after a "^". About a second at worst."""

_Items = Iterable[tuple[Any, Any]]
_NESTED = (
    'nested repeats, as in "(a+)+", can take forever: write the inner part without *, +, ? and {…}, or the outer '
    "one without its repeat"
)
_ALIKE = (
    'alternatives with a common beginning inside a repeat, as in "(a|ab)+", can take forever: use each letter or '
    "word in only one of them, or remove the repeat"
)
_TOO_MANY = "this many repeats and optional parts can take forever: use fewer, or one expression per case"


def compile_strictly(pattern: str) -> re.Pattern[str]:
    """`re.compile`, with `ValueError` for anything in the pattern that is wrong, ambiguous or can take forever."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)  # a class that a later Python would interpret differently
        try:
            compiled = re.compile(pattern)
            items = _parsed(pattern)
        except (re.error, FutureWarning, OverflowError, RecursionError) as error:
            raise ValueError(str(error)) from None
    if why := _why_endless(items, repeated=False):
        raise ValueError(why)
    return compiled


def why_slow(pattern: str) -> str | None:
    """Why a search for this valid expression in a name may take long; None if it does not."""
    items = [*_parsed(pattern)]
    anchored = bool(items) and str(items[0][0]) == "AT" and str(items[0][1]).startswith("AT_BEGINNING")
    return _TOO_MANY if _bits(items) + (0 if anchored else log2(_LONGEST)) > _MOST_BITS else None


def matching_glob(pieces: Iterable[str], anything: str = ".", *, glued: bool = False) -> str:
    """The expression for pieces with any number of `anything` between them; with `glued`, not before the last.

    A piece is matched at its first occurrence, which loses no match, without backtracking: so the time grows with the
    length of the text, whatever its content.
    """
    first, *rest = pieces
    if not rest:
        return first
    *middle, last = rest
    between = "" if glued else f"{anything}*"
    return first + "".join(f"(?>{anything}*?{piece})" for piece in middle if piece) + between + last


def _parsed(pattern: str) -> _Items:
    parse: Callable[[str], _Items] = import_module("re._parser").parse
    return parse(pattern)


def _why_endless(items: _Items, *, repeated: bool) -> str | None:
    """`repeated`: all of it is inside a repeat that can run long."""
    for operation, value in items:
        name, inner, again = str(operation), _inside(str(operation), value), repeated
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, _ = value
            if repeated and least != most:
                return _NESTED
            again = repeated or most > _MANY
        elif name in ("ATOMIC_GROUP", "POSSESSIVE_REPEAT"):  # never backtracked into
            again = False
        elif repeated and name in ("GROUPREF", "GROUPREF_EXISTS"):
            return _NESTED
        elif repeated and name == "BRANCH" and _begin_alike(inner):
            return _ALIKE
        for one in inner:
            if why := _why_endless(one, repeated=again):
                return why
    return None


def _inside(name: str, value: Any) -> list[_Items]:
    """The expressions inside an operation."""
    if name == "BRANCH":
        return [*value[1]]
    if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        return [value[2]]
    if name == "SUBPATTERN":
        return [value[3]]
    if name in ("ASSERT", "ASSERT_NOT"):
        return [value[1]]
    if name == "ATOMIC_GROUP":
        return [value]
    if name == "GROUPREF_EXISTS":
        return [one for one in value[1:] if one is not None]
    return []


def _bits(items: _Items) -> float:
    """The logarithm of the maximum number of ways to match all of this."""
    total = 0.0
    for operation, value in items:
        name = str(operation)
        each = [_bits(one) for one in _inside(name, value)]
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most = (min(int(one), _LONGEST) for one in value[:2])
            # A repeat that can run long contains no choice, or it would have been rejected.
            total += log2(most - least + 1) + (each[0] * most if most <= _MANY else 0)
        elif name == "BRANCH":
            total += log2(sum(2**one for one in each))
        else:
            total += sum(each)
    return total


_CHARACTERS = [*map(chr, range(128)), "é"]
"""All of ASCII, and one for the rest."""


def _begin_alike(alternatives: list[_Items]) -> bool:
    """Whether two of these may start with the same character, or one of them may be empty."""
    seen: set[str] = set()
    for one in alternatives:
        first = _first(one)
        if first is None or not seen.isdisjoint(first):
            return True
        seen |= first
    return False


def _first(items: _Items) -> set[str] | None:
    """The characters, in lower case, that a match may start with. None: it may be empty, or it is unknown."""
    for operation, value in items:
        name = str(operation)
        if name in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            return {one.lower() for one in _CHARACTERS if _takes(name, value, one)} | _beyond(name, value)
        inner = _inside(name, value)
        if name in ("SUBPATTERN", "ATOMIC_GROUP", "BRANCH") or (name.endswith("REPEAT") and value[0] > 0):
            sets = [_first(one) for one in inner]
            known = [one for one in sets if one is not None]
            return set[str]().union(*known) if len(known) == len(sets) else None
        if name != "AT":
            return None
    return None


def _beyond(name: str, value: Any) -> set[str]:
    """A named letter outside ASCII stands for itself and, to be safe, for all of them."""
    return {"é"} if name == "LITERAL" and value >= 128 else set()


def _takes(name: str, value: Any, character: str) -> bool:
    code = ord(character)
    if name == "ANY":
        return True
    if name in ("LITERAL", "NOT_LITERAL"):
        return (code == value) is (name == "LITERAL")
    negated = any(str(kind) == "NEGATE" for kind, _ in value)
    return negated is not any(_holds(str(kind), member, character) for kind, member in value)


def _holds(kind: str, member: Any, character: str) -> bool:
    code = ord(character)
    if kind == "LITERAL":
        return code == member or (code >= 128 and member >= 128)
    if kind == "RANGE":
        return member[0] <= code <= member[1] or (code >= 128 and member[1] >= 128)
    if kind == "CATEGORY":
        return re.fullmatch(_CATEGORIES[str(member)], character) is not None
    return False


_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}
