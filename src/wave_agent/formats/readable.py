"""Makes sure that every JSON reader, shell and program can read what hooks receive.

A reader that stops halfway (`jq` at half a surrogate pair or at its nesting limit, a shell at a NUL) leaves a guard
with an empty string, and an empty string is allowed. So a call that contains such values is refused before any hook
sees it (`why_unreadable`), and in everything else that hooks receive they are replaced (`readable`).
"""

import json
import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, cast

import msgspec

from wave_agent.formats.strict_json import MAX_DEPTH, Path, show_path
from wave_agent.lazy_regex import lazy_regex

_UNREADABLE = lazy_regex("[\0\ud800-\udfff]")
_LARGEST = 10**300
"""For whole numbers. Readers take larger ones for infinity, and Python's own rejects those with 4,301 digits."""
_TOO_DEEP = f"[nested deeper than {MAX_DEPTH}]"
_SHOWN = 120
"""Characters of a path in a message."""
_DEEPEST = MAX_DEPTH + 2
"""Of a payload: `tool_input` is one level down, and a tool's result may be two."""


def readable_text(text: str) -> str:
    """The text with each NUL and lone surrogate replaced by U+FFFD. The two halves of a pair become their character."""
    return text if _first_odd(text) is None else whole_characters(text).replace("\0", "\ufffd")


def whole_characters(text: str) -> str:
    """The text with each lone surrogate replaced by U+FFFD. The two halves of a pair become their character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def readable(value: Any, depth: int = 0) -> Any:
    """The value as plain JSON: text as in `readable_text`, null for numbers that JSON lacks, with limited depth."""
    if isinstance(value, str):
        return readable_text(str(value))
    if value is None or isinstance(value, int | float):
        return value if value is None or _in_range(value) else None
    if isinstance(value, Mapping | list | tuple | set | frozenset) and depth >= _DEEPEST:
        return _TOO_DEEP
    if isinstance(value, Mapping):
        pairs = cast(Mapping[Any, Any], value).items()
        return {_key(key): readable(item, depth + 1) for key, item in pairs}
    if isinstance(value, list | tuple | set | frozenset):
        return [readable(item, depth + 1) for item in cast(Iterable[Any], value)]
    try:
        return readable(msgspec.to_builtins(value), depth)  # structs, dates, bytes and the like, in msgspec's format
    except (TypeError, ValueError, RecursionError):
        return f"[{type(value).__name__}]"


def encode_readable(payload: Mapping[str, Any]) -> bytes:
    """`readable(payload)` as UTF-8 JSON."""
    if _is_plain(payload):  # like nearly every payload: then the fast encoder also checks its texts
        try:
            encoded = msgspec.json.encode(payload)
        except UnicodeEncodeError:  # half a surrogate pair
            encoded = b"\\u0000"
        if b"\\u0000" not in encoded:
            return encoded
    return json.dumps(readable(payload), ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def why_unreadable(value: Any) -> str | None:
    """Which part of this JSON value some hooks could not read, and where; None if there is none."""
    waiting: list[tuple[Path, Any]] = [((), value)]
    while waiting:
        path, one = waiting.pop()
        if len(path) > MAX_DEPTH:
            return f"{_shown(path[:3])} is nested deeper than {MAX_DEPTH} levels"
        if isinstance(one, str):
            if found := _first_odd(one):
                return f"{_shown(path)} contains {_named(found[0])} at character {found.start() + 1}"
        elif isinstance(one, Mapping):
            for key, item in reversed([(str(key), item) for key, item in cast(Mapping[Any, Any], one).items()]):
                if found := _first_odd(key):
                    return f"a key of {_shown(path)} contains {_named(found[0])}"
                waiting.append(((*path, key), item))
        elif isinstance(one, list):
            items = list(enumerate(cast(list[Any], one)))
            waiting += [((*path, index), item) for index, item in reversed(items)]
        elif isinstance(one, int | float) and not _in_range(one):
            return f"{_shown(path)} is a number out of range"
    return None


def _first_odd(text: str) -> re.Match[str] | None:
    """Fast checks come first: texts are long, and nearly all of them are fine."""
    if text.isascii() and "\0" not in text:
        return None
    return _UNREADABLE.search(text)


def _in_range(number: float) -> bool:
    return isfinite(number) if isinstance(number, float) else abs(number) < _LARGEST


def _is_plain(payload: Mapping[str, Any]) -> bool:
    """Whether it contains only JSON's own types, not nested too deep. Does not check the texts."""
    waiting: list[tuple[Any, int]] = [(payload, 1)]
    while waiting:
        one, level = waiting.pop()
        if isinstance(one, str) or one is None:
            continue
        if isinstance(one, dict | list) and level <= _DEEPEST:
            inner = cast(Mapping[Any, Any], one).values() if isinstance(one, dict) else cast(list[Any], one)
            waiting += [(item, level + 1) for item in inner]
        elif not isinstance(one, int | float) or not _in_range(one):
            return False
    return True


def _key(key: Any) -> str:
    return readable_text(key if isinstance(key, str) else str(key))


def _shown(path: Path) -> str:
    shown = show_path(path)
    return f'"{shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"}"' if path else "it"


def _named(character: str) -> str:
    if character == "\0":
        return "a NUL character (U+0000)"
    return f"half of a surrogate pair (U+{ord(character):04X})"
