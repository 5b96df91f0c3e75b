"""The set of built-in tools."""

import json
import subprocess
import sys
from typing import Any

import pytest
from msgspec import Struct

from tests.rows import rows
from tests.tools.session import Session
from wave_agent.hooks.matcher import KNOWN_TOOLS
from wave_agent.permissions.decision import ToolKind
from wave_agent.rules.rule import PATH_FIELDS
from wave_agent.tools.base import Tool, ToolContext, ToolInputError, ToolResult
from wave_agent.tools.registry import builtin_tools, every_tool, find_tool

INPUTS = {
    "Bash": (ToolKind.ACTS, ["command", "timeout", "description", "run_in_background"]),
    "BashOutput": (ToolKind.READS, ["bash_id", "wait_ms"]),
    "KillShell": (ToolKind.ACTS, ["shell_id"]),
    "Read": (ToolKind.READS, ["file_path", "offset", "limit"]),
    "Write": (ToolKind.EDITS, ["file_path", "content"]),
    "Edit": (ToolKind.EDITS, ["file_path", "old_string", "new_string", "replace_all"]),
    "Glob": (ToolKind.READS, ["pattern", "path"]),
    "Grep": (
        ToolKind.READS,
        ["pattern", "path", "glob", "output_mode", "-i", "-n", "-A", "-B", "-C", "head_limit", "multiline"],
    ),
    "TodoWrite": (ToolKind.READS, ["todos"]),
    "WebFetch": (ToolKind.FETCHES, ["url", "prompt"]),
}


def test_names_kinds_and_inputs_are_those_that_hooks_and_rules_know() -> None:
    found = {tool.name: (tool.kind, list(tool.schema()["properties"])) for tool in builtin_tools()}
    assert found == INPUTS


def test_the_schemas_that_are_written_down_are_those_of_the_inputs() -> None:
    for tool in builtin_tools():
        assert json.dumps(tool.schema()) == json.dumps(Tool.schema(tool)), f"{tool.name}: run make docs"


def test_tools_that_are_not_offered_can_be_called_and_are_known_to_hooks_and_rules() -> None:
    late = {tool.name: (tool.kind, list(tool.schema()["properties"])) for tool in every_tool()[len(INPUTS) :]}
    assert late == {
        "MultiEdit": (ToolKind.EDITS, ["file_path", "edits"]),
        "NotebookEdit": (ToolKind.EDITS, ["notebook_path", "cell_id", "new_source", "cell_type", "edit_mode"]),
    }
    assert {tool.name for tool in every_tool()} <= set(KNOWN_TOOLS)
    assert all(tool.schema()["additionalProperties"] is False for tool in every_tool())
    fields = {tool.name: tool.path_fields for tool in every_tool() if tool.path_fields}
    assert {name: (field,) for name, field in PATH_FIELDS.items()} == fields


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


@rows(
    ("name", "meant"),
    [
        ("bsh", "Bash"),
        ("bash", "Bash"),
        ("functions.Bash", "Bash"),
        ("run_shell_command", "Bash"),
        ("shell", "Bash"),
        ("read_file", "Read"),
        ("default_api:view", "Read"),
        ("write_to_file", "Write"),
        ("str_replace_based_edit_tool", "Edit"),
        ("MultiEdit", "Edit"),
        ("LS", "Glob"),
        ("fetch_url", "WebFetch"),
        ("grep_search", "Grep"),
        ("todo_write", "TodoWrite"),
        ("update_plan", "TodoWrite"),
        ("KillBash", "KillShell"),
    ],
)
def test_an_unknown_tool_is_answered_with_the_one_to_call(name: str, meant: str) -> None:
    with pytest.raises(ToolInputError) as refusal:
        find_tool(name, builtin_tools())
    assert str(refusal.value).startswith(f'There is no tool "{name}". Call one of these now: Bash, BashOutput, ')
    assert f"The likeliest is {meant}, which needs " in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "given", "meant"),
    [
        ("rename", {"file_path": "a.py", "old_string": "a", "new_string": "b"}, "Edit"),
        ("rename", {"path": "a.py", "old_str": "a", "new_str": "b"}, "Edit"),
        ("helper", {"cmd": "ls"}, "Bash"),
        ("helper", {"command": "ls", "timeout": 5}, "Bash"),
        ("helper", {"path": "a.py"}, "Read"),
        ("helper", {"filename": "a.py", "contents": "x"}, "Write"),
        ("helper", {"pattern": "src/**/*.py"}, "Glob"),
        ("helper", {"query": "setup.py"}, "Glob"),
        ("helper", {"pattern": "def .*add"}, "Grep"),
        ("helper", {"regex": "TODO", "path": "src"}, "Grep"),
        ("run", {"file_path": "a.py", "content": "x"}, "Write"),
        ("search", {"pattern": "*.py"}, "Grep"),
        ("read_file", {"what": "a.py"}, "Read"),
        ("helper", {"shell_id": "bash_1"}, "KillShell"),
        ("Grepp", {"what": 1}, "Grep"),
    ],
)
def test_the_input_of_a_call_to_an_unknown_tool_tells_what_it_was_meant_to_be(
    name: str, given: dict[str, object], meant: str
) -> None:
    with pytest.raises(ToolInputError, match=f"The likeliest is {meant}, which needs"):
        find_tool(name, builtin_tools(), given)


def test_the_likeliest_tool_is_shown_with_what_it_needs() -> None:
    with pytest.raises(ToolInputError, match=r"Edit, which needs file_path, old_string and new_string\.$"):
        find_tool("edit_file", builtin_tools())
    with pytest.raises(ToolInputError, match=r"Bash, which needs command\.$"):
        find_tool("shell", builtin_tools())


