"""Masks what looks like a key, a token or a password in anything that leaves the private transcript.

The patterns are defined in one place, the recipe `secret-scan`: what that guard keeps out of files is kept out of
exports too.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, TypeVar, cast

import msgspec

Value = TypeVar("Value")

_RECIPE, _TABLE, _START, _END = "secret-scan", "SECRETS", "START", "END"
_SHORT = 100
"""Characters of a text that is worth remembering."""
_QUOTES = "\"'"
_QUOTE = re.compile(r"""\[\\?"']""")
"""As written in the table's patterns."""
_WORD_START, _WORD_END = re.compile(r"\A\\b"), re.compile(r"\\b\Z")
# The table knows the first line of a private key. The end may be cut off, and what is between lines may be escaped,
# even more than once: `\\n`.
_BREAK = r"(?:\s|\\++(?:[nrt/]|u00[0-9A-Fa-f]{2})|%(?:0[ADad]|2[BFbf]|3[Dd]))"
_LAST_LINE = "-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----"
_REST_OF_KEY = re.compile(
    rf"(?:.{{0,20000}}?{_LAST_LINE}|(?:{_BREAK}+[A-Za-z-]+: [^\n\\\"%]*)*+(?:[A-Za-z0-9+/=]|{_BREAK})*+)", re.DOTALL
)


@cache
def patterns() -> Mapping[str, re.Pattern[str]]:
    """Name of a kind of secret → its pattern. In JSON within JSON, quotes are preceded by backslashes."""
    start, end = recipe_constant(_START), recipe_constant(_END)
    found = {what: _QUOTE.sub(r"\\\\*\g<0>", pattern) for what, pattern in table().items()}
    edged = {what: _WORD_START.sub(lambda _: start, pattern) for what, pattern in found.items()}
    return {what: re.compile(_WORD_END.sub(lambda _: end, pattern)) for what, pattern in edged.items()}


@cache
def _cores() -> Mapping[str, re.Pattern[str]]:
    """The patterns without their edges: a text without a match, as most are, is done in a tenth of the time."""
    start, end = recipe_constant(_START), recipe_constant(_END)
    return {
        what: re.compile(pattern.pattern.removeprefix(start).removesuffix(end)) for what, pattern in patterns().items()
    }


def table() -> dict[str, str]:
    """The recipe's table. In it, `\\b` stands for the recipe's own idea of where a word starts and ends."""
    return recipe_constant(_TABLE)


def recipe_constant(name: str) -> Any:
    """What the recipe's script calls by this name."""
    script = (files("wave_agent.recipes") / _RECIPE / "hook.py").read_text("utf-8")
    for statement in ast.parse(script).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name:
            return ast.literal_eval(statement.value)
    raise LookupError(f"the recipe {_RECIPE} has no {name}")


def mask(text: str) -> str:
    """Replaces secrets with `[masked: an AWS key]` and the like. Masking twice changes nothing more."""
    while spans := sorted(_spans(text)):  # text next to a secret may look like one only once that is masked
        pieces: list[str] = []
        at = 0
        for start, end, what in _apart(spans):
            pieces += [text[at:start], f"[masked: {what}]"]
            at = end
        text = "".join([*pieces, text[at:]])
    return text


def masked(value: Value) -> Value:
    """Masks every text inside lists, mappings and structs. A value is also judged by its key."""
    return cast(Value, _masked(value))


def _masked(value: Any) -> Any:
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return _masked_short(value) if len(value) <= _SHORT else mask(value)
    if isinstance(value, msgspec.Struct):
        changed = {name: _under(name, getattr(value, name)) for name in value.__struct_fields__}
        return msgspec.structs.replace(value, **changed)
    if isinstance(value, Mapping):
        pairs = cast(Mapping[Any, Any], value)
        return {_masked(key): _under(key, inner) for key, inner in pairs.items()}
    if isinstance(value, list | tuple):
        inner = map(_masked, cast(Sequence[Any], value))
        return list(inner) if isinstance(value, list) else tuple(inner)
    return value


def _under(key: object, value: Any) -> Any:
    """`{"password": …}` is a password, even if the value alone looks like any word."""
    if isinstance(key, str) and isinstance(value, str):
        return _short_under(key, value) if len(key) + len(value) <= _SHORT else _text_under(key, value)
    return _masked(value)


def _text_under(key: str, value: str) -> str:
    for what, pattern in patterns().items():
        if (found := pattern.search(f'{key}="{value}"')) and found[0].endswith(f'="{value}"'):
            return f"[masked: {what}]"
    return _masked(value)


# Most texts of a session are names and words that come again and again.
_masked_short = lru_cache(1 << 14)(mask)
_short_under = lru_cache(1 << 14)(_text_under)


def _spans(text: str) -> Iterator[tuple[int, int, str]]:
    for what, pattern in patterns().items():
        for found in pattern.finditer(text) if _cores()[what].search(text) else ():
            start, end = found.span()
            if text[end - 1] in _QUOTES:  # a name and a quoted value: the name may stay
                start = max(text.rfind(quote, start, end - 1) for quote in _QUOTES) + 1
                end = start + (len(text[start : end - 1].rstrip("\\")) or end - 1 - start)
            elif (rest := _REST_OF_KEY.match(text, end)) and found[0].startswith("-----BEGIN"):
                end = rest.end()
            yield start, end, what


def _apart(spans: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """Overlapping spans merged, named after the first."""
    start, end, what = spans[0]
    for one in spans[1:]:
        if one[0] < end:
            end = max(end, one[1])
        else:
            yield start, end, what
            start, end, what = one
    yield start, end, what
