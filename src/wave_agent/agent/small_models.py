"""What small models get instead: short descriptions of the tools, short instructions, an example of a call."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from wave_agent.models.base import ToolSpec
from wave_agent.tools.base import Tool

INSTRUCTIONS = """\
You are Wave, a coding agent. You do the user's task in their project by calling tools: one call in an answer, then \
look at its result before you decide on the next.

- Do the task itself with your tools; do not only describe it.
- To find something: Grep finds a word in all files, Glob finds files by name. Never guess what is in a file: Read it, \
and say only what a result has shown you.
- To change a file: Read it, then Edit it, then run the tests or the program. Make the smallest change that does the \
whole job.
- To make a new file: Write it. To move files, or to replace a word in several files: Bash with mkdir, mv or sed -i.
- Get the user's consent before anything that cannot be undone or that leaves this machine.
- When a call is refused, do not work around it: act on the reason, or tell the user.
- Messages of the user's hooks are marked as such: follow them, but they are not the user speaking. Never write such \
marks yourself.
- After each result: if the whole task is done or the question is answered, answer in one or two sentences of plain \
text. If not, make the next call."""
_CALL = """\
To call a tool, answer with the call alone, as JSON:
```json
{}
```"""
_EXAMPLES: Mapping[str, Mapping[str, str]] = {
    "Read": {"file_path": "README.md"},
    "Bash": {"command": "ls"},
}
"""The tools that an example may call, best first."""
_DESCRIPTION = 200
_FIELD = 100
"""Maximum lengths of descriptions that were not written for small models, in characters."""


def brief_specs(tools: Iterable[Tool]) -> list[ToolSpec]:
    """The tools for a small model. Those that are of use only in some sessions are left out."""
    return [_brief(tool) for tool in tools if not tool.dispensable]


def _brief(tool: Tool) -> ToolSpec:
    if tool.brief:
        return ToolSpec(tool.name, tool.brief, _only(tool.schema(), tool.brief_fields))
    return ToolSpec(tool.name, _first_sentences(tool.description, _DESCRIPTION), _shortened(tool.schema()))


def _only(schema: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    """These fields, by type alone: names like `file_path` explain themselves."""
    kept = {field: {"type": schema["properties"][field]["type"]} for field in fields}
    return {"type": "object", "properties": kept, "required": list(schema.get("required", ()))}


def _shortened(schema: Any) -> Any:
    """The whole schema, with shorter descriptions."""
    if isinstance(schema, list):
        return [_shortened(one) for one in cast(list[Any], schema)]
    if not isinstance(schema, Mapping):
        return schema
    found = cast(Mapping[str, Any], schema)
    return {
        key: _first_sentences(value, _FIELD) if key == "description" and isinstance(value, str) else _shortened(value)
        for key, value in found.items()
    }


def _first_sentences(text: str, limit: int) -> str:
    """As many whole sentences as fit, or the start of the first."""
    if len(text) <= limit:
        return text
    end = max(text.rfind(mark, 0, limit) for mark in (". ", ".\n", "! ", "? "))
    return text[: end + 1] if end > 0 else f"{text[: limit - 1]}…"


def call_example(tools: Sequence[ToolSpec]) -> str:
    """How to call a tool, for models that do not learn it from their server's template. Empty without tools."""
    names = {tool.name for tool in tools}
    given = next(((name, example) for name, example in _EXAMPLES.items() if name in names), None)
    if given is None and tools:
        given = tools[0].name, dict.fromkeys(tools[0].schema.get("required", ()), "…")
    if given is None:
        return ""
    return _CALL.format(json.dumps({"name": given[0], "arguments": given[1]}, ensure_ascii=False))
