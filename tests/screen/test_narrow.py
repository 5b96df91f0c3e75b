"""Terminals of 40 columns, down to 12 rows: a phone, half of a split window, large letters."""

import re
from pathlib import Path

import pytest

from tests.screen.stage import Stage, hooks, project_settings, stage
from wave_agent.hooks import deny
from wave_agent.screen.entries import Columns
from wave_agent.screen.hooks_view import HooksView
from wave_agent.screen.permission import PermissionDialog
from wave_agent.screen.status import StatusFacts, line
from wave_agent.screen.tool_card import ToolCard
from wave_agent.screen.trust import TrustQuestion
from wave_agent.testing import Reply, call

SMALL = (40, 12)
TALL = (40, 60)
ANSWER = (
    "I will look at **the parser** first, which splits words.\n\n"
    "```python\ndef parse(text):\n    return text.split()  # longer than forty columns\n```\n\n"
    "| name | what it does | size |\n|---|---|---|\n| parse | splits a text into words | 12 |\n"
)
GUARD = hooks("PreToolUse", lambda event: deny("no rm in this project") if "rm -rf" in str(event.input) else None)
TODOS = [
    {"content": "Look at the parser", "status": "completed", "activeForm": "Looking"},
    {"content": "Mend the function that splits words", "status": "in_progress", "activeForm": "Mending"},
    {"content": "Rest", "status": "pending", "activeForm": "Resting"},
]


def words(text: str) -> str:
    """Without what wrapping and scroll bars add."""
    return " ".join(re.sub("[▁-█]", "", text).split())


def fits(on: Stage) -> bool:
    width, height = on.app.size
    rows = on.screen.split("\n")
    return len(rows) <= height and all(len(row) <= width for row in rows) and not on.app.screen.show_vertical_scrollbar


async def test_a_conversation_is_whole(project: Path) -> None:
    replies = [
        Reply(ANSWER, tool_calls=[call("Bash", command="rm -rf build"), call("TodoWrite", todos=TODOS)]),
        "All done.",
    ]
    async with stage(project, replies, hooks=GUARD, size=TALL, model="small") as on:
        await on.say("Do all of it, please, and a little more than that.")
        assert fits(on)
        seen = words(on.screen)
        for text in (
            "> Do all of it, please, and a little more than that.",
            "I will look at the parser first, which splits words.",
            "def parse(text): return text.split() # longer than forty columns",
            "⊘ Bash rm -rf build",
            "no rm in this project",
            "⊘ <lambda> on PreToolUse denied",
            "● TodoWrite 1 of 3 done",
            "✓ Look at the parser",
            "▸ Mend the function that splits words",
            "○ Rest",
            "All done.",
            "small · default",
        ):
            assert text in seen, on.screen
        for text in ("splits", "text", "into", "12"):
            assert text in seen, on.screen
        await on.pilot.resize_terminal(*SMALL)
        await on.pilot.pause()
        assert fits(on)
        assert "All done." in on.screen
        assert "Say what to do. /help lists keys." in on.screen
        await on.type("a prompt that is longer than forty columns of text")
        assert "a prompt that is longer than forty columns of text" in words(on.screen.replace("│", ""))
        assert fits(on)


async def test_every_choice_of_a_question_can_be_read_and_chosen(project: Path) -> None:
    line_ = "git log --oneline --decorate | head -3 && touch a-file-with-a-long-name"
    async with stage(project, [Reply(tool_calls=[call("Bash", command=line_)]), "done"], size=SMALL) as on:
        await on.send("Make it.")
        await on.until(lambda: on.asks(PermissionDialog) is not None)
        await on.sees("May Bash run?")
        assert fits(on)
        assert "$ git log --oneline --decorate |" in on.screen
        await on.press("n")  # not in view: now it is, and nothing is answered yet
        await on.until(lambda: " n No" in on.screen)
        assert on.asks(PermissionDialog)
        seen = on.screen
        await on.press("down")
        await on.pilot.pause()
        seen += on.screen
        for _ in range(4):
            await on.press("up")
            await on.pilot.pause()
            seen += on.screen
        for choice in ("y Yes, once", "a Yes, always in this project:", "Bash(touch:*)", "n No", "t No, and tell"):
            assert choice in seen
        await on.press("pagedown")
        await on.pilot.pause()
        await on.press("y")
        await on.idle()
    assert [path.name for path in project.iterdir()] == ["a-file-with-a-long-name"]


