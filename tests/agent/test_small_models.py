"""Tools as small models get them."""

from typing import Any, ClassVar

from msgspec import Struct

from wave_agent.agent.small_models import brief_specs, call_example
from wave_agent.models.base import ToolSpec
from wave_agent.tools.base import Tool, ToolContext, ToolResult
from wave_agent.tools.registry import builtin_tools


class _Input(Struct):
    ticket: str
    detail: str = ""


class _Tickets(Tool):
    name: ClassVar[str] = "Tickets"
    description: ClassVar[str] = f"Finds a ticket. It knows all of them. {'And more. ' * 30}"
    Input: ClassVar[type[Struct]] = _Input

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        raise NotImplementedError

    def schema(self) -> dict[str, Any]:
        found = super().schema()
        found["properties"]["ticket"]["description"] = "x" * 300
        found["properties"]["description"] = {"type": "string", "enum": ["a", "b"]}
        return found


def test_every_field_that_is_needed_is_shown() -> None:
    full = {tool.name: tool.schema() for tool in builtin_tools()}
    for tool in brief_specs(builtin_tools()):
        assert tool.schema["required"] == full[tool.name]["required"]
        assert set(tool.schema["required"]) <= set(tool.schema["properties"]) <= set(full[tool.name]["properties"])


def test_a_tool_of_the_program_keeps_all_fields_and_the_start_of_its_description() -> None:
    (spec,) = brief_specs([_Tickets()])
    assert spec.description.startswith("Finds a ticket. It knows all of them. And more.")
    assert spec.description.endswith("And more.")
    assert len(spec.description) <= 200
    assert list(spec.schema["properties"]) == ["ticket", "detail", "description"]
    assert spec.schema["properties"]["ticket"]["description"] == f"{'x' * 99}…"
    assert spec.schema["properties"]["description"] == {"type": "string", "enum": ["a", "b"]}


def test_the_example_calls_a_tool_that_is_offered() -> None:
    tools = {tool.name: tool for tool in brief_specs([*builtin_tools(), _Tickets()])}
    assert '{"name": "Read", "arguments": {"file_path": "README.md"}}' in call_example([*tools.values()])
    assert '{"name": "Bash", "arguments": {"command": "ls"}}' in call_example([tools["Grep"], tools["Bash"]])
    assert '{"name": "Tickets", "arguments": {"ticket": "…"}}' in call_example([tools["Tickets"]])
    assert '{"name": "Now", "arguments": {}}' in call_example([ToolSpec("Now", "The time.", {"type": "object"})])
    assert call_example([]) == ""
