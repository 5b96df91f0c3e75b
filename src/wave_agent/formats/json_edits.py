"""Edits to the text of a JSON file that leave all other bytes unchanged."""

import json
import re
from typing import Any, cast

from wave_agent.formats.strict_json import Path, parse_document

_INDENTED = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_BOM = "\ufeff"
_EMPTY = f"{_BOM} \t\r\n"


def replace_span(text: str, span: tuple[int, int], new: str) -> str:
    """`span` is in the format of `Document`."""
    shift = text.startswith(_BOM)
    return f"{text[: span[0] + shift]}{new}{text[span[1] + shift :]}"


def append(text: str, path: Path, value: Any) -> str:
    """Appends `value` to the list at `path`. Missing lists and objects along the path are created.

    Raises `StrictJSONError` if the text is not JSON, and `TypeError` if there is something else at the path.
    """
    return _insert_at(text, path, value, into=list)


def put_at(text: str, path: Path, value: Any) -> str:
    """Sets the value at `path`: in its place if it is there, otherwise at the end of its object. Missing objects along
    the path are created.

    Raises `StrictJSONError` if the text is not JSON, and `TypeError` if there is something else along the path.
    """
    if text.strip(_EMPTY):
        spans = parse_document(text).spans
        if path in spans:
            indent = indent_at(text, spans[path][0] + text.startswith(_BOM))
            flat = json.dumps(value, ensure_ascii=False)
            return replace_span(text, spans[path], laid_out(text, value, indent) if "\n" in text else flat)
    return _insert_at(text, path, value, into=dict)


def _insert_at(text: str, path: Path, value: Any, *, into: type) -> str:
    """`into` list: `path` is a list that gets one more item. Otherwise `path` is where the value will be."""
    around = path if into is list else path[:-1]
    last_step = [value] if into is list else {path[-1]: value}
    if not text.strip(_EMPTY):
        return json.dumps(_nested(around, last_step), indent=2, ensure_ascii=False) + "\n"
    document = parse_document(text)
    depth = 0
    found: Any = document.value
    while depth < len(around) and isinstance(found, dict) and around[depth] in found:
        found = cast(dict[str, Any], found)[str(around[depth])]
        depth += 1
    if not isinstance(found, into if depth == len(around) else dict):
        raise TypeError(f"{'.'.join(map(str, path[:depth])) or 'the top level'} has a different type")
    there, missing = path[:depth], path[depth:]
    key = json.dumps(missing[0]) + ": " if missing else ""
    inside = _nested(missing[1:], [value] if into is list else value) if missing else value
    spans = document.spans
    last = [spans[one][1] for one in spans if len(one) == depth + 1 and one[:depth] == there]
    return _insert(text, spans[there], max(last, default=None), key, inside)


def put(text: str, key: str, value: Any) -> str:
    """Sets `key` of the top-level object to `value`: in its place if it is there, otherwise at the end.

    Raises `StrictJSONError` if the text is not JSON, and `TypeError` if it is not an object.
    """
    if not text.strip(_EMPTY):
        return json.dumps({key: value}, indent=2, ensure_ascii=False) + "\n"
    document = parse_document(text)
    if not isinstance(document.value, dict):
        raise TypeError("the top level has a different type")
    spans = document.spans
    if (key,) in spans:
        return replace_span(text, spans[key,], json.dumps(value, ensure_ascii=False))
    last = [spans[one][1] for one in spans if len(one) == 1]
    return _insert(text, spans[()], max(last, default=None), json.dumps(key) + ": ", value)


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
    newline = _newline(text)
    own = indent_at(text, start)
    if last is not None and "\n" not in text[start:end]:
        return f"{text[: last + shift]}, {key}{json.dumps(value, ensure_ascii=False)}{text[last + shift :]}"
    indent = own + _unit(text) if last is None else indent_at(text, last + shift - 1)
    shown = laid_out(text, value, indent)
    if last is None:
        opening, closing = text[start], text[end - 1]
        return f"{text[:start]}{opening}{newline}{indent}{key}{shown}{newline}{own}{closing}{text[end:]}"
    return f"{text[: last + shift]},{newline}{indent}{key}{shown}{text[last + shift :]}"


def laid_out(text: str, value: Any, indent: str) -> str:
    """The value over several lines, written like the rest of the text, for a line with this indentation."""
    return json.dumps(value, indent=_unit(text), ensure_ascii=False).replace("\n", _newline(text) + indent)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str) -> str:
    """One step of indentation."""
    indented = _INDENTED.search(text)
    return indented[1] if indented else "  "


def indent_at(text: str, at: int) -> str:
    """The indentation of the line at this position."""
    begin = text.rfind("\n", 0, at) + 1
    blanks = re.match(r"[ \t]*", text[begin:].removeprefix(_BOM))
    return blanks[0] if blanks else ""
