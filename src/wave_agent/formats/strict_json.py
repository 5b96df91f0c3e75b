"""Strict JSON: one parser for the output of hooks, and one with locations for files that people write.

Python's own parser accepts NaN, and the last of two equal keys. In a hook's output that would turn
`{"decision": "block", "decision": "approve"}` into an approval; in a settings file it would drop a guard.
"""

import json
from collections.abc import Callable, Iterable
from math import isinf
from typing import Any, cast

from msgspec import Struct

from wave_agent.lazy_regex import lazy_regex

MAX_DEPTH = 64
_COMMENT = "JSON has no comments"
MOST_VALUES = 50_000
"""In a document that people write. Each value costs time when it is parsed, and again when it is judged."""

_TYPE_NAMES: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def type_name(value: object) -> str:
    """The JSON name of this value's type."""
    return _TYPE_NAMES.get(type(value), type(value).__name__)


class StrictJSONError(ValueError):
    """Why a text is not strict JSON, with its location if known."""

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        super().__init__(f"line {line}, column {column}: {problem}" if line else problem)
        self.problem, self.line, self.column = problem, line, column


def _refuse_constant(name: str) -> float:
    raise StrictJSONError(f"{name} is not JSON")


def _integer(digits: str) -> int | float:
    """Python refuses to convert very long integers. They are valid JSON, but out of range, like `1e999`."""
    try:
        return int(digits)
    except ValueError:
        return float(digits)


class Twice(tuple[Any, ...]):
    """All values of a duplicate key."""

    __slots__ = ()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        double = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise StrictJSONError(f'duplicate key "{double}"')
    return found


def _all_values(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        values: dict[str, list[Any]] = {}
        for key, value in pairs:
            values.setdefault(key, []).append(value)
        found = {key: several[0] if len(several) == 1 else Twice(several) for key, several in values.items()}
    return found


_decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_int=_integer, parse_constant=_refuse_constant)
_keeping_all = json.JSONDecoder(object_pairs_hook=_all_values, parse_int=_integer, parse_constant=_refuse_constant)


_CLOSES = lazy_regex(r"\s*[}\]]")


def _explained(error: json.JSONDecodeError) -> StrictJSONError:
    """Names the most common mistake: Python's wording and position for it differ between versions."""
    comma = error.doc.rfind(",", 0, error.pos + 1)
    before = error.doc[:comma].rstrip()[-1:] if comma > 0 else ""
    closes = _CLOSES.match(error.doc, comma + 1)
    if before not in ("", "{", "[", ":", ",") and closes is not None and closes.end() > error.pos:
        line = error.doc.count("\n", 0, comma) + 1
        return StrictJSONError("trailing comma: remove it", line, comma - error.doc.rfind("\n", 0, comma))
    return StrictJSONError(error.msg, error.lineno, error.colno)


def parse_object(text: str, *, twice: bool = False) -> dict[str, Any]:
    """Parses the one object in `text`, with no whitespace around it; raises `StrictJSONError` otherwise.

    With `twice`, a duplicate key is not an error: its value is `Twice`, for a reader who knows which one is safe.
    """
    try:
        value, end = (_keeping_all if twice else _decoder).raw_decode(text)
    except StrictJSONError:
        raise
    except json.JSONDecodeError as error:
        raise _explained(error) from None
    except RecursionError:
        raise StrictJSONError(f"nested deeper than {MAX_DEPTH}") from None
    if not isinstance(value, dict):
        raise StrictJSONError(f"{type_name(value)}, not an object")
    if end < len(text):
        raise StrictJSONError("unexpected text after the end of the object")
    found = cast("dict[str, Any]", value)
    if text.count("{") + text.count("[") > MAX_DEPTH and _depth(found) > MAX_DEPTH:
        raise StrictJSONError(f"nested deeper than {MAX_DEPTH}")
    # A lone surrogate (from an escape) cannot be encoded as UTF-8, and losing a deny because of one would be worse.
    return _without_lone_surrogates(found) if "\\u" in text else found


def unsound(value: object) -> str:
    """Why a value cannot be passed on; empty if it can. A number that is too large reads as infinity and cannot be
    written back."""
    inner: Iterable[object]
    if isinstance(value, dict):
        inner = cast("dict[str, object]", value).values()
    elif isinstance(value, list):
        inner = cast("list[object]", value)
    elif isinstance(value, Twice):
        return "a duplicate key"
    else:
        return "a number that is out of range" if isinstance(value, float) and isinf(value) else ""
    for one in inner:
        if type(one) not in _SOUND and (problem := unsound(one)):
            return problem
    return ""


_SOUND = frozenset({str, int, bool, type(None)})


def _depth(value: object) -> int:
    deepest, open_values = 0, [(value, 1)]
    while open_values:
        current, level = open_values.pop()
        if isinstance(current, Twice):  # not a separate level
            open_values.extend((child, level) for child in current)
        elif isinstance(current, dict | list):
            deepest = max(deepest, level)
            inner: Any = current.values() if isinstance(current, dict) else current  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
            open_values.extend((child, level + 1) for child in inner)
    return deepest


