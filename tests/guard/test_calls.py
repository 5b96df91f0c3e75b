"""What hosts send, read as our events and calls."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.rows import rows
from wave_agent.guard.calls import NEEDED, HostCall, HostEvent, UnreadableError, host_input, read_event
from wave_agent.guard.hosts import HOSTS, ToolRow
from wave_agent.guard.patches import PatchError, calls_of, read_patch
from wave_agent.hooks.events import EVENTS
from wave_agent.tools.registry import builtin_tools

PAYLOADS = Path(__file__).parent / "payloads"
RECORDED = [(host, one) for host in HOSTS for one in json.loads((PAYLOADS / f"{host}.json").read_text())]


def read(host: str, event: str, payload: Any) -> HostEvent:
    return read_event(HOSTS[host], event, json.dumps(payload), "/here")


@rows("host, one", RECORDED, ids=lambda one: one if isinstance(one, str) else one["event"])
def test_a_payload_of_a_host_is_one_of_our_events(host: str, one: dict[str, Any]) -> None:
    event = read(host, one["event"], one["payload"])
    assert [[call.tool, call.tool_input] for call in event.calls] == one["calls"]
    assert event.session_id == one.get("session", "3f2a")
    assert {call.directory for call in event.calls} <= {one.get("directory", "/project")}
    assert event.facts == one.get("facts", {})
    assert event.event is HOSTS[host].events[one["event"]]


def test_every_host_has_payloads_and_every_installed_event_is_known() -> None:
    assert {host for host, _ in RECORDED} == set(HOSTS)
    for row in HOSTS.values():
        assert set(row.installed) <= set(row.events)
        assert EVENTS[row.events[row.installed[0]]].has_rewrites, "the first event is the one before a tool"


def test_tools_of_hosts_are_translated_to_tools_and_fields_that_exist() -> None:
    ours = {tool.name: tool for tool in builtin_tools()}
    for row in HOSTS.values():
        for tool in row.tools.values():
            assert tool.name in ours or tool.name == "WebFetch"
            known = ours[tool.name].schema()["properties"] if tool.name in ours else {"url": {}}
            assert set(tool.fields.values()) <= set(known)
    assert all(set(fields) <= set(ours[name].schema()["required"]) for name, fields in NEEDED.items())


def test_a_command_of_an_unknown_tool_is_judged_as_one_too() -> None:
    for field in ("command", "cmd"):
        payload = {"tool_name": "new_shell", "tool_input": {field: "git push", "n": 1}}
        calls = read("claude", "PreToolUse", payload).calls
        assert [(call.tool, call.tool_input) for call in calls] == [
            ("new_shell", {field: "git push", "n": 1}),
            ("Bash", {"command": "git push"}),
        ]


def test_text_for_a_running_process_of_vibe_is_judged_as_a_command() -> None:
    given = {"processId": "p", "text": "git push\n"}
    (call,) = read("vibe", "pre_tool", {"tool_name": "process.write", "tool_input": given}).calls
    assert (call.tool, call.tool_input["command"]) == ("Bash", "git push\n")
    with pytest.raises(UnreadableError, match="no command that is a string"):
        read("vibe", "pre_tool", {"tool_name": "process.write", "tool_input": {"bytesBase64": "Z2l0"}})


def test_each_of_several_edits_is_a_call_of_its_own() -> None:
    edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d", "replace_all": True}]
    given = {"file_path": "x.py", "edits": edits}
    event = read("claude", "PreToolUse", {"tool_name": "MultiEdit", "tool_input": given, "tool_use_id": "t"})
    assert [(call.tool, call.tool_input) for call in event.calls] == [
        ("Edit", {"file_path": "x.py", **edit}) for edit in edits
    ]
    assert [event.call_id(number) for number in range(2)] == ["t.1", "t.2"]
    # What a hook wants instead of one of them cannot be put into the host's call.
    assert host_input(event.calls[0], given, {**event.calls[0].tool_input, "new_string": "e"}) is None
    for none in ([], [edits[0]]):
        (call,) = read("claude", "PreToolUse", {"tool_name": "MultiEdit", "tool_input": {**given, "edits": none}}).calls
        assert call.tool == "Edit"
        assert call.row is not None


UNREADABLE = [
    ("claude", "PreToolUse", "no json", "not JSON"),
    ("claude", "PreToolUse", "[1]", "not a JSON object"),
    ("claude", "PreToolUse", "", "not JSON"),
    ("claude", "PreToolUse", "[" * 200_000, "not JSON"),
    ("claude", "BeforeTool", "{}", "no event 'BeforeTool'"),
    ("claude", "PreToolUse", '{"hook_event_name": "Stop"}', "this is a Stop event"),
    ("claude", "PreToolUse", "{}", "names no tool"),
    ("claude", "PreToolUse", '{"tool_name": "Bash", "tool_input": 5}', "input is not an object"),
    ("claude", "PreToolUse", '{"tool_name": "Bash", "tool_input": {}}', "has no command that is a string"),
    ("claude", "PreToolUse", '{"tool_name": "Bash"}', "has no command that is a string"),
    ("claude", "PreToolUse", '{"tool_name": "Write", "tool_input": {"file_path": 5}}', "has no file_path"),
    ("claude", "PreToolUse", '{"tool_name": "Bash", "tool_input": {"command": "ls"}, "cwd": 5}', "cwd is not a path"),
    ("claude", "PreToolUse", '{"tool_name": "MultiEdit", "tool_input": {"file_path": "a"}}', "list of edits"),
    ("codex", "PreToolUse", '{"tool_name": "apply_patch", "tool_input": {"command": "x"}}', "patch cannot be read"),
    ("codex", "PreToolUse", '{"tool_name": "shell", "tool_input": {"command": ["a", 1]}}', "not of strings"),
    ("codex", "PreToolUse", '{"tool_name": "Bash", "tool_input": {"command": "ls", "workdir": 5}}', "not a path"),
    ("kimi", "PreToolUse", '{"tool_name": "WriteFile", "tool_input": {"path": ".env", "file_path": "a"}}', "two"),
]


@rows("host, event, stdin, why", UNREADABLE, ids=lambda one: str(one)[:40])
def test_what_cannot_be_read_says_why(host: str, event: str, stdin: str, why: str) -> None:
    with pytest.raises(UnreadableError, match=why):
        read_event(HOSTS[host], event, stdin, "/here")


def test_without_a_directory_it_is_the_one_we_were_started_in() -> None:
    assert read("claude", "Stop", {}).directory == "/here"
    assert read("cursor", "stop", {"workspace_roots": []}).directory == "/here"


def test_odd_values_of_facts_are_text_or_left_out() -> None:
    assert read("claude", "UserPromptSubmit", {"prompt": {"a": 1}}).facts == {"prompt": '{"a": 1}'}
    assert read("claude", "Stop", {"stop_hook_active": "yes"}).facts["stop_hook_active"] is False
    payload = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": {"code": 1, "success": False}}
    response = read("claude", "PostToolUse", payload).facts["tool_response"]
    assert response == {"code": 1, "success": False, "content": '{"code": 1, "success": false}'}


def test_a_call_that_is_several_of_ours_has_an_id_for_each() -> None:
    patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch"
    payload = {"tool_name": "apply_patch", "tool_input": {"input": patch, "n": 1}, "tool_use_id": "c"}
    event = read("codex", "PreToolUse", payload)
    assert [event.call_id(number) for number in range(2)] == ["c.1", "c.2"]
    assert read("codex", "PreToolUse", {**payload, "tool_name": "x", "tool_input": {}}).call_id(0) == "c"


REWRITTEN = [
    (
        "claude",
        {"command": "ls", "timeout": 5},
        "Bash",
        {"command": "pwd", "timeout": 5},
        {"command": "pwd", "timeout": 5},
    ),
    ("claude", {"command": "ls", "timeout": 5}, "Bash", {"command": "ls"}, {"command": "ls"}),
    (
        "kimi",
        {"command": "ls", "timeout": 5},
        "Shell",
        {"command": "ls", "timeout": 7000},
        {"command": "ls", "timeout": 7.0},
    ),
    (
        "kimi",
        {"path": "a", "content": "x"},
        "WriteFile",
        {"file_path": "b", "content": "x"},
        {"path": "b", "content": "x"},
    ),
    ("kimi", {"path": "a", "content": "x"}, "WriteFile", {"content": "x"}, {"content": "x"}),
    (
        "kimi",
        {"path": "a", "edit": {"old": "a", "new": "b"}},
        "StrReplaceFile",
        {"file_path": "a", "new_string": "c"},
        None,
    ),
    ("codex", {"command": ["ls"]}, "shell", {"command": "pwd"}, None),
]


@rows("host, given, tool, wanted, back", REWRITTEN, ids=lambda one: str(one)[:30])
def test_a_rewritten_input_is_put_into_the_fields_of_the_host(
    host: str, given: dict[str, Any], tool: str, wanted: dict[str, Any], back: dict[str, Any] | None
) -> None:
    event = read(host, "PreToolUse", {"tool_name": tool, "tool_input": given})
    assert host_input(event.calls[0], given, wanted) == back


def test_one_file_of_a_patch_cannot_be_rewritten() -> None:
    assert host_input(HostCall(tool="Edit", tool_input={}, directory="/"), {}, {"file_path": "a"}) is None
    call = HostCall(tool="x", tool_input={"a": 1}, directory="/", row=ToolRow(name="x"))
    assert host_input(call, {"a": 1}, {"a": 1, "b": None}) == {"a": 1, "b": None}


NO_PATCH = [
    ("hello", "does not contain"),
    ("*** Begin Patch\n*** End Patch", "changes no file"),
    ("*** Begin Patch\n*** Move to: b\n", "comes before any file"),
    ("*** Begin Patch\n*** Update File:  \n", "names no file"),
]


@rows("text, why", NO_PATCH, ids=lambda one: str(one)[:30])
def test_a_patch_that_names_no_files_is_refused(text: str, why: str) -> None:
    with pytest.raises(PatchError, match=why):
        read_patch(text)


def test_no_file_of_a_patch_is_overlooked() -> None:
    text = (
        "x\n*** Begin Patch\nnoise\n  *** Add File: a\n+*** Delete File: no\n"
        "*** End Patch\n*** Delete File: b\n*** End of File\n"
    )
    found = read_patch(text)
    assert [(one.kind, one.path) for one in found] == [("add", "a"), ("delete", "b")]
    assert found[0].new == "*** Delete File: no"


def test_lines_without_a_sign_are_context() -> None:
    (change,) = read_patch("*** Begin Patch\n*** Update File: a\n@@\n x\ny\n-z")
    assert (change.old, change.new) == ("x\ny\nz", "x\ny")
    assert [tool for tool, _ in calls_of(change)] == ["Edit"]
