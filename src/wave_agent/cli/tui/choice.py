"""A question with answers to choose from, by arrow keys or by one letter. The conversation stays in view."""

import asyncio
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from wave_agent.cli.tui.plain import plain


class Choice(NamedTuple):
    value: str
    """What is answered."""
    label: str
    key: str = ""
    """A letter that chooses it at once."""


class Question(Vertical):
    """Stands in place of the prompt. Answers with the value of a choice; None: the user turned away."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "turn_away", show=False),
        Binding("pageup", "body(-1)", show=False),
        Binding("pagedown", "body(1)", show=False),
    ]

    def __init__(self, title: str, body: Content, choices: Sequence[Choice]) -> None:
        super().__init__(classes="dialog")
        self._heading = title
        self._body = body
        self._choices = choices
        self.answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    def compose(self) -> ComposeResult:
        yield Static(plain(self._heading, "bold"), classes="title")
        with VerticalScroll(classes="body", can_focus=False):
            yield Static(self._body, markup=False)
        yield OptionList(*(Option(self._label(choice)) for choice in self._choices), markup=False)

    def take_keyboard(self) -> None:
        self.query_one(OptionList).focus()

    def _label(self, choice: Choice) -> Content:
        return Content.assemble(plain(f"{choice.key:>2} ", "$text-accent"), plain(choice.label))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.choose(self._choices[event.option_index])

    def on_key(self, event: events.Key) -> None:
        chosen = next((choice for choice in self._choices if choice.key and choice.key == event.character), None)
        if chosen is not None and self.query_one(OptionList).has_focus:
            event.stop()
            self.choose(chosen)

    def choose(self, choice: Choice) -> None:
        self.give(choice.value)

    def give(self, answer: str | None) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    def action_turn_away(self) -> None:
        self.give(None)

    def action_body(self, step: int) -> None:
        body = self.query_one(".body", VerticalScroll)
        body.scroll_relative(y=step * max(1, body.size.height - 1), animate=False)
