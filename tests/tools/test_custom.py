"""`@tool`: what the model is told about a function, and what comes of calling it."""

import asyncio
import json
import threading
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest

from tests.rows import rows
from tests.waiting import until
from wave_agent import Tool, ToolResult, tool
from wave_agent.agent.agent import Agent
from wave_agent.messages import ToolBlock
from wave_agent.models.base import ModelRequest
from wave_agent.models.scripted import Reply, ScriptedModel, call
from wave_agent.permissions.decision import ModeName, ToolKind
from wave_agent.tools.base import ToolInputError


@tool
def add(first: int, second: int = 5) -> int:
    """Add two numbers.

    The second one may be left out.
    """
    return first + second


@tool
async def shout(text: str) -> str:
    """Say it louder."""
    await asyncio.sleep(0)
    return text.upper()


class Tree(msgspec.Struct):
    name: str
    leaves: "tuple[Tree, ...]"


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Point(msgspec.Struct):
    x: int
    y: int = 0


# ----------------------------------------------------------------------------------------------- what the model is told


def test_the_name_and_the_docstring_are_the_functions_own() -> None:
    assert isinstance(add, Tool)
    assert add.name == "add"
    assert add.description == "Add two numbers.\n\nThe second one may be left out."


def test_the_schema_comes_from_the_types_and_the_defaults() -> None:
    assert add.schema() == {
        "type": "object",
        "properties": {"first": {"type": "integer"}, "second": {"type": "integer", "default": 5}},
        "required": ["first"],
        "additionalProperties": False,
    }


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    @tool
    def now() -> str:
        """The time."""
        return "noon"

    assert now.schema()["properties"] == {}
    assert now.schema()["required"] == []


@rows(
    ("kind", "schema"),
    [
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (float, {"type": "number"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Literal["a", "b"], {"enum": ["a", "b"]}),
        (str | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (Any, {}),
        (Annotated[int, msgspec.Meta(description="how many", ge=1)], {
            "type": "integer", "description": "how many", "minimum": 1,
        }),
    ],
    ids=str,
)  # fmt: skip
def test_the_schema_of_a_type(kind: Any, schema: dict[str, Any]) -> None:
    def take(value: Any) -> str:
        """Take it."""
        return str(value)

    take.__annotations__["value"] = kind
    assert tool(take).schema()["properties"]["value"] == schema


def test_types_with_a_name_stand_in_the_schema_itself() -> None:
    @tool
    def paint(point: Point, colour: Colour = Colour.RED) -> str:
        """Paint a point."""
        return f"{point.x},{point.y} {colour.value}"

    schema = paint.schema()
    point = {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}}
    assert schema["properties"]["point"] == {"type": "object", "properties": point, "required": ["x"]}
    assert schema["properties"]["colour"] == {"enum": ["blue", "red"], "default": "red"}
    assert json.loads(json.dumps(schema)) == schema
    parsed = paint.parse({"point": {"x": 1}, "colour": "blue"})
    assert (parsed.point, parsed.colour) == (Point(1), Colour.BLUE)


def test_a_type_that_holds_itself_is_any_object_where_it_would_begin_again() -> None:
    @tool
    def grow(tree: Tree) -> str:
        """Grow it."""
        return str(tree)

    leaves = {"type": "array", "items": {"type": "object"}}
    tree = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "leaves": leaves},
        "required": ["name", "leaves"],
    }
    assert grow.schema()["properties"]["tree"] == tree


def test_an_optional_parameter_may_be_null() -> None:
    @tool
    def find(name: str, kind: str | None = None) -> str:
        """Find it."""
        return f"{name} {kind}"

    assert find.nullable() == {"kind"}
    assert find.parse({"name": "a", "kind": None}).kind is None
    assert find.parse({"name": "a"}).kind is None


def test_a_default_list_is_not_shared_between_calls() -> None:
    @tool
    def collect(items: list[str] = []) -> int:  # noqa: B006
        """Collect."""
        return len(items)

    first = collect.parse({})
    first.items.append("x")
    assert collect.parse({}).items == []


def test_another_name_and_a_promise_can_be_given() -> None:
    @tool(name="Look", reads_only=True)
    def look_it_up(word: str) -> str:
        """Look it up."""
        return word

    assert (look_it_up.name, look_it_up.kind) == ("Look", ToolKind.READS)
    assert (add.kind, shout.kind) == (ToolKind.ACTS, ToolKind.ACTS)


def test_each_tool_is_itself() -> None:
    assert (add.name, shout.name) == ("add", "shout")
    assert add.Input is not shout.Input
    assert add.path_fields == ()


# ------------------------------------------------------------------------------------------------------ what is refused


