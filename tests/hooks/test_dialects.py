"""The table of dialects, and what hooks of each are given."""

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.conformance import check
from wave_agent.hooks.compatibility import COLUMNS, COMPARISONS, Kinship, differences
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.dialects import (
    ALL,
    DIALECTS,
    Aside,
    Dialect,
    DialectRow,
    has_failed,
    heard_by,
    patch_of,
    stdin_fields,
)
from wave_agent.hooks.events import EVENTS, HookEvent
from wave_agent.hooks.execution import HookExecutionResult, HookKind
from wave_agent.hooks.manager import HookManager, SessionFacts
from wave_agent.hooks.runners.command import ProcessRunner
from wave_agent.hooks.semantics import read, replaced
from wave_agent.hooks.verdicts import Block, TellUser
from wave_agent.settings.hook_entries import HookConfig, hooks_in_code, load_hooks, parse_settings

POST, FAILURE = HookEvent.POST_TOOL_USE, HookEvent.POST_TOOL_USE_FAILURE


def given(tool: str, response: dict[str, Any], aside: Aside | None = None, **tool_input: Any) -> Any:
    """`tool_response` as a hook for Claude Code gets it."""
    payload = {"tool_name": tool, "tool_input": tool_input, "tool_response": response}
    found = stdin_fields(Dialect.CLAUDE, EVENTS[POST], payload, aside or Aside())
    assert found["tool_result"] == found["tool_output"] == found["tool_response"]
    return found["tool_response"]


# ----------------------------------------------------------------------------------------------------------- the tables


def test_there_is_a_row_for_every_dialect_and_words_for_every_column() -> None:
    assert set(DIALECTS) == ALL
    assert [*(column.name for column in COLUMNS)] == [
        name for name in DialectRow.__struct_fields__ if name not in ("dialect", "agent")
    ]
    for column in COLUMNS:
        assert column.here(DIALECTS[Dialect.CLAUDE]) != column.here(DIALECTS[Dialect.WAVE])


def test_what_is_claimed_is_shown_by_a_test_that_exists() -> None:
    here = Path(__file__).parent.parent
    tests = {name for file in here.rglob("test_*.py") for name in re.findall(r"def (test_\w+)", file.read_text())}
    known = tests | {case["name"] for case in check.load_cases()}
    claimed = {one.shown for one in (*COLUMNS, *COMPARISONS) if one.shown}
    assert claimed - known == set()
    assert all(one.why for one in (*COLUMNS, *COMPARISONS) if one.kinship is Kinship.STRICTER)


def test_in_words_a_dialect_is_told_from_ours_event_by_event() -> None:
    assert all(differences(Dialect.WAVE, row) == () for row in EVENTS.values())
    before = "\n".join(differences(Dialect.CLAUDE, EVENTS[HookEvent.PRE_TOOL_USE]))
    assert "exit 2 with JSON: blocks" in before
    assert "tool_response" not in before
    asked = "\n".join(differences(Dialect.CLAUDE, EVENTS[HookEvent.PERMISSION_REQUEST]))
    assert "hooks on `PermissionRequest` do not run" in asked


@pytest.mark.parametrize(
    ("event", "failed", "attended", "heard"),
    [
        (POST, False, True, {"wave", "claude"}),
        (POST, True, True, {"wave"}),
        (FAILURE, True, True, {"claude"}),
        (FAILURE, False, True, {"wave", "claude"}),
        (HookEvent.PERMISSION_REQUEST, False, True, {"wave", "claude"}),
        (HookEvent.PERMISSION_REQUEST, False, False, {"wave"}),
        (HookEvent.PRE_TOOL_USE, False, False, {"wave", "claude"}),
    ],
)
def test_in_which_dialects_an_event_happens(event: HookEvent, failed: bool, attended: bool, heard: set[str]) -> None:
    assert heard_by(event, failed=failed, attended=attended) == heard


def test_a_response_says_whether_the_tool_has_failed() -> None:
    assert has_failed({"tool_response": {"success": False}})
    assert not has_failed({"tool_response": {"success": True}})
    assert not has_failed({"tool_response": [{"type": "text"}]})
    assert not has_failed({"error": "x"})


