"""A unified diff of an edit, limited in length."""

import re

from wave_agent.lazy_regex import lazy_regex

_CONTEXT = 3
_LINES = 200
_LINE_LENGTH = 500
_WORTH_COMPARING = 4000
"""Number of changed lines, old and new together, beyond which comparing them would take too long."""
_HUNK = lazy_regex(r"@@ -(\d+)(.*?) \+(\d+)(.*? @@)", re.DOTALL)


def unified_diff(before: str, after: str) -> str:
    """Hunks without a file header; "" if nothing changed."""
    old, new = _lines(before), _lines(after)
    same_start = _common(old, new)
    limit = min(len(old), len(new)) - same_start
    same_end = min(_common(old[::-1], new[::-1]), limit)
    # Only the part in between is compared: comparing is slow, and a file may be long.
    start = max(same_start - _CONTEXT, 0)
    end = max(same_end - _CONTEXT, 0)
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    if len(old) + len(new) > _WORTH_COMPARING:
        return f"[{len(old):,} lines became {len(new):,}, from line {start + 1}]"
    from difflib import unified_diff  # lazy: only edits need it

    hunks = [_moved(line, start) for line in unified_diff(old, new, n=_CONTEXT, lineterm="")][2:]
    shown = [line if len(line) <= _LINE_LENGTH else f"{line[:_LINE_LENGTH]}…" for line in hunks[:_LINES]]
    if len(hunks) > _LINES:
        shown.append(f"[… {len(hunks) - _LINES:,} more lines of diff]")
    return "\n".join(shown)


def _lines(text: str) -> list[str]:
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    else:
        lines[-1] += "\n\\ No newline at end of file"
    return lines


def _common(left: list[str], right: list[str]) -> int:
    for count, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return count
    return min(len(left), len(right))


def _moved(line: str, by: int) -> str:
    """A hunk header with the line numbers of the whole file."""
    if not (by and line.startswith("@@ ")):
        return line
    return _HUNK.sub(lambda hunk: f"@@ -{int(hunk[1]) + by}{hunk[2]} +{int(hunk[3]) + by}{hunk[4]}", line, count=1)
