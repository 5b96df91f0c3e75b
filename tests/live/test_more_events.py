"""Events that hooks of other agents use, and outputs that end, begin and resume a run."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project, serving
from wave_agent.testing import Reply, call

AS_JSON = ("--output-format", "json")
BYPASS = ("--permission-mode", "bypassPermissions")


def printing(event: str, **fields: Any) -> str:
    return "echo " + shlex.quote(json.dumps({"hookSpecificOutput": {"hookEventName": event, **fields}}))


def hooked(project: Project, hooks: dict[str, Any], **settings: Any) -> None:
    """In the user's settings, which need no trust."""
    project.home.mkdir(exist_ok=True)
    groups = {event: [one if isinstance(one, dict) else {"hooks": [one]}] for event, one in hooks.items()}
    (project.home / "settings.json").write_text(json.dumps({"hooks": groups, **settings}))


def heard(project: Project, name: str) -> list[dict[str, Any]]:
    file = project.directory / name
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def results(server: Any, request: int = -1) -> list[str]:
    return [one["content"] for one in server.requests[request].body["messages"] if one["role"] == "tool"]


def said(server: Any, request: int = -1) -> str:
    """What the model gets in the user's role."""
    return "\n".join(str(one["content"]) for one in server.requests[request].body["messages"] if one["role"] == "user")


