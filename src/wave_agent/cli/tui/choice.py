"""A question with answers to choose from, by arrow keys or by one letter. The conversation stays in view."""

import asyncio
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.errors import NoWidget
from textual.widget import Widget
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from wave_agent.cli.tui.plain import plain


class Choice(NamedTuple):
    value: str
    """What is answered."""
    label: str
    key: str = ""
    """A letter that chooses it at once."""


TOO_SMALL = "Terminal too small: enlarge it to answer. Esc turns away."
SHORT = "-short"
"""Of the screen, while it is too short for a question and what else there is to see."""
BODY_ROWS, CHOICE_ROWS = 2, 12
"""Rows of what is asked about and of the choices that must be in view, if there are so many."""

GIVEN_UP = 2
"""Ways to find room: as it is, with the question alone."""


class Question(Vertical):
    """Stands in place of the prompt. Answers with the value of a choice; None: the user turned away.

    No key chooses while the question and its choices are out of view: nobody agrees to what they cannot see.
    """

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
        self._tried = 0  # ways to find room on the screen
        self.answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    def compose(self) -> ComposeResult:
        yield Static(plain(self._heading, "bold"), classes="title")
        with VerticalScroll(classes="body", can_focus=False):
            yield Static(self._body, markup=False)
        yield OptionList(*(Option(self._label(choice)) for choice in self._choices), markup=False)

    def on_mount(self) -> None:
        self.fit()

    def on_unmount(self) -> None:
        self.screen.remove_class(SHORT)

    def on_resize(self) -> None:
        self.call_after_refresh(self._make_room)

    def fit(self) -> None:
        """Finds room on the screen; without it, says so."""
        self._tried = 0
        if not self.query(OptionList):  # not composed yet, or being taken away
            return
        self._lay_out()
        self.call_after_refresh(self._make_room)

    def _make_room(self) -> None:
        """Called after each layout. One that was still under way may have been judged too early: hence the way back."""
        if not any(one.display and one.virtual_size.height for one in self.query(OptionList)):
            return
        fits = self.is_legible
        if fits and self._tried == GIVEN_UP and len(self._heading) <= len(TOO_SMALL):
            self._tried -= 1
        elif not fits and self._tried < GIVEN_UP:
            self._tried += 1
        else:
            return
        self._lay_out()
        self.call_after_refresh(self._make_room)

    def _lay_out(self) -> None:
        """On a short screen nothing but the question, and what is asked about gets the rows that the choices leave."""
        self.screen.set_class(self._tried > 0, SHORT)
        left = self.screen.size.height - 2 - self.query_one(OptionList).virtual_size.height
        self.query_one(".body").styles.max_height = max(BODY_ROWS, left) if self._tried else None
        title = TOO_SMALL if self._tried == GIVEN_UP else self._heading
        self.query_one(".title", Static).update(plain(title, "bold"))

    @property
    def is_legible(self) -> bool:
        """What is asked about and the choices are in view, as far as they must be."""
        seen = ((self.query_one(".body"), BODY_ROWS), (self.query_one(OptionList), CHOICE_ROWS))
        return all(self._rows(part) >= min(max(part.virtual_size.height, 1), rows) for part, rows in seen)

    def _rows(self, part: Widget) -> int:
        try:
            return self.screen.find_widget(part).visible_region.height
        except NoWidget:
            return 0

    def take_keyboard(self) -> None:
        self.query_one(OptionList).focus()

    def _label(self, choice: Choice) -> Content:
        return Content.assemble(plain(f"{choice.key:>2} ", "$text-accent"), plain(choice.label))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._chosen(self._choices[event.option_index])

    def on_key(self, event: events.Key) -> None:
        chosen = next((choice for choice in self._choices if choice.key and choice.key == event.character), None)
        if chosen is not None and self.query_one(OptionList).has_focus:
            event.stop()
            self._chosen(chosen)

    def _chosen(self, choice: Choice) -> None:
        if self.is_legible:
            self.choose(choice)
        else:
            self.fit()

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
