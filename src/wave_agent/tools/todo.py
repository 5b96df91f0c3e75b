"""TodoWrite: the plan that the model maintains for itself and the user."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct, to_builtins
from msgspec.structs import replace

from wave_agent.permissions.decision import ToolKind
from wave_agent.tools.base import BuiltinTool, TaskChange, TaskChangeKind, ToolContext, ToolInputError, ToolResult

_MARKS = {"pending": "[ ]", "in_progress": "[→]", "completed": "[x]"}


class Todo(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"active_form": "activeForm"}):
    content: Annotated[str, Meta(min_length=1)]
    status: Literal["pending", "in_progress", "completed"]
    active_form: Annotated[str, Meta(description='Such as "Running tests".')] = ""


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

    def task_changes(self, arguments: Any) -> tuple[TaskChange, ...]:
        call: TodoWriteInput = arguments
        known = {id: todo.status for id, todo in _identified(self.todos)}
        found: list[TaskChange] = []
        for id, todo in _identified(call.todos):
            if id not in known:
                found.append(TaskChange(TaskChangeKind.CREATED, id, todo.content, todo.active_form))
            if todo.status == "completed" != known.get(id):
                found.append(TaskChange(TaskChangeKind.COMPLETED, id, todo.content, todo.active_form))
        return tuple(found)

    def without_task_changes(self, arguments: Any, refused: Sequence[TaskChange]) -> Any:
        """An item that may not be completed keeps its status, and one that is new is pending."""
        call: TodoWriteInput = arguments
        kinds = {(change.id, change.kind) for change in refused}
        known = {id: todo.status for id, todo in _identified(self.todos)}
        is_busy = any(todo.status == "in_progress" for todo in call.todos)
        todos: list[Todo] = []
        for id, todo in _identified(call.todos):
            if (id, TaskChangeKind.CREATED) in kinds:
                continue
            if (id, TaskChangeKind.COMPLETED) in kinds:
                goes_on = known.get(id) == "in_progress" and not is_busy
                is_busy = is_busy or goes_on
                todos.append(replace(todo, status="in_progress" if goes_on else "pending"))
            else:
                todos.append(todo)
        return TodoWriteInput(todos=tuple(todos))

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


def _identified(todos: Iterable[Todo]) -> Iterator[tuple[str, Todo]]:
    """Each item with an id. The text is all that an item is known by: an item with another text is another one."""
    seen: dict[str, int] = {}
    for todo in todos:
        times = seen[todo.content] = seen.get(todo.content, 0) + 1
        digest = hashlib.sha256(todo.content.encode(errors="surrogatepass")).hexdigest()[:12]
        yield f"task-{digest}" if times == 1 else f"task-{digest}-{times}", todo
