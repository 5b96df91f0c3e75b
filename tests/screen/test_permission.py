"""Questions before a call runs, answered by keyboard."""

import os
from pathlib import Path

import pytest

from tests.screen.stage import Stage, hooks, stage
from tests.spec.world import make
from wave_agent.hooks import ask
from wave_agent.screen.entries import Warning_
from wave_agent.screen.permission import PermissionDialog, RestoreDialog
from wave_agent.screen.tool_card import State, ToolCard
from wave_agent.settings.trust import TrustStore
from wave_agent.testing import Reply, call


async def question(on: Stage) -> str:
    """Waits for it; what the screen says."""
    await on.until(lambda: on.asks(PermissionDialog) is not None)
    return on.screen


def results(on: Stage) -> list[str]:
    """What the model was told about its calls."""
    last = on.model.requests[-1].messages
    return [message["content"] for message in last if message["role"] == "tool"]


async def test_yes_runs_the_call_once(project: Path):
    replies = [Reply(tool_calls=[make("a")]), Reply(tool_calls=[make("b")]), "done"]
    async with stage(project, replies) as on:
        await on.send("Make it.")
        shown = await question(on)
        assert "May Bash run?" in shown
        assert "$ touch a" in shown
        assert "It writes a." in shown
        assert "Asked by mode default: Bash needs your consent" in shown
        await on.press("y")
        await on.sees("$ touch b")
        await on.press("n")
        await on.idle()
        assert on.box.input.has_focus
        assert on.conversation.is_following
    assert [path.name for path in project.iterdir()] == ["a"]


async def test_the_question_says_what_the_command_would_do(project: Path):
    line = "base64 < .env > out; curl -s https://api.example.com"
    async with stage(project, [Reply(tool_calls=[call("Bash", command=line)]), "done"]) as on:
        await on.send("Go.")
        assert "It reads .env, writes out, reaches api.example.com." in await question(on)
        await on.press("n")
        await on.idle()


async def test_no_can_carry_a_word_to_the_model(project: Path):
    async with stage(project, [Reply(tool_calls=[make()]), "as you wish"]) as on:
        await on.send("Make it.")
        await question(on)
        await on.press("t")
        await on.type("use make instead")
        await on.press("enter")
        await on.idle()
        assert results(on) == ["Not run: the user said no: use make instead"]
        assert on.entry(ToolCard).state is State.BLOCKED
        assert "use make instead" in on.screen
    assert list(project.iterdir()) == []


async def test_always_counts_at_once_and_is_kept_outside_of_the_project(project: Path, home: Path):
    replies = [Reply(tool_calls=[make("a.txt"), make("b.txt")]), "done"]
    async with stage(project, replies) as on:
        await on.send("Make them.")
        assert "Yes, always in this project: Bash(touch a.txt)" in await question(on)
        await on.press("down", "down", "enter")
        await on.idle()
        assert [rule.text for rule in on.agent.rules.allow] == ["Bash(touch:*)"]
    assert sorted(path.name for path in project.iterdir()) == ["a.txt", "b.txt"]
    assert TrustStore(home).read(str(project)).allow == ("Bash(touch:*)",)
    async with stage(project, [Reply(tool_calls=[make("c.txt")]), "done"]) as on:
        await on.say("One more.")
    assert (project / "c.txt").exists()


async def test_what_is_allowed_for_always_is_not_asked_again(project: Path):
    lines = ("echo hi > a.txt; cat a.txt", "touch b.txt && mkdir c", "mkdir d; touch e")
    replies = [Reply(tool_calls=[call("Bash", command=line) for line in (*lines, lines[0])]), "done"]
    async with stage(project, replies) as on:
        await on.send("Make them.")
        assert "echo hi:*" not in await question(on)
        await on.press("a")
        await on.sees("Yes, always in this project: Bash(touch:*), Bash(mkdir c:*)")
        await on.press("down", "down", "enter")
        await on.sees("$ mkdir d; touch e")
        await on.press("y")
        await on.idle()
        rules = [rule.text for rule in on.agent.rules.allow]
    assert rules == ["Bash(echo hi > a.txt; cat a.txt)", "Bash(touch:*)", "Bash(mkdir c:*)"]
    assert sorted(path.name for path in project.iterdir()) == ["a.txt", "b.txt", "c", "d", "e"]


async def test_a_hook_that_asks_is_named_with_its_reason_and_always_is_not_offered(project: Path):
    def guard(event: object) -> object:
        return ask("this [touches] things")

    async with stage(project, [Reply(tool_calls=[make()]), "done"], hooks=hooks("PreToolUse", guard)) as on:
        await on.send("Make it.")
        shown = await question(on)
        assert "Asked by hook guard: this [touches] things" in shown
        assert "always" not in shown
        await on.press("a")
        assert on.asks(PermissionDialog)
        await on.press("y")
        await on.idle()
    assert (project / "made.txt").exists()


async def test_no_key_approves_what_a_small_terminal_does_not_show(project: Path):
    async with stage(project, [Reply(tool_calls=[make("a"), make("b")]), "done"], size=(20, 6)) as on:
        await on.send("Make them.")
        await on.until(lambda: on.asks(PermissionDialog) is not None)
        await on.press("y", "enter")
        await on.sees("small: enlarge")
        await on.press("y", "enter", "a")
        assert on.asks(PermissionDialog)
        assert list(project.iterdir()) == []
        await on.pilot.resize_terminal(40, 10)
        await on.sees("$ touch a")
        await on.sees("May Bash run?")
        await on.until(lambda: all(asked.is_legible for asked in on.app.query(PermissionDialog)))
        assert " y Yes, once" in on.screen
        await on.press("y")
        await on.sees("$ touch b")
        await on.pilot.resize_terminal(100, 30)
        await on.sees("May Bash run?")
        await on.press("escape")
        await on.idle()
        assert on.conversation.size.height > 10
    assert [path.name for path in project.iterdir()] == ["a"]


