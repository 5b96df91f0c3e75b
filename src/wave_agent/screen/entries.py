"""Entries of the conversation. Each is one widget that draws itself; long entries are folded and open in place."""

import re
from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, Self

from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

from wave_agent.events import HookRun
from wave_agent.screen.attachments import split
from wave_agent.screen.keys import Where, bindings
from wave_agent.screen.plain import plain
from wave_agent.screen.run_looks import is_told
from wave_agent.screen.sizes import clean, folded, size_of
from wave_agent.screen.verdicts import headline, story

FOLD_AT = 12
"""Lines of a prompt or notice shown when folded."""
COLUMNS_FROM = 70
"""Columns of a terminal in which a line with two columns has room."""
LINE = 200
"""Characters of a line on average, beyond which a text is folded as if it had more lines: one may have a million."""
OPEN_LIMIT = 400
"""Maximum lines shown when open; the transcript has them all."""


_GAP = re.compile(r"(?<=\S) {2,}(?=\S)")


class Entry(Static, inherit_bindings=False):
    """One thing that was said or done. `again` creates a copy, for a conversation that is redrawn."""

    can_focus = False
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Where.CARDS, "app")]

    def __init__(self) -> None:
        super().__init__(markup=False)
        self.opened = False

    def on_mount(self) -> None:
        self.redraw()

    @property
    def foldable(self) -> bool:
        """Whether there is more to see than is shown when folded."""
        return True

    @abstractmethod
    def closed_content(self) -> Content: ...

    @abstractmethod
    def open_content(self) -> Content: ...

    @abstractmethod
    def again(self) -> Self: ...

    @abstractmethod
    def copied(self) -> str:
        """Its text for the clipboard, without signs and frames."""
        ...

    def redraw(self) -> None:
        if not self.is_attached:  # it is drawn when it is shown, if ever
            return
        self.can_focus = self.foldable
        self.set_class(self.opened, "-open")
        self.update(self.open_content() if self.opened else self.closed_content())

    def toggle(self) -> None:
        if self.foldable:
            self.opened = not self.opened
            self.redraw()


class TextEntry(Entry):
    """Text with a leading mark, folded if it is long."""

    mark = ""
    mark_style = ""
    body_style = ""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text: str = clean(text).strip("\n")

    @property
    def foldable(self) -> bool:
        return folded(self.text, FOLD_AT)[1] > 0 or len(self.text) > FOLD_AT * LINE

    def copied(self) -> str:
        return self.text

    def closed_content(self) -> Content:
        return self._shown(FOLD_AT, "Ctrl-O shows them")

    def open_content(self) -> Content:
        return self._shown(OPEN_LIMIT, "in the transcript")

    def _shown(self, limit: int, hint: str) -> Content:
        text, more = folded(self.text, limit)
        left, unit = (more, "lines") if len(text) <= limit * LINE else (len(self.text) - limit * LINE, "characters")
        text = text[: limit * LINE]
        rest = plain(f"\n… {left:,} more {unit}, {hint}", "$muted") if left else Content()
        return Content.assemble(plain(self.mark, self.mark_style), plain(text, self.body_style), rest)

    def again(self) -> Self:
        return type(self)(self.text)


class UserPrompt(TextEntry):
    """The user's prompt and its attachments."""

    mark = "> "
    mark_style = "bold $text-primary"

    def __init__(self, text: str) -> None:
        said, self._along = split(text)
        super().__init__(said)
        self._whole = text

    def erase(self) -> None:
        """Erase the prompt: a hook blocked it, so it is not kept anywhere."""
        self._whole, self._along, self.text = (
            "",
            [],
            "This prompt was blocked and erased. Press Up to get it back.",
        )
        self.add_class("-erased")
        self.redraw()

    def _shown(self, limit: int, hint: str) -> Content:
        along = [plain(f"\n  + {line}", "$muted") for line in self._along]
        return Content.assemble(super()._shown(limit, hint), *along)

    def again(self) -> Self:
        return type(self)(self._whole or self.text)


class ErrorEntry(TextEntry):
    """An error. The model does not see it."""

    mark = "✗ Error, shown only to you: "
    mark_style = "bold $text-error"


class Warning_(TextEntry):  # noqa: N801 - the plain name is a built-in exception
    """A warning for the user. The model does not see it."""

    mark = "! Shown only to you: "
    mark_style = "bold $text-warning"


class Info(TextEntry):
    mark = "· "
    mark_style = "$muted"
    body_style = "$muted"


class Columns(Info):
    """Lines with columns. Where they would wrap, the columns follow each other."""

    def _shown(self, limit: int, hint: str) -> Content:
        aligned = self.text
        if self.screen.size.width < COLUMNS_FROM:
            self.text = _GAP.sub("  ", aligned)
        try:
            return super()._shown(limit, hint)
        finally:
            self.text = aligned

    def on_resize(self) -> None:
        self.redraw()


class HookText(TextEntry):
    """Context a hook added for the model."""

    mark_style = "$text-accent"
    body_style = "$muted"

    def __init__(self, text: str, mark: str = "") -> None:
        super().__init__(text)
        self.mark = mark

    def again(self) -> Self:
        return type(self)(self.text, self.mark)


class ReasoningEntry(Entry):
    """The model's reasoning, folded by default."""

    def __init__(self, text: str = "", *, streaming: bool = False) -> None:
        super().__init__()
        self._text = text
        self._streaming = streaming

    def feed(self, text: str) -> None:
        self._text += text
        if self.opened:
            self.redraw()

    def finish(self) -> None:
        self._streaming = False
        self.redraw()

    def closed_content(self) -> Content:
        words = "Thinking …" if self._streaming else f"Thought, {size_of(self._text)}"
        return plain(f"∴ {words}", "italic $muted")

    def open_content(self) -> Content:
        text, more = folded(clean(self._text), OPEN_LIMIT)
        rest = f"\n… {more:,} more lines" if more else ""
        return Content.assemble(self.closed_content(), plain(f"\n{text}{rest}", "$muted"))

    def copied(self) -> str:
        return clean(self._text)

    def again(self) -> Self:
        return type(self)(self._text)


class HookLine(Entry):
    """What a hook did."""

    def __init__(self, run: HookRun, find_context: Callable[[HookRun], list[str]] = lambda _: []) -> None:
        super().__init__()
        self.run_ = run
        self._find_context = find_context

    def closed_content(self) -> Content:
        return headline(self.run_, reason=not is_told(self.run_))

    def open_content(self) -> Content:
        contexts = self._find_context(self.run_)[:1] if self.run_.outcome == "context" else []
        said = [plain(f"\n  sent to the model\n{text}") for text in contexts]
        return Content.assemble(headline(self.run_, reason=False), "\n", story(self.run_), *said)

    def copied(self) -> str:
        return f"{headline(self.run_, reason=False).plain}\n{story(self.run_).plain}"

    def again(self) -> Self:
        return type(self)(self.run_, self._find_context)
