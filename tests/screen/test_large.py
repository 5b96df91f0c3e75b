"""Long sessions, large pastes, and the letters of the world."""

import asyncio
import json
import resource
import sys
from pathlib import Path

import pytest
from textual import events

from benchmarks.screen import long_session
from tests.screen.stage import Stage, stage
from wave_agent.screen.conversation import MANY
from wave_agent.screen.entries import UserPrompt
from wave_agent.testing import Reply, call

UNITS = 1 << 20 if sys.platform == "darwin" else 1024
"""Of `ru_maxrss`, in a MiB."""
MIXED = "漢字かな 한글 👩‍👩‍👧‍👦 🇩🇪 👍🏽 مرحبا שלום e\u0301a\u0308\u0323 ❤️ end"


def lines_of(on: Stage) -> tuple[set[int], str]:
    """The widths of the rows in cells, and what they say."""
    strips = on.app.screen._compositor.render_strips()
    return {strip.cell_length for strip in strips}, "\n".join("".join(part.text for part in strip) for strip in strips)


async def test_a_session_of_10_000_messages_is_resumed_and_answers(project: Path, home: Path) -> None:
    session = long_session(home, str(project), messages=10_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with stage(project, ["I have read it all."], resume=session) as on:
        await on.until(lambda: bool(on.entries))
        assert len(on.agent.messages) == 10_000
        assert len(on.app.query("*")) < 10 * MANY  # the earlier entries are not widgets
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 200 * UNITS, f"{grown / UNITS:.0f} MiB"
        for _ in range(5):
            await on.press("pageup")
        await on.press("ctrl+home")
        await on.sees("> Question 0")
        await on.type("typed")
        assert on.box.text == "typed"
        await on.press("ctrl+c", "ctrl+end")
        await on.sees("Question 4999")
        await on.say("Go on.")
        await on.sees("I have read it all.")
        assert len(on.app.query("*")) < 10 * MANY


@pytest.mark.parametrize(
    ("paste", "chip"),
    [
        ("word " * 19 + "end.\n", "[Pasted text #1, 10,501 lines]"),
        ("x", "[Pasted text #1, 1,048,576 characters]"),
        ("解👩‍👩‍👧", "[Pasted text #1, 174,762 characters]"),
    ],
    ids=["lines", "one line", "wide"],
)
async def test_a_paste_of_1_mb_is_a_chip_and_is_sent_whole(project: Path, paste: str, chip: str) -> None:
    counts = {"word": 10_500, "x": 1 << 20, "解👩": 29_127}
    count = next(number for start, number in counts.items() if paste.startswith(start))
    whole = paste * count
    async with stage(project, ["Read."]) as on:
        on.app.post_message(events.Paste(whole))
        await on.until(lambda: bool(on.box.text))
        assert on.box.text == chip
        await on.type(" Read it.")
        await on.press("enter")
        await on.idle()
        prompt = on.entry(UserPrompt)
        assert prompt.size.height < 60  # folded, however long its lines are
        assert "Ctrl-O shows them" in str(prompt.visual)
        await on.press("ctrl+home")
        await on.type("still answers")
        assert on.box.text == "still answers"
        sent = json.dumps([str(one) for one in on.model.requests[-1].messages])
        assert on.model.requests[-1].messages[-1]["content"] == f"{whole} Read it.", sent[-200:]


@pytest.mark.parametrize("size", [(100, 40), (40, 40)], ids=["100", "40"])
async def test_letters_of_the_world_keep_their_widths(project: Path, size: tuple[int, int]) -> None:
    file = project / "漢字👩‍👩‍👧.py"
    file.write_text(f"{MIXED}\n")
    table = f"| 漢字 | b |\n|---|---|\n| 👩‍👩‍👧‍👦 | {'漢' * 30} |\n| مرحبا | e\u0301 |\n"
    calls = [call("Read", file_path=str(file)), call("Bash", command=f"echo '{MIXED}'")]
    replies = [Reply(f"{MIXED}\n\n{table}\n```\n{MIXED}\n```\n", tool_calls=calls), "All read."]
    async with stage(project, replies, size=size, permission_mode="bypassPermissions") as on:
        on.box.input.insert(MIXED)
        await on.pilot.pause()
        assert lines_of(on)[0] == {size[0]}
        await on.press("enter")
        await on.idle()
        widths, shown = lines_of(on)
        assert widths == {size[0]}
        for text in ("漢字かな", "👩‍👩‍👧‍👦", "مرحبا", "e\u0301a\u0308\u0323", "All read.", "● Read 漢字👩‍👩‍👧.py"):
            assert text in shown, shown
        assert sum(line.count("漢") for line in shown.split("\n")) >= 30 + 5  # no cell of the table is cut
        on.conversation.cards[0].focus()
        await on.press("enter")
        await on.pilot.pause()
        assert lines_of(on)[0] == {size[0]}


@pytest.mark.parametrize(
    ("text", "stops"),
    [
        ("ab", [0, 1, 2]),
        ("漢字", [0, 1, 2]),
        ("a👩‍👩‍👧b", [0, 1, 6, 7]),
        ("e\u0301a\u0308\u0323x", [0, 2, 5, 6]),
        ("👍🏽!", [0, 2, 3]),
    ],
)
async def test_the_cursor_moves_by_characters(project: Path, text: str, stops: list[int]) -> None:
    async with stage(project) as on:
        field = on.box.input
        field.insert(text)
        await on.press("home")
        seen = [field.cursor_location[1]]
        while field.cursor_location[1] < len(text):
            await on.press("right")
            seen.append(field.cursor_location[1])
        assert seen == stops
        for stop in reversed(stops[:-1]):
            await on.press("left")
            assert field.cursor_location[1] == stop
        await on.press("end", "backspace")
        assert on.box.text == text[: stops[-2]]


async def test_a_resize_while_an_answer_streams_loses_nothing(project: Path) -> None:
    words = [f"word{number}" for number in range(1500)]
    text = "".join(f"{word}\n\n" if not at % 7 else f"{word} " for at, word in enumerate(words))
    text += "\n\n| name | value |\n|---|---|\n" + "".join(f"| n{row} | v{row} |\n" for row in range(40))
    text += "\n```python\n" + "".join(f"line_{number} = {number}\n" for number in range(200)) + "```\n"
    gate = asyncio.Event()
    async with stage(project, [Reply(text, gate=gate), "done"], size=(120, 40)) as on:
        await on.send("Go.")
        await on.until(lambda: len(on.model.requests) == 1)
        gate.set()
        for size in ((40, 12), (120, 40), (40, 30), (200, 60)):
            await on.pilot.resize_terminal(*size)
            await on.pilot.pause()
        await on.idle()
        await on.press("ctrl+end")
        await on.sees("line_199 = 199")
        seen = ""
        await on.press("ctrl+home")
        await on.sees("> Go.")
        for _ in range(60):
            seen += on.screen
            if "line_199" in seen:
                break
            await on.press("pagedown")
            await on.pilot.pause()
        missing = [word for word in (*words, "v0", "v39", "line_0 ", "line_100 ") if word not in seen]
        assert missing == []
