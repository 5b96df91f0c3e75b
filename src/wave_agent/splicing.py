"""Additions to a JSON text that a person wrote: everything else in it stays as it is, character for character."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from wave_agent.strictjson import Path, find_spans

_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)


def add_members(text: str, path: Path, members: Mapping[str, Any]) -> str:
    """The text with these members at the end of the object at `path`. Raises `StrictJSONError` and `KeyError`."""
    return _add(text, path, [(f"{json.dumps(key, ensure_ascii=False)}: ", value) for key, value in members.items()])


def add_items(text: str, path: Path, items: Sequence[Any]) -> str:
    """The text with these items at the end of the list at `path`. Raises `StrictJSONError` and `KeyError`."""
    return _add(text, path, [("", item) for item in items])


def _add(text: str, path: Path, additions: Sequence[tuple[str, Any]]) -> str:
    start, end = find_spans(text)[path]
    inner = text[start + 1 : end - 1].rstrip()
    comma = "," if inner.strip() else ""
    on_one_line = "\n" not in text.strip() and bool(comma)
    if on_one_line:
        added = ", ".join(f"{before}{json.dumps(value, ensure_ascii=False)}" for before, value in additions)
        return f"{text[: start + 1]}{inner}, {added}{text[end - 1 :]}"
    found = _INDENT.search(text)
    unit = found[1] if found else "  "
    around = _indent_at(text, end - 1 if _is_first(text, end - 1) else start)
    within = around + unit
    added = ",\n".join(f"{within}{before}{_shown(value, unit, within)}" for before, value in additions)
    block = f"{comma}\n{added}\n{around}"
    newline = "\r\n" if "\r\n" in text else "\n"
    return f"{text[: start + 1]}{inner}{block.replace(chr(10), newline)}{text[end - 1 :]}"


def _shown(value: Any, unit: str, within: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", f"\n{within}")


def _line_before(text: str, at: int) -> str:
    return text[text.rfind("\n", 0, at) + 1 : at]


def _is_first(text: str, at: int) -> bool:
    """Nothing but blanks stands before it in its line."""
    return not _line_before(text, at).strip()


def _indent_at(text: str, at: int) -> str:
    line = _line_before(text, at)
    return line[: len(line) - len(line.lstrip())]
