"""Events of other agents are judged with everything that judges our own calls."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.guard.judging import Arena
from wave_agent.guard.answers import HostReply
from wave_agent.guard.hosts import HOSTS
from wave_agent.testing import Reply, call
from wave_agent.testing.model_server import RecordingModelServer

SHELLS: dict[str, tuple[str, Any]] = {
    "claude": ("PreToolUse", {"tool_name": "Bash", "tool_input": {"command": "git push"}}),
    "codex": ("PreToolUse", {"tool_name": "shell", "tool_input": {"command": ["bash", "-lc", "git push"]}}),
    "gemini": ("BeforeTool", {"tool_name": "run_shell_command", "tool_input": {"command": "git push"}}),
    "qwen": ("PreToolUse", {"tool_name": "run_shell_command", "tool_input": {"command": "git push"}}),
    "kimi": ("PreToolUse", {"tool_name": "Shell", "tool_input": {"command": "git push"}}),
    "vibe": ("pre_tool", {"tool_name": "bash", "tool_input": {"command": "git push"}}),
    "cursor": ("beforeShellExecution", {"command": "git push"}),
    "copilot": ("preToolUse", {"toolName": "bash", "toolArgs": '{"command": "git push"}'}),
    "opencode": ("tool.execute.before", {"tool_name": "bash", "tool_input": {"command": "git push"}}),
}


def denies(reply: HostReply) -> bool:
    return reply.status == 2 or '"deny"' in reply.stdout


@pytest.mark.parametrize("host", HOSTS)
def test_a_deny_rule_denies_in_every_host(arena: Arena, host: str) -> None:
    arena.rules(deny=["Bash(git push:*)"])
    event, payload = SHELLS[host]
    reply = arena.judge(host, event, {"cwd": str(arena.project), **payload})
    assert denies(reply)
    assert "rule Bash(git push:*)" in reply.stdout + reply.stderr


@pytest.mark.parametrize("host", HOSTS)
def test_a_hook_that_crashes_under_block_denies_in_every_host(arena: Arena, host: str) -> None:
    arena.hook("PreToolUse", "kill -9 $$", onFailure="block")
    event, payload = SHELLS[host]
    assert denies(arena.judge(host, event, {"cwd": str(arena.project), **payload}))


def test_nothing_to_object_to_prints_nothing(arena: Arena) -> None:
    arena.rules(deny=["Bash(git push:*)"])
    (arena.home / "settings.json").write_text(json.dumps({"permissions": {"allow": ["Bash(ls:*)"]}}))
    assert arena.bash("ls; touch x") == HostReply()
    assert arena.bash("ls") == HostReply()
    assert '"allow"' in arena.bash("ls", pass_allow=True).stdout
    assert arena.bash("touch x", pass_allow=True) == HostReply(), (
        "what only our mode would allow is the host's business"
    )


def test_hooks_see_the_call_as_ours_and_which_host_makes_it(arena: Arena) -> None:
    arena.hook("PreToolUse", f"cat > {arena.home}/seen; exit 2")
    payload = {"session_id": "k", "cwd": str(arena.project), "tool_name": "WriteFile", "tool_call_id": "c"}
    reply = arena.judge("kimi", "PreToolUse", {**payload, "tool_input": {"path": "a.txt", "content": "x"}})
    seen = json.loads((arena.home / "seen").read_text())
    assert reply.status == 2
    assert (seen["host"], seen["tool_name"], seen["session_id"]) == ("kimi", "Write", "k")
    assert seen["tool_input"] == {"file_path": str(arena.project / "a.txt"), "content": "x"}
    assert seen["effects"]["writes"] == [str(arena.project / "a.txt")]


def test_a_patch_is_judged_as_the_writes_that_it_makes(arena: Arena) -> None:
    arena.rules(deny=["Edit(.env)"])
    for patch in ("*** Update File: .env\n@@\n-a\n+b\n", "*** Delete File: .env\n", "*** Add File: .env\n+x\n",
                  "*** Update File: a\n*** Move to: .env\n@@\n-a\n+b\n"):  # fmt: skip
        text = f"*** Begin Patch\n{patch}*** End Patch"
        payload = {"cwd": str(arena.project), "tool_name": "apply_patch", "tool_input": {"command": text}}
        assert denies(arena.judge("codex", "PreToolUse", payload)), patch
    allowed = "*** Begin Patch\n*** Add File: b\n+x\n*** End Patch"
    payload = {"cwd": str(arena.project), "tool_name": "apply_patch", "tool_input": {"command": allowed}}
    assert arena.judge("codex", "PreToolUse", payload) == HostReply()


def test_a_rule_may_use_the_name_that_the_host_uses(arena: Arena) -> None:
    arena.rules(deny=["apply_patch"], ask=["google_web_search"])
    allowed = "*** Begin Patch\n*** Add File: b\n+x\n*** End Patch"
    payload = {"cwd": str(arena.project), "tool_name": "apply_patch", "tool_input": {"command": allowed}}
    assert denies(arena.judge("codex", "PreToolUse", payload))
    search = {"cwd": str(arena.project), "tool_name": "google_web_search", "tool_input": {"query": "x"}}
    assert "needs confirmation" in arena.judge("gemini", "BeforeTool", search).stderr


def test_the_settings_that_hold_the_guard_are_protected(arena: Arena) -> None:
    for line in ("echo > .claude/settings.json", "rm ~/.kimi/config.toml", f"rm -r {arena.home}/guard"):
        assert '"ask"' in arena.bash(line).stdout, line
    kimi = {**arena.call("rm ~/.kimi/config.toml"), "tool_name": "Shell"}
    assert "This run is not interactive" in arena.judge("kimi", "PreToolUse", kimi).stderr


def test_a_rewritten_call_is_rewritten_or_denied(arena: Arena) -> None:
    answer = json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "pwd"}}})
    arena.hook("PreToolUse", f"echo '{answer}'", matcher="Bash")
    updated = json.loads(arena.bash("ls").stdout)["hookSpecificOutput"]
    assert updated == {"hookEventName": "PreToolUse", "updatedInput": {"command": "pwd"}}
    reply = arena.judge("kimi", "PreToolUse", {**arena.call("ls"), "tool_name": "Shell"})
    assert reply.status == 2
    assert 'Repeat it like this: Bash {"command": "pwd"}' in reply.stderr


def test_a_rewritten_input_is_judged_by_rules_and_guards_again(arena: Arena) -> None:
    arena.rules(deny=["Bash(git push:*)"])
    answer = json.dumps(
        {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "git push"}}}
    )
    arena.hook("PreToolUse", f"echo '{answer}'", matcher="Bash")
    assert arena.bash("ls").status == 2


def test_untrusted_hooks_of_a_project_deny(arena: Arena) -> None:
    entry = {"matcher": "Bash", "hooks": [{"command": "true"}]}
    (arena.project / ".wave" / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [entry]}}))
    reply = arena.bash("ls")
    assert reply.status == 2
    assert reply.stderr.endswith("run this in a terminal, to trust them as they are now: wave hooks trust\n")
    assert "--" not in reply.stderr, "wave guard run has no option that helps"


UNREADABLE = {
    "settings that are not JSON": ("{,", b'{"tool_name": "Bash", "tool_input": {"command": "ls"}}'),
    "an event that is not UTF-8": ("{}", b"\xff\xfe"),
    "an event that is not JSON": ("{}", b"hello"),
    "a directory that does not exist": (
        "{}", b'{"cwd": "/nowhere/at/all", "tool_name": "Bash", "tool_input": {"command": "ls"}}',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_a_deny(arena: Arena, name: str) -> None:
    settings, stdin = UNREADABLE[name]
    (arena.project / ".wave" / "settings.json").write_text(settings)
    reply = arena.judge("claude", "PreToolUse", stdin)
    assert reply.status == 2
    assert reply.stderr.startswith("wave guard: ")


def test_a_hook_that_hangs_is_a_deny_in_time(arena: Arena) -> None:
    arena.hook("PreToolUse", f"echo $$ > {arena.home}/pid; sleep 100", timeout=90)
    reply = arena.bash("ls", timeout=2)
    assert reply.status == 2
    assert "did not answer within 1 s" in reply.stderr
    pid = (arena.home / "pid").read_text().strip()
    assert not Path(f"/proc/{pid}").exists(), "the hook is ended, not left behind"


def test_a_journal_that_cannot_be_written_changes_no_verdict(arena: Arena) -> None:
    (arena.home / "projects").write_text("in the way")
    arena.rules(deny=["Bash(git push:*)"])
    assert arena.bash("git push").status == 2
    assert arena.bash("ls") == HostReply()


def test_a_command_that_changes_the_directory_does_not_change_the_guards(arena: Arena, tmp_path: Path) -> None:
    arena.rules(deny=["Bash(git push:*)"])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    moved = {**arena.call("git push"), "cwd": str(elsewhere)}
    assert arena.judge("claude", "PreToolUse", moved, CLAUDE_PROJECT_DIR=str(arena.project)).status == 2
    kimi = {**arena.call("ls"), "tool_name": "Shell"}
    assert arena.judge("kimi", "PreToolUse", kimi) == HostReply()
    assert arena.judge("kimi", "PreToolUse", {**moved, "tool_name": "Shell"}).status == 2


def test_the_directories_of_old_sessions_are_forgotten(arena: Arena) -> None:
    pins = arena.home / "guard" / "sessions"
    arena.judge("kimi", "Stop", {"session_id": "old", "cwd": str(arena.project)})
    os.utime(pins / "kimi-old", (1, 1))
    arena.judge("kimi", "Stop", {"session_id": "new", "cwd": str(arena.project)})
    assert [pin.name for pin in pins.iterdir()] == ["kimi-new"]


def test_a_directory_of_the_call_decides_what_relative_paths_are(arena: Arena) -> None:
    arena.rules(deny=["Read(secrets/**)"])
    (arena.project / "secrets").mkdir()
    call = {"tool_name": "run_shell_command", "tool_input": {"command": "cat key", "dir_path": "secrets"}}
    assert denies(arena.judge("gemini", "BeforeTool", {"cwd": str(arena.project), **call}))


def test_prompts_results_and_stops(arena: Arena) -> None:
    arena.hook("UserPromptSubmit", "echo no >&2; exit 2")
    common = {"session_id": "s1", "cwd": str(arena.project)}
    assert arena.judge("claude", "UserPromptSubmit", {**common, "prompt": "hi"}) == HostReply(2, "", "no\n")
    arena.hook("SessionStart", "echo remember this")
    found = json.loads(arena.judge("gemini", "SessionStart", {**common, "source": "startup"}).stdout)
    assert found["hookSpecificOutput"]["additionalContext"] == "remember this"
    redacted = json.dumps({"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": "***"}})
    arena.hook("PostToolUse", f"echo '{redacted}'")
    after = {**arena.call("cat key"), "tool_response": "secret"}
    assert '"updatedToolOutput": "***"' in arena.judge("claude", "PostToolUse", after).stdout
    assert '"updatedToolOutput": "***"' in arena.judge("claude", "PostToolUse", after).stdout
    after = {**after, "tool_response": {"stdout": "secret", "stderr": "", "interrupted": False}}
    shaped = '"updatedToolOutput": {"stdout": "***", "stderr": "", "interrupted": false}'
    assert shaped in arena.judge("claude", "PostToolUse", after).stdout, "Claude Code drops one of another shape"
    assert "secret" not in json.dumps(arena.journal())


def test_a_question_is_a_deny_in_a_mode_that_may_skip_it(arena: Arena) -> None:
    arena.rules(ask=["Bash(npm publish:*)"])
    call = arena.call("npm publish")
    assert '"ask"' in arena.judge("claude", "PreToolUse", {**call, "permission_mode": "default"}).stdout
    denied = arena.judge("claude", "PreToolUse", {**call, "permission_mode": "bypassPermissions"})
    assert (denied.status, denied.stdout) == (2, "")
    assert "needs confirmation because of the permission rule Bash(npm publish:*)" in denied.stderr


def test_a_prompt_that_only_goes_on_with_a_turn_is_not_judged(arena: Arena) -> None:
    arena.hook("UserPromptSubmit", "grep -q ticket || { echo no ticket >&2; exit 2; }")
    common = {"session_id": "s1", "cwd": str(arena.project)}
    first = {**common, "prompt": "ticket 7", "submitted_prompt": "ticket 7"}
    assert arena.judge("qwen", "UserPromptSubmit", first) == HostReply()
    before = len(arena.journal("qwen-s1"))
    assert arena.judge("qwen", "UserPromptSubmit", {**common, "prompt": ""}) == HostReply()
    assert len(arena.journal("qwen-s1")) == before
    assert arena.judge("qwen", "UserPromptSubmit", {**common, "prompt": "", "submitted_prompt": ""}).status == 2
    assert arena.judge("claude", "UserPromptSubmit", {**common, "prompt": ""}).status == 2


def test_a_shell_that_can_be_typed_into_is_judged_as_unknown(arena: Arena) -> None:
    arena.rules(deny=["Bash(git push:*)"])

    def judged(host: str, event: str, tool: str, command: str) -> HostReply:
        payload = {"cwd": str(arena.project), "tool_name": tool, "tool_input": {"command": command}}
        return arena.judge(host, event, payload)

    assert denies(judged("codex", "PreToolUse", "Bash", "bash"))
    assert denies(judged("codex", "PreToolUse", "Bash", "cd src && env -i sh"))
    assert denies(judged("vibe", "pre_tool", "process.start", "bash"))
    assert judged("codex", "PreToolUse", "Bash", "bash -c ls") == HostReply()
    assert judged("codex", "PreToolUse", "Bash", "ls") == HostReply()
    assert judged("gemini", "BeforeTool", "run_shell_command", "bash") == HostReply(), "its commands have no input"


def test_a_stop_hook_cannot_keep_a_host_working_for_ever(arena: Arena) -> None:
    arena.hooks({"Stop": [{"hooks": [{"command": "echo more >&2; exit 2"}]}]}, maxStopBlocks=2)
    common = {"session_id": "s1", "cwd": str(arena.project)}
    assert [arena.judge("codex", "Stop", common).status for _ in range(4)] == [2, 2, 0, 2]
    arena.judge("codex", "UserPromptSubmit", {**common, "prompt": "next"})
    assert arena.judge("codex", "Stop", common).status == 2


def test_a_block_that_a_host_announces_as_a_prompt_is_still_counted(arena: Arena) -> None:
    arena.hooks({"Stop": [{"hooks": [{"command": "echo more >&2; exit 2"}]}]}, maxStopBlocks=2)
    common = {"session_id": "s1", "cwd": str(arena.project)}
    found: list[int] = []
    for number in range(4):
        arena.judge("gemini", "BeforeAgent", {**common, "prompt": "more" if number else "go"})
        stop = {**common, "prompt": "go", "prompt_response": "Done.", "stop_hook_active": number > 0}
        found.append(arena.judge("gemini", "AfterAgent", stop).status)
    assert found == [2, 2, 0, 2]


def test_hooks_that_the_host_runs_itself_do_not_run_twice(arena: Arena) -> None:
    (arena.home / "settings.json").write_text('{"compat": {"claude": true}}')
    claude = arena.project / "claude-home"
    claude.mkdir()
    entry = {"matcher": "Bash", "hooks": [{"type": "command", "command": "exit 2"}]}
    (claude / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [entry]}}))
    env: dict[str, Any] = {"CLAUDE_CONFIG_DIR": str(claude)}
    assert arena.judge("claude", "PreToolUse", arena.call("ls"), **env) == HostReply()
    assert arena.judge("kimi", "PreToolUse", {**arena.call("ls"), "tool_name": "Shell"}, **env).status == 2


@pytest.mark.parametrize("kind", ["prompt", "agent"])
def test_a_hook_that_asks_a_model_asks_the_one_that_is_configured(arena: Arena, kind: str) -> None:
    hook = {"type": kind, "prompt": "No pushes.", "name": "judge", "onFailure": "block"}
    arena.hooks({"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}, hookModel="small")
    reply = arena.bash("git push")
    assert denies(reply)
    assert "Hook judge got no answer: No server is configured for the model small" in reply.stdout + reply.stderr
    objects = Reply(tool_calls=[call("verdict", ok=False, reason="Not from here.")])
    with RecordingModelServer.in_thread([objects]) as server:
        reply = arena.bash("git push", WAVE_BASE_URL=server.base_url, WAVE_API_KEY="key")
    assert denies(reply)
    assert "Not from here." in reply.stdout + reply.stderr
    (request,) = server.requests
    assert request.body["model"] == "small"
    assert '"host": "claude"' in request.body["messages"][1]["content"]
