"""`@tool`: makes a typed, documented Python function a tool."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints, overload

import msgspec

from wave_agent.permissions.decision import ToolKind
from wave_agent.system.reentrancy import Door
from wave_agent.text import strip_controls
from wave_agent.tools.base import Tool, ToolContext, ToolResult


class FunctionTool(Tool):
    """A function that the model can call. It stays callable as before. Each is an instance of its own class."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        """Sync functions run in a thread, so that they do not block the agent. An exception is the call's result."""
        values = msgspec.structs.asdict(arguments)
        if inspect.iscoroutinefunction(self.function):
            try:
                answer = await self.function(**values)
            except SystemExit as error:  # would end the event loop
                raise RuntimeError(f"SystemExit: {error}") from error
        else:
            answer = await asyncio.to_thread(_called, self.function, values, context.door)
        if isinstance(answer, ToolResult):
            return msgspec.structs.replace(answer, content=strip_controls(answer.content))
        text = "" if answer is None else answer if isinstance(answer, str) else msgspec.json.encode(answer).decode()
        return ToolResult(content=strip_controls(text))


def _called(function: Callable[..., Any], values: dict[str, Any], door: Door) -> Any:
    try:
        with door():
            return function(**values)
    except (StopIteration, SystemExit) as error:  # a future cannot carry the former; the latter ends the event loop
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


def _input_of(function: Callable[..., Any], name: str) -> type[msgspec.Struct]:
    """The input type described by a function's signature."""
    hints = get_type_hints(function, include_extras=True)
    fields: list[Any] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise TypeError(f"The tool {name} cannot take {parameter}: the model passes arguments by name.")
        if parameter.name not in hints:
            raise TypeError(f"The parameter {parameter.name} of the tool {name} needs a type.")
        field = (parameter.name, hints[parameter.name])
        fields.append(field if parameter.default is parameter.empty else (*field, parameter.default))
    return msgspec.defstruct(f"{name}_input", fields, kw_only=True, forbid_unknown_fields=True)


@overload
def tool(function: Callable[..., Any]) -> FunctionTool: ...
@overload
def tool(*, name: str | None = None, reads_only: bool = False) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(
    function: Callable[..., Any] | None = None, *, name: str | None = None, reads_only: bool = False
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Makes a function a tool. Its name, types and docstring are shown to the model.

    `reads_only` promises that it changes nothing: it then runs without asking, and in parallel with other calls.
    """
    kind = ToolKind.READS if reads_only else ToolKind.ACTS

    def make(function: Callable[..., Any]) -> FunctionTool:
        called = name or function.__name__
        description = inspect.getdoc(function)
        if not description:
            raise TypeError(f"The tool {called} needs a docstring: it describes the tool to the model.")
        facts = {"name": called, "description": description, "kind": kind, "Input": _input_of(function, called)}
        made = type(called, (FunctionTool,), facts)(function)
        try:
            made.schema()
        except TypeError as error:
            raise TypeError(f"The tool {called} has a parameter type that JSON cannot represent: {error}") from None
        return made

    return make if function is None else make(function)
