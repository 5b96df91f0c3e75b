"""Definitions of subagents: every field of a front matter, read or reported."""

from collections.abc import Mapping
from typing import Any

from tests.rows import rows
from wave_agent.formats.strict_json import Document
from wave_agent.hooks.definitions import HookDefinition, Layer
from wave_agent.hooks.dialects import Dialect
from wave_agent.hooks.events import HookEvent, OnFailure
from wave_agent.permissions.decision import PermissionMode
from wave_agent.settings.agent_definitions import (
    AgentDefinition,
    DefinitionProblem,
    DefinitionSource,
    definition_from,
    definitions_in,
    placed,
)
from wave_agent.settings.built_in_agents import with_built_in_limits
from wave_agent.settings.extensions import ExtensionFile
from wave_agent.settings.places import ExtensionKind

FILE = DefinitionSource(name="reviewer.md", layer=Layer.USER, lines={("model",): 4})
HOOK = {"matcher": "Bash", "hooks": [{"command": "true"}]}


def read(**front: Any) -> tuple[AgentDefinition | None, tuple[DefinitionProblem, ...]]:
    return definition_from("reviewer", {"description": "Reviews", **front}, "\nReview.\n", FILE)


def good(**front: Any) -> AgentDefinition:
    found, problems = read(**front)
    assert (problems, found is None) == ((), False)
    assert found is not None
    return found


def test_every_field_is_read() -> None:
    found = good(
        name="reviewer",
        tools="Read, Bash,",
        disallowedTools=["Write"],
        model="small",
        permissionMode="plan",
        maxTurns=3,
        skills=["tests"],
        mcpServers="github, files",
        color="blue",
    )
    assert found == AgentDefinition(
        name="reviewer",
        description="Reviews",
        prompt="Review.",
        tools=("Read", "Bash"),
        disallowed_tools=("Write",),
        model="small",
        permission_mode=PermissionMode.PLAN,
        max_turns=3,
        skills=("tests",),
        mcp_servers=("github", "files"),
        source="reviewer.md",
    )


def test_without_limits_everything_is_that_of_the_session() -> None:
    for front in ({}, {"tools": "*", "model": "inherit"}, {"model": "sonnet"}):
        found = good(**front)
        assert (found.tools, found.model, found.permission_mode, found.max_turns) == (None, None, None, None)


@rows("key", ["tool", "permisionMode", "disallowed-tools", "maxturns"])
def test_a_key_that_may_be_a_misspelt_limit_leaves_the_definition_out(key: str) -> None:
    found, (problem,) = read(**{key: "Read"})
    assert (found, problem.field, problem.left_out) == (None, key, True)
    assert "did you mean" in problem.message


@rows(
    ("front", "tool", "expected"),
    [
        ({}, "Anything", True),
        ({"tools": ["read"]}, "Read", True),
        ({"tools": ["Read"]}, "Write", False),
        ({"disallowedTools": ["Read"]}, "Read", False),
        ({"tools": ["Read"], "disallowedTools": ["Read"]}, "Read", False),
        ({"tools": ["mcp__a"]}, "mcp__a__b", True),
        ({"tools": ["mcp__a__*"]}, "mcp__a__b", True),
        ({"tools": ["mcp__a"]}, "mcp__b__b", False),
        ({"mcpServers": ["a"]}, "mcp__a__b", True),
        ({"mcpServers": ["a"]}, "mcp__b__b", False),
        ({"mcpServers": ["a"]}, "Read", True),
    ],
)
def test_which_tools_it_has(front: Mapping[str, Any], tool: str, expected: bool) -> None:
    assert good(**front).has_tool(tool) is expected


@rows(
    ("front", "field", "message", "left_out"),
    [
        ({"description": " "}, "description", "is missing", True),
        ({"tools": {"a": 1}}, "tools", "must be a list of names, not an object", True),
        ({"tools": [1]}, "tools", "must be a list of names", True),
        ({"tools": ["Bash(ls:*)"]}, "tools", "only names of tools", True),
        ({"disallowedTools": ["*"]}, "disallowedTools", '"*" is not the name of a tool', True),
        ({"model": 5}, "model", "must be the name of a model or inherit", False),
        ({"permissionMode": "yolo"}, "permissionMode", "must be one of default, acceptEdits, plan", True),
        ({"maxTurns": True}, "maxTurns", "must be a whole number from 1", True),
        ({"maxTurns": 0}, "maxTurns", "must be a whole number from 1", True),
        ({"skills": 5}, "skills", "must be a list of names", True),
        ({"hooks": "x"}, "hooks", "must be an object of events", True),
        ({"hooks": {"PreToolUse": [{"hooks": [{"command": 5}]}]}}, "hooks.PreToolUse.0.hooks.0", "", True),
        ({"hooks": {"WorktreeCreate": []}}, "hooks.WorktreeCreate", "never happens here", False),
        ({"isolation": "worktree"}, "isolation", "has no effect here", False),
        ({"hooks": {"SessionStart": [HOOK]}}, "hooks.SessionStart", "never runs in a subagent", False),
        ({"maxTurn": 5}, "maxTurn", 'is not a known key (did you mean "maxTurns"?)', True),
        ({"owner": "me"}, "owner", "is not a known key", False),
        ({"tools": None}, "tools", "has no value", True),
        ({"tools": "Raed"}, "tools", '"Raed" is not a built-in tool (did you mean "Read"?)', False),
        ({"disallowedTools": "Bahs"}, "disallowedTools", 'did you mean "Bash"?', True),
    ],
)
def test_what_is_wrong_is_reported_with_its_field(
    front: Mapping[str, Any], field: str, message: str, left_out: bool
) -> None:
    found, (problem,) = read(**front)
    assert (problem.field, problem.left_out, found is None) == (field, left_out, left_out)
    assert message in problem.message


