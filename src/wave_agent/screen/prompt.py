"""The prompt input: multiple lines, history, completion, pastes and queued prompts."""

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic
from typing import ClassVar

from rich.cells import split_graphemes
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList, Static, TextArea
from textual.widgets.option_list import Option

from wave_agent.screen.completion import CompletionItem, CompletionList, complete, wants_files
from wave_agent.screen.file_index import FileIndex
from wave_agent.screen.history import History
from wave_agent.screen.keys import Where, actions
from wave_agent.screen.pastes import Pastes
from wave_agent.screen.plain import plain
from wave_agent.text import one_line

SHORT_PLACEHOLDER = "Say what to do. /help lists keys."
PLACEHOLDER = "Say what to do.  /  commands   @  files   !  a shell line   Shift-Tab  mode"
COMPLETION_COLUMNS = 5
"""Columns of a completion's margins and the scroll bar."""
_ACTIONS = actions(Where.PROMPT)


def _shown(one: CompletionItem, room: int) -> Content:
    """On one line. Of a long path, the end is what matters."""
    text = one.insert.strip()
    if text.startswith("@") and not one.note and len(text) > room > 1:
        text = f"…{text[1 - room :]}"
    return Content.assemble(plain(text), plain(f"  {one.note}" if one.note else "", "$muted"))


class PromptInput(TextArea, inherit_bindings=False):
    """The text area. Special keys become calls on the surrounding box."""

    BINDINGS: ClassVar[list[BindingType]] = [
        binding for binding in Binding.make_bindings(TextArea.BINDINGS) if binding.key not in actions(Where.ANYWHERE)
    ]

    def __init__(self, box: "PromptBox") -> None:
        super().__init__(placeholder=PLACEHOLDER, highlight_cursor_line=False, compact=True)
        self._box = box

    async def _on_key(self, event: events.Key) -> None:
        self._box.last_key = monotonic()
        action = _ACTIONS.get(event.key)
        if action is not None and getattr(self._box, f"key_{action}")():
            event.stop()
            event.prevent_default()
            return
        await super()._on_key(event)
        event.prevent_default()  # handled by the call above: otherwise the library would call it again

    async def _on_paste(self, event: events.Paste) -> None:
        """A paste arrives as one event: nothing in it is a key press."""
        event.stop()
        event.prevent_default()
        self.insert(self._box.pastes.fold(event.text))

    def on_resize(self) -> None:
        self.placeholder = PLACEHOLDER if self.content_size.width > len(PLACEHOLDER) else SHORT_PLACEHOLDER

    # A character may be several code points, such as an emoji of a family or a letter with its accents: the library
    # would stop inside of it, and delete a part.

    def get_cursor_left_location(self) -> tuple[int, int]:
        row, column = self.cursor_location
        before = [start for start in self._characters(row) if start < column]
        return (row, before[-1]) if before else super().get_cursor_left_location()

    def get_cursor_right_location(self) -> tuple[int, int]:
        row, column = self.cursor_location
        line = self.document.get_line(row)
        after = [start for start in (*self._characters(row), len(line)) if start > column]
        return (row, after[0]) if after else super().get_cursor_right_location()

    def _characters(self, row: int) -> list[int]:
        """Where they start."""
        spans, _ = split_graphemes(self.document.get_line(row))
        return [start for start, _, _ in spans]

    def before_cursor(self) -> str:
        return self.get_text_range((0, 0), self.cursor_location)


class Queue(Static):
    """Prompts waiting for the agent."""

    def tell(self, prompts: Sequence[str]) -> None:
        self.display = bool(prompts)
        lines = [plain(f"  ⧗ {one_line(prompt, 120)}", "$muted") for prompt in prompts]
        hint = plain("    press Up to take the last one back", "italic $muted")
        self.update(Content("\n").join([*lines, hint]))


class Completions(OptionList):
    """The list of completions. The focus stays in the prompt."""

    can_focus = False