@pytest.mark.parametrize("given", [{}, {"speed": 3}])
def test_where_nothing_is_likely_the_tools_are_listed_all_the_same(given: dict[str, object]) -> None:
    with pytest.raises(ToolInputError) as refusal:
        find_tool("fly", builtin_tools(), given)
    assert str(refusal.value).startswith('There is no tool "fly". Call one of these now: Bash, BashOutput, ')
    assert str(refusal.value).endswith(" Bash runs any command.")


def test_a_call_that_only_answers_needs_no_tool() -> None:
    with pytest.raises(
        ToolInputError, match=r'no tool "final_answer"\. To answer the user, write text without calling'
    ):
        find_tool("final_answer", builtin_tools(), {"content": "Done."})


def test_a_tool_that_is_not_there_is_not_advised() -> None:
    tools = [tool for tool in builtin_tools() if tool.name != "Bash"]
    with pytest.raises(ToolInputError) as refusal:
        find_tool("shell", tools)
    assert "Bash," not in str(refusal.value)
    assert "likeliest" not in str(refusal.value)
    assert "any command" not in str(refusal.value)


class InRepository(Struct):
    repo: str


def of_server(server_tool: str) -> Tool:
    """A tool as an MCP server has it."""

    class OfServer(Tool):
        name = server_tool
        description = "Belongs to a server."
        Input = InRepository

        async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
            raise NotImplementedError

    return OfServer()


@pytest.mark.parametrize("name", ["git_status", "GitStatus", "functions.git_status", "git_git_status"])
def test_a_tool_of_a_server_is_found_by_the_last_part_of_its_name(name: str) -> None:
    with pytest.raises(ToolInputError) as refusal:
        find_tool(name, [*builtin_tools(), of_server("mcp__git__git_status")], {"command": "git status"})
    assert str(refusal.value).endswith(" The likeliest is mcp__git__git_status, which needs repo.")
    assert "any command" not in str(refusal.value)


def test_all_servers_with_such_a_tool_are_named() -> None:
    servers = [of_server("mcp__docs__search"), of_server("mcp__wiki__search")]
    with pytest.raises(ToolInputError, match=r"mcp__docs__search, .*Other servers have one as well: mcp__wiki__search"):
        find_tool("search", [*builtin_tools(), *servers], {"pattern": "x"})


@pytest.mark.parametrize("name", ["str_replace_editor", "MultiEdit", "write_file", "Write"])
def test_who_cannot_edit_is_shown_no_way_around(name: str) -> None:
    tools = [tool for tool in builtin_tools() if tool.name not in ("Edit", "Write")]
    given = {"file_path": "a.py", "content": "x"}
    for is_subagent, whom in ((True, "in your report"), (False, "to the user")):
        with pytest.raises(ToolInputError) as refusal:
            find_tool(name, tools, given, is_subagent=is_subagent)
        assert f"You have no tool that edits files: describe the change {whom} instead." in str(refusal.value)
        assert "any command" not in str(refusal.value)


def test_in_plan_mode_a_change_goes_into_the_plan() -> None:
    with pytest.raises(ToolInputError) as refusal:
        find_tool("str_replace_editor", builtin_tools(), in_plan_mode=True)
    assert "Plan mode only lets you read: put the change into the plan." in str(refusal.value)
    assert "likeliest" not in str(refusal.value)


@pytest.mark.parametrize("name", ["ExitPlanMode", "exit_plan_mode"])
def test_a_plan_ends_the_turn(name: str) -> None:
    with pytest.raises(ToolInputError, match=r'no tool ".*"\. End your turn with the plan\.$'):
        find_tool(name, builtin_tools(), {"plan": "x"}, in_plan_mode=True)
    with pytest.raises(ToolInputError, match="You are not in plan mode: do the work"):
        find_tool(name, builtin_tools(), {"plan": "x"})


def test_a_second_unknown_tool_gets_a_shorter_list() -> None:
    with pytest.raises(
        ToolInputError, match=r'^There is no tool "shell"\. The likeliest is Bash, which needs command\.$'
    ):
        find_tool("shell", builtin_tools(), again=True)
    with pytest.raises(ToolInputError, match=r"now: (\w+, ){7}\w+ and \d more\. Bash runs any command\.$"):
        find_tool("fly", builtin_tools(), again=True)


def test_no_schema_refers_to_another_place() -> None:
    schemas = json.dumps([tool.schema() for tool in builtin_tools()])
    assert "$ref" not in schemas
    assert "$defs" not in schemas


@pytest.mark.parametrize(
    ("name", "tool_input", "says"),
    [
        ("Read", {"file_path": "a", "line": 3}, "unknown field `line`. The fields are file_path, offset, limit"),
        (
            "Bash",
            {"comand": "ls"},
            'unknown field `comand` (did you mean "command"?). The fields are command, timeout, description, ',
        ),
        (
            "Grep",
            {"pattern": "x", "output_mode": "contents"},
            "Invalid enum value 'contents' - at `$.output_mode` (did you mean \"content\"?). The values are content, ",
        ),
        (
            "TodoWrite",
            {"todos": [{"content": "x", "status": "done"}]},
            "Invalid enum value 'done' - at `$.todos[0].status`. The values are completed, in_progress, pending",
        ),
        (
            "TodoWrite",
            {"todos": [{"content": "x", "status": "pending", "priority": 1}]},
            "unknown field `priority` - at `$.todos[0]`. The fields are content, status, activeForm",
        ),
        ("Edit", {"file_path": "a"}, "Required fields: file_path, old_string, new_string"),
    ],
)
def test_wrong_input_is_answered_with_what_there_is(name: str, tool_input: dict[str, object], says: str) -> None:
    with pytest.raises(ToolInputError) as refusal:
        find_tool(name, builtin_tools()).parse(tool_input)
    assert says in str(refusal.value)


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