def test_a_problem_names_the_file_and_the_line() -> None:
    assert str(read(model=5)[1][0]).startswith("reviewer.md:4: model: must be")
    assert str(read(maxTurns=0)[1][0]).endswith("The subagent is left out")


@rows(
    ("front", "expected"),
    [({}, False), ({"model": "small", "maxTurns": 2}, False), ({"tools": []}, True), ({"tools": "Read"}, True),
     ({"disallowedTools": "Bash"}, True), ({"permissionMode": "plan"}, True), ({"mcpServers": "a"}, True),
     ({"hooks": {"PreToolUse": [HOOK]}}, True)],
)  # fmt: skip
def test_a_definition_knows_whether_it_may_do_less(front: Mapping[str, Any], expected: bool) -> None:
    assert good(**front).is_limited is expected


@rows("name", [5, "", "a b", "x" * 65])
def test_an_unusable_name_leaves_it_out(name: object) -> None:
    found, (problem,) = definition_from(name, {"description": "d"}, "", FILE)
    assert (found, problem.field) == (None, "name")


def test_stop_becomes_subagent_stop_and_other_events_stay() -> None:
    found = good(hooks={"Stop": [HOOK], "PreToolUse": [HOOK]})
    assert [hook.event for hook in found.hooks] == [HookEvent.SUBAGENT_STOP, HookEvent.PRE_TOOL_USE]
    both = good(hooks={"Stop": [{"command": "one"}], "SubagentStop": [{"command": "two"}]})
    assert [(hook.event, hook.command) for hook in both.hooks] == [
        (HookEvent.SUBAGENT_STOP, "one"),
        (HookEvent.SUBAGENT_STOP, "two"),
    ]


def test_hooks_are_numbered_after_those_of_the_session() -> None:
    session = good(hooks={"PreToolUse": [HOOK, HOOK]}).hooks
    two = {name: good(hooks={"PreToolUse": [HOOK], "SubagentStart": [HOOK]}) for name in ("a", "b")}
    found = placed({**two, "none": good()}, session)
    hooks: list[HookDefinition] = [hook for one in found.values() for hook in one.hooks]
    assert [hook.position for hook in hooks] == [2, 3, 4, 5]
    assert len({hook.group for hook in (*session, *hooks)}) == 6
    assert {hook.on_failure for hook in hooks} == {OnFailure.CONTINUE}
    strict = placed(two, session, strict=True)["a"].hooks
    assert [hook.on_failure for hook in strict] == [OnFailure.BLOCK, OnFailure.CONTINUE]


def test_the_files_of_a_session_become_definitions() -> None:
    def file(name: str, **front: Any) -> ExtensionFile:
        return ExtensionFile(
            kind=ExtensionKind.AGENTS,
            name=name,
            path=f"/p/{name}.md",
            layer=Layer.PROJECT,
            dialect=Dialect.CLAUDE,
            front=front,
            body="Work.",
            document=Document(front, {("description",): 2}),
        )

    found, problems = definitions_in([file("a", description="A", hooks={"Stop": [HOOK]}), file("b", description=1)])
    assert [*found] == ["a"]
    assert (found["a"].hooks[0].dialect, found["a"].hooks[0].layer) == (Dialect.CLAUDE, Layer.PROJECT)
    assert [str(one) for one in problems] == [
        "/p/b.md:2: description: is missing: it says when to use the subagent. The subagent is left out"
    ]


@rows(
    ("name", "tools", "of_project", "kept"),
    [
        ("explore", None, True, ("Read", "Glob", "Grep")),
        ("Explore", ("Grep", "Write"), True, ("Grep",)),
        ("explore", ("Read",), True, ("Read",)),
        ("explore", ("Write",), True, ()),
        ("explore", ("Write",), False, ("Write",)),
        ("general-purpose", None, True, None),
        ("other", ("Write",), True, ("Write",)),
    ],
)
def test_only_a_definition_of_the_user_can_give_more_tools_to_a_built_in_type(
    name: str, tools: tuple[str, ...] | None, of_project: bool, kept: tuple[str, ...] | None
) -> None:
    given = AgentDefinition(name=name, description="d", tools=tools, source="x.md")
    found = with_built_in_limits({name: given}, [name] if of_project else [])
    assert found.definitions[name].tools == kept
    assert len(found.notices) == (of_project and name != "other")
    assert ("for more, give it another name" in "".join(found.notices)) is (of_project and tools != kept)