class PromptBox(Vertical):
    class Sent(Message):
        """The user submitted a prompt, command or shell line."""

        def __init__(self, shown: str) -> None:
            super().__init__()
            self.shown = shown
            """As typed, with placeholders for pastes."""

    class SearchWanted(Message):
        pass

    class LeaveWanted(Message):
        pass

    class CardsWanted(Message):
        pass

    def __init__(self, history: History, files: FileIndex, commands: Callable[[], Sequence[CompletionItem]]) -> None:
        super().__init__()
        self.history = history
        self.pastes = Pastes()
        self.queued: list[str] = []
        self.last_key = float("-inf")
        """When the last key was pressed."""
        self._files = files
        self._commands = commands
        self._found: CompletionList | None = None
        self._found_for = ""
        """The text before the cursor when the list was made."""
        self._settling = False
        """Text was inserted by the program: do not show completions for it."""

    def compose(self) -> ComposeResult:
        yield Queue(markup=False)
        yield Completions(markup=False)
        yield PromptInput(self)

    def on_mount(self) -> None:
        self.query_one(Queue).tell(self.queued)
        self._close_list()

    @property
    def input(self) -> PromptInput:
        return self.query_one(PromptInput)

    @property
    def text(self) -> str:
        return self.input.text

    def put(self, text: str) -> None:
        """Put text into the prompt, with the cursor after it."""
        self._settling = text != self.input.text
        self.input.text = text
        self.input.move_cursor(self.input.document.end)
        self._close_list()

    # ------------------------------------------------------------------------------------------------------------ queue

    def enqueue(self, prompt: str) -> None:
        self.queued.append(prompt)
        self.query_one(Queue).tell(self.queued)

    def next_queued(self) -> str | None:
        prompt = self.queued.pop(0) if self.queued else None
        self.query_one(Queue).tell(self.queued)
        return prompt

    def take_back(self) -> bool:
        """Move all queued prompts back into the prompt, before its current text."""
        if not self.queued:
            return False
        self.put("\n\n".join([*self.queued, *filter(None, [self.text])]))
        self.queued.clear()
        self.query_one(Queue).tell(self.queued)
        return True

    # ------------------------------------------------------------------------------------------------------------- keys
    # Each returns False if the key keeps its usual meaning.

    def key_send(self) -> bool:
        field = self.input
        if self.list_open and self._found_for != field.before_cursor():
            self._complete()  # Enter was pressed before the list was updated for the last letters
        if self.list_open and self._found is not None and (chosen := self._chosen()) is not None:
            if not self._found.submits:
                return self._take(chosen)
            if field.text not in {one.insert for one in self._commands()}:
                self.put(chosen.insert)
        row, column = field.cursor_location
        if field.document.get_line(row)[:column].endswith("\\"):
            field.replace("\n", (row, column - 1), (row, column))
            return True
        shown = field.text.strip()
        if shown:
            self.put("")
            self.post_message(self.Sent(shown))
        return True

    def key_newline(self) -> bool:
        self.input.insert("\n")
        return True

    def key_up(self) -> bool:
        if self.list_open:
            self.query_one(Completions).action_cursor_up()
            return True
        if not self.input.cursor_at_first_line:
            return False
        if not self.text and self.queued:
            self.put(self.queued.pop())
            self.query_one(Queue).tell(self.queued)
            return True
        return self._from_history(self.history.earlier(self.text))

    def key_down(self) -> bool:
        if self.list_open:
            self.query_one(Completions).action_cursor_down()
            return True
        return self.input.cursor_at_last_line and self._from_history(self.history.later())

    def _from_history(self, prompt: str | None) -> bool:
        if prompt is not None:
            self.put(prompt)
        return prompt is not None

    def key_tab(self) -> bool:
        chosen = self._chosen() if self.list_open else None
        if chosen is not None:
            is_command = self._found is not None and self._found.submits
            return self._take(chosen._replace(insert=f"{chosen.insert} ") if is_command else chosen)
        self.post_message(self.CardsWanted())
        return True

    def key_search(self) -> bool:
        self.post_message(self.SearchWanted())
        return True

    def key_delete_or_leave(self) -> bool:
        if self.text:
            return False
        self.post_message(self.LeaveWanted())
        return True

    # ------------------------------------------------------------------------------------------------------- completion

    @property
    def list_open(self) -> bool:
        return bool(self.query_one(Completions).display)

    def close_list(self) -> bool:
        """True if a list was open."""
        was_open = self.list_open
        self._close_list()
        return was_open

    def _close_list(self) -> None:
        self._found = None
        self.query_one(Completions).display = False

    def on_text_area_changed(self) -> None:
        self.set_class(self.text.startswith("!"), "-shell")
        if self._settling:
            self._settling = False
            return
        self.history.leave()
        if wants_files(self.input.before_cursor()) and self._files.stale:
            self.run_worker(self._list_files(), group="files", exclusive=True)
        self._complete()

    async def _list_files(self) -> None:
        await asyncio.to_thread(self._files.refresh)
        self._complete()

    def _complete(self) -> None:
        self._found_for = self.input.before_cursor()
        self._found = complete(self._found_for, self._commands(), self._files)
        options = self.query_one(Completions)
        options.display = self._found is not None
        if self._found is not None:
            room = self.size.width - COMPLETION_COLUMNS
            options.set_options(Option(_shown(one, room)) for one in self._found.candidates)
            options.highlighted = 0

    def _chosen(self) -> CompletionItem | None:
        at = self.query_one(Completions).highlighted
        return None if self._found is None or at is None else self._found.candidates[at]

    def _take(self, chosen: CompletionItem) -> bool:
        """Replace the word at the cursor with the candidate."""
        field, found = self.input, self._found
        if found is not None:
            word = len(field.before_cursor()) - found.start
            row, column = field.cursor_location
            self._settling = True
            field.replace(chosen.insert, (row, max(0, column - word)), (row, column))
            self._close_list()
        return True
