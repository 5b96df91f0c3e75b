"""Every wrong argument of `Agent.create` is named, before anything is done with it."""

import inspect
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from wave_agent import Agent, ArgumentError, Callbacks, SettingsError, Tool, ToolContext, ToolResult, WaveError, tool
from wave_agent.agent.arguments import _CHECKS
from wave_agent.agent.one_shot import AgentOptions
from wave_agent.agent.turn import TurnStatus
from wave_agent.events import StatusName
from wave_agent.hooks.events import HookEvent, HookEventName
from wave_agent.permissions.decision import ModeName, PermissionMode
from wave_agent.settings.places import DEFAULT_SOURCES, SourceName
from wave_agent.testing import ScriptedModel
from wave_agent.tools.todo import TodoWrite


@tool
def weather(city: str) -> str:
    """Tells the weather."""
    return f"Rain in {city}."


@tool(name="weather")
def climate(city: str) -> str:
    """Tells the climate."""
    return f"Rain in {city}."


@tool(name="Read")
def read(file_path: str) -> str:
    """Reads in another way."""
    return f"read {file_path}"


def undecorated(city: str) -> str:
    """Has no decorator."""
    return city


async def hear(event: object) -> None:
    pass


class Hears:
    async def __call__(self, event: object) -> None:
        pass


def two(one: object, other: object) -> None:
    pass


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"can_use_tool": 5}, "can_use_tool must be a function, not int 5."),
    ({"can_use_tool": two}, "can_use_tool must be a function of one argument; two takes others."),
    ({"can_use_tool": lambda: None}, "can_use_tool must be a function of one argument; <lambda> takes others."),
    ({"tools": [undecorated]}, "tools: undecorated is not a tool; decorate the function with @tool"),
    ({"tools": [TodoWrite]}, "tools: TodoWrite is a class; pass an instance, such as TodoWrite()."),
    ({"tools": weather}, "tools must be a list of tools, not weather."),
    ({"tools": "Read"}, "tools must be a list of tools, not str 'Read'."),
    ({"tools": ["Read"]}, "tools: each must be a function with @tool above it, or an instance"),
    ({"tools": [weather, climate]}, 'tools: two are called "weather"; the model and hooks know a tool by its name.'),
    ({"callbacks": {"on_event": hear}}, "callbacks: on_event is async and would not be awaited."),
    ({"callbacks": Callbacks(on_loading_change=Hears())}, "callbacks: on_loading_change is async"),
    ({"callbacks": {"on_evnt": print}}, "callbacks has no 'on_evnt' (did you mean \"on_event\"?); the names are"),
    ({"callbacks": {3: print}}, "callbacks has no 3; the names are on_messages_change, on_loading_change, on_event."),
    ({"callbacks": {"on_event": 3}}, "callbacks: on_event must be a function, not int 3."),
    ({"callbacks": Callbacks(on_event="x")}, "callbacks: on_event must be a function, not str 'x'."),  # pyright: ignore[reportArgumentType]
    ({"callbacks": {"on_event": two}}, "callbacks: on_event must be a function of one argument; two takes others."),
    ({"callbacks": print}, "callbacks must be Callbacks(…) or a dict with its names, not builtin_function_or_method."),
    ({"hooks": [print]}, "hooks must be an object of events: a dict in the shape"),
    ({"mcp_servers": [{"command": "x"}]}, "mcp_servers must be a dict of servers by name, in the form of .mcp.json"),
    ({"mcp_servers": {1: {"command": "x"}}}, "mcp_servers must be a dict of servers by name, in the form of .mcp.json"),
    ({"max_turns": "3"}, "max_turns must be a whole number, not str '3'."),
    ({"max_turns": True}, "max_turns must be a whole number, not bool True."),
    ({"max_turns": 2.5}, "max_turns must be a whole number, not float 2.5."),
    ({"workdir": 5}, "workdir must be a path, not int 5."),
    ({"model": 5}, "model must be a string, not int 5."),
    ({"base_url": b"x"}, "base_url must be a string, not bytes b'x'."),
    ({"api_key": ["x"]}, "api_key must be a string, not list."),
    ({"system_prompt": 1}, "system_prompt must be a string, not int 1."),
    ({"permission_mode": 1}, "permission_mode must be a string, not int 1."),
    ({"settings": 5}, "settings must be the path of a file or a dict, not int 5."),
    ({"setting_sources": "user"}, "setting_sources must be a list of names, not str 'user'."),
    ({"setting_sources": [1]}, "setting_sources: each must be a string, not int 1."),
    ({"resume": 7}, "resume must be a string, not int 7."),
    ({"model_client": "gpt"}, "model_client must be an object with stream() and close(), not str 'gpt'."),
    ({"model_client": ScriptedModel}, "model_client must be an object with stream() and close(), not type."),
    ({"hook_runner": print}, "hook_runner must be an object with run(), not builtin_function_or_method."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "told"), WRONG, ids=[f"{number} {next(iter(given))}" for number, (given, _) in enumerate(WRONG)]
)
async def test_a_wrong_argument_is_named(tmp_path: Path, given: dict[str, Any], told: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        await Agent.create(**{"workdir": tmp_path, "setting_sources": [], **given})

    assert str(raised.value).startswith(told)
    assert isinstance(raised.value, TypeError)
    assert isinstance(raised.value, WaveError)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"permission_mode": "yolo"}, '"yolo" is not a permission mode; expected one of default'),
        ({"setting_sources": ["usr"]}, '"usr" is not a settings source; expected one of managed'),
        ({"max_turns": 0}, "max_turns must be at least 1, not 0."),
        ({"trust": "yes"}, "trust must be True, False or a function, not 'yes'."),
        ({"hooks": {"PreToolUse": print}}, "hooks.PreToolUse: must be a list of matcher groups, not builtin_function"),
        ({"hooks": {"PreToolUse": [5]}}, "hooks.PreToolUse[0]: must be an object with matcher and hooks, not a number"),
        ({"hooks": {"PreTolUse": []}}, 'unknown event "PreTolUse" (did you mean "PreToolUse"?)'),
        ({"hooks": {"Stop": [{"hooks": [7]}]}}, "hooks.Stop[0].hooks[0]: must be an object with a command"),
        ({"hooks": {"Stop": [{"function": 7}]}}, "hooks.Stop[0].function"),
        ({"settings": {"permissions": {"deny": "Bash"}}}, "must be a list of rules, not a string"),
    ],
    ids=map(str, range(10)),
)
async def test_what_a_value_means_is_judged_where_it_is_used(tmp_path: Path, given: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError) as raised:
        await Agent.create(**{"workdir": tmp_path, "setting_sources": [], **given})

    assert told in str(raised.value)


