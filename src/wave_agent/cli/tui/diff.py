"""Changes of files in colour, and the change that a call would make."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from textual.content import Content

from wave_agent.cli.tui.plain import plain
from wave_agent.tools.diff import unified_diff

READ_LIMIT = 1 << 20
"""Bytes of a file that is compared with what a call would write."""
STYLES: Mapping[str, str] = {"+": "$text-success", "-": "$text-error", "@": "$text-accent"}


def coloured(diff: str) -> Content:
    """A unified diff; without colour the signs still tell."""
    return Content("\n").join(plain(line, STYLES.get(line[:1], "$muted")) for line in diff.split("\n"))


def looks_like_diff(text: str) -> bool:
    return text.startswith("@@ ") or "\n@@ " in text


def diff_in(result: str) -> str:
    """The diff that follows the first line of a tool's result; "" if there is none."""
    _, _, rest = result.partition("\n")
    return rest if looks_like_diff(rest) else ""


def _edit(tool_input: Mapping[str, Any]) -> str:
    # What is replaced is a part of a file: that it does not end in a newline means nothing.
    old, new = (str(tool_input.get(field, "")).removesuffix("\n") + "\n" for field in ("old_string", "new_string"))
    return unified_diff(old, new)


def _write(tool_input: Mapping[str, Any]) -> str:
    try:
        with Path(str(tool_input.get("file_path", ""))).open("rb") as file:
            before = file.read(READ_LIMIT).decode(errors="replace")
    except (OSError, ValueError):
        before = ""
    return unified_diff(before, str(tool_input.get("content", "")))


_CHANGES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {"Edit": _edit, "Write": _write}


def change_of(tool: str, tool_input: Mapping[str, Any]) -> str:
    """What the call would change, as a diff; "" for a tool that edits nothing. May read the file."""
    change = _CHANGES.get(tool)
    return "" if change is None else change(tool_input)


def counts(diff: str) -> str:
    """`+3 -1`."""
    lines = diff.split("\n")
    return f"+{sum(line.startswith('+') for line in lines)} -{sum(line.startswith('-') for line in lines)}"
