"""An answer of the model: Markdown that grows while it streams, drawn a few times a second, never all of it anew."""

import asyncio
from collections.abc import Sequence
from typing import Self

from markdown_it import MarkdownIt
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Markdown
from textual.widgets.markdown import MarkdownBlock, MarkdownFence

from wave_agent.cli.tui.plain import clean
from wave_agent.cli.tui.segments import Segmenter

PAUSE = 0.04
"""Seconds between two drawings at least: what comes meanwhile is drawn together."""
SHARE = 2.0
"""After a drawing, the keyboard gets so many times as long as the drawing took."""
HIGHLIGHT_LIMIT = 12_000
"""Characters of code that are highlighted: beyond, it would take too long to do with every word."""


def parser() -> MarkdownIt:
    """Without what would hide text or smuggle in characters: HTML is shown as it is written, and so are entities."""
    return MarkdownIt("gfm-like").disable(["html_block", "html_inline", "entity"])


class Fence(MarkdownFence):
    @classmethod
    def highlight(cls, code: str, language: str, ansi: bool = False, dark: bool = False) -> Content:
        """The language is a word of the model's choice; a very long block stays plain."""
        if len(code) > HIGHLIGHT_LIMIT:
            return Content(code)
        words = language.split()
        return super().highlight(code, words[0] if words else "text", ansi=ansi, dark=dark)


class Piece(Markdown):
    """One piece of an answer."""

    def __init__(self, text: str = "") -> None:
        # A link that a model wrote is shown, not followed.
        super().__init__(text, parser_factory=parser, open_links=False)

    def get_block_class(self, block_name: str) -> type[MarkdownBlock]:
        found = super().get_block_class(block_name)
        return Fence if found is MarkdownFence else found


class Answer(Vertical):
    can_focus = False

    def __init__(self, text: str = "") -> None:
        self._segmenter = Segmenter()
        self._text = clean(text)
        self._pending: list[str] = []
        self._came = asyncio.Event()
        self._finished = False
        self._drawing: asyncio.Task[None] | None = None
        super().__init__(*map(Piece, self._segmenter.feed(self._text)))

    @property
    def text(self) -> str:
        return self._text

    def feed(self, text: str) -> None:
        """More of it. Returns at once; it is drawn soon."""
        text = clean(text)
        self._text += text
        self._pending.append(text)
        self._came.set()
        if self._drawing is None:
            self._drawing = asyncio.create_task(self._draw())

    async def finish(self) -> None:
        """All of it is there, and drawn."""
        self._finished = True
        self._came.set()
        if self._drawing is not None:
            await self._drawing

    def again(self) -> Self:
        return type(self)(self._text)

    async def _draw(self) -> None:
        clock = asyncio.get_running_loop().time
        while self._pending or not self._finished:
            await self._came.wait()
            self._came.clear()
            text = "".join(self._pending)
            self._pending.clear()
            started = clock()
            if text and self.is_attached:
                await self._append(self._segmenter.feed(text))
            if not self._finished:
                await asyncio.sleep(max(PAUSE, SHARE * (clock() - started)))

    async def _append(self, pieces: Sequence[str]) -> None:
        first, *others = pieces
        if first:
            await self.query_children(Piece).last().append(first)
        for text in others:
            await self.mount(Piece(text))

    def on_unmount(self) -> None:
        if self._drawing is not None and not self._drawing.done():
            self._drawing.cancel()