def test_a_function_without_a_docstring_is_refused() -> None:
    def silent(text: str) -> str:
        return text

    with pytest.raises(TypeError, match="The tool silent needs a docstring"):
        tool(silent)
    with pytest.raises(TypeError, match="The tool Named needs a docstring"):
        tool(name="Named")(silent)


def test_a_parameter_without_a_type_is_refused() -> None:
    def vague(text):  # pyright: ignore
        """Vague."""
        return text

    with pytest.raises(TypeError, match="The parameter text of the tool vague needs a type"):
        tool(vague)


def many(*texts: str) -> str:
    """Many."""
    return "".join(texts)


def named(**texts: str) -> str:
    """Named."""
    return "".join(texts)


def positional(text: str, /) -> str:
    """Positional."""
    return text


@pytest.mark.parametrize(
    ("function", "parameter"),
    [(many, r"\*texts: str"), (named, r"\*\*texts: str"), (positional, "text: str")],
    ids=["*args", "**kwargs", "positional"],
)
def test_a_parameter_that_has_no_name_to_pass_it_by_is_refused(function: Any, parameter: str) -> None:
    with pytest.raises(TypeError, match=f"The tool {function.__name__} cannot take {parameter}"):
        tool(function)


def test_a_type_that_no_json_can_carry_is_refused_when_the_tool_is_made() -> None:
    """Not later, when an agent is created with it."""

    def send(lock: threading.Event) -> str:
        """Send it."""
        return str(lock)

    with pytest.raises(TypeError, match="send"):
        tool(send)


@pytest.mark.parametrize(
    ("tool_input", "problem"),
    [
        ({}, "missing required field `first`"),
        ({"first": "x"}, r"\$\.first"),
        ({"first": 1, "third": 3}, "unknown field `third`"),
        ({"first": None}, r"\$\.first"),
    ],
)
def test_input_that_does_not_fit_is_refused_with_the_field(tool_input: dict[str, Any], problem: str) -> None:
    with pytest.raises(ToolInputError, match=f"^add: invalid input: .*{problem}"):
        add.parse(tool_input)


# --------------------------------------------------------------------------------------------------------- calling it


def test_the_function_stays_callable_as_it_was() -> None:
    assert add(1) == 6
    assert add(1, second=2) == 3
    assert asyncio.run(shout("hi")) == "HI"


class Called:
    """What came of one call by a model, in a whole agent."""

    def __init__(self, block: ToolBlock, request: ModelRequest) -> None:
        self.block = block
        self.sent = request.messages[-1]["content"]
        self.spec = {spec.name: spec for spec in request.tools}


@pytest.fixture
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


async def called(workdir: Path, made: Tool, mode: ModeName = "bypassPermissions", **arguments: Any) -> Called:
    model = ScriptedModel([Reply(tool_calls=[call(made.name, **arguments)]), "done"])
    async with await Agent.create(
        workdir=workdir, tools=[made], model_client=model, permission_mode=mode, setting_sources=[]
    ) as agent:
        result = await asyncio.wait_for(agent.send_message("go"), 10)
        assert result.status == "completed"
        blocks = [block for message in agent.messages for block in message.blocks]
        (block,) = [block for block in blocks if isinstance(block, ToolBlock)]
        return Called(block, model.requests[1])


async def test_the_model_is_told_of_it_and_gets_the_result(workdir: Path) -> None:
    found = await called(workdir, shout, text="hello")
    assert found.spec["shout"].description == "Say it louder."
    assert found.spec["shout"].schema == shout.schema()
    assert (found.block.result, found.block.success, found.block.error) == ("HELLO", True, None)
    assert found.sent == "HELLO"


async def test_a_sync_function_runs_in_a_thread_of_its_own(workdir: Path) -> None:
    seen: list[threading.Thread] = []

    @tool
    def where() -> str:
        """Where am I?"""
        seen.append(threading.current_thread())
        return "here"

    assert (await called(workdir, where)).block.success is True
    assert seen[0] is not threading.main_thread()


async def test_a_slow_sync_function_does_not_hold_the_agent(workdir: Path) -> None:
    entered, gate = threading.Event(), threading.Event()

    @tool
    def wait() -> str:
        """Wait."""
        entered.set()
        assert gate.wait(20)
        return "waited"

    running = asyncio.create_task(called(workdir, wait))
    await until(entered.is_set)
    gate.set()
    assert (await running).block.result == "waited"


@pytest.mark.parametrize(
    ("answer", "content"),
    [
        ("text", "text"),
        ("", ""),
        (5, "5"),
        (True, "true"),
        (None, ""),
        ([1, "a"], '[1,"a"]'),
        ({"a": {"b": None}}, '{"a":{"b":null}}'),
        (Point(1, 2), '{"x":1,"y":2}'),
    ],
    ids=str,
)
async def test_what_a_function_returns_reaches_the_model_as_text_or_json(
    workdir: Path, answer: object, content: str
) -> None:
    @tool
    def give() -> object:
        """Give it."""
        return answer

    found = await called(workdir, give)
    assert (found.block.result, found.block.success) == (content, True)


