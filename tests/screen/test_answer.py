"""A streaming answer is shown whole, wherever its pieces end."""

from collections.abc import Sequence

import pytest
from textual.app import App
from textual.widgets.markdown import MarkdownBlock

from wave_agent.screen.answer import AnswerText

TEXTS = {
    "paragraphs": "first\n\nsecond, of\ntwo lines\n\nthird\n",
    "code": "before\n\n```python\none = 1\n\ntwo = 2\n```\n\nafter\n",
    "list": "- one\n- two\n\n  deeper\n- three\n\n1. first\n2. second\n",
    "table": "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\nafter\n",
    "headings": "# One\n\ntext\n\n## Two\n\n> a quote\n> of two lines\n\n---\n\nend\n",
}


async def shown(pieces: Sequence[str]) -> list[tuple[str, str]]:
    """The kinds and texts of the blocks of an answer that comes in these pieces."""
    app: App[None] = App()
    async with app.run_test(size=(80, 24)) as pilot:
        answer = AnswerText(pieces[0])
        await app.mount(answer)
        for piece in pieces[1:]:
            await answer.grow(piece)
        await pilot.pause()
        return [(type(block).__name__, str(block.render())) for block in answer.query(MarkdownBlock)]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_no_line_is_lost_where_a_piece_ends(text: str):
    whole = await shown([text])
    lines = text.splitlines(keepends=True)
    for at in range(1, len(lines)):
        assert await shown(["".join(lines[:at]), *lines[at:]]) == whole, lines[:at]


async def test_text_that_comes_before_the_first_is_drawn_follows_it():
    app: App[None] = App()
    async with app.run_test(size=(80, 24)) as pilot:
        answer = AnswerText("first\n\n")
        mounting = app.mount(answer)
        await answer.grow("second\n\n")
        await mounting
        await answer.grow("third\n")
        await pilot.pause()
        assert [str(block.render()) for block in answer.query(MarkdownBlock)] == ["first", "second", "third"]
