"""What looks like a key, a token or a password, taken out of whatever leaves the private transcript.

What a secret looks like is said in one place, the recipe `secret-scan`: what that guard would not let into a file does
not get into an export either.
"""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar, cast

import msgspec

Value = TypeVar("Value")

_RECIPE, _TABLE = "secret-scan", "SECRETS"
_QUOTES = "\"'"
_QUOTE = re.compile(r"""\[\\?"']""")
"""As a pattern of the table spells it."""
# Of a private key the table knows the first line. Its end may be cut off, and its line ends may be spelt out.
_REST_OF_KEY = re.compile(r"(?:.{0,20000}?-----END [A-Z ]*PRIVATE KEY-----|(?:[A-Za-z0-9+/=\s]|\\[nr])*)", re.DOTALL)


@cache
def patterns() -> Mapping[str, re.Pattern[str]]:
    """What a secret is called → what it looks like. In JSON within JSON, quotes have backslashes before them."""
    return {what: re.compile(_QUOTE.sub(r"\\\\*\g<0>", pattern)) for what, pattern in table().items()}


def table() -> dict[str, str]:
    """The recipe's own."""
    script = (files("wave_agent.recipes") / _RECIPE / "hook.py").read_text("utf-8")
    for statement in ast.parse(script).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == _TABLE:
            return cast(dict[str, str], ast.literal_eval(statement.value))
    raise LookupError(f"the recipe {_RECIPE} has no table {_TABLE}")


def mask(text: str) -> str:
    """The text with `[masked: an AWS key]` and the like in place of secrets. Masking it again changes nothing."""
    while spans := sorted(_spans(text)):  # what stands beside a secret may look like one only when that is gone
        pieces: list[str] = []
        at = 0
        for start, end, what in _apart(spans):
            pieces += [text[at:start], f"[masked: {what}]"]
            at = end
        text = "".join([*pieces, text[at:]])
    return text


def masked(value: Value) -> Value:
    """The same, with every text in it masked: of lists, mappings and structs. A value is also judged by its key."""
    return cast(Value, _masked(value))


def _masked(value: Any) -> Any:
    if isinstance(value, str):
        return mask(value)
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
    """`{"password": …}` is a password, although the value alone may look like any word."""
    if isinstance(key, str) and isinstance(value, str):
        for what, pattern in patterns().items():
            if (found := pattern.search(f'{key}="{value}"')) and found[0].endswith(f'="{value}"'):
                return f"[masked: {what}]"
    return _masked(value)


def _spans(text: str) -> Iterator[tuple[int, int, str]]:
    for what, pattern in patterns().items():
        for found in pattern.finditer(text):
            start, end = found.span()
            if text[end - 1] in _QUOTES:  # a name and a value in quotes: the name may stay
                start = max(text.rfind(quote, start, end - 1) for quote in _QUOTES) + 1
                end = start + (len(text[start : end - 1].rstrip("\\")) or end - 1 - start)
            elif (rest := _REST_OF_KEY.match(text, end)) and found[0].startswith("-----BEGIN"):
                end = rest.end()
            yield start, end, what


def _apart(spans: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """Those that overlap as one, called by the first."""
    start, end, what = spans[0]
    for one in spans[1:]:
        if one[0] < end:
            end = max(end, one[1])
        else:
            yield start, end, what
            start, end, what = one
    yield start, end, what
