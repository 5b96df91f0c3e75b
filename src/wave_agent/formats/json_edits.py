"""Edits to the text of a JSON file that leave all other bytes unchanged."""

import json
import re
from typing import Any, cast

from wave_agent.formats.strict_json import Path, parse_document

_INDENTED = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_BOM = "\ufeff"


def replace_span(text: str, span: tuple[int, int], new: str) -> str:
    """`span` is in the format of `Document`."""
    shift = text.startswith(_BOM)
    return f"{text[: span[0] + shift]}{new}{text[span[1] + shift :]}"


def append(text: str, path: Path, value: Any) -> str:
    """Appends `value` to the list at `path`. Missing lists and objects along the path are created.

    Raises `StrictJSONError` if the text is not JSON, and `TypeError` if there is something else at the path.
    """
    if not text.strip(f"{_BOM} \t\r\n"):
        return json.dumps(_nested(path, [value]), indent=2, ensure_ascii=False) + "\n"
    document = parse_document(text)
    depth = 0
    found: Any = document.value
    while depth < len(path) and isinstance(found, dict) and path[depth] in found:
        found = cast(dict[str, Any], found)[str(path[depth])]
        depth += 1
    if not isinstance(found, list if depth == len(path) else dict):
        raise TypeError(f"{'.'.join(map(str, path[:depth])) or 'the top level'} has a different type")
    there, missing = path[:depth], path[depth:]
    key = json.dumps(missing[0]) + ": " if missing else ""
    inside = _nested(missing[1:], [value]) if missing else value
    spans = document.spans
    last = [spans[one][1] for one in spans if len(one) == depth + 1 and one[:depth] == there]
    return _insert(text, spans[there], max(last, default=None), key, inside)


def remove(text: str, path: Path) -> str:
    """Removes the value at `path` from its list or object, with its comma and its key.

    Raises `StrictJSONError` if the text is not JSON, and `KeyError` if nothing is there.
    """
    spans = parse_document(text).spans
    shift = text.startswith(_BOM)
    own, around = spans[path], spans[path[:-1]]
    siblings = sorted(span for place, span in spans.items() if len(place) == len(path) and place[:-1] == path[:-1])
    at = siblings.index(own)
    if at:
        cut = (siblings[at - 1][1], own[1])
    elif len(siblings) > 1:
        body = text[shift:]
        first = around[0] + 1 + len(_blanks(body[around[0] + 1 :]))
        comma = own[1] + len(_blanks(body[own[1] :])) + 1
        cut = (first, comma + len(_blanks(body[comma:])))
    else:
        cut = (around[0] + 1, around[1] - 1)
    return replace_span(text, cut, "")


def _blanks(text: str) -> str:
    return text[: len(text) - len(text.lstrip(" \t\r\n"))]


def _nested(path: Path, value: Any) -> Any:
    for step in reversed(path):
        value = {step: value}
    return value


def _insert(text: str, around: tuple[int, int], last: int | None, key: str, value: Any) -> str:
    """After the `last` child of the container `around`, formatted like its siblings."""
    shift = text.startswith(_BOM)
    start, end = around[0] + shift, around[1] + shift
    newline = "\r\n" if "\r\n" in text else "\n"
    indented = _INDENTED.search(text)
    unit = indented[1] if indented else "  "
    own = _indent_at(text, start)
    if last is not None and "\n" not in text[start:end]:
        return f"{text[: last + shift]}, {key}{json.dumps(value, ensure_ascii=False)}{text[last + shift :]}"
    indent = own + unit if last is None else _indent_at(text, last + shift - 1)
    shown = json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", newline + indent)
    if last is None:
        opening, closing = text[start], text[end - 1]
        return f"{text[:start]}{opening}{newline}{indent}{key}{shown}{newline}{own}{closing}{text[end:]}"
    return f"{text[: last + shift]},{newline}{indent}{key}{shown}{text[last + shift :]}"


def _indent_at(text: str, at: int) -> str:
    """The indentation of the line at this position."""
    begin = text.rfind("\n", 0, at) + 1
    blanks = re.match(r"[ \t]*", text[begin:].removeprefix(_BOM))
    return blanks[0] if blanks else ""
