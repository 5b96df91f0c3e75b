"""The model's TodoWrite list, shown as a list."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self, cast

from textual.content import Content

from wave_agent.messages import ToolBlock
from wave_agent.screen.plain import plain
from wave_agent.screen.task_card import TaskCard
from wave_agent.screen.tool_card import State, ToolCard
from wave_agent.text import one_line

LIMIT = 20
"""Items shown; an open card shows all."""


class TodoLook(NamedTuple):
    glyph: str
    style: str


LOOKS: Mapping[str, TodoLook] = {
    "completed": TodoLook("✓", "$text-success"),
    "in_progress": TodoLook("▸", "bold $text-accent"),
    "pending": TodoLook("○", "$muted"),
}


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


class TodoCard(ToolCard):
    """Only the latest list is shown in full. A replaced one shows its progress and can be opened."""

    replaced = False

    def replace(self) -> None:
        """There is a newer list."""
        self.replaced = True
        self.redraw()

    def again(self) -> Self:
        fresh = super().again()
        fresh.replaced = self.replaced
        return fresh

    @property
    def items(self) -> list[Item]:
        return items_in(self.block.parameters)

    @property
    def doing(self) -> str:
        """What the model is working on, in its own words."""
        return next((one.active_form or one.content for one in self.items if one.status == "in_progress"), "")

    def closed_content(self) -> Content:
        shown = [] if self.replaced or self.state is not State.DONE else self._list(LIMIT)
        return Content("\n").join([super().closed_content(), *shown])

    def open_content(self) -> Content:
        if self.state is not State.DONE:
            return super().open_content()
        return Content("\n").join([self._header(), *self._list(None)])

    def _subject(self) -> str:
        done = sum(one.status == "completed" for one in self.items)
        return f"{done} of {len(self.items)} done" if self.items else "the list is empty"

    def _summary(self) -> str:
        return ""

    def _time(self) -> str:
        return ""  # a list has no duration worth showing

    def _list(self, limit: int | None) -> list[Content]:
        items = self.items
        lines = [
            Content.assemble(plain(f"  {look.glyph} ", look.style), plain(one.content, look.style))
            for one in items[:limit]
            for look in (LOOKS.get(one.status, LOOKS["pending"]),)
        ]
        more = len(items) - len(lines)
        return [*lines, plain(f"  … {more:,} more", "$muted")] if more else lines


def card_of(block: ToolBlock, project: str) -> ToolCard:
    """The right card for a call."""
    kinds: Mapping[str, type[ToolCard]] = {"TodoWrite": TodoCard, "Task": TaskCard}
    return kinds.get(block.name, ToolCard)(block, project)
