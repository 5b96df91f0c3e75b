"""A multiple-choice question, answered with arrow keys or a letter. The conversation stays in view."""

import asyncio
from collections.abc import Sequence
from enum import IntEnum
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.errors import NoWidget
from textual.geometry import Size
from textual.widget import Widget
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from wave_agent.screen.dialogs import DIFF, Choice, Dialog
from wave_agent.screen.diff import numbered
from wave_agent.screen.plain import plain

TOO_SMALL = "Terminal too small: enlarge it to answer. Esc cancels."
SHORT = "-short"
"""CSS class of the screen while a question leaves no room for the conversation."""
BODY_ROWS, CHOICE_ROWS = 2, 12
"""How many rows of the details and the choices must be in view."""
FEWEST_CHOICE_ROWS = 4
"""On a short screen the choices scroll; so many rows of them must be in view, and the tallest of them as a whole."""
FRAME_ROWS, FRAME_COLUMNS = 3, 4
"""Rows a question needs besides its text: the border and the margins in `screen.tcss`."""
OPTION_COLUMNS = 2
"""The margins of a choice within the list."""
AROUND_ROWS = 4
"""Rows the rest of the screen needs: status, activity, the end of the conversation."""


def content_of(dialog: Dialog) -> Content:
    """What a question says above its choices."""
    return Content.assemble(
        *(numbered(part.text) if part.style == DIFF else plain(part.text, part.style) for part in dialog.parts)
    )


class QuestionRoom(IntEnum):
    """How much of the screen a question may use."""

    AMPLE = 0
    QUESTION_ONLY = 1
    TOO_SMALL = 2


class Question(Vertical):
    """Shown in place of the prompt. Answers with the value of a choice; None if the user cancelled.

    Keys select nothing while the question and its choices are out of view: users must see what they agree to.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "turn_away", show=False),
        Binding("pageup", "body(-1)", show=False, priority=True),  # the list of choices has the same keys
        Binding("pagedown", "body(1)", show=False, priority=True),
    ]

    def __init__(self, title: str, body: Content, choices: Sequence[Choice]) -> None:
        super().__init__(classes="dialog")
        self._heading = title
        self._body = body
        self._choices = choices
        self._room = QuestionRoom.AMPLE
        self._body_rows = BODY_ROWS  # rows of the details, if the question has the screen to itself
        self._choice_rows = CHOICE_ROWS  # and of the choices
        self.answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    def compose(self) -> ComposeResult:
        yield Static(plain(self._heading, "bold"), classes="title")
        with VerticalScroll(classes="body", can_focus=False):
            yield Static(self._body, markup=False)
        yield OptionList(*(Option(self._label(choice)) for choice in self._choices), markup=False)

    def on_mount(self) -> None:
        self.fit(self.screen.size)

    def on_unmount(self) -> None:
        self.screen.remove_class(SHORT)

    def fit(self, screen: Size) -> None:
        """Lay the question out for a screen of this size.

        The rows are computed, not measured: during a resize, measurements return the old layout.
        """
        width = max(1, screen.width - FRAME_COLUMNS)
        heading, body = (text.get_height({}, width) for text in (plain(self._heading), self._body))
        heights = self._choice_heights(width)
        choices = min(sum(heights), CHOICE_ROWS)
        fewest = min(choices, max(FEWEST_CHOICE_ROWS, *heights, 0))
        left = screen.height - heading
        for_choices = left - max(min(body, BODY_ROWS), min(body, left // 2))  # if not all fits, both scroll
        room = QuestionRoom.TOO_SMALL
        if FRAME_ROWS + heading + choices + min(body, screen.height // 2) <= screen.height - AROUND_ROWS:
            room = QuestionRoom.AMPLE
        elif fewest <= left - min(body, BODY_ROWS):
            room = QuestionRoom.QUESTION_ONLY
        self._choice_rows = max(fewest, min(choices, for_choices))
        self._body_rows = max(BODY_ROWS, left - self._choice_rows)
        self._lay_out(room)

    def _choice_heights(self, width: int) -> list[int]:
        return [self._label(choice).get_height({}, max(1, width)) for choice in self._choices]

    def _lay_out(self, room: QuestionRoom) -> None:
        """On a short screen only the question is shown, and its details get the rows the choices leave."""
        self._room = room
        if not self.query(OptionList):  # not composed yet, or being removed
            return
        self.screen.set_class(room is not QuestionRoom.AMPLE, SHORT)
        is_ample = room is QuestionRoom.AMPLE
        self.query_one(".body").styles.max_height = None if is_ample else self._body_rows
        self.query_one(OptionList).styles.max_height = None if is_ample else self._choice_rows
        title = TOO_SMALL if room is QuestionRoom.TOO_SMALL else self._heading
        self.query_one(".title", Static).update(plain(title, "bold"))

    @property
    def is_legible(self) -> bool:
        """Whether enough of the details and the choices is in view."""
        choice_rows = CHOICE_ROWS if self._room is QuestionRoom.AMPLE else self._choice_rows
        seen = ((self.query_one(".body"), BODY_ROWS), (self.query_one(OptionList), choice_rows))
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

    def _is_in_view(self, choice: Choice) -> bool:
        """Whether the choices are scrolled to where all of this one can be read."""
        listed = self.query_one(OptionList)
        heights = self._choice_heights(listed.scrollable_content_region.width - OPTION_COLUMNS)
        at = self._choices.index(choice)
        top = sum(heights[:at]) - round(listed.scroll_offset.y)
        return top >= 0 and (top + heights[at] <= listed.size.height or heights[at] > listed.size.height)

    def _chosen(self, choice: Choice) -> None:
        if self.is_legible and not self._is_in_view(choice):
            self.query_one(OptionList).highlighted = self._choices.index(choice)  # which scrolls to it
        elif self.is_legible:
            self.choose(choice)
        elif self._room is not QuestionRoom.TOO_SMALL:  # the rest of the screen takes more rows than computed
            self._lay_out(QuestionRoom(self._room + 1))

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
