"""The set of built-in tools."""

import json
import subprocess
import sys

import pytest

from tests.tools.session import Session
from wave_agent.permissions import Kind
from wave_agent.tools.base import Tool, ToolInputError
from wave_agent.tools.registry import builtin_tools, find_tool

INPUTS = {
    "Bash": (Kind.ACTS, ["command", "timeout", "description", "run_in_background"]),
    "BashOutput": (Kind.READS, ["bash_id", "wait_ms"]),
    "KillShell": (Kind.ACTS, ["shell_id"]),
    "Read": (Kind.READS, ["file_path", "offset", "limit"]),
    "Write": (Kind.EDITS, ["file_path", "content"]),
    "Edit": (Kind.EDITS, ["file_path", "old_string", "new_string", "replace_all"]),
    "Glob": (Kind.READS, ["pattern", "path"]),
    "Grep": (
        Kind.READS,
        ["pattern", "path", "glob", "output_mode", "-i", "-n", "-A", "-B", "-C", "head_limit", "multiline"],
    ),
    "TodoWrite": (Kind.READS, ["todos"]),
}


def test_names_kinds_and_inputs_are_those_that_hooks_and_rules_know() -> None:
    found = {tool.name: (tool.kind, list(tool.schema()["properties"])) for tool in builtin_tools()}
    assert found == INPUTS


def test_fields_with_a_path_are_known() -> None:
    fields = {tool.name: tool.path_fields for tool in builtin_tools() if tool.path_fields}
    assert fields == {
        **dict.fromkeys(["Read", "Write", "Edit"], ("file_path",)),
        **dict.fromkeys(["Glob", "Grep"], ("path",)),
    }


def test_no_input_takes_unknown_fields() -> None:
    assert all(tool.schema()["additionalProperties"] is False for tool in builtin_tools())


def test_what_the_model_is_told_of_them_is_short() -> None:
    specs = [
        {"name": tool.name, "description": tool.description, "parameters": tool.schema()} for tool in builtin_tools()
    ]
    assert len(json.dumps(specs)) < 8 << 10


def test_an_unknown_tool_is_told_the_nearest_name() -> None:
    with pytest.raises(ToolInputError, match=r'no tool "bsh" \(did you mean "Bash"\?\): there are Bash, BashOutput'):
        find_tool("bsh", builtin_tools())


async def test_sessions_share_nothing(session: Session) -> None:
    path = session.file("a.txt", "x")
    await session.call("Read", file_path="a.txt")
    other = Session(session.project, session.outputs, session.environment)
    assert not (await other.call("Write", file_path=str(path), content="y")).ran
    assert (await session.call("Write", file_path=str(path), content="y")).ran


def test_importing_them_loads_nothing_heavy() -> None:
    program = (
        "import sys, msgspec, asyncio; before = set(sys.modules); import wave_agent.tools.registry;"
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not set(loaded) & {"difflib", "inspect", "dataclasses", "tempfile", "httpcore", "textual", "tree_sitter"}


@pytest.mark.parametrize("tool", [tool for tool in builtin_tools() if tool.path_fields], ids=lambda tool: tool.name)
def test_a_path_with_a_nul_is_told_to_the_model(tool: Tool) -> None:
    for field in tool.path_fields:
        with pytest.raises(ToolInputError, match=rf"NUL.*{field}"):
            tool.parse({field: "a\0b"})
