"""The model's todo list, as it wrote it."""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from wave_agent.text import one_line

STATES: Mapping[str, str] = {"completed": "done", "in_progress": "in progress", "pending": "to do"}
"""What the states of an item are called."""


class Item(NamedTuple):
    content: str
    status: str
    active_form: str


def items_in(parameters: Mapping[str, Any]) -> list[Item]:
    """Skips invalid items: the model may have written anything."""
    todos: object = parameters.get("todos")
    if not isinstance(todos, list):
        return []
    listed = [cast(Mapping[str, Any], one) for one in cast(list[object], todos) if isinstance(one, Mapping)]
    return [
        Item(
            one_line(str(one.get("content", "")), 200),
            str(one.get("status")),
            one_line(str(one.get("activeForm", "")), 200),
        )
        for one in listed
    ]
