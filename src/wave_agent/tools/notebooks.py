"""Shows notebooks (.ipynb) as their cells, with outputs shortened."""

import json
from collections.abc import Iterator
from typing import Any, cast

from wave_agent.formats.notebook_edits import cell_name
from wave_agent.text import strip_controls

_OUTPUT = 2000
"""Maximum length of one output, in characters. A notebook is read for its cells."""


def notebook_lines(text: str) -> list[str] | None:
    """The lines to show; None if this is not a notebook."""
    try:
        notebook = _object(json.loads(text))
    except (ValueError, RecursionError):
        return None
    cells = notebook.get("cells")
    if not isinstance(cells, list):
        return None
    found = [_object(cell) for cell in cast(list[Any], cells)]
    metadata = _object(notebook.get("metadata"))
    language = _object(metadata.get("kernelspec")).get("language") or _object(metadata.get("language_info")).get("name")
    kind = f", {language}" if language else ""
    lines = [f"[Notebook: {len(found)} cells{kind}. NotebookEdit changes a cell, Edit the underlying JSON]"]
    for number, cell in enumerate(found, 1):
        lines.append(f"[Cell {number}: {cell.get('cell_type', 'unknown')}, id {cell_name(number - 1, cell)}]")
        lines += _text(cell.get("source")).split("\n")
        outputs = cell.get("outputs")
        for output in cast(list[Any], outputs) if isinstance(outputs, list) else []:
            lines += _output(_object(output))
    return lines


def _output(output: dict[str, Any]) -> Iterator[str]:
    if output.get("output_type") == "stream":
        yield from _shortened(f"Output, {output.get('name', 'stdout')}", _text(output.get("text")))
    elif output.get("output_type") == "error":
        trace = output.get("traceback")
        traceback = "\n".join(map(str, cast(list[Any], trace))) if isinstance(trace, list) else ""
        yield from _shortened(f"Error: {output.get('ename')}: {output.get('evalue')}", traceback)
    else:
        data = _object(output.get("data"))
        if "text/plain" in data:
            yield from _shortened("Output", _text(data["text/plain"]))
        for kind, content in data.items():
            if kind != "text/plain":
                yield f"[Output: {kind}, {len(_text(content)):,} characters, not shown]"


def _shortened(title: str, text: str) -> Iterator[str]:
    """The start and the end: errors are at the end."""
    text = strip_controls(text).strip("\n")
    yield f"[{title}]"
    if len(text) > _OUTPUT:
        half = _OUTPUT // 2
        text = f"{text[:half]}\n[… {len(text) - 2 * half:,} characters of output omitted …]\n{text[-half:]}"
    if text:
        yield from text.split("\n")


def _text(value: Any) -> str:
    """A text, or a list of lines: the format allows both."""
    if isinstance(value, list):
        return "".join(map(str, cast(list[Any], value)))
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def _object(value: Any) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}
