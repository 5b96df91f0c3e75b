"""Fixes that are safe to apply without asking: each changes only the bytes it has to."""

import difflib
import os
from collections.abc import Iterable, Sequence

from wave_agent.errors import SettingsError
from wave_agent.formats.json_edits import replace_span
from wave_agent.lint.findings import Finding, LineEndings, RunBit, TextEdit
from wave_agent.tools.files import FileRefusedError, replace


def repair(findings: Iterable[Finding]) -> list[str]:
    """Apply all fixes and describe them: a diff, and the files made executable. Raises `SettingsError`."""
    repairs = [one.repair for one in findings if one.repair is not None]
    edits: dict[str, list[TextEdit]] = {}
    for one in repairs:
        if isinstance(one, TextEdit):
            edits.setdefault(one.file, []).append(one)
    repaired = [line for file, wanted in edits.items() for line in _edit(file, wanted)]
    for file in dict.fromkeys(one.file for one in repairs if isinstance(one, LineEndings)):
        with open(file, "rb") as opened:
            text = opened.read()
        _write(file, text.replace(b"\r\n", b"\n"))
        repaired.append(f"LF line endings: {file}")
    for file in dict.fromkeys(one.file for one in repairs if isinstance(one, RunBit)):
        mode = os.stat(file).st_mode
        os.chmod(file, mode | (mode & 0o444) >> 2)  # everyone who may read it may run it
        repaired.append(f"chmod +x {file}")
    return repaired


def _edit(file: str, edits: Sequence[TextEdit]) -> list[str]:
    with open(file, encoding="utf-8", newline="") as opened:
        before = after = opened.read()
    for edit in sorted(set(edits), key=lambda one: one.span, reverse=True):
        after = replace_span(after, edit.span, edit.text)
    _write(file, after.encode())
    return diff(before, after, file)


def _write(file: str, data: bytes) -> None:
    """All of it or nothing: it may be the only copy of a guard."""
    try:
        replace(file, data)
    except FileRefusedError as refusal:
        raise SettingsError(str(refusal)) from None


def diff(before: str, after: str, file: str) -> list[str]:
    """The lines of a unified diff."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), file, file, lineterm="")
    return list(lines)