async def test_an_edit_is_asked_for_and_shown_with_its_change(project: Path) -> None:
    file = project / "a_module_with_a_long_name.py"
    file.write_text("one = 1\ntwo = 2\n")
    edit = call("Edit", file_path=str(file), old_string="two = 2", new_string="two = 22  # it was too small for that")
    replies = [Reply(tool_calls=[call("Read", file_path=str(file)), edit]), "done"]
    async with stage(project, replies, size=SMALL) as on:
        await on.send("Edit.")
        await on.until(lambda: on.asks(PermissionDialog) is not None)
        await on.sees("2 -two = 2")
        assert "May Edit a_module_with_a_long_name.py run?" in words(on.screen)
        assert fits(on)
        await on.press("y")
        await on.idle()
        cards = [card for card in on.conversation.cards if isinstance(card, ToolCard) and card.block.name == "Edit"]
        cards[0].focus()
        await on.press("enter")
        await on.pilot.resize_terminal(*TALL)
        await on.pilot.pause()
        assert "2 +two = 22 # it was too small for that" in words(on.screen)
        assert fits(on)


async def test_the_trust_question_shows_what_it_is_about(project: Path) -> None:
    guard = {"type": "command", "command": "./guard-the-build-directory.sh --strict"}
    project_settings(project, {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [guard]}]}})
    async with stage(project, size=SMALL, trust=False, wait_for_agent=False) as on:
        await on.until(lambda: on.asks(TrustQuestion) is not None)
        await on.sees("Do you trust this project?")
        assert fits(on)
        assert "It has hooks" in on.screen
        seen = on.screen
        for _ in range(3):
            await on.press("pagedown")
            await on.pilot.pause()
            seen += "\n" + on.screen
        assert "guard-the-build-directory.sh" in "".join(words(seen).split())
        for _ in range(3):
            await on.press("down")
            await on.pilot.pause()
        assert " l Leave" in on.screen
        await on.press("up", "up", "up")
        await on.pilot.pause()
        await on.press("o")
        await on.until(lambda: on.app.open_agent is not None)
        await on.sees("default")
        assert "PROJECT HOOKS OFF" in on.status


@pytest.mark.parametrize("size", [SMALL, (40, 24)], ids=["12", "24"])
async def test_completions_keep_one_line_each(project: Path, size: tuple[int, int]) -> None:
    deep = project / "src" / "a_package_with_a_long_name" / "another_package"
    deep.mkdir(parents=True)
    (deep / "the_module.py").touch()
    async with stage(project, size=size) as on:
        await on.type("/")
        await on.sees("/help  show keys and commands")
        assert fits(on)
        assert "/compact  summarise the conversat" in on.screen
        await on.press("down", "down", "down", "down", "down")
        await on.sees("/hooks")
        await on.press("backspace")
        await on.type("@the_mod")
        await on.sees("the_module.py")
        assert fits(on)


async def test_hooks_are_listed_with_details(project: Path) -> None:
    async with stage(project, hooks=GUARD, size=SMALL) as on:
        await on.say("/hooks")
        await on.until(lambda: isinstance(on.app.screen, HooksView))
        await on.sees("Hooks of this session.")
        for text in ("PreToolUse", "name  <lambda>", "matcher  everything", "mode  enforce"):
            assert text in on.screen, on.screen
        await on.press("escape")
        await on.say("/help")
        await on.press("pageup")
        await on.pilot.pause()
        assert "/export [FILE]  write the" in str(on.app.screen.query_one(Columns).visual).replace("  /", "/")


def test_a_long_model_is_shortened_before_it_is_dropped() -> None:
    facts = StatusFacts(model="claude-opus-4-with-a-long-name", mode="default", used=5, window=10, session="0123")
    assert str(line(facts, 36)) == "claude-opus-4-with-a-long… · default"
    assert str(line(facts, 20)) == "claude-op… · default"
    assert str(line(facts, 16)) == "default"
