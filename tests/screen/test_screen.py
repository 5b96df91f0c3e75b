"""The screen as a whole: sizes, colours, status, interrupting, leaving, and nothing left behind."""

import asyncio
import re
import subprocess
from pathlib import Path

import pytest

from tests.screen.stage import Stage, hooks, stage
from tests.spec.world import is_gone
from wave_agent.agent.surroundings import git_branch
from wave_agent.hooks import deny
from wave_agent.models.base import Usage
from wave_agent.screen.permission import PermissionDialog
from wave_agent.screen.status import StatusFacts, line
from wave_agent.screen.theme import guessed
from wave_agent.testing import Reply, call

REPLIES = [
    Reply(
        "I will look.\n\n```python\nprint(1)\n```",
        tool_calls=[call("Bash", command="echo one"), call("Bash", command="rm -rf build")],
        reasoning="Let me see.",
    ),
    "All **done**.",
]
GUARD = hooks("PreToolUse", lambda event: deny("rm -rf is not allowed") if "rm" in event.input["command"] else None)
EXPECTED = [
    *("> Build it.", "∴ Thought, 1 line", "I will look.", "print(1)", "● Bash echo one", "⊘ Bash rm -rf build"),
    *("rm -rf is not allowed", "⊘ <lambda> on PreToolUse", "All done."),
]


@pytest.mark.parametrize("size", [(80, 24), (200, 60)], ids=["80x24", "200x60"])
@pytest.mark.parametrize("theme", ["dark", "light", "terminal"])
async def test_the_main_state_can_be_read_in_every_size_and_theme(project: Path, size: tuple[int, int], theme: str):
    async with stage(project, REPLIES, hooks=GUARD, size=size, permission_mode="bypassPermissions") as on:
        on.app.use_theme(theme)
        await on.say("Build it.")
        seen = on.screen
        await on.press("ctrl+home")
        await on.pilot.pause()
        seen = on.screen + "\n" + seen
        assert [text for text in EXPECTED if text not in seen] == []
        at = [seen.find(text) for text in EXPECTED]
        assert size[1] < 60 or at == sorted(at)
        assert "bypassPermissions" in on.screen.splitlines()[-1]
        assert all(len(row) <= size[0] for row in seen.splitlines())