def records(project: Project) -> list[dict[str, Any]]:
    (file,) = project.home.glob("projects/*/*.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_denied_call_is_known_to_hooks_and_the_model_may_be_invited_to_try_again(project: Project) -> None:
    note = f"cat >> denied; echo >> denied; {printing('PermissionDenied', retry=True)}"
    hooked(project, {"PermissionDenied": {"matcher": "Bash", "hooks": [note]}}, permissions={"deny": ["Bash(rm:*)"]})
    calls = [call("Bash", command="rm -rf build"), call("Bash", command="touch new"), call("Write", file_path="/x")]
    with serving(Reply(tool_calls=calls), "Done.") as server:
        done = project.wave("-p", "Clean up.", server=server)
    assert done.returncode == 0, done.stderr
    assert all(one.startswith(("Not run: ", "Write: ")) for one in results(server))
    assert said(server).count("You may make the denied call again") == 1
    assert 'call="Bash rm -rf build; Bash touch new"' in said(server)
    first, second = heard(project, "denied")
    assert (first["tool_input"], first["denied_by"]) == ({"command": "rm -rf build"}, "rule")
    assert first["reason"] == results(server)[0]
    assert (second["denied_by"], second["tool_use_id"]) == ("nobody_to_ask", calls[1].id)


def test_a_hook_that_sees_all_calls_of_an_answer_ends_the_turn_before_the_next_request(project: Project) -> None:
    deny = "grep -q '\"Glob\"' || exit 0; echo Not that. >&2; exit 2"
    hooked(project, {"PreToolUse": deny, "PostToolBatch": "cat >> batches; echo >> batches; echo Enough. >&2; exit 2"})
    (project.directory / "a.txt").write_text("alpha")
    calls = [call("Read", file_path="a.txt"), call("Read", file_path="missing.txt"), call("Glob", pattern="*")]
    with serving(Reply(tool_calls=calls), "Later.") as server:
        done = project.wave("-p", "Look.", *AS_JSON, server=server)
        assert done.returncode == 3
        assert len(server.requests) == 1
        result = json.loads(done.stdout)
        assert result["status"] == "stopped"
        assert "Enough." in done.stderr
        project.wave("-p", "Go on.", "-r", result["session_id"], server=server)
    (batch,) = heard(project, "batches")
    first, second, third = batch["tool_calls"]
    assert (first["tool_name"], first["success"], first["tool_use_id"]) == ("Read", True, calls[0].id)
    assert first["tool_input"] == {"file_path": str(project.directory / "a.txt")}
    assert "error" not in first
    assert (second["success"], second["error"]) == (False, second["tool_response"])
    assert results(server) == [first["tool_response"], second["tool_response"], third["tool_response"]]
    assert third["error"].startswith("Not run: ")
    assert "Enough." not in said(server)


def test_context_for_a_whole_batch_follows_its_results_once(project: Project) -> None:
    hooked(project, {"PostToolBatch": printing("PostToolBatch", additionalContext="Two files were read.")})
    calls = [call("Glob", pattern="*.md"), call("Glob", pattern="*.py")]
    with serving(Reply(tool_calls=calls), "Done.") as server:
        assert project.wave("-p", "Look.", server=server).returncode == 0
    roles = [one["role"] for one in server.requests[-1].body["messages"]][-3:]
    assert roles == ["tool", "tool", "user"]
    assert said(server).count("Two files were read.") == 1


def test_hooks_decide_what_is_on_the_todo_list_and_what_is_done(project: Project) -> None:
    create = 'input=$(cat); echo "$input" >> created; case "$input" in *secret*) echo No secrets. >&2; exit 2;; esac'
    complete = "cat >> completed; echo >> completed; test -e tested || { echo Tests first. >&2; exit 2; }"
    hooked(project, {"TaskCreated": create, "TaskCompleted": complete})

    def todos(**states: str) -> Reply:
        listed = [{"content": text.replace("_", " "), "status": status} for text, status in states.items()]
        return Reply(tool_calls=[call("TodoWrite", todos=listed)])

    begun = todos(Fix_the_bug="in_progress", Send_the_secret="pending")
    early = todos(Fix_the_bug="completed", Write_docs="in_progress")
    tested = Reply(tool_calls=[call("Bash", command="touch tested")])
    done = todos(Fix_the_bug="completed", Write_docs="in_progress")
    with serving(begun, early, tested, done, "Done.") as server:
        assert project.wave("-p", "Go.", *BYPASS, server=server).returncode == 0
    first, second, _, fourth = results(server)
    assert first.startswith("[→] Fix the bug\n")
    assert "[ ] Send the secret" not in first
    assert "Not added, refused by hook" in first
    assert "No secrets." in said(server)
    assert second.startswith("[ ] Fix the bug\n[→] Write docs")
    assert "Not completed, refused by hook" in second
    assert "Tests first." in said(server)
    assert fourth == "[x] Fix the bug\n[→] Write docs"
    assert [one["task_subject"] for one in heard(project, "created")] == [
        "Fix the bug",
        "Send the secret",
        "Write docs",
    ]
    tries = heard(project, "completed")
    assert [one["task_subject"] for one in tries] == ["Fix the bug", "Fix the bug"]
    assert {one["task_id"] for one in tries} == {heard(project, "created")[0]["task_id"]}


def test_hooks_hear_of_instructions_changed_files_and_a_new_directory(project: Project) -> None:
    hooked(
        project,
        {
            "InstructionsLoaded": {"matcher": "session_start", "hooks": ["cat >> loaded; echo >> loaded"]},
            "FileChanged": {"matcher": ".env|*.lock", "hooks": ["cat >> changed; echo >> changed"]},
            "CwdChanged": 'cat >> moved; echo >> moved; echo "export STAGE=inner" >> "$CLAUDE_ENV_FILE"',
        },
    )
    (project.directory / "AGENTS.md").write_text("Be brief.")
    (project.directory / ".env").write_text("A=1")
    (project.directory / "old.lock").write_text("")
    act = "mkdir sub && cd sub && echo B=2 > ../.env && rm ../old.lock && echo > new.lock && echo > other.txt"
    replies = [Reply(tool_calls=[call("Bash", command=one)]) for one in (act, 'pwd; echo "stage $STAGE"')]
    with serving(*replies, "Done.") as server:
        done = project.wave("-p", "Go.", *BYPASS, server=server)
    assert done.returncode == 0, done.stderr
    inside = str(project.directory / "sub")
    assert results(server)[-1] == f"{inside}\nstage inner"
    (loaded,) = heard(project, "loaded")
    assert (loaded["file_path"], loaded["memory_type"]) == (str(project.directory / "AGENTS.md"), "Project")
    assert loaded["load_reason"] == "session_start"
    (moved,) = heard(project, "moved")
    assert (moved["old_cwd"], moved["new_cwd"]) == (str(project.directory), inside)
    changed = {(Path(one["file_path"]).name, one["event"]) for one in heard(project, "changed")}
    assert changed == {(".env", "change"), ("old.lock", "unlink"), ("new.lock", "add")}


def test_a_run_without_a_prompt_begins_with_that_of_a_hook_and_guards_see_it(project: Project) -> None:
    guard = "cat >> prompts; echo >> prompts"
    begin = printing("SessionStart", initialUserMessage="Check the build.")
    hooked(project, {"SessionStart": begin, "UserPromptSubmit": guard})
    with serving("Checked.", "One.", "Two.") as server:
        done = project.wave("-p", server=server)
        assert (done.returncode, done.stdout) == (0, "Checked.\n")
        assert said(server).endswith("Check the build.")
        both = project.wave("-p", "And the docs?", server=server)
    assert (both.returncode, both.stdout) == (0, "Two.\n")
    messages = [(one["role"], one["content"]) for one in server.requests[-1].body["messages"]][1:]
    assert messages == [("user", "Check the build."), ("assistant", "One."), ("user", "And the docs?")]
    assert [one["prompt"] for one in heard(project, "prompts")] == ["Check the build."] * 2 + ["And the docs?"]


def test_without_a_prompt_and_a_hook_that_gives_one_the_run_fails_without_a_request(project: Project) -> None:
    hooked(project, {"SessionStart": "echo hello"})
    with serving("Never.") as server:
        done = project.wave("-p", server=server)
        assert (done.returncode, len(server.requests)) == (1, 0)
        assert "There is nothing to continue" in done.stderr
        hooked(project, {})
        assert project.wave("-p", server=server).returncode == 2


DEFERRING = """input=$(cat); echo "$input" >> asked
if test -e decision; then cat decision; else echo "$DEFER"; fi"""


def test_a_call_is_deferred_and_runs_once_somebody_has_decided(project: Project) -> None:
    hooked(project, {"PreToolUse": {"matcher": "Bash", "hooks": [DEFERRING]}})
    env = {"DEFER": '{"hookSpecificOutput": {"permissionDecision": "defer", "additionalContext": "x"}}'}
    asked = call("Bash", command="echo deployed | tee out")
    with serving(Reply(tool_calls=[asked]), "It is deployed.", "Bye.") as server:
        done = project.wave("-p", "Deploy.", *AS_JSON, *BYPASS, server=server, **env)
        assert (done.returncode, len(server.requests)) == (3, 1)
        result = json.loads(done.stdout)
        assert (result["status"], result["stop_reason"]) == ("stopped", "tool_deferred")
        assert result["deferred_tool_use"] == {
            "id": asked.id,
            "name": "Bash",
            "input": {"command": "echo deployed | tee out"},
        }
        assert not (project.directory / "out").exists()

        again = project.wave("-p", "-r", result["session_id"], *AS_JSON, *BYPASS, server=server, **env)
        assert (again.returncode, len(server.requests)) == (3, 1)
        assert json.loads(again.stdout)["deferred_tool_use"]["id"] == asked.id

        allow = {"hookSpecificOutput": {"permissionDecision": "allow"}}
        (project.directory / "decision").write_text(json.dumps(allow))
        ended = project.wave("-p", "-r", result["session_id"], server=server, **env)
        assert (ended.returncode, ended.stdout) == (0, "It is deployed.\n")
        project.wave("-p", "Thanks.", "-r", result["session_id"], server=server)
    assert (project.directory / "out").read_text() == "deployed\n"
    shape = [one["role"] for one in server.requests[1].body["messages"]]
    assert shape[:4] == ["system", "user", "assistant", "tool"]  # then what has changed since
    assert 'event="PreToolUse"' not in said(server, 1)
    assert results(server, 1) == ["deployed"]
    assert [one["tool_use_id"] for one in heard(project, "asked")] == [asked.id] * 3
    waits = [one["tool_use_id"] for one in records(project) if one.get("subtype") == "deferred_call"]
    assert waits == [asked.id, None, asked.id, None]


def test_a_deferred_call_that_is_denied_in_the_end_tells_the_model_why(project: Project) -> None:
    hooked(project, {"PreToolUse": {"matcher": "Bash", "hooks": [DEFERRING]}})
    env = {"DEFER": '{"hookSpecificOutput": {"permissionDecision": "defer"}}'}
    with serving(Reply(tool_calls=[call("Bash", command="touch out")]), "Then not.") as server:
        first = project.wave("-p", "Deploy.", *AS_JSON, *BYPASS, server=server, **env)
        (project.directory / "decision").write_text(json.dumps({"decision": "block", "reason": "Not on a Friday."}))
        session = json.loads(first.stdout)["session_id"]
        ended = project.wave("-p", "What now?", "-r", session, *BYPASS, server=server, **env)
    assert (ended.returncode, ended.stdout) == (0, "Then not.\n")
    assert "Not on a Friday." in results(server)[0]
    assert said(server).endswith("What now?")
    assert not (project.directory / "out").exists()


def test_only_the_single_call_of_an_answer_can_be_deferred(project: Project) -> None:
    defer = printing("PreToolUse", permissionDecision="defer", permissionDecisionReason="ask Ann")
    hooked(project, {"PreToolUse": {"matcher": "Bash", "hooks": [defer]}})
    calls = [call("Bash", command="touch one"), call("Glob", pattern="*")]
    with serving(Reply(tool_calls=calls), "Done.") as server:
        done = project.wave("-p", "Go.", *BYPASS, server=server)
    assert done.returncode == 0
    assert results(server)[0].startswith("Not run: this call needs confirmation because of hook")
    assert "only the single call of an answer can be deferred" in done.stderr
    assert not (project.directory / "one").exists()


def test_a_rule_that_denies_is_not_put_off(project: Project) -> None:
    defer = printing("PreToolUse", permissionDecision="defer")
    hooked(project, {"PreToolUse": {"matcher": "Bash", "hooks": [defer]}}, permissions={"deny": ["Bash(touch:*)"]})
    with serving(Reply(tool_calls=[call("Bash", command="touch one")]), "Done.") as server:
        assert project.wave("-p", "Go.", *BYPASS, server=server).returncode == 0
    assert "denied by the permission rule" in results(server)[0]


def test_what_a_background_hook_finds_reaches_the_model_in_the_same_turn(project: Project) -> None:
    check = "while test ! -e go; do sleep 0.02; done; echo Two tests fail. >&2; exit 2"
    hook = {"command": check, "asyncRewake": True, "name": "tests"}
    hooked(project, {"PostToolUse": {"matcher": "Write", "hooks": [hook]}})
    write = Reply(tool_calls=[call("Write", file_path="a.py", content="x = 1\n")])
    recorded = f'grep -qs \'"name":"tests"\' {project.home}/projects/*/*.jsonl'
    wait = Reply(tool_calls=[call("Bash", command=f"touch go; until {recorded}; do sleep 0.02; done")])
    with serving(write, wait, "I will fix them.") as server:
        assert project.wave("-p", "Go.", *BYPASS, server=server).returncode == 0
    assert "Two tests fail." not in said(server, 1)
    assert '<hook event="PostToolUse" name="tests">\nTwo tests fail.' in said(server, 2)


def test_what_a_background_hook_finds_after_the_end_is_reported_and_not_lost(project: Project) -> None:
    hook = {"command": "while test ! -e ended; do sleep 0.02; done; echo Too late. >&2; exit 2", "asyncRewake": True}
    hooked(project, {"Stop": hook, "SessionEnd": "touch ended"})
    with serving("Done.", "Ah.") as server:
        done = project.wave("-p", "Go.", *AS_JSON, server=server)
        assert done.returncode == 0
        assert "so the model has not seen this: Too late." in done.stderr
        (project.directory / "ended").unlink()
        session = json.loads(done.stdout)["session_id"]
        project.wave("-p", "Next.", "-r", session, server=server)
    assert "Too late." in said(server)


@pytest.mark.parametrize("by", ["project", "user"])
def test_a_file_disables_the_hooks_that_it_may_disable_and_says_so(project: Project, by: str) -> None:
    hooked(project, {"PostToolUse": "touch users"}, **({"disableAllHooks": True} if by == "user" else {}))
    groups = [{"hooks": ["touch projects"]}]
    project.settings({"hooks": {"PostToolUse": groups}, **({"disableAllHooks": True} if by == "project" else {})})
    managed = project.home / "managed.json"
    managed.write_text(json.dumps({"hooks": {"PostToolUse": [{"hooks": ["touch managers"]}]}}))
    with serving(Reply(tool_calls=[call("Glob", pattern="*")]), "Done.") as server:
        done = project.wave("-p", "Go.", "--trust", server=server, WAVE_MANAGED_SETTINGS=str(managed))
    assert done.returncode == 0, done.stderr
    ran = {name for name in ("users", "projects", "managers") if (project.directory / name).exists()}
    assert ran == ({"managers"} if by == "user" else {"users", "managers"})
    assert "these hooks do not run in this session" in done.stderr
    assert any("these hooks do not run in this session" in str(one.get("content")) for one in records(project))
