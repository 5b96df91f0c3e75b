"""The journal of a session that grows long."""

import json

import pytest

from tests.guard.judging import Arena
from wave_agent.cli.main import run, wave
from wave_agent.guard import journal


def test_the_chain_goes_on_after_many_events_without_hooks(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAVE_HOME", str(arena.home))
    monkeypatch.chdir(arena.project)
    arena.hook("PreToolUse", "exit 0")
    arena.bash("ls")
    arena.hooks({})
    for _ in range(3):
        arena.bash(f"echo {'x' * journal._TAIL}")
    arena.hook("PreToolUse", "exit 0")
    arena.bash("pwd")
    assert [line["run"] for line in arena.journal() if line.get("subtype") == "hook_run"] == [1, 2]
    assert run(wave, ["sessions", "verify", "claude-s1"]) == 0


def test_a_hook_that_runs_once_is_remembered_however_long_the_session(arena: Arena) -> None:
    log = arena.home / "log"
    arena.hook("PreToolUse", f"echo ran >> {log}", once=True)
    arena.bash("ls")
    arena.bash(f"echo {'x' * journal._TAIL}")
    arena.bash("pwd")
    assert log.read_text() == "ran\n"


def test_the_result_of_a_call_without_an_id_is_found_without_hooks(arena: Arena) -> None:
    call = {"session_id": "g", "cwd": str(arena.project), "tool_name": "run_shell_command"}
    arena.judge("gemini", "BeforeTool", {**call, "tool_input": {"command": "ls"}})
    arena.judge("gemini", "AfterTool", {**call, "tool_input": {"command": "ls"}, "tool_response": {"llmContent": "a"}})
    asked, answered = (line["message"]["content"][0] for line in arena.journal("gemini-g") if "message" in line)
    assert asked["id"] == answered["tool_use_id"], json.dumps([asked, answered])
