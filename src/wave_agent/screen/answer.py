"""A model's answer: streaming Markdown, redrawn a few times a second and never as a whole."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from markdown_it import MarkdownIt
from textual.content import Content
from textual.widgets import Markdown
from textual.widgets.markdown import MarkdownBlock, MarkdownFence

from wave_agent.screen.plain import clean
from wave_agent.screen.segments import Segmenter

PAUSE = 0.08
"""Minimum seconds between redraws; text that arrives in between is drawn together."""
SHARE = 2.0
"""After a redraw, the keyboard gets this many times as long as the redraw took."""
AT_ONCE = 1200
"""Maximum characters drawn at once: a model may be faster than any reader."""
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


class AnswerText(Markdown):
    """An answer, or one segment of a long one."""

    can_focus = False

    def __init__(self, text: str = "") -> None:
        self.text = clean(text)
        # Links written by a model are shown but cannot be followed.
        super().__init__(self.text, parser_factory=parser, open_links=False)

    def get_block_class(self, block_name: str) -> type[MarkdownBlock]:
        found = super().get_block_class(block_name)
        return Fence if found is MarkdownFence else found

    async def grow(self, text: str) -> None:
        self.text += text
        await self.append(text)

    @property
    def weight(self) -> int:
        """Approximate layout cost: a line is a widget or two."""
        return 1 + self.text.count("\n")


def pieces_of(text: str) -> list[str]:
    """A complete answer, split into segments."""
    return [piece for piece in Segmenter().feed(text) if piece]


class AnswerStream:
    """An answer that is still streaming; `add` puts its next segment into the conversation."""

    def __init__(self, add: Callable[[AnswerText], Awaitable[None]]) -> None:
        self._add = add
        self._segmenter = Segmenter()
        self._piece: AnswerText | None = None
        self._pending: list[str] = []
        self._came = asyncio.Event()
        self._finished = asyncio.Event()
        self._drawing = asyncio.create_task(self._draw())

    def feed(self, text: str) -> None:
        """Append text. Returns immediately; the text is drawn shortly after."""
        self._pending.append(clean(text))
        self._came.set()

    async def finish(self) -> None:
        """Finish the answer and draw the rest."""
        self._finished.set()
        self._came.set()
        await self._drawing

    async def _draw(self) -> None:
        clock = asyncio.get_running_loop().time
        while self._pending or not self._finished.is_set():
            await self._came.wait()
            self._came.clear()
            started = clock()
            text = "".join(self._pending)
            self._pending = [rest] if (rest := text[AT_ONCE:]) else []
            await self._append(self._segmenter.feed(text[:AT_ONCE]))
            if rest:
                self._came.set()
            pause = max(PAUSE, SHARE * (clock() - started))
            if rest:
                await asyncio.sleep(pause)
            else:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._finished.wait(), pause)

    async def _append(self, pieces: Sequence[str]) -> None:
        first, *others = pieces
        if first and self._piece is not None:
            await self._piece.grow(first)
        elif first:
            others.insert(0, first)
        for text in others:
            self._piece = AnswerText(text)
            await self._add(self._piece)
