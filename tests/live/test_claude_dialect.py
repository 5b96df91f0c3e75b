"""Hooks that were written for Claude Code mean here what they mean there, through the whole agent.

Each test is named by what would go wrong for somebody whose `.claude` directory guards a project.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from tests.cli.project import Project, serving
from tests.live.test_foreign_settings import service
from wave_agent.testing import Reply, call

TOUCH = Reply(tool_calls=[call("Bash", command="touch ran", description="Touch it")])
EVERYTHING = "bypassPermissions"


class Session(Struct):
    """What came of one `wave -p`."""

    requests: list[list[dict[str, Any]]]
    """The messages of each request."""
    result: dict[str, Any]
    stderr: str

    def said(self, request: int = -1) -> str:
        """What stands in a request, all messages together."""
        return "\n".join(str(message["content"]) for message in self.requests[request])

    def told(self) -> str:
        """What the user was told."""
        blocks = [block for message in self.result["messages"] for block in message["blocks"]]
        shown = [str(block.get("content")) for block in blocks if block["type"] in ("notice", "error")]
        return "\n".join([*shown, self.stderr])

    def ran(self) -> list[str]:
        """The runs of hooks, in their order."""
        return [f"{run['event']} {run['outcome']}" for run in self.result["hooks"]]


def run(
    project: Project,
    hooks: dict[str, Any],
    *replies: Any,
    mode: str = EVERYTHING,
    flags: Sequence[str] = (),
    raw: str | None = None,
) -> Session:
    """`wave -p` in a project with these hooks for Claude Code."""
    text = raw if raw is not None else json.dumps({"hooks": hooks})
    (project.directory / ".claude" / "settings.json").write_text(text)
    with serving(*replies) as server:
        options = ("--trust", "--permission-mode", mode, "--output-format", "json", *flags)
        done = project.wave("-p", "go", *options, server=server)
    return Session([one.body["messages"] for one in server.requests], json.loads(done.stdout), done.stderr)


def on(event: str, command: str, *, matcher: str = "", **more: Any) -> dict[str, Any]:
    return {event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command, **more}]}]}


def printing(output: Any, *, code: int = 0, stderr: str = "") -> str:
    """A command that prints this JSON."""
    text = json.dumps(output).replace("'", "'\\''")
    return f"cat >/dev/null; printf '%s' '{text}'; printf '%s' '{stderr}' >&2; exit {code}"


def specific(event: str = "PreToolUse", **fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


# ------------------------------------------------------------------------------------------ what was looser than there


@pytest.mark.parametrize(
    "output",
    [
        specific(permissionDecision="allow"),
        {"decision": "approve", "reason": "fine"},
        specific(permissionDecision="ask", permissionDecisionReason="sure?"),
    ],
    ids=["allow", "approve", "ask"],
)
def test_a_guard_that_exits_with_2_is_overruled_by_its_own_json(theirs: Project, output: dict[str, Any]) -> None:
    hooks = on("PreToolUse", printing(output, code=2, stderr="Not here."), matcher="Bash")
    found = run(theirs, hooks, TOUCH, "done")
    assert found.requests[1][-1]["content"].startswith("Not run: ")
    assert "Not here." in found.said()
    assert "fine" not in found.said()
    assert found.ran() == ["PreToolUse deny"]
    assert not (theirs.directory / "ran").exists()
    assert "exited with 2; the exit code counts" in found.told()


def test_a_hook_that_commits_after_green_tests_commits_after_red_ones(theirs: Project) -> None:
    note = 'jq -c "{hook_event_name, tool_response, error}" >> log'
    hooks = on("PostToolUse", note, matcher="Bash") | on("PostToolUseFailure", note, matcher="Bash")
    theirs.settings({"hooks": on("PostToolUse", "cat > /dev/null; echo ours >> log", matcher="Bash")})
    failing = Reply(tool_calls=[call("Bash", command="echo red; exit 1")])
    passing = Reply(tool_calls=[call("Bash", command="echo green")])
    found = run(theirs, hooks, failing, passing, "done")
    assert "red" in found.said(1)
    lines = (theirs.directory / "log").read_text().splitlines()
    assert lines.count("ours") == 2  # one of this agent's own hears of both
    first, second = (json.loads(line) for line in lines if line != "ours")
    assert (first["hook_event_name"], first["tool_response"]) == ("PostToolUseFailure", None)
    assert first["error"] == "red\n[exit code 1]"
    assert second["hook_event_name"] == "PostToolUse"
    assert second["tool_response"]["stdout"] == "green\n"


def test_a_secret_of_a_failed_command_slips_past_its_redactor(theirs: Project) -> None:
    redact = printing(specific("PostToolUseFailure", updatedToolOutput="[redacted]"))
    failing = Reply(tool_calls=[call("Bash", command="echo canary; exit 1")])
    found = run(theirs, on("PostToolUseFailure", redact, matcher="Bash"), failing, "done")
    assert found.requests[1][-1]["content"].endswith("\n[redacted]\n</hook>")
    transcript = Path(found.result["transcript_path"]).read_text()
    assert "[redacted]" in transcript
    assert "canary\\n" not in transcript


def test_a_redactor_that_prints_the_response_as_an_object_redacts_nothing(theirs: Project) -> None:
    redact = (
        'jq -c \'.tool_response.stdout |= gsub("canary"; "***") | '
        '{hookSpecificOutput: {hookEventName: "PostToolUse", updatedToolOutput: .tool_response}}\''
    )
    printed = Reply(tool_calls=[call("Bash", command="echo canary; echo more canary >&2")])
    found = run(theirs, on("PostToolUse", redact, matcher="Bash"), printed, "done")
    assert found.requests[1][-1]["content"].endswith("\n***\nmore ***\n</hook>")
    assert found.stderr == ""


def test_a_stop_hook_that_blocks_without_a_reason_lets_the_turn_end(theirs: Project) -> None:
    block = f"[ -e once ] && exit 0; touch once; {printing({'decision': 'block'})}"
    found = run(theirs, on("Stop", block), "half done", "all done")
    assert len(found.requests) == 2
    assert "Blocked by hook" in found.said()
    assert found.result["result"] == "all done"
    assert 'needs a "reason"' in found.told()


def test_a_field_that_the_new_input_leaves_out_stays_in(theirs: Project) -> None:
    rewrite = printing(specific(permissionDecision="allow", updatedInput={"command": "touch other"}))
    log = 'jq -c .tool_input >> "$CLAUDE_PROJECT_DIR/log"'
    hooks = on("PreToolUse", rewrite, matcher="Bash") | on("PostToolUse", log, matcher="Bash")
    found = run(theirs, hooks, TOUCH, "done")
    assert "changed the input of this call: command, description" in found.said()
    assert (theirs.directory / "log").read_text() == '{"command":"touch other"}\n'
    assert (theirs.directory / "other").exists()
    assert not (theirs.directory / "ran").exists()
    assert found.stderr == ""


def test_a_new_input_that_is_only_a_part_of_one_refuses_the_call(theirs: Project) -> None:
    rewrite = printing(specific(updatedInput={"content": "guarded"}))
    write = Reply(tool_calls=[call("Write", file_path="a.txt", content="secret")])
    found = run(theirs, on("PreToolUse", rewrite, matcher="Write"), write, "done")
    assert (theirs.directory / "a.txt").read_text() == "guarded"
    assert "updatedInput is not a whole input" in found.told()
    assert "the fields it omits are kept: file_path" in found.told()


def test_a_deny_with_a_long_reason_is_lost(theirs: Project) -> None:
    deny = (
        'printf \'{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecisionReason": "\'; '
        'head -c 1500000 /dev/zero | tr "\\0" x; printf \'", "permissionDecision": "deny"}}\''
    )
    found = run(theirs, on("PreToolUse", deny, matcher="Bash"), TOUCH, "done")
    assert found.requests[1][-1]["content"].startswith("Not run: ")
    assert not (theirs.directory / "ran").exists()


def test_a_deny_under_a_key_that_is_given_twice_is_lost(theirs: Project) -> None:
    twice = '{"decision": "block", "reason": "No.", "decision": "approve"}'
    found = run(theirs, on("PreToolUse", f"echo '{twice}'", matcher="Bash"), TOUCH, "done")
    assert "Not run: " in found.requests[1][-1]["content"]
    assert not (theirs.directory / "ran").exists()
    assert 'duplicate key "decision"' in found.told()


def test_a_stroke_too_many_in_a_matcher_switches_its_guards_off(theirs: Project) -> None:
    found = run(theirs, on("PreToolUse", "echo No. >&2; exit 2", matcher="Bash|"), TOUCH, "done")
    assert "No." in found.requests[1][-1]["content"]
    assert not (theirs.directory / "ran").exists()


def test_a_guard_that_says_once_guards_the_first_call_alone(theirs: Project) -> None:
    hooks = on("PreToolUse", "echo No. >&2; exit 2", matcher="Bash", once=True)
    again = Reply(tool_calls=[call("Bash", command="touch ran2")])
    found = run(theirs, hooks, TOUCH, again, "done")
    assert found.ran() == ["PreToolUse deny", "PreToolUse deny"]
    assert not (theirs.directory / "ran2").exists()
    assert '"once" has no effect on a hook written for another agent' in found.stderr


def test_a_hook_with_nothing_to_object_answers_the_question(theirs: Project) -> None:
    found = run(
        theirs, on("PreToolUse", printing({"decision": "allow"}), matcher="Bash"), TOUCH, "done", mode="default"
    )
    assert "nobody can confirm" in found.requests[1][-1]["content"]
    assert not (theirs.directory / "ran").exists()
    assert '"allow" is no opinion on PreToolUse' in found.told()


def test_a_hook_answers_a_question_that_nobody_sees(theirs: Project) -> None:
    answer = printing(specific("PermissionRequest", decision={"behavior": "allow"}))
    hooks = on("PermissionRequest", f"touch asked; {answer}", matcher="Bash")
    found = run(theirs, hooks, TOUCH, "done", mode="default")
    assert "nobody can confirm" in found.requests[1][-1]["content"]
    assert not (theirs.directory / "asked").exists()
    assert not (theirs.directory / "ran").exists()
    theirs.settings({"hooks": hooks})  # of this agent's own settings, it does
    run(theirs, {}, TOUCH, "done", mode="default")
    assert (theirs.directory / "ran").exists()


def test_a_service_that_no_setting_lists_is_not_asked(theirs: Project) -> None:
    denied = specific(permissionDecision="deny", permissionDecisionReason="Says the service.")
    with service((200, json.dumps(denied))) as (url, asked):
        hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "http", "url": url}]}]}
        found = run(theirs, hooks, TOUCH, "done")
        assert len(asked) == 1
    assert "Says the service." in found.requests[1][-1]["content"]
    assert not (theirs.directory / "ran").exists()


def test_a_guard_of_an_unknown_type_lets_the_call_pass_and_nobody_hears_of_it(theirs: Project) -> None:
    guard = {"type": "webhook", "target": "Is this safe?"}
    found = run(theirs, {"PreToolUse": [{"matcher": "Bash", "hooks": [guard]}]}, TOUCH, "done")
    assert (theirs.directory / "ran").exists()
    assert 'this agent has no hooks of type "webhook", so every run of this hook fails' in found.stderr
    assert found.ran() == ["PreToolUse failure"]
    assert found.result["hooks_failed_open"] == 1
    (theirs.directory / "ran").unlink()
    blocking = {"PreToolUse": [{"matcher": "Bash", "hooks": [{**guard, "onFailure": "block"}]}]}
    for hooks, flags in ((blocking, ()), ({"PreToolUse": [{"matcher": "Bash", **guard}]}, ("--strict-hooks",))):
        found = run(theirs, hooks, TOUCH, "done", flags=flags)
        assert 'no hooks of type "webhook"' in found.requests[1][-1]["content"]
        assert not (theirs.directory / "ran").exists()
        assert found.result["hooks_failed_open"] == 0


OBJECTS = Reply(tool_calls=[call("verdict", ok=False, reason="Not safe.")])


def judging(kind: str = "prompt", **more: Any) -> dict[str, Any]:
    hook = {"type": kind, "prompt": "Is this safe? $ARGUMENTS", **more}
    return {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}


def test_an_objection_to_a_call_is_told_to_the_model_and_the_turn_goes_on(theirs: Project) -> None:
    found = run(theirs, judging(), TOUCH, OBJECTS)
    assert found.result["status"] == "stopped"
    assert "Not safe." in found.told()
    assert not (theirs.directory / "ran").exists()
    for hooks in (judging(continueOnBlock=True), judging("agent")):
        found = run(theirs, hooks, TOUCH, OBJECTS, "done")
        assert "Not safe." in found.requests[2][-1]["content"]
        assert found.result["status"] == "completed"
        assert not (theirs.directory / "ran").exists()


def test_a_hook_asks_for_a_model_that_only_another_agent_knows(theirs: Project) -> None:
    found = run(theirs, judging(model="haiku"), TOUCH, OBJECTS)
    assert '"haiku" is a name of another agent; the usual model is asked' in found.stderr
    assert found.ran() == ["PreToolUse stop"]


# ------------------------------------------------------------------------------------- what was different for no reason


def test_what_a_stop_hook_adds_is_lost_when_there_is_one_prompt_alone(theirs: Project) -> None:
    add = f"[ -e once ] && exit 0; touch once; {printing(specific('Stop', additionalContext='Check the tide.'))}"
    found = run(theirs, on("Stop", add), "half done", "all done")
    assert "Check the tide." in found.said()
    assert found.result["result"] == "all done"


def test_what_an_async_hook_adds_is_lost_when_there_is_one_prompt_alone(theirs: Project) -> None:
    late = printing(specific("PostToolUse", additionalContext="The wind turns."))
    hooks = on("PostToolUse", f"{late.removesuffix('exit 0')} touch heard", matcher="Bash", **{"async": True})
    wait = Reply(tool_calls=[call("Bash", command="until [ -e heard ]; do sleep 0.01; done; sleep 0.3")])
    found = run(theirs, hooks, TOUCH, wait, "done")
    assert "The wind turns." in found.said()


def test_two_hooks_that_return_the_whole_input_deny_each_other(theirs: Project) -> None:
    def sets(field: str, value: str) -> dict[str, Any]:
        output = '{hookSpecificOutput: {hookEventName: "PreToolUse", updatedInput: .}}'
        return {"type": "command", "command": f"jq -c '.tool_input | .{field} = \"{value}\" | {output}'"}

    log = 'jq -c .tool_input >> "$CLAUDE_PROJECT_DIR/log"'
    both = [sets("command", "touch other"), sets("description", "Safer")]
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": both}]} | on("PostToolUse", log, matcher="Bash")
    found = run(theirs, hooks, TOUCH, "done")
    assert "converge" not in found.said()
    assert (theirs.directory / "log").read_text() == '{"command":"touch other","description":"Safer"}\n'
    assert (theirs.directory / "other").exists()


def test_a_loop_that_makes_progress_is_cut_by_the_limit_of_stops(theirs: Project) -> None:
    rounds = 10
    block = f'[ "$(wc -l < ran)" -ge {rounds} ] && exit 0; echo "Not yet." >&2; exit 2'
    step = Reply(tool_calls=[call("Bash", command="echo x >> ran; date +%N")])
    replies = [reply for _ in range(rounds) for reply in (step, "a step")]
    found = run(theirs, on("Stop", block), *replies)
    assert found.result["status"] == "completed"
    assert len((theirs.directory / "ran").read_text().splitlines()) == rounds


def test_a_hook_looks_for_what_it_is_given_at_home_and_finds_it_not(theirs: Project) -> None:
    hook = 'jq -c . >> "$CLAUDE_PROJECT_DIR/log"; env | grep ^CLAUDE | sort >> "$CLAUDE_PROJECT_DIR/env"'
    hooks = {name: on(name, hook)[name] for name in ("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")}
    (theirs.directory / "old.txt").write_text("one\ntwo\n")
    calls = [
        call("Read", file_path="old.txt"),
        call("Edit", file_path="old.txt", old_string="two", new_string="2"),
        call("Write", file_path="new.txt", content="text\n"),
        call("Bash", command="echo out; echo err >&2"),
    ]
    found = run(theirs, hooks, Reply(tool_calls=calls), "done")
    told = [json.loads(line) for line in (theirs.directory / "log").read_text().splitlines()]
    prompt, stop = told[0], told[-1]
    assert {one["prompt_id"] for one in told} == {prompt["prompt_id"]}
    assert (stop["background_tasks"], stop["session_crons"]) == ([], [])
    assert [one["effort"] for one in told[1:]] == [{"level": "medium"}] * (len(told) - 1)
    after = {one["tool_name"]: one for one in told if one["hook_event_name"] == "PostToolUse"}
    assert all(one["duration_ms"] >= 0 for one in after.values())
    old, new = str(theirs.directory / "old.txt"), str(theirs.directory / "new.txt")
    assert after["Read"]["tool_response"] == {
        "type": "text",
        "file": {"content": "one\ntwo", "filePath": old, "numLines": 2, "startLine": 1, "totalLines": 2},
    }
    hunk = {"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": [" one", "-two", "+2"]}
    assert after["Edit"]["tool_response"] == {
        "oldString": "two", "newString": "2", "replaceAll": False, "filePath": old, "structuredPatch": [hunk],
        "originalFile": "one\ntwo\n", "userModified": False, "success": True,
    }  # fmt: skip
    assert after["Write"]["tool_response"] == {
        "type": "create", "content": "text\n", "filePath": new, "structuredPatch": [], "originalFile": None,
        "userModified": False, "success": True,
    }  # fmt: skip
    assert after["Bash"]["tool_response"] == {
        "stdout": "out\nerr\n", "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False,
        "exit_code": 0, "success": True,
    }  # fmt: skip
    assert after["Bash"]["tool_result"] == after["Bash"]["tool_response"]
    session = found.result["session_id"]
    variables = set((theirs.directory / "env").read_text().splitlines())
    wanted = {"CLAUDECODE=1", f"CLAUDE_CODE_SESSION_ID={session}", "CLAUDE_CODE_ENTRYPOINT=sdk-cli"}
    assert wanted <= variables


def test_a_hook_runs_where_the_session_was_started_and_not_where_it_is(theirs: Project) -> None:
    (theirs.directory / "sub").mkdir()
    hook = '{ pwd; jq -r .cwd; } >> "$CLAUDE_PROJECT_DIR/log"'
    move = Reply(tool_calls=[call("Bash", command="cd sub")])
    away = Reply(tool_calls=[call("Bash", command="cd /")])
    run(theirs, on("PreToolUse", hook, matcher="Bash"), move, away, TOUCH, "done")
    here, sub = str(theirs.directory), str(theirs.directory / "sub")
    # At home a session cannot leave its directories: outside of them, hooks stay where it was started.
    assert (theirs.directory / "log").read_text().splitlines() == [here, here, sub, sub, here, here]


@pytest.mark.parametrize(
    "command", [".claude/hooks/guard.sh", "bash .claude/hooks/guard.sh", 'python3 -c "import guard"', "make -s guard"]
)
def test_the_model_changes_the_directory_and_so_the_guard(theirs: Project, command: str) -> None:
    (theirs.directory / "sub" / ".claude" / "hooks").mkdir(parents=True)
    for place, code in ((theirs.directory, 2), (theirs.directory / "sub", 0)):
        guard = place / ".claude" / "hooks" / "guard.sh"
        guard.write_text(f"#!/bin/sh\n[ -d sub ] && grep -q 'touch ran' && exit {code}\nexit 0\n")
        guard.chmod(0o755)
        (place / "guard.py").write_text(f"import sys\nsys.exit({code} if 'touch ran' in sys.stdin.read() else 0)\n")
        (place / "Makefile").write_text(f"guard:\n\t@! grep -q 'touch ran' || exit {code}\n")
    move = Reply(tool_calls=[call("Bash", command="cd sub")])
    found = run(theirs, on("PreToolUse", command, matcher="Bash"), move, TOUCH, "done")
    assert found.requests[2][-1]["content"].startswith("Not run: ")
    assert not (theirs.directory / "sub" / "ran").exists()


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
def test_an_object_that_is_no_decision_is_lost_and_one_that_is_broken_is_read(theirs: Project, event: str) -> None:
    found = run(theirs, on(event, printing({"weather": "calm"})), "done")
    assert '{"weather": "calm"}' in found.said()
    assert found.stderr == ""
    found = run(theirs, on(event, """echo '{"additionalContext": "half'"""), "done")
    assert "half" not in found.said()  # stricter than at home, where it is context
    assert "stdout looks like JSON but is not" in found.told()
