"""TodoWrite's promises."""

import pytest

from tests.tools.session import Session
from wave_agent.tools.base import TaskChangeKind, ToolInputError
from wave_agent.tools.registry import find_tool
from wave_agent.tools.todo import TodoWrite


def todo(content: str, status: str) -> dict[str, str]:
    return {"content": content, "status": status}


async def test_the_list_is_kept_and_shown(session: Session) -> None:
    first = [todo("look", "completed"), todo("change", "in_progress"), todo("test", "pending")]
    result = await session.call("TodoWrite", todos=first)
    assert result.content == "[x] look\n[→] change\n[ ] test"
    tool = find_tool("TodoWrite", session.tools)
    assert isinstance(tool, TodoWrite)
    assert [item.content for item in tool.todos] == ["look", "change", "test"]
    again = await session.call("TodoWrite", todos=[{**todo("rest", "pending"), "activeForm": "Resting"}])
    assert [item["content"] for item in again.response["oldTodos"]] == ["look", "change", "test"]
    assert again.response["newTodos"] == [{"content": "rest", "status": "pending", "activeForm": "Resting"}]


async def test_an_empty_list_is_one(session: Session) -> None:
    assert (await session.call("TodoWrite", todos=[])).content == "The list is empty."


@pytest.mark.parametrize(
    ("todos", "named"),
    [
        ([todo("a", "doing")], r"todos\[0\].status"),
        ([todo("", "pending")], r"todos\[0\].content"),
        ([{"content": "a"}], "status"),
        ("a", "todos"),
        ([todo("a", "in_progress"), todo("b", "in_progress")], "more than one"),
    ],
)
async def test_what_does_not_fit_is_named_and_the_list_stays(session: Session, todos: object, named: str) -> None:
    await session.call("TodoWrite", todos=[todo("stays", "pending")])
    with pytest.raises(ToolInputError, match=named):
        await session.call("TodoWrite", todos=todos)
    tool = find_tool("TodoWrite", session.tools)
    assert isinstance(tool, TodoWrite)
    assert [item.content for item in tool.todos] == ["stays"]


def changes(tool: TodoWrite, *todos: dict[str, str]) -> list[tuple[str, str]]:
    return [(change.kind.value, change.subject) for change in tool.task_changes(tool.parse({"todos": list(todos)}))]


async def test_items_that_are_new_or_completed_are_changes(session: Session) -> None:
    tool = find_tool("TodoWrite", session.tools)
    assert isinstance(tool, TodoWrite)
    assert changes(tool, todo("a", "pending"), todo("b", "completed")) == [
        ("created", "a"),
        ("created", "b"),
        ("completed", "b"),
    ]
    await session.call("TodoWrite", todos=[todo("a", "pending"), todo("b", "completed")])
    assert changes(tool, todo("a", "completed"), todo("b", "completed")) == [("completed", "a")]
    assert changes(tool, todo("a", "in_progress"), todo("a", "pending")) == [("created", "a")]
    assert changes(tool) == []


async def test_a_change_that_is_refused_leaves_the_item_as_it_was(session: Session) -> None:
    tool = find_tool("TodoWrite", session.tools)
    assert isinstance(tool, TodoWrite)
    await session.call("TodoWrite", todos=[todo("a", "in_progress"), todo("b", "pending")])

    def without(kind: TaskChangeKind, *todos: dict[str, str]) -> list[tuple[str, str]]:
        arguments = tool.parse({"todos": list(todos)})
        refused = [change for change in tool.task_changes(arguments) if change.kind is kind]
        return [(one.content, one.status) for one in tool.without_task_changes(arguments, refused).todos]

    done = (todo("a", "completed"), todo("b", "completed"), todo("c", "completed"))
    assert without(TaskChangeKind.COMPLETED, *done) == [("a", "in_progress"), ("b", "pending"), ("c", "pending")]
    assert without(TaskChangeKind.CREATED, *done) == [("a", "completed"), ("b", "completed")]
    moved = (todo("a", "completed"), todo("b", "in_progress"))
    assert without(TaskChangeKind.COMPLETED, *moved) == [("a", "pending"), ("b", "in_progress")]