async def test_a_function_may_return_a_whole_result(workdir: Path) -> None:
    @tool
    def fail() -> ToolResult:
        """Fail politely."""
        return ToolResult(content="the build is red", success=False)

    found = await called(workdir, fail)
    assert (found.block.result, found.block.success) == ("the build is red", False)


class OwnError(Exception):
    """An exception that only this test has."""


@pytest.mark.parametrize(
    "error",
    [ValueError("bad luck"), OwnError("bad luck"), TimeoutError("bad luck"), StopIteration("bad luck")],
    ids=repr,
)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_an_exception_is_the_calls_result(workdir: Path, error: Exception, is_async: bool) -> None:
    def raises() -> str:
        """Raise."""
        raise error

    async def raises_later() -> str:
        """Raise."""
        raise error

    found = await called(workdir, tool(name="raises")(raises_later if is_async else raises))
    assert found.block.success is False
    assert found.block.result is not None
    assert found.block.result.startswith("raises failed: ")
    if not isinstance(error, StopIteration):  # Python itself turns that one into another
        assert found.block.result == f"raises failed: {type(error).__name__}: bad luck"
    assert found.sent == found.block.result


async def test_a_result_that_no_json_can_carry_is_the_calls_failure(workdir: Path) -> None:
    @tool
    def give() -> object:
        """Give it."""
        return object()

    found = await called(workdir, give)
    assert found.block.success is False
    assert "give failed: TypeError" in (found.block.result or "")


async def test_a_function_can_refuse_its_input_in_its_own_words(workdir: Path) -> None:
    @tool
    def divide(by: int) -> float:
        """Divide."""
        if by == 0:
            raise ToolInputError("by must not be 0")
        return 1 / by

    found = await called(workdir, divide, by=0)
    assert (found.block.result, found.block.success) == ("by must not be 0", False)


async def test_wrong_input_is_told_to_the_model_and_nothing_runs(workdir: Path) -> None:
    found = await called(workdir, add, first="many")
    assert found.block.success is False
    assert "$.first" in found.sent


async def test_defaults_and_named_arguments_arrive_as_their_types(workdir: Path) -> None:
    seen: list[Any] = []

    @tool
    def paint(
        point: Point, modes: list[Literal["a", "b"]], *, colour: Colour = Colour.RED, note: str | None = None
    ) -> str:
        """Paint."""
        seen.append((point, modes, colour, note))
        return "ok"

    await called(workdir, paint, point={"x": 1}, modes=["b"], note="n")
    assert seen == [(Point(1, 0), ["b"], Colour.RED, "n")]


@pytest.mark.parametrize(("reads_only", "runs"), [(True, True), (False, False)])
async def test_only_a_tool_that_promises_to_read_runs_without_a_question(
    workdir: Path, reads_only: bool, runs: bool
) -> None:
    @tool(reads_only=reads_only)
    def look() -> str:
        """Look."""
        return "seen"

    found = await called(workdir, look, mode="default")
    assert (found.block.result == "seen") is runs


async def test_a_tool_with_the_name_of_a_built_in_one_takes_its_place(workdir: Path) -> None:
    @tool(name="Bash")
    def bash(command: str) -> str:
        """Not a shell."""
        return f"would run {command}"

    found = await called(workdir, bash, command="ls")
    assert found.block.result == "would run ls"
    assert found.spec["Bash"].description == "Not a shell."


@pytest.mark.parametrize("as_result", [True, False])
async def test_terminal_escapes_of_a_function_do_not_reach_the_model(tmp_path: Path, as_result: bool) -> None:
    @tool(reads_only=True)
    def coloured() -> Any:
        """Print in colour."""
        text = "\x1b[31mred\x1b[0m\u202e"
        return ToolResult(content=text) if as_result else text

    model = ScriptedModel([Reply(tool_calls=[call("coloured")]), "done"])
    async with await Agent.create(workdir=tmp_path, tools=[coloured], model_client=model) as agent:
        await agent.send_message("go")
    assert model.requests[-1].messages[-1]["content"] == "red"


async def test_nor_do_those_of_its_failure(tmp_path: Path) -> None:
    @tool(reads_only=True)
    def failing() -> str:
        """Fail in colour."""
        raise ValueError("\x1b[31mred")

    model = ScriptedModel([Reply(tool_calls=[call("failing")]), "done"])
    async with await Agent.create(workdir=tmp_path, tools=[failing], model_client=model) as agent:
        await agent.send_message("go")
    assert model.requests[-1].messages[-1]["content"] == "failing failed: ValueError: red"
