"""What gets into the clipboard has no frames, signs and line numbers."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.screen.stage import Stage, hooks, stage
from tests.waiting import until
from wave_agent.hooks import deny
from wave_agent.screen.clipboard import hand_over, programs
from wave_agent.screen.entries import HookLine, Warning_
from wave_agent.screen.todo_card import TodoCard
from wave_agent.screen.tool_card import ToolCard
from wave_agent.testing import Reply, call

ANSWER = "Look at **this**:\n\n```python\ndef parse(text):\n    return text\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |"


def card(on: Stage, name: str) -> ToolCard:
    return next(one for one in on.conversation.cards if isinstance(one, ToolCard) and one.block.name == name)


async def copied_from(on: Stage, entry: object) -> str:
    assert isinstance(entry, ToolCard | HookLine)
    entry.focus()
    await on.press("ctrl+y")
    await on.pilot.pause()
    return on.app.clipboard


async def test_the_last_answer_and_its_code(project: Path) -> None:
    first = "```\nfirst\n```\nand\n\n    indented\n"
    async with stage(project, [first, ANSWER], environment={}) as on:
        await on.say("/copy")
        assert on.said(Warning_) == ["! Shown only to you: There is no answer yet."]
        await on.say("One.")
        await on.say("Two.")
        for line, expected in (
            ("/copy", ANSWER),
            ("/copy code", "def parse(text):\n    return text"),
            ("/copy code 1", "indented"),
            ("/copy code 2", "first"),
        ):
            await on.say(line)
            assert on.app.clipboard == expected
        for line in ("/copy code 3", "/copy everything", "/copy code x"):
            await on.say(line)
        assert on.app.clipboard == "first"
        assert len(on.said(Warning_)) == 4


async def test_cards_are_copied_as_what_came_of_them(project: Path) -> None:
    file = project / "a.py"
    file.write_text("one = 1\ntwo = 2\n")
    todos = [
        {"content": "Look", "status": "completed", "activeForm": "Looking"},
        {"content": "Mend", "status": "pending", "activeForm": "Mending"},
    ]
    guard = hooks("PreToolUse", lambda event: deny("not that") if event.input.get("command") == "rm x" else None)
    edit = call("Edit", file_path=str(file), old_string="two = 2", new_string="two = 22")
    calls = [
        call("Bash", command="printf 'one\\n  two\\n'"),
        call("Read", file_path=str(file)),
        edit,
        call("TodoWrite", todos=todos),
        call("Bash", command="rm x"),
    ]
    async with stage(
        project, [Reply(tool_calls=calls), "ok"], hooks=guard, permission_mode="bypassPermissions", environment={}
    ) as on:
        await on.say("Go.")
        assert await copied_from(on, card(on, "Bash")) == "one\n  two"
        assert await copied_from(on, card(on, "Edit")) == "@@ -1,2 +1,2 @@\n one = 1\n-two = 2\n+two = 22"
        assert await copied_from(on, on.entry(TodoCard)) == "- [x] Look\n- [ ] Mend"
        assert "not that" in await copied_from(on, on.entry(HookLine))
        assert "│" not in on.app.clipboard


async def test_typing_on_a_card_still_goes_to_the_prompt(project: Path) -> None:
    async with stage(project, [Reply(tool_calls=[call("Read", file_path="a")]), "ok"], environment={}) as on:
        await on.say("Go.")
        card(on, "Read").focus()
        await on.type("copy that")
        assert on.box.text == "copy that"


@pytest.mark.parametrize("variable", ["TMUX", "WAYLAND_DISPLAY", "DISPLAY", "WSL_DISTRO_NAME"])
async def test_the_programs_of_a_machine_get_it_as_well(tmp_path: Path, variable: str) -> None:
    for name in ("tmux", "wl-copy", "xclip", "clip.exe"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\nexec cat > {tmp_path}/copied-{name}\n")
        program.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    await hand_over("täxt\n", {"PATH": path, variable: "1"})
    assert [file.read_text() for file in tmp_path.glob("copied-*")] == ["täxt\n"]
    assert programs({"PATH": path}) == []


async def test_a_program_that_hangs_or_fails_is_given_up(tmp_path: Path) -> None:
    for name, does in (("tmux", "exec sleep 600"), ("xclip", "exit 1")):
        (tmp_path / name).write_text(f"#!/bin/sh\necho > {tmp_path}/{name}-ran\n{does}\n")
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TMUX": "1", "DISPLAY": ":0"}
    task = asyncio.create_task(hand_over("text" * 100_000, environment))
    await until(lambda: (tmp_path / "tmux-ran").exists() and (tmp_path / "xclip-ran").exists(), 40)
    await asyncio.wait_for(task, 40)
