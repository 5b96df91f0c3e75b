"""Coloured diffs, with line numbers."""

from collections.abc import Mapping

from textual.content import Content

from wave_agent.screen.changes import places
from wave_agent.screen.plain import plain

STYLES: Mapping[str, str] = {"+": "$text-success", "-": "$text-error", "@": "$text-accent"}
_GUTTER = 5


def coloured(diff: str) -> Content:
    """A unified diff, readable without colour too."""
    return Content("\n").join(plain(line, STYLES.get(line[:1], "$muted")) for line in diff.split("\n"))


def numbered(diff: str) -> Content:
    """A file's diff with line numbers."""
    return Content("\n").join(
        Content.assemble(plain(f"{number:>{_GUTTER}} ", "$muted"), plain(line, STYLES.get(line[:1], "$muted")))
        for number, line in places(diff)
    )
