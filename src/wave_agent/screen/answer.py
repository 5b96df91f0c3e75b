"""A model's answer: streaming Markdown, redrawn a few times a second and never as a whole."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Protocol, Self

from markdown_it import MarkdownIt
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.content import Content
from textual.widgets import Markdown, Static
from textual.widgets._markdown import MarkdownTable  # the library has no other name for it
from textual.widgets.markdown import MarkdownBlock, MarkdownFence

from wave_agent.screen.segments import Segmenter
from wave_agent.screen.sizes import clean

PAUSE = 0.08
"""Minimum seconds between redraws; text that arrives in between is drawn together."""
SHARE = 2.0
"""After a redraw, the keyboard gets this many times as long as the redraw took."""
FEW = 2
"""Segments that may start between two redraws and are drawn one by one. If there are more, the model is faster than any
reader, and only the last ones are drawn."""
CELLS = 2
"""Cells of a table that take as long to lay out as a line of text."""
WIDTH = 100
"""Characters that fill a line of the screen, more or less."""
HIGHLIGHT_LIMIT = 12_000
"""Maximum characters of code to highlight: more would take too long on every new word."""


def parser() -> MarkdownIt:
    """Markdown without features that hide text or inject characters: HTML and entities are shown literally."""
    return MarkdownIt("gfm-like").disable(["html_block", "html_inline", "entity"])


class Fence(MarkdownFence):
    @classmethod
    def highlight(cls, code: str, language: str, ansi: bool = False, dark: bool = False) -> Content:
        """The model chooses the language name; very long blocks are not highlighted."""
        if len(code) > HIGHLIGHT_LIMIT:
            return Content(code)
        words = language.split()
        return super().highlight(code, words[0] if words else "text", ansi=ansi, dark=dark)


class Table(MarkdownTable):
    """In a narrow terminal, where columns would have no room, each row is a list of its cells."""

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield Static(self._listed(), markup=False, classes="rows")

    async def _update_from_block(self, block: MarkdownBlock) -> None:
        await super()._update_from_block(block)
        for rows in self.query(".rows").results(Static):
            rows.update(self._listed())

    def _listed(self) -> Content:
        return Content("\n\n").join(
            Content("\n").join(
                Content.assemble(name.stylize("bold"), ": " if name.plain else "", cell)
                for name, cell in zip(self._headers, row, strict=False)
                if cell.plain
            )
            for row in self._rows
        )


class AnswerText(Markdown):
    """An answer, or one segment of a long one."""

    can_focus = False

    def __init__(self, text: str = "") -> None:
        self.text = clean(text)
        self.is_growing = False
        """More of it is to come."""
        self._drawn: int | None = None
        """Characters that are shown; None until the first are."""
        # Links written by a model are shown but cannot be followed.
        super().__init__(self.text, parser_factory=parser, open_links=False)

    def get_block_class(self, block_name: str) -> type[MarkdownBlock]:
        found = super().get_block_class(block_name)
        return _OURS.get(found, found)

    def update(self, markdown: str) -> AwaitComplete:
        updating = super().update(markdown)

        async def update() -> None:
            await updating
            if blocks := [child for child in self.children if isinstance(child, MarkdownBlock)]:
                # The library lets what follows continue the last line, and replaces the last block with it.
                self._last_parsed_line = blocks[-1].source_range[0]
            self._drawn = len(markdown)
            await self._draw()

        return AwaitComplete(update())

    async def grow(self, text: str) -> None:
        self.text += text
        await self._draw()

    async def _draw(self) -> None:
        """Shows what has come since the last time."""
        if self._drawn is not None and self.is_attached and (text := self.text[self._drawn :]):
            self._drawn = len(self.text)
            await self.append(text)

    def again(self) -> Self:
        copy = type(self)(self.text)
        copy.is_growing = self.is_growing
        return copy

    @property
    def weight(self) -> int:
        """Approximate layout cost: a line is a widget or two, an item of a list some more, and so are a few cells."""
        lines = max(self.text.count("\n"), len(self.text) // WIDTH)
        return 1 + lines + self.text.count("\n- ") + self.text.count("|") // CELLS


_OURS: Mapping[type[MarkdownBlock], type[MarkdownBlock]] = {MarkdownFence: Fence, MarkdownTable: Table}


def pieces_of(text: str) -> list[str]:
    """A complete answer, split into segments."""
    return [piece for piece in Segmenter().feed(text) if piece]


class AnswerPlace(Protocol):
    """Where an answer is shown."""

    async def add(self, entry: AnswerText) -> None: ...

    async def add_texts(self, texts: Sequence[str]) -> None:
        """Adds several segments, of which only the last may have to be drawn."""
        ...

    def latest(self, entry: AnswerText) -> AnswerText:
        """The entry that is shown in place of this one."""
        ...


class AnswerStream:
    """An answer that is still streaming."""

    def __init__(self, place: AnswerPlace) -> None:
        self._place = place
        self._segmenter = Segmenter()
        self._piece: AnswerText | None = None
        self._pending: list[str] = []
        self._came = asyncio.Event()
        self._finished = asyncio.Event()
        self._drawing = asyncio.create_task(self._draw())

    def feed(self, text: str) -> None:
        """Append text. Returns immediately; the text is drawn shortly after."""
        self._pending.append(text)
        self._came.set()

    async def finish(self) -> None:
        """Finish the answer and draw the rest."""
        self._finished.set()
        self._came.set()
        await self._drawing
        self._settle()

    async def _draw(self) -> None:
        clock = asyncio.get_running_loop().time
        while self._pending or not self._finished.is_set():
            await self._came.wait()
            self._came.clear()
            started = clock()
            text = clean("".join(self._pending))
            self._pending.clear()
            await self._append(self._segmenter.feed(text))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._finished.wait(), max(PAUSE, SHARE * (clock() - started)))

    async def _append(self, pieces: Sequence[str]) -> None:
        first, *others = pieces
        if first and self._piece is not None:
            await self._place.latest(self._piece).grow(first)
        elif first:
            others.insert(0, first)
        if len(others) > FEW:
            self._settle()
            await self._place.add_texts(others[:-1])
            others = others[-1:]
        for text in others:
            self._settle()
            self._piece = AnswerText(text)
            self._piece.is_growing = True
            await self._place.add(self._piece)

    def _settle(self) -> None:
        """The current segment is complete."""
        if self._piece is not None:
            self._place.latest(self._piece).is_growing = False
