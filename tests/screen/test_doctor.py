"""`/doctor` on the screen: the checks of `wave doctor`, problems first."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from textual.widgets import OptionList

from tests.screen.stage import hooks, project_settings, stage
from wave_agent.agent.model_choice import ModelWishes
from wave_agent.screen.doctor_view import DoctorView
from wave_agent.testing import Reply, call
from wave_agent.testing.model_server import RecordingModelServer
from wave_agent.workshop.doctor import CheckedSession, CheckResult, examine


async def test_slash_doctor_shows_problems_first_and_what_to_do(project: Path):
    project_settings(project, {"hooks": hooks("PreToolUse", {"type": "command", "command": "./missing.sh"})})
    async with stage(project, size=(140, 40)) as on:
        await on.send("/doctor")
        await on.until(lambda: isinstance(on.app.screen, DoctorView))
        await on.sees("r checks again, Esc closes")
        listed = [str(option.prompt) for option in on.app.screen.query_one(OptionList).options]
        assert [line[0] for line in listed] == sorted((line[0] for line in listed), key="✗!✓–".index)
        assert listed[0].startswith("✗ hooks")
        assert "missing.sh" in listed[0]
        assert "What to do: " in on.screen
        assert any(line.startswith("✗ endpoint") and "not set" in line for line in listed)
        assert any(line.startswith("✓ home") for line in listed)
        await on.press("down")
        await on.sees("run wave setup, or set WAVE_BASE_URL")
        await on.press("r")
        await on.sees("r checks again, Esc closes")
        assert len(on.app.screen.query_one(OptionList).options) == len(listed)
        await on.press("escape")
        await on.until(lambda: on.box.input.has_focus)


async def test_the_checks_use_the_server_and_model_of_the_session_and_show_progress(project: Path):
    replies = [Reply("ready"), Reply(tool_calls=[call("Read", file_path="x")])]
    server = RecordingModelServer(replies)
    async with server, stage(project, base_url=server.base_url, model="tiny", size=(140, 40)) as on:
        await on.send("/doctor")
        await on.sees("tiny calls tools")
        assert "tiny says: ready" in on.screen
        await on.sees("r checks again, Esc closes")


async def test_a_view_that_is_closed_ends_its_checks(project: Path):
    ended = asyncio.Event()

    async def endless(begin: Callable[[str], None]) -> AsyncIterator[CheckResult]:
        yield CheckResult("first", "ok", "fine")
        begin("patience")
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with stage(project) as on:
        await on.app.push_screen(DoctorView(endless))
        await on.sees("Checking: patience … Esc closes")
        await on.press("q")
        await on.until(lambda: on.box.input.has_focus)
        await ended.wait()


async def test_each_check_is_announced_before_it_is_made(project: Path):
    begun: list[str] = []
    session = CheckedSession(cwd=project, wishes=ModelWishes())
    found = [one.check async for one in examine(session, begun.append)]
    assert begun == ["settings", "hooks", "sandbox", "telemetry", "endpoint"]
    assert {*begun} <= {*found}