def _without_lone_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_without_lone_surrogates(item) for item in cast("list[Any]", value)]
    if isinstance(value, Twice):
        return Twice(map(_without_lone_surrogates, value))
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {_without_lone_surrogates(key): _without_lone_surrogates(item) for key, item in items}
    return value


Path = tuple[str | int, ...]


def show_path(path: Path) -> str:
    """`hooks.PreToolUse[0].matcher`."""
    shown = ""
    for step in path:
        shown += f"[{step}]" if isinstance(step, int) else f".{step}" if shown else step
    return shown or "the top level"


class Document(Struct, frozen=True):
    """A parsed text, and the line of each value in it."""

    value: Any
    lines: dict[Path, int]
    spans: dict[Path, tuple[int, int]] = {}
    """Start and end of each value in the text, not counting a byte order mark."""

    def line(self, path: Path) -> int | None:
        """The line of `path` or, if it is missing, of the nearest value around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)


def parse_document(text: str) -> Document:
    """Like `parse_object`, for any value, with locations. Slower; for files that people write."""
    return _JSONScanner(text.removeprefix("\ufeff")).document()


_space = lazy_regex(r"[ \t\r\n]*")


class _JSONScanner:
    """Walks containers itself, to record locations, and leaves scalars to the standard decoder."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1
        self.counted = 0
        """Newlines are counted up to here: counting from the start each time would take forever."""
        self.lines: dict[Path, int] = {}
        self.spans: dict[Path, tuple[int, int]] = {}

    def document(self) -> Document:
        value = self.value(())
        if self.at < len(self.text):
            raise self.problem("unexpected text after the end of the document")
        return Document(value, self.lines, self.spans)

    def problem(self, what: str, at: int | None = None) -> StrictJSONError:
        at = self.at if at is None else at
        line = self.text.count("\n", 0, at) + 1
        return StrictJSONError(what, line, at - self.text.rfind("\n", 0, at))

    def skip_space(self) -> str:
        """The next significant character, or an empty string at the end."""
        match = _space.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.text[self.at : self.at + 1]

    def value(self, path: Path) -> Any:
        first = self.skip_space()
        start = self.at
        self.line += self.text.count("\n", self.counted, self.at)
        self.counted = self.at
        self.lines[path] = self.line
        if len(self.lines) > MOST_VALUES:
            raise self.problem(f"more than {MOST_VALUES:,} values")
        if first in ("{", "[") and len(path) >= MAX_DEPTH:
            raise self.problem(f"nested deeper than {MAX_DEPTH}")
        if first == "{":
            value = self.members(path)
        elif first == "[":
            value = self.items(path)
        else:
            value = self.scalar()
        self.spans[path] = (start, self.at)
        self.skip_space()
        return value

    def scalar(self) -> Any:
        start = self.at
        try:
            value, self.at = _decoder.raw_decode(self.text, start)
        except StrictJSONError as error:
            raise self.problem(error.problem, start) from None
        except json.JSONDecodeError as error:
            raise self.problem(self._explained(error), error.pos) from None
        return _without_lone_surrogates(value)

    def _explained(self, error: json.JSONDecodeError) -> str:
        if error.msg != "Expecting value":
            return error.msg
        if not self.text.strip():
            return "the file is empty"
        if self._is_comment(error.pos):
            return _COMMENT
        return f"{error.msg}: a value is missing or misspelt"

    def _is_comment(self, at: int) -> bool:
        return self.text.startswith(("//", "/*", "#"), at)

    def members(self, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}

        def member() -> None:
            start = self.at
            if self.text[start : start + 1] != '"':
                if self._is_comment(self.at):
                    raise self.problem(_COMMENT)
                raise self.problem("expected a key in double quotes")
            key = self.scalar()
            if key in found:
                raise self.problem(f'duplicate key "{key}": the first value would be lost', start)
            if self.skip_space() != ":":
                raise self.problem(f'expected a colon after "{key}"')
            self.at += 1
            found[key] = self.value((*path, key))

        self.listing("}", member)
        return found

    def items(self, path: Path) -> list[Any]:
        found: list[Any] = []
        self.listing("]", lambda: found.append(self.value((*path, len(found)))))
        return found

    def listing(self, end: str, one: Callable[[], None]) -> None:
        """Reads `one` after another, separated by commas, up to `end`."""
        self.at += 1
        if self.skip_space() == end:
            self.at += 1
            return
        while True:
            one()
            separator = self.skip_space()
            comma = self.at
            self.at += 1
            if separator == end:
                return
            if separator != ",":
                raise self.problem(_COMMENT if self._is_comment(comma) else f"expected a comma or {end}", comma)
            if self.skip_space() == end:
                raise self.problem(f"trailing comma before {end}: remove it", comma)
