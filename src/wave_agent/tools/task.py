"""Task: gives a piece of work to a subagent."""

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct

from wave_agent.permissions.decision import ToolKind
from wave_agent.tools.base import Tool, ToolContext, ToolInputError, ToolResult

_DESCRIPTION = (
    "Gives a task to a subagent, which works alone and reports back once. Use it for searches and work whose details "
    "you do not need; several in one answer run side by side. It knows nothing of this conversation: the prompt must "
    "say everything, and what to report."
)


BUILT_IN: Mapping[str, str] = {
    "general-purpose": "has all tools",
    "explore": "only reads; finds things in the project and explains them",
}
"""The types of subagents that every session has, and what they are for."""


def unreplaced(names: Iterable[str]) -> list[str]:
    """The built-in types that no type of these names replaces. As in calls and rules, case makes no other name."""
    taken = {name.casefold() for name in names}
    return [name for name in BUILT_IN if name not in taken]


class TaskInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    description: Annotated[str, Meta(description="A few words, for the user.")]
    prompt: Annotated[str, Meta(min_length=1)]
    subagent_type: str
    model: Annotated[str, Meta(description="Default: yours.")] = ""


class Task(Tool):
    """Its own call changes nothing: the calls of the subagent are judged one by one."""

    name: ClassVar[str] = "Task"
    description: ClassVar[str] = _DESCRIPTION
    kind: ClassVar[ToolKind] = ToolKind.READS
    own: ClassVar[bool] = True
    delegates: ClassVar[bool] = True
    dispensable: ClassVar[bool] = True
    listed: ClassVar[str] = ""
    """The types, as the description lists them."""
    Input: ClassVar[type[Struct]] = TaskInput

    def __init__(self, types: Mapping[str, str]) -> None:
        """`types` has a description for each type of subagent."""
        self._types = types

    def normalise(self, tool_input: Mapping[str, Any], directory: str) -> dict[str, Any]:
        """With the type as it is written in its definition, so that hooks and rules see no other spelling."""
        given = super().normalise(tool_input, directory)
        kind = given.get("subagent_type")
        if isinstance(kind, str) and kind not in self._types:
            same = (name for name in self._types if name.casefold() == kind.strip().casefold())
            given["subagent_type"] = next(same, kind)
        return given

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        call: TaskInput = arguments
        if call.subagent_type not in self._types:
            known = ", ".join(self._types)
            raise ToolInputError(f'Task: there is no subagent_type "{call.subagent_type}". The types are: {known}.')
        if context.delegate is None:
            raise ToolInputError("Task: a subagent cannot start others. Do the work yourself.")
        return await context.delegate(call, context)


def task_tool(more: Mapping[str, str], denied: Collection[str] = (), withheld: Collection[str] = ()) -> Task:
    """The tool for the types of subagents that are built in and not `withheld`, and more. Its description lists those
    that are not `denied`; a call of another one is refused with the reason."""
    types = {**{name: BUILT_IN[name] for name in unreplaced((*more, *withheld))}, **more}
    offered = {name: about for name, about in types.items() if name not in denied} or types
    listed = "\n".join(f"- {name}: {about}" for name, about in offered.items())
    return type("Task", (Task,), {"description": f"{_DESCRIPTION}\n\nTypes:\n{listed}", "listed": listed})(types)