# ---------------------------------------------------------------------------------------------------------------- stdin


def test_our_own_hooks_are_given_what_they_always_were() -> None:
    payload = {"cwd": "/srv", "tool_name": "Bash", "tool_input": {}, "tool_response": {"success": True, "content": "x"}}
    aside = Aside(directory="/srv/sub", prompt_id="p", duration_ms=3)
    found = stdin_fields(Dialect.WAVE, EVENTS[POST], payload, aside)
    assert {key: found[key] for key in payload} == payload
    assert set(found) - set(payload) == {"tool_result", "tool_output"}


def test_more_is_on_stdin_of_hooks_for_another_agent() -> None:
    aside = Aside(directory="/srv/sub", prompt_id="p", duration_ms=3)
    payload = {"cwd": "/srv", "tool_name": "Grep", "tool_input": {}, "tool_response": {"success": True}}
    found = stdin_fields(Dialect.CLAUDE, EVENTS[POST], payload, aside)
    assert found["tool_response"] == {"success": True}  # a tool whose shape is ours
    assert (found["cwd"], found["prompt_id"], found["duration_ms"], found["effort"]) == (
        *("/srv/sub", "p", 3, {"level": "medium"}),
    )
    stop = stdin_fields(Dialect.CLAUDE, EVENTS[HookEvent.STOP], {"cwd": "/srv"}, Aside())
    assert stop == {"cwd": "/srv", "effort": {"level": "medium"}, "background_tasks": [], "session_crons": []}
    assert stdin_fields(Dialect.CLAUDE, EVENTS[HookEvent.SESSION_START], {"source": "startup"}, Aside()) == {
        "source": "startup"
    }


def test_both_streams_of_a_command_are_one() -> None:
    ours = {"success": True, "content": "a\nb", "stdout": "b", "stderr": "a", "output": "a\nb\n", "exit_code": 0}
    assert given("Bash", ours) == {
        "stdout": "a\nb\n", "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False,
        "exit_code": 0, "success": True,
    }  # fmt: skip
    assert given("Bash", {"success": True, "content": "replaced"})["stdout"] == "replaced"
    assert given("Bash", {"stdout": "out", "interrupted": True, "backgroundTaskId": "b1"})["backgroundTaskId"] == "b1"


DIFF = "@@ -1,2 +1,2 @@\n one\n-two\n+2\n@@ -9 +9,0 @@\n-nine\n\\ No newline at end of file\n[… 7 more lines of diff]"


def test_what_was_written_is_the_text_of_the_file() -> None:
    ours = {"success": True, "content": "Replaced /a", "filePath": "/a", "diff": DIFF}
    found = given("Write", ours, Aside(original="one\ntwo\n"), file_path="/a", content="text")
    assert (found["type"], found["content"], found["originalFile"]) == ("update", "text", "one\ntwo\n")
    assert found["structuredPatch"] == patch_of(DIFF)
    assert given("Write", ours, file_path="/a", content="text")["type"] == "create"
    assert "success" not in given("Write", {"filePath": "/a"}, file_path="/a", content="text")
    replaced_by_a_hook = {"success": True, "content": "[redacted]"}
    assert given("Write", replaced_by_a_hook, Aside(original="secret"), content="secret") == replaced_by_a_hook


def test_a_diff_is_given_as_hunks() -> None:
    assert patch_of(DIFF) == [
        {"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": [" one", "-two", "+2"]},
        {"oldStart": 9, "oldLines": 1, "newStart": 9, "newLines": 0,
         "lines": ["-nine", "\\ No newline at end of file"]},
    ]  # fmt: skip
    assert patch_of("[4,001 lines became 2, from line 1]") == []


