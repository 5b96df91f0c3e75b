"""An answer of the model: Markdown that grows while it streams, drawn a few times a second, never all of it anew."""

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
"""Seconds between two drawings at least: what comes meanwhile is drawn together."""
SHARE = 2.0
"""After a drawing, the keyboard gets so many times as long as the drawing took."""
AT_ONCE = 3000
"""Characters that are drawn at once: a model may be faster than any reader."""
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


class AnswerText(Markdown):
    """An answer, or one piece of a long one."""

    can_focus = False

    def __init__(self, text: str = "") -> None:
        self.text = clean(text)
        # A link that a model wrote is shown, not followed.
        super().__init__(self.text, parser_factory=parser, open_links=False)

    def get_block_class(self, block_name: str) -> type[MarkdownBlock]:
        found = super().get_block_class(block_name)
        return Fence if found is MarkdownFence else found

    async def grow(self, text: str) -> None:
        self.text += text
        await self.append(text)

    @property
    def weight(self) -> int:
        """What it costs to lay out, about: a line is a widget or two."""
        return 1 + self.text.count("\n")


def pieces_of(text: str) -> list[str]:
    """A whole answer as the texts of its pieces."""
    return [piece for piece in Segmenter().feed(text) if piece]


class AnswerStream:
    """An answer that is still coming; `add` puts the next piece of it into the conversation."""

    def __init__(self, add: Callable[[AnswerText], Awaitable[None]]) -> None:
        self._add = add
        self._segmenter = Segmenter()
        self._piece: AnswerText | None = None
        self._pending: list[str] = []
        self._came = asyncio.Event()
        self._finished = asyncio.Event()
        self._drawing = asyncio.create_task(self._draw())

    def feed(self, text: str) -> None:
        """More of it. Returns at once; it is drawn soon."""
        self._pending.append(clean(text))
        self._came.set()

    async def finish(self) -> None:
        """All of it is there, and drawn."""
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
