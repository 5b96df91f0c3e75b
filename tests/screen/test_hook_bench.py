"""Changing a hook from `/hooks`: in the user's own editor, with a test afterwards, and never without trust."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.screen.stage import Stage, hooks, project_settings, stage
from tests.spec.world import make
from wave_agent.screen.editor import NONE_SET, editor_words
from wave_agent.screen.hook_bench import HookBench, RunOnce
from wave_agent.screen.question import Question
from wave_agent.screen.trust import ChangedFiles
from wave_agent.testing import Reply

GUARD = """#!/bin/sh
grep -q FORBIDDEN && { echo no >&2; exit 2; }
exit 0
"""
BETTER = """#!/bin/sh
# better
grep -q -e FORBIDDEN -e hello && { echo never >&2; exit 2; }
exit 0
"""
CASES = {
    "cases": [
        {"name": "said", "event": "PreToolUse", "tool": "Bash", "input": {"command": "FORBIDDEN"}, "expect": "block"},
        {"name": "hello", "event": "PreToolUse", "tool": "Bash", "input": {"command": "hello"}, "expect": "none"},
    ]
}


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def editor(tmp_path: Path, new: str) -> dict[str, str]:
    """A program that notes its arguments, and replaces the last one, a file, with this text."""
    (tmp_path / "new").write_text(new)
    noted = f'echo "$@" > "{tmp_path}/arguments"; for file; do :; done; cat "{tmp_path}/new" > "$file"\n'
    program = script(tmp_path / "my editor", f"#!/bin/sh\n{noted}")
    return {**os.environ, "EDITOR": f"'{program}' --wait"}


def guarded(project: Path) -> Path:
    guard = script(project / ".wave" / "hooks" / "guard.sh", GUARD)
    (guard.parent / "guard.cases.json").write_text(json.dumps(CASES))
    entry = {"type": "command", "command": "./.wave/hooks/guard.sh", "name": "guard", "onFailure": "block"}
    project_settings(project, {"hooks": hooks("PreToolUse", entry, matcher="Bash")})
    return guard


async def open_bench(on: Stage) -> HookBench:
    await on.send("/hooks")
    await on.until(lambda: isinstance(on.app.screen, HookBench))
    found = on.app.screen
    assert isinstance(found, HookBench)
    return found


async def is_asked(on: Stage, kind: type[Question]) -> None:
    """In the view."""
    await on.until(lambda: any(question.has_focus_within for question in on.app.screen.query(kind)))


async def test_a_script_is_edited_trusted_again_and_tested(project: Path, tmp_path: Path):
    guard = guarded(project)
    replies = [Reply(tool_calls=[make()]), "done"]
    options: dict[str, Any] = {"permission_mode": "bypassPermissions", "size": (140, 50)}
    async with stage(project, replies, environment=editor(tmp_path, BETTER), **options) as on:
        await open_bench(on)
        await on.sees("e edits, t tests, Esc closes")
        await on.press("e")
        await is_asked(on, ChangedFiles)
        assert "no longer what you trusted" in on.screen
        assert ".wave/hooks/guard.sh: changed" in on.screen
        assert on.agent.project_trust.changes() != {}
        await on.press("y")
        await on.sees("Cases: 1 passed, 1 failed (.wave/hooks/guard.cases.json)")
        assert guard.read_text() == BETTER
        assert (tmp_path / "arguments").read_text() == f"--wait {guard}\n"
        assert "Saved .wave/hooks/guard.sh." in on.screen
        assert "Lint: no findings." in on.screen
        assert 'Sample: PreToolUse Bash {"command": "echo hello"}: block' in on.screen
        assert "never" in on.screen
        assert "FAILED hello" in on.screen
        assert on.agent.project_trust.changes() == {}
        await on.press("escape")
        await on.until(lambda: on.box.input.has_focus)
        await on.say("Make it.")  # the session runs the new one
        assert (project / "made.txt").exists()


@pytest.mark.parametrize("key", ["n", "escape"])
async def test_a_change_that_is_not_trusted_is_not_run_and_the_session_denies(project: Path, tmp_path: Path, key: str):
    guarded(project)
    changed = f"#!/bin/sh\ntouch {project}/ran\n"
    replies = [Reply(tool_calls=[make()]), "done"]
    options: dict[str, Any] = {"permission_mode": "bypassPermissions", "size": (140, 50)}
    async with stage(project, replies, environment=editor(tmp_path, changed), **options) as on:
        await open_bench(on)
        await on.press("enter")
        await is_asked(on, ChangedFiles)
        await on.press(key)
        await on.sees("Not run: it is not trusted as it is now")
        assert isinstance(on.app.screen, HookBench)
        await on.press("escape")
        await on.send("Make it.")
        await is_asked(on, ChangedFiles)
        await on.press("n")
        await on.idle()
    assert not (project / "ran").exists()
    assert not (project / "made.txt").exists()


async def test_findings_are_shown_with_what_to_do_and_a_change_from_before_is_mentioned(project: Path, tmp_path: Path):
    guard = guarded(project)
    environment = editor(tmp_path, GUARD.replace("\n", "\r\n"))
    async with stage(project, environment=environment, size=(140, 50)) as on:
        guard.write_text(f"{GUARD}# somebody else\n")
        await open_bench(on)
        await on.press("e")
        await is_asked(on, ChangedFiles)
        await on.press("n")
        await on.sees("It had changed before you opened it")
        assert "W116 .wave/hooks/guard.sh:1" in on.screen


async def test_a_bare_command_is_edited_in_its_settings_and_tested_once_the_user_agrees(project: Path, tmp_path: Path):
    old = {"type": "command", "command": "echo old >> log; exit 0", "name": "bare"}
    new = {"type": "command", "command": "echo new >> log; echo stop >&2; exit 2", "name": "bare"}
    project_settings(project, {"hooks": hooks("PreToolUse", old, matcher="Bash")})
    text = json.dumps({"hooks": hooks("PreToolUse", new, matcher="Bash")})
    replies = [Reply(tool_calls=[make()]), "done"]
    options: dict[str, Any] = {"permission_mode": "bypassPermissions", "size": (140, 50)}
    async with stage(project, replies, environment=editor(tmp_path, text), **options) as on:
        await open_bench(on)
        await on.press("e")
        await is_asked(on, RunOnce)
        assert "PreToolUse: echo new >> log; echo stop >&2; exit 2" in on.screen
        assert not (project / "log").exists()
        await on.press("y")
        await on.sees('Sample: PreToolUse Bash {"command": "echo hello"}: block')
        assert "The session keeps the old one" in on.screen
        assert (tmp_path / "arguments").read_text() == f"--wait {project}/.wave/settings.json\n"
        await on.press("escape")
        await on.say("Make it.")
    assert (project / "made.txt").exists()
    assert (project / "log").read_text() == "new\nold\n"


@pytest.mark.parametrize(
    ("text", "said"), [("{}", "It is no longer in the settings"), ("{,}", "settings.json:1:2"), ("", "Saved")]
)
async def test_settings_that_lost_the_hook_or_cannot_be_read_are_reported(
    project: Path, tmp_path: Path, text: str, said: str
):
    project_settings(project, {"hooks": hooks("Stop", "echo hello")})
    async with stage(project, environment=editor(tmp_path, text), size=(140, 50)) as on:
        await open_bench(on)
        await on.press("e")
        await on.sees(said)
        await on.sees("e edits, t tests")


async def test_a_hook_of_managed_settings_is_read_only_and_says_why(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    managed = tmp_path / "managed.json"
    managed.write_text(json.dumps({"hooks": hooks("Stop", {"type": "command", "command": "exit 0", "name": "boss"})}))
    monkeypatch.setenv("WAVE_MANAGED_SETTINGS", str(managed))
    async with stage(project, environment=editor(tmp_path, "gone"), size=(140, 50)) as on:
        await open_bench(on)
        await on.press("e")
        await on.sees("It can only be read here, because managed settings define it")
        assert not (tmp_path / "arguments").exists()
        await on.press("t")
        await on.sees("Sample: Stop")


async def test_a_function_of_the_program_has_no_file(project: Path):
    async with stage(project, hooks=hooks("Stop", lambda _: None), size=(140, 50)) as on:
        await open_bench(on)
        for key in ("e", "t"):
            await on.press(key)
            await on.sees("there is no file to edit")


async def test_without_an_editor_it_says_how_to_set_one(project: Path):
    guarded(project)
    environment = {name: value for name, value in os.environ.items() if name not in ("VISUAL", "EDITOR")}
    async with stage(project, environment=environment, size=(140, 50)) as on:
        await open_bench(on)
        await on.press("e")
        await on.sees("No editor is set. Set $VISUAL or $EDITOR")


async def test_an_editor_that_is_missing_fails_or_changes_nothing_is_reported(project: Path):
    guard = guarded(project)
    for words, said in (("/no/such/editor", "/no/such/editor cannot be started"), ("false", "with status 1")):
        async with stage(project, environment={**os.environ, "VISUAL": words}, size=(140, 50)) as on:
            await open_bench(on)
            await on.press("e")
            await on.sees(said)
            if words == "false":
                assert "Nothing was changed." in on.screen
    assert guard.read_text() == GUARD


async def test_the_agent_works_on_while_the_editor_is_open(project: Path, tmp_path: Path):
    guarded(project)
    waits = script(tmp_path / "waits", f"#!/bin/sh\nuntil [ -e {tmp_path}/go ]; do sleep 0.01; done\n")
    async with stage(project, ["hello there"], environment={**os.environ, "EDITOR": str(waits)}) as on:
        await open_bench(on)
        await on.press("e")
        await on.until(lambda: on.app.editing)
        on.app._queue.submit("Hi.")
        await on.until(lambda: len(on.model.requests) == 1 and not on.app.busy)
        (tmp_path / "go").touch()
        await on.until(lambda: not on.app.editing)
        await on.sees("Nothing was changed.")


def test_an_editor_may_have_arguments_and_quotes_and_gets_the_line_if_it_understands_it():
    line = {"VISUAL": "", "EDITOR": "'/opt/my editor/vim' -u NONE"}
    assert editor_words(line, "/f", 7) == ["/opt/my editor/vim", "-u", "NONE", "+7", "/f"]
    assert editor_words({"VISUAL": "code --wait", "EDITOR": "vi"}, "/f", 7) == ["code", "--wait", "/f"]
    assert editor_words({"EDITOR": "nano"}, "/f") == ["nano", "/f"]
    for environment, said in (({}, NONE_SET), ({"EDITOR": "vi '"}, "EDITOR cannot be read: no closing quotation")):
        with pytest.raises(Exception, match=said.replace("$", r"\$")):
            editor_words(environment, "/f")