async def test_a_tool_may_take_the_place_of_a_built_in_one(tmp_path: Path) -> None:
    model = ScriptedModel(["Hello."])
    async with await Agent.create(workdir=tmp_path, tools=(read,), model_client=model, setting_sources=[]) as agent:
        await agent.send_message("Hi.")

    (spec,) = [spec for spec in model.requests[0].tools if spec.name == "Read"]
    assert spec.description == "Reads in another way."


async def test_what_fits_is_taken(tmp_path: Path) -> None:
    class Silent(Tool):
        name = "silent"
        description = "Says nothing."
        Input = TodoWrite.Input

        async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
            return ToolResult(content="")

    heard: list[object] = []
    async with await Agent.create(
        workdir=str(tmp_path),
        tools=[weather, Silent()],
        can_use_tool=lambda _: None,  # pyright: ignore[reportArgumentType]
        callbacks={"on_event": heard.append, "on_loading_change": None},  # pyright: ignore[reportArgumentType]
        permission_mode=PermissionMode.PLAN,
        model_client=ScriptedModel(["Hello."]),
        setting_sources=(),
        hooks={HookEvent.STOP: []},
    ) as agent:
        await agent.send_message("Hi.")

    assert heard


def test_every_argument_is_looked_at_and_run_takes_the_same_ones() -> None:
    arguments = inspect.signature(Agent.create).parameters.keys()
    assert {*_CHECKS, "callbacks", "trust", "agents"} == arguments
    hints = get_type_hints(Agent.create)
    assert get_type_hints(AgentOptions) == {name: hints[name] for name in arguments}


@pytest.mark.parametrize(
    ("names", "known"),
    [
        (ModeName, list(PermissionMode)),
        (StatusName, list(TurnStatus)),
        (HookEventName, list(HookEvent)),
        (SourceName, [layer.value for layer in DEFAULT_SOURCES]),
    ],
    ids=["modes", "statuses", "events", "sources"],
)
def test_a_type_checker_knows_the_names_that_the_program_knows(names: object, known: list[str]) -> None:
    assert list(get_args(names)) == known