def test_what_was_edited_has_both_strings() -> None:
    ours = {"success": True, "content": "Edited /a", "filePath": "/a", "diff": ""}
    found = given("Edit", ours, Aside(original="x"), old_string="x", new_string="y", replace_all=True)
    assert found == {
        "oldString": "x", "newString": "y", "replaceAll": True, "filePath": "/a", "structuredPatch": [],
        "originalFile": "x", "userModified": False, "success": True,
    }  # fmt: skip
    assert given("Edit", {"content": "[redacted]"}, old_string="x") == {"content": "[redacted]"}


def test_several_edits_a_cell_and_a_page_have_the_shapes_that_hooks_know() -> None:
    edits = [{"old_string": "x", "new_string": "y"}]
    many = {"success": True, "content": "Made 1 edit", "filePath": "/a", "edits": [], "replacements": [1], "diff": ""}
    assert given("MultiEdit", many, Aside(original="x"), file_path="/a", edits=edits) == {
        "edits": edits, "originalFileContents": "x", "filePath": "/a", "structuredPatch": [], "originalFile": "x",
        "userModified": False, "success": True,
    }  # fmt: skip
    cell = {"notebook_path": "/n", "cell_id": "a", "cell_type": "code", "language": "python", "edit_mode": "replace"}
    ours = {**cell, "new_source": "x", "filePath": "/n", "success": True, "content": "Replaced", "diff": ""}
    assert given("NotebookEdit", ours, Aside(original="{}"), notebook_path="/n") == {
        **cell, "new_source": "x", "original_file": "{}", "filePath": "/n", "structuredPatch": [], "originalFile": "{}",
        "userModified": False, "success": True,
    }  # fmt: skip
    page = {"url": "https://a/", "code": 200, "codeText": "OK", "bytes": 3, "durationMs": 1.5}
    assert given("WebFetch", {**page, "content": "[Page] abc", "success": True}) == {**page, "result": "[Page] abc"}
    for tool in ("MultiEdit", "NotebookEdit", "WebFetch"):
        assert given(tool, {"content": "[redacted]"}) == {"content": "[redacted]"}


def test_the_report_of_a_subagent_is_an_array_of_blocks() -> None:
    ours = {"success": True, "content": "Found it.", "agentId": "a1"}
    assert given("Task", ours) == {**ours, "content": [{"type": "text", "text": "Found it."}]}


def test_what_was_read_and_what_a_server_answered() -> None:
    assert given("Read", {"content": "1\tx", "file": {"content": "x"}}) == {"type": "text", "file": {"content": "x"}}
    assert given("Read", {"type": "image", "file": {}})["type"] == "image"
    assert given("Read", {"content": "[redacted]"}) == {"content": "[redacted]"}
    assert given("mcp__x__y", {"content": "text"}) == [{"type": "text", "text": "text"}]
    assert given("mcp__x__y", {"content": [{"type": "image"}]}) == [{"type": "image"}]


def test_an_input_that_is_no_object_has_no_shape() -> None:
    payload = {"tool_name": "Write", "tool_input": None, "tool_response": {"filePath": "/a"}}
    assert stdin_fields(Dialect.CLAUDE, EVENTS[POST], payload, Aside())["tool_response"]["content"] == ""


def test_the_environment_says_in_what_kind_of_session_it_is() -> None:
    row = DIALECTS[Dialect.CLAUDE].environment
    for attended, entry in ((True, "cli"), (False, "sdk-cli")):
        aside = Aside(session_id="s-1", attended=attended)
        assert {name: value(aside) for name, value in row.items()} == {
            "CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s-1", "CLAUDE_CODE_ENTRYPOINT": entry,
        }  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- meaning


@pytest.mark.parametrize(
    ("stdout", "blocks"),
    [
        ('{"decision": "approve", "reason": "fine"}', ["err"]),
        ('{"decision": "block"}', ["err"]),
        ('{"decision": "block", "reason": "R"}', ["R"]),
        ('{"continue": false, "decision": "block", "reason": "R"}', ["R"]),
        ('{"continue": false}', ["err"]),
    ],
)
def test_exit_2_blocks_whatever_stands_beside_it(stdout: str, blocks: list[str]) -> None:
    result = HookExecutionResult(exit_code=2, stdout=stdout, stderr="err")
    found = read(HookEvent.PRE_TOOL_USE, result, name="g", dialect=Dialect.CLAUDE)
    assert [effect.reason for effect in found.effects if isinstance(effect, Block)] == blocks
    contradicts = [effect for effect in found.effects if isinstance(effect, TellUser)]
    assert bool(contradicts) is ("approve" in stdout)


