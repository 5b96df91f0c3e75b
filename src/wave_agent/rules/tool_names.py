"""Names under which settings may mean the same tool."""

from collections.abc import Mapping

SAME_TOOL: Mapping[str, str] = {"agent": "task", "task": "agent"}
"""In lower case. `Task` is the name here; other agents call it `Agent`."""


def names_of(tool: str) -> tuple[str, ...]:
    """All names of a tool, in lower case."""
    name = tool.casefold()
    return (name, SAME_TOOL[name]) if name in SAME_TOOL else (name,)
