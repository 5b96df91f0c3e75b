"""The change a call would make, and diffs with line numbers, as text."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from wave_agent.system.project_files import NotReadError, read_project_file
from wave_agent.tools.diff import unified_diff
from wave_agent.tools.encoding import decode, printable

READ_LIMIT = 8 << 20
"""Maximum size in bytes of a file to compare with what a call would write."""
NO_CHANGE = "[no change: the file has this content already]"
_HUNK = re.compile(r"@@ -(\d+)\S* \+(\d+)")


def places(diff: str) -> Iterator[tuple[int | str, str]]:
    """The lines of a diff with their numbers: from the old file for removed lines, else from the new one."""
    old = new = 0
    for line in diff.split("\n"):
        if hunk := _HUNK.match(line):
            old, new = int(hunk[1]), int(hunk[2])
        if not old + new or line[:1] not in ("+", "-", " "):
            yield "", line
            continue
        yield old if line[0] == "-" else new, line
        old, new = old + (line[0] != "+"), new + (line[0] != "-")


def looks_like_diff(text: str) -> bool:
    return text.startswith("@@ ") or "\n@@ " in text


def diff_in(result: str) -> str:
    """The diff after the first line of a tool's result; "" if there is none."""
    _, _, rest = result.partition("\n")
    return rest if looks_like_diff(rest) else ""


def _edit(tool_input: Mapping[str, Any]) -> str:
    return _replaced(tool_input, [tool_input])


def _multi_edit(tool_input: Mapping[str, Any]) -> str:
    edits: Any = tool_input.get("edits")
    steps = cast(list[Any], edits) if isinstance(edits, list) else []
    return _replaced(tool_input, [cast(Mapping[str, Any], step) for step in steps if isinstance(step, Mapping)])


def _replaced(tool_input: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> str:
    """The diff with line numbers and context, if the file contains each passage as Edit requires."""
    before = after = _content(str(tool_input.get("file_path", "")))
    for number, step in enumerate(steps, 1):
        old, new = _passages(step)
        times = after.count(old) if after and old else 0
        if after is None or not times or (times > 1 and not step.get("replace_all")):
            which = f"edit {number}: " if len(steps) > 1 else ""
            why = "old_string occurs more than once" if times else "old_string does not occur"
            known = [] if before is None else [f"[{which}{why} in the file as it is now]"]
            return "\n".join([*known, *(line for one in steps for line in _without_places(one))])
        after = after.replace(old, new)
    return unified_diff(before or "", after or "")


def _passages(step: Mapping[str, Any]) -> tuple[str, str]:
    return _unix(str(step.get("old_string", ""))), _unix(str(step.get("new_string", "")))


def _without_places(step: Mapping[str, Any]) -> Iterator[str]:
    """Only part of a file is replaced: a missing final newline means nothing, and line number 1 would be wrong."""
    change = unified_diff(*(text.removesuffix("\n") + "\n" for text in _passages(step)))
    return (line for line in change.split("\n") if not line.startswith("@@ "))


def _notebook_edit(tool_input: Mapping[str, Any]) -> str:
    """The change of one cell, with its line numbers."""
    from wave_agent.formats.notebook_edits import NotebookError, read_notebook  # lazy: few projects have notebooks

    mode, cell = tool_input.get("edit_mode", "replace"), str(tool_input.get("cell_id", ""))
    new = "" if mode == "delete" else _line_by_line(str(tool_input.get("new_source", "")))
    title = (f"new cell after {cell}" if cell else "new cell at the start") if mode == "insert" else f"cell {cell}"
    title += f", {kind}" if mode != "delete" and (kind := tool_input.get("cell_type")) else ""
    before = ""
    try:
        notebook = read_notebook(_content(str(tool_input.get("notebook_path", ""))) or "")
        found = notebook.cells[notebook.find(cell)].source if cell or mode != "insert" else ""
        before = "" if mode == "insert" else _line_by_line(found)
    except NotebookError as error:
        title += f": {error}"
    return f"[{title}]\n{unified_diff(before, new)}".rstrip()


def _line_by_line(source: str) -> str:
    """The last line of a cell needs no end."""
    return f"{source}\n" if source and not source.endswith("\n") else source


def _write(tool_input: Mapping[str, Any]) -> str:
    path = str(tool_input.get("file_path", ""))
    before = _content(path)
    change = unified_diff(before or "", str(tool_input.get("content", "")))
    if before is not None:
        return change or NO_CHANGE
    return f"[{'cannot be compared with what is there' if _exists(path) else 'new file'}]\n{change}"


def _exists(path: str) -> bool:
    return "\0" not in path and os.path.lexists(path)


def _content(path: str) -> str | None:
    """None if missing, not text or too large."""
    try:
        data = read_project_file(path, "/", READ_LIMIT)
    except NotReadError:
        return None
    text = None if data is None else decode(data)
    return None if text is None else _unix(printable(text.content))


def _unix(text: str) -> str:
    """Edit treats both kinds of newline as equal."""
    return text.replace("\r\n", "\n")


_CHANGES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "Edit": _edit,
    "MultiEdit": _multi_edit,
    "NotebookEdit": _notebook_edit,
    "Write": _write,
}


def change_of(tool: str, tool_input: Mapping[str, Any]) -> str:
    """The change the call would make, as a diff; "" if the tool does not edit. May read the file."""
    change = _CHANGES.get(tool)
    return "" if change is None else change(tool_input)


def counts(diff: str) -> str:
    """`+3 -1`."""
    lines = diff.split("\n")
    return f"+{sum(line.startswith('+') for line in lines)} -{sum(line.startswith('-') for line in lines)}"
