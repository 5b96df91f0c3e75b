"""The model's TodoWrite list, shown as a list."""

from collections.abc import Mapping
from typing import NamedTuple, Self

from textual.content import Content

from wave_agent.messages import ToolBlock
from wave_agent.screen.plain import plain
from wave_agent.screen.task_card import TaskCard
from wave_agent.screen.todo_items import Item, items_in
from wave_agent.screen.tool_card import State, ToolCard

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

    def copied(self) -> str:
        return "\n".join(f"- [{'x' if one.status == 'completed' else ' '}] {one.content}" for one in self.items)

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
