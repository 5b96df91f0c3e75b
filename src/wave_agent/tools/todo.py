"""TodoWrite: the plan that the model maintains for itself and the user."""

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct, to_builtins

from wave_agent.permissions.decision import ToolKind
from wave_agent.tools.base import BuiltinTool, ToolContext, ToolInputError, ToolResult

_MARKS = {"pending": "[ ]", "in_progress": "[→]", "completed": "[x]"}


class Todo(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"active_form": "activeForm"}):
    content: Annotated[str, Meta(min_length=1)]
    status: Literal["pending", "in_progress", "completed"]
    active_form: Annotated[str, Meta(description='Shown while it is in progress, such as "Running tests".')] = ""


class TodoWriteInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    todos: tuple[Todo, ...]


class TodoWrite(BuiltinTool):
    """Stores the list."""

    name: ClassVar[str] = "TodoWrite"
    description: ClassVar[str] = (
        "Replaces the todo list, for work of three steps or more. Only one item at a time is in_progress; mark it "
        "completed as soon as it is done."
    )
    dispensable: ClassVar[bool] = True
    kind: ClassVar[ToolKind] = ToolKind.READS
    Input: ClassVar[type[Struct]] = TodoWriteInput

    def __init__(self) -> None:
        self.todos: tuple[Todo, ...] = ()

    async def run(self, arguments: Any, context: ToolContext) -> ToolResult:
        call: TodoWriteInput = arguments
        if sum(todo.status == "in_progress" for todo in call.todos) > 1:
            raise ToolInputError("TodoWrite: more than one item is in_progress: keep one, set the others to pending")
        before, self.todos = self.todos, call.todos
        lines = [f"{_MARKS[todo.status]} {todo.content}" for todo in call.todos]
        return ToolResult(
            content="\n".join(lines) or "The list is empty.",
            response={"oldTodos": to_builtins(list(before)), "newTodos": to_builtins(list(call.todos))},
        )
