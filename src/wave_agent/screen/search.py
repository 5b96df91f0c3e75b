"""Ctrl-R: search the project's prompts while typing."""

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from wave_agent.screen.history import History
from wave_agent.screen.plain import plain
from wave_agent.text import one_line

SHOWN = 50


class HistorySearch(ModalScreen[str | None]):
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "turn_away", show=False)]

    def __init__(self, history: History) -> None:
        super().__init__()
        self._history = history
        self._found: list[str] = []

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(plain("Prompts of this project", "bold"), classes="title")
            yield Input(placeholder="part of the prompt", compact=True)
            listed = OptionList(markup=False)
            listed.can_focus = False
            yield listed

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self._list("")

    def on_input_changed(self, event: Input.Changed) -> None:
        self._list(event.value)

    def _list(self, word: str) -> None:
        self._found = self._history.search(word)[:SHOWN]
        listed = self.query_one(OptionList)
        listed.set_options(Option(plain(one_line(prompt, 200))) for prompt in self._found)
        listed.highlighted = 0 if self._found else None

    def on_key(self, event: events.Key) -> None:
        listed = self.query_one(OptionList)
        moves = {"up": listed.action_cursor_up, "down": listed.action_cursor_down, "ctrl+r": listed.action_cursor_down}
        if event.key in moves:
            event.stop()
            moves[event.key]()

    def on_input_submitted(self) -> None:
        at = self.query_one(OptionList).highlighted
        self.dismiss(self._found[at] if at is not None and self._found else None)

    def action_turn_away(self) -> None:
        self.dismiss(None)
