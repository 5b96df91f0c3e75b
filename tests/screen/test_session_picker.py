"""The session picker of `/resume`: all sessions, found by typing."""

import json
import os
import time
import uuid
from pathlib import Path

import pytest
from textual.widgets import Input, OptionList

from tests.screen.stage import Stage, stage
from wave_agent.models.base import Usage
from wave_agent.screen.entries import Info
from wave_agent.screen.session_picker import PAGE, SessionPicker
from wave_agent.sessions.transcript import transcripts
from wave_agent.testing import Reply

PRICES = {"models": {"m": {"prices": {"input": 10, "output": 100}}}}


def past(home: Path, project: Path, prompt: str, *, days: float = 1, branch: str = "main") -> str:
    """The id of a session that somebody had."""
    name = str(uuid.uuid4())
    records = [
        {"type": "session", "version": 1, "session_id": name, "cwd": str(project)},
        {"type": "user", "message": {"role": "user", "content": prompt}, "source": "user"},
        {"type": "system", "subtype": "opening", "system": f"Wave\nGit branch: {branch}, no changes\n", "tools": []},
        {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "yes"}]}},
    ]
    path = transcripts(home, str(project)) / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in records))
    used = time.time() - days * 86_400
    os.utime(path, (used, used))
    return name


async def pick(on: Stage) -> SessionPicker:
    await on.send("/resume")
    await on.until(lambda: isinstance(on.app.screen, SessionPicker))
    found = on.app.screen
    assert isinstance(found, SessionPicker)
    await on.until(lambda: found._left == 0)
    return found


def rows(picker: SessionPicker) -> list[str]:
    return [str(option.prompt) for option in picker.query_one(OptionList).options]


async def test_typing_finds_any_session_with_its_age_turns_and_cost(project: Path, home: Path):
    names = [past(home, project, f"question number {at}", days=at + 1) for at in range(3 * PAGE)]
    rare = past(home, project, "the needle [in] it", days=400, branch="feature/hay")
    async with stage(project, ["a"], size=(120, 40)) as on:
        picker = await pick(on)
        await on.sees(f"Sessions of this project: {3 * PAGE + 1}")
        assert len(rows(picker)) == PAGE
        assert "1 day ago" in rows(picker)[0]
        await on.sees("1 turn")
        await on.type("needle")
        await on.sees(f"1 of {3 * PAGE + 1}")
        assert "1 year ago" in rows(picker)[0]
        assert "the needle [in] it" in on.screen
        assert f"feature/hay · 1 turn · {rare}" in on.screen
        picker.query_one(Input).value = "question HAY"
        await on.sees(f"0 of {3 * PAGE + 1}")
        picker.query_one(Input).value = "nothing like it"
        await on.sees("No session matches.")
        await on.press("enter")
        assert on.app.screen is picker
        picker.query_one(Input).value = names[-1][:13]
        await on.press("enter")  # before the list has caught up
        await on.until(lambda: on.agent.session_id == names[-1])


async def test_arrows_go_through_all_pages_and_escape_closes(project: Path, home: Path):
    for at in range(PAGE + 5):
        past(home, project, f"question number {at}", days=at + 1)
    async with stage(project) as on:
        before = on.agent.session_id
        picker = await pick(on)
        listed = picker.query_one(OptionList)
        for _ in range(30):
            await on.press("pagedown")
        await on.until(lambda: len(rows(picker)) == PAGE + 5)
        for _ in range(10):
            await on.press("down")
        assert listed.highlighted == PAGE + 4  # it stops at the end
        await on.press("up", "pageup")
        assert (listed.highlighted or 0) < PAGE
        await on.press("escape")
        await on.until(lambda: on.box.input.has_focus)
        assert on.agent.session_id == before


async def test_the_cost_is_shown_if_it_is_known(project: Path):
    async with stage(project, [Reply("a", usage=Usage(10_000, 1000))], model="m", overlays=(PRICES,)) as on:
        await on.say("Hello.")
        old = on.agent.session_id
        await on.say("/clear")
        picker = await pick(on)
        await on.until(lambda: "$0.20" in rows(picker)[0])
        assert rows(picker)[0].split() == ["just", "now", "1", "turn", "$0.20", "Hello."]
        await on.press("enter")
        await on.until(lambda: on.agent.session_id == old)


@pytest.mark.parametrize(("width", "shown"), [(64, True), (40, False)])
async def test_a_narrow_terminal_has_age_and_prompt(project: Path, home: Path, width: int, shown: bool):
    past(home, project, "fix it")
    async with stage(project, size=(width, 24)) as on:
        picker = await pick(on)
        await on.sees("1 turn")
        assert ("1 turn" in rows(picker)[0]) is shown
        assert "fix it" in on.screen


async def test_without_another_session_there_is_nothing_to_choose(project: Path):
    async with stage(project, ["a"]) as on:
        await on.say("Hello.")
        await on.say("/resume")
        assert str(on.entry(Info).visual).endswith("There is no other session in this project.")