async def test_without_colour_every_state_still_has_its_sign(project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with stage(project, REPLIES, hooks=GUARD, permission_mode="bypassPermissions", size=(100, 40)) as on:
        await on.say("Build it.")
        assert [text for text in EXPECTED if text not in on.screen] == []
        colours = set(re.findall(r"fill: #([0-9a-f]{6})", on.app.export_screenshot()))
        colours.discard("c5c8c6")  # the picture's own, for what has none
        assert all(len({colour[at : at + 2] for at in (0, 2, 4)}) == 1 for colour in colours)


async def test_without_colour_what_is_chosen_is_underlined(project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_COLOR", "1")
    replies = [Reply(tool_calls=[call("Bash", command="touch x"), call("Bash", command="rm x")]), "done"]

    def underlined(on: Stage) -> str:
        strips = on.app.screen._compositor.render_strips()
        return "".join(part.text for strip in strips for part in strip if part.style and part.style.underline)

    async with stage(project, replies, hooks=GUARD) as on:
        await on.type("/")
        await on.sees("/help")
        assert "/help  show keys" in underlined(on)
        await on.press("ctrl+c")
        await on.send("Go.")
        await on.until(lambda: on.asks(PermissionDialog) is not None)
        assert "y Yes, once" in underlined(on)
        await on.press("down", "down", "down")
        await on.pilot.pause()
        assert "n No" in underlined(on)
        await on.press("up", "up", "up", "enter")
        await on.idle()
        assert "⊘ <lambda> on PreToolUse denied" in on.screen
        await on.press("tab")
        await on.pilot.pause()
        assert "PreToolUse denied" in underlined(on)


async def test_it_can_be_resized_at_any_time(project: Path):
    async with stage(
        project, [Reply(tool_calls=[call("Bash", command="touch x")]), "done " * 60], size=(120, 40)
    ) as on:
        await on.send("Touch it.")
        await on.until(lambda: on.asks(PermissionDialog) is not None)
        await on.pilot.resize_terminal(80, 24)
        assert "May Bash run?" in on.screen
        await on.press("y")
        await on.idle()
        await on.pilot.resize_terminal(50, 12)
        assert all(len(row) <= 50 for row in on.screen.splitlines())
        assert "done done" in on.screen


async def test_shift_tab_changes_the_mode_of_the_live_agent(project: Path):
    async with stage(project, size=(120, 30)) as on:
        for mode in ("acceptEdits", "plan", "default"):
            await on.press("shift+tab")
            assert on.agent.permission_mode == mode
            assert mode in on.status


async def test_the_mode_can_change_while_the_agent_works(project: Path):
    gate = asyncio.Event()
    write = call("Write", file_path="a.txt", content="a")
    async with stage(project, [Reply(tool_calls=[write], gate=gate), "done"]) as on:
        await on.send("Write.")
        await on.until(lambda: len(on.model.requests) == 1)
        await on.press("shift+tab")
        gate.set()
        await on.idle()
    assert (project / "a.txt").exists()


async def test_the_status_tells_model_mode_window_place_and_session(project: Path):
    settings = {"models": {"small": {"contextWindow": 2000}}}
    (project / ".git").mkdir()
    (project / ".git" / "HEAD").write_text("ref: refs/heads/trunk\n")
    reply = Reply("hi", usage=Usage(400, 100))
    async with stage(project, [reply], model="small", overlays=(settings,), size=(200, 30)) as on:
        await on.say("Hello.")
        parts = on.status.split(" · ")
        assert parts[:3] == ["small", "default", "25% of 2.0k"]
        assert parts[3].endswith("(trunk)")
        assert parts[4] == f"session {on.agent.session_id[:8]}"


def test_in_a_narrow_terminal_the_least_important_goes_first():
    facts = StatusFacts(
        model="large", mode="default", used=500, window=1000, directory="/some/project", session="0123456789"
    )
    assert str(line(facts, 200)) == "large · default · 50% of 1.0k · /some/project · session 01234567"
    assert str(line(facts, 50)) == "large · default · 50% of 1.0k · /some/project"
    assert str(line(facts, 20)) == "large · default"
    assert str(line(facts, 3)) == "default"


async def test_a_screen_without_a_model_says_so_before_the_first_prompt(project: Path):
    async with stage(project, base_url=None) as on:
        assert "No model is configured. Run wave setup, or set" in on.screen


def test_the_branch_is_found_from_below_in_a_worktree_and_when_detached(tmp_path: Path):
    repository = tmp_path / "repository"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(repository)]
    repository.mkdir()
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side")], check=True)
    (repository / "deep").mkdir()
    assert git_branch(str(repository / "deep")) == "main"
    assert git_branch(str(tmp_path / "side")) == "side"
    subprocess.run([*git, "checkout", "-q", "--detach"], check=True)
    assert re.fullmatch("[0-9a-f]{8}", git_branch(str(repository)))
    assert git_branch(str(tmp_path)) == ""


@pytest.mark.parametrize(("told", "theme"), [("15;0", "dark"), ("0;15", "light"), ("0;7", "light"), ("", "dark")])
def test_a_terminal_that_tells_its_background_gets_a_theme_for_it(told: str, theme: str):
    assert guessed({"COLORFGBG": told}) == theme


async def test_ctrl_c_empties_the_prompt_interrupts_and_twice_leaves(project: Path):
    async with stage(project, [Reply("never", gate=asyncio.Event())]) as on:
        await on.type("text")
        await on.press("ctrl+c")
        assert on.box.text == ""
        assert on.app.return_value is None
        await on.press("ctrl+c")
        await on.until(lambda: on.app.return_value == 0)


async def test_ctrl_d_leaves_from_an_empty_prompt_only(project: Path):
    async with stage(project) as on:
        await on.type("x")
        await on.press("home", "ctrl+d")
        assert on.box.text == ""
        await on.press("ctrl+d")
        await on.until(lambda: on.app.return_value == 0)


async def test_leaving_ends_all_that_runs(project: Path):
    command = "sleep 600 & echo $! > child; echo $$ > parent; wait"
    async with stage(
        project, [Reply(tool_calls=[call("Bash", command=command)])], permission_mode="bypassPermissions"
    ) as on:
        await on.send("Run.")
        await on.until(lambda: (project / "parent").exists() and (project / "parent").read_text().endswith("\n"))
        await on.press("ctrl+q")
    assert on.agent.busy is False
    assert all(is_gone(int((project / name).read_text())) for name in ("child", "parent"))


async def test_a_picture_of_the_screen_says_what_the_screen_says(project: Path):
    async with stage(project, ["An answer."]) as on:
        await on.say("A question.")
        picture = on.app.export_screenshot()
        assert picture.startswith("<svg")
        assert "A&#160;question." in picture