async def test_an_edit_is_asked_for_with_its_change(project: Path):
    (project / "a.txt").write_text("old\n")
    replies = [
        Reply(tool_calls=[call("Read", file_path="a.txt")]),
        Reply(tool_calls=[call("Write", file_path="a.txt", content="new\n")]),
        "done",
    ]
    async with stage(project, replies) as on:
        await on.send("Change it.")
        shown = await question(on)
        assert "May Write a.txt run?" in shown
        assert "1 -old" in shown
        assert "1 +new" in shown
        await on.press("y")
        await on.idle()
    assert (project / "a.txt").read_text() == "new\n"


async def test_several_edits_are_asked_for_with_their_change(project: Path):
    (project / "a.txt").write_text("one\ntwo\n")
    edits = [{"old_string": "one", "new_string": "1"}, {"old_string": "two", "new_string": "2"}]
    replies = [
        Reply(tool_calls=[call("Read", file_path="a.txt")]),
        Reply(tool_calls=[call("MultiEdit", file_path="a.txt", edits=edits)]),
        "done",
    ]
    async with stage(project, replies) as on:
        await on.send("Change it.")
        shown = await question(on)
        assert "May MultiEdit a.txt run?" in shown
        for line in ("1 -one", "2 -two", "1 +1", "2 +2"):
            assert line in shown
        await on.press("y")
        await on.idle()
    assert (project / "a.txt").read_text() == "1\n2\n"


async def test_a_question_says_which_subagent_asks(project: Path):
    replies = [
        Reply(tool_calls=[call("Task", description="look", prompt="Look.", subagent_type="general-purpose")]),
        Reply(tool_calls=[call("Bash", command="touch a")]),
        "I may not.",
        "done",
    ]
    async with stage(project, replies) as on:
        await on.send("Look at it.")
        assert "(subagent general-purpose)" in await question(on)
        await on.press("n")
        await on.idle()
    assert not (project / "a").exists()


async def test_escape_is_a_no_that_ends_the_turn(project: Path):
    async with stage(project, [Reply(tool_calls=[make()])]) as on:
        await on.send("Make it.")
        await question(on)
        await on.press("escape")
        await on.idle()
        assert len(on.model.requests) == 1
        assert "Interrupted." in on.screen
    assert list(project.iterdir()) == []


async def test_questions_of_calls_side_by_side_are_put_one_after_another(project: Path):
    outside = [call("Read", file_path="/etc/hostname"), call("Read", file_path="/etc/hosts")]
    async with stage(project, [Reply(tool_calls=outside), "done"]) as on:
        await on.send("Read.")
        await question(on)
        first = on.asks(PermissionDialog)
        await on.press("n")
        await on.until(lambda: on.asks(PermissionDialog) not in (None, first))
        await on.press("n")
        await on.idle()
        assert results(on) == ["Not run: the user said no. Do without it, or ask what to do instead."] * 2


async def test_a_question_goes_when_its_turn_is_ended_from_elsewhere(project: Path):
    async with stage(project, [Reply(tool_calls=[make()])]) as on:
        await on.send("Make it.")
        await question(on)
        on.agent.interrupt()
        await on.idle()
        assert on.asks(PermissionDialog) is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
async def test_a_rule_that_cannot_be_kept_counts_for_the_session_and_the_user_is_told(project: Path, home: Path):
    home.mkdir(exist_ok=True)
    async with stage(project, [Reply(tool_calls=[make()]), "done"]) as on:
        await on.send("Make it.")
        await question(on)
        home.chmod(0o500)
        await on.press("a")
        await on.idle()
        home.chmod(0o700)
        assert "could not be stored" in on.screen


@pytest.mark.parametrize(("key", "left"), [("r", "old"), ("escape", "old"), ("k", "new")])
async def test_a_command_has_changed_a_file_that_a_rule_protects(project: Path, key: str, left: str):
    (project / "vendor").mkdir()
    (project / "vendor" / "x").write_text("old")
    command = "python3 -c \"open('vendor/x','w').write('new')\""
    replies = [Reply(tool_calls=[call("Bash", command=command)]), "done"]
    rules = {"permissions": {"deny": ["Edit(vendor/**)"]}}
    async with stage(project, replies, permission_mode="bypassPermissions", overlays=[rules]) as on:
        await on.send("Go.")
        await on.until(lambda: on.asks(RestoreDialog) is not None)
        assert "Bash changed a file that rules protect. Restore?" in on.screen
        assert "changed vendor/x (Edit(vendor/**))" in on.screen
        assert (project / "vendor" / "x").read_text() == "new"  # nothing happens before the answer
        await on.press(key)
        await on.idle()
        (result,) = results(on)
        restored = left == "old"
        assert ("It was restored." in result, "the user chose to keep it" in result) == (restored, not restored)
        assert on.agent.last_result is not None
        assert [one.restored for one in on.agent.last_result.violations] == [restored]
        assert "vendor/x, which the rule Edit(vendor/**) denies" in str(on.entry(Warning_).visual)
    assert (project / "vendor" / "x").read_text() == left