def test_an_input_that_is_not_whole_is_set_field_by_field() -> None:
    def needs_b(tool_input: dict[str, Any]) -> str:
        return "" if "b" in tool_input else "b is missing"

    assert replaced({"a": 1, "b": 2}, {"b": 3, "c": None, "d": None}, ["d"], needs_b) == ({"b": 3, "d": None}, "")
    found, problem = replaced({"a": 1, "b": 2}, {"a": 3}, (), needs_b)
    assert found == {"a": 3, "b": 2}
    assert problem == "updatedInput is not a whole input (b is missing); the fields it omits are kept: b"
    assert replaced({}, {"a": 3}, (), needs_b)[1].endswith(": nothing")


# ------------------------------------------------------------------------------------------------------------- settings


def ours(**entry: Any) -> HookConfig:
    return load_hooks([hooks_in_code({"PreToolUse": [{"hooks": [entry]}]})])


def test_our_own_settings_can_say_for_whom_a_hook_was_written() -> None:
    (hook,) = ours(command="./x", dialect="claude").hooks
    assert (hook.dialect, hook.gets_arguments) == (Dialect.CLAUDE, False)
    (hook,) = ours(command="./x").hooks
    assert (hook.dialect, hook.gets_arguments) == (Dialect.WAVE, True)
    found = ours(command="./x", dialect="cloude")
    assert found.hooks == ()
    assert '"cloude" is not valid (did you mean "claude"?)' in str(found.issues[0])


def test_a_file_of_another_agent_cannot_say_that_its_hooks_are_ours() -> None:
    text = '{"hooks": {"Stop": [{"command": "./x", "dialect": "wave"}, {"type": "webhook", "onFailure": "block"}]}}'
    source = replace(parse_settings(text, Layer.PROJECT, "theirs.json"), dialect=Dialect.CLAUDE)
    found = load_hooks([source])
    assert [(hook.dialect, hook.kind, hook.name) for hook in found.hooks] == [
        (Dialect.CLAUDE, HookKind.COMMAND, "x"),
        (Dialect.CLAUDE, HookKind.ABSENT, "webhook hook"),
    ]
    assert [(issue.broken, issue.fatal) for issue in found.issues] == [(False, False)]


async def test_a_hook_of_a_type_that_there_is_not_is_taken_for_a_command_by_no_runner(tmp_path: Path) -> None:
    config = ours(type="webhook", prompt="$(touch ran)", dialect="claude", name="asks")
    session = SessionFacts(session_id="s", transcript_path="", project_dir=str(tmp_path), home=str(tmp_path))
    manager = HookManager(config.hooks, runner=ProcessRunner(), session=session, environment={})
    outcome = await manager.run(HookEvent.PRE_TOOL_USE, {"tool_name": "Bash", "tool_input": {}})
    assert [note.text for note in outcome.to_user] == [
        'Hook asks could not be started: this agent has no hooks of type "webhook"'
    ]
    assert outcome.failed_open == 1
    assert not (tmp_path / "ran").exists()


async def test_a_prompt_is_never_run_as_a_command(tmp_path: Path) -> None:
    config = ours(type="prompt", prompt="$(touch ran)", name="asks")
    session = SessionFacts(session_id="s", transcript_path="", project_dir=str(tmp_path), home=str(tmp_path))
    manager = HookManager(config.hooks, runner=ProcessRunner(), session=session, environment={})
    outcome = await manager.run(HookEvent.PRE_TOOL_USE, {"tool_name": "Bash", "tool_input": {}})
    assert [note.text for note in outcome.to_user] == [
        "Hook asks could not be started: hooks of type prompt do not run as processes"
    ]
    assert not (tmp_path / "ran").exists()
