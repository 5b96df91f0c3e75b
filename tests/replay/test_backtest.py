"""`wave hooks backtest`: real sessions against real hooks, as a real process."""

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.replay.recorded import WAVE, commands, record, script, settings, wave_hooks
from wave_agent.testing import Reply, call

GUARD = 'case $(cat) in *"rm -rf"*) echo "rm -rf is not allowed here" >&2; exit 2;; esac'
REWRITE = 'printf \'{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"%s"}}}\' "$WHAT"'
KINDS = ("newly blocked", "newly allowed", "rewritten differently", "decided differently", "failed", "unchanged")


def hooks(event: str, *own: dict[str, Any]) -> dict[str, Any]:
    return {event: [{"hooks": list(own)}]}


def backtest(project: Path, *arguments: str, status: int | None = None, **environment: str) -> Any:
    done = wave_hooks(project, "backtest", "--json", *arguments, **environment)
    assert done.returncode in ((0, 1) if status is None else (status,)), done.stderr + done.stdout
    return json.loads(done.stdout)


def totals(report: Any) -> dict[str, int]:
    return {kind: count for kind, count in report["totals"].items() if count}


def new_hooks(tmp_path: Path, **events: Any) -> tuple[str, str]:
    return "--settings", str(settings(tmp_path / "new" / "settings.json", **events))


# --------------------------------------------------------------------------------------------------------- differences


def test_without_a_session_it_says_so_and_is_content(project: Path, tmp_path: Path) -> None:
    done = wave_hooks(project, "backtest")
    assert (done.returncode, done.stdout) == (0, "There are no sessions to replay.\n")
    (tmp_path / "empty").mkdir()
    assert wave_hooks(project, "backtest", "--from", str(tmp_path / "empty")).returncode == 0
    (tmp_path / "empty" / "wave-export.json").write_text('{"version": 1}')
    exported = wave_hooks(project, "backtest", "--from", str(tmp_path / "empty"))
    assert (exported.returncode, "is an export, which holds no transcripts" in exported.stderr) == (2, True)


def test_what_a_new_guard_would_have_stopped_is_told_with_call_and_reason(project: Path, tmp_path: Path) -> None:
    path = record(project, [commands("rm -rf build"), commands("ls"), "Done."])
    new = new_hooks(tmp_path, PreToolUse=[{"name": "guard", "command": GUARD}])
    report = backtest(project, *new, status=1)
    assert totals(report) == {"newly blocked": 1, "unchanged": 5}
    (finding,) = report["findings"]
    assert (finding["kind"], finding["session_id"], finding["call"]) == ("newly blocked", path.stem, "rm -rf build")
    assert (finding["before"], finding["after"]) == ("none", "block")
    assert finding["reason"] == "rm -rf is not allowed here"
    assert path.read_text().splitlines()[finding["line"] - 1].count("rm -rf build")
    shown = wave_hooks(project, "backtest", *new)
    assert shown.returncode == 1
    assert "newly blocked (1)\n  PreToolUse Bash rm -rf build" in shown.stdout
    assert "\n      it deletes build/\n" in shown.stdout
    assert "none → block, guard: rm -rf is not allowed here" in shown.stdout
    assert "[#" not in shown.stderr  # the bar is for terminals


def test_effects_are_computed_again_for_a_new_guard(project: Path, tmp_path: Path) -> None:
    record(project, [commands("base64 < .env"), commands("ls"), "Done."])
    guard = {"name": "env", "command": "jq -e 'any(.effects.reads[]; endswith(\"/.env\")) | not' > no || exit 2"}
    report = backtest(project, *new_hooks(tmp_path, PreToolUse=[{**guard, "if": "Read(.env)"}]), status=1)
    assert totals(report) == {"newly blocked": 1, "unchanged": 5}
    (finding,) = report["findings"]
    assert (finding["call"], finding["does"]) == ("base64 < .env", "reads .env")


def test_the_same_hooks_say_the_same(project: Path, tmp_path: Path) -> None:
    own = {
        "UserPromptSubmit": [{"name": "p", "command": "true"}],
        "PreToolUse": [{"name": "guard", "command": GUARD}, {"name": "w", "command": f"WHAT='echo two'; {REWRITE}"}],
        "PostToolUse": [{"name": "after", "command": "echo fine; exit 0"}],
        "Stop": [
            {"name": "stop", "command": "case $(cat) in *'\"stop_block_count\":0'*) echo go on >&2; exit 2;; esac"}
        ],
    }
    replies = [commands("echo one"), commands("rm -rf x"), "Done.", "Really."]
    record(project, replies, hooks={event: [{"hooks": hooks}] for event, hooks in own.items()})
    report = backtest(project, *new_hooks(tmp_path, **own), status=0)
    # A prompt, two calls, one result (the other call was denied), two attempts to stop.
    assert totals(report) == {"unchanged": 6}
    assert report["judged"] == 6


def test_what_is_no_longer_blocked_is_newly_allowed_with_the_reason_of_then(project: Path) -> None:
    record(project, [commands("rm -rf build"), "Done."], hooks=hooks("PreToolUse", {"command": GUARD}))
    report = backtest(project, status=1)
    assert totals(report) == {"newly allowed": 1, "unchanged": 2}
    assert report["findings"][0]["reason"] == "rm -rf is not allowed here"


def test_another_rewrite_is_told_with_the_new_input(project: Path, tmp_path: Path) -> None:
    record(
        project,
        [commands("echo one"), "Done."],
        hooks=hooks("PreToolUse", {"name": "w", "command": f"WHAT='echo two'; {REWRITE}"}),
    )
    new = new_hooks(tmp_path, PreToolUse=[{"name": "w", "command": f"WHAT='echo three'; {REWRITE}"}])
    report = backtest(project, *new, status=1)
    assert totals(report) == {"rewritten differently": 1, "unchanged": 3}
    assert report["findings"][0]["new_input"] == {"command": "echo three"}
    assert 'now: {"command": "echo three"}' in wave_hooks(project, "backtest", *new).stdout


def test_an_allow_that_was_not_there_is_decided_otherwise(project: Path, tmp_path: Path) -> None:
    record(project, [commands("ls"), "Done."])
    allow = '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'
    report = backtest(project, *new_hooks(tmp_path, PreToolUse=[{"command": f"echo '{allow}'"}]), status=1)
    assert totals(report) == {"decided differently": 1, "unchanged": 3}


def test_a_hook_that_fails_is_failed_whatever_follows_from_it(project: Path, tmp_path: Path) -> None:
    record(project, [commands("ls"), "Done."])
    broken = {"name": "broken", "command": "echo oops >&2; exit 7", "onFailure": "block"}
    report = backtest(project, *new_hooks(tmp_path, PreToolUse=[broken]), status=1)
    assert totals(report) == {"failed": 1, "unchanged": 3}
    assert "broken: exit: " in report["findings"][0]["reason"]


def test_each_event_is_told_with_what_was_recorded(project: Path, tmp_path: Path) -> None:
    own = hooks("PreToolUse", {"name": "w", "command": f"WHAT='echo rewritten'; {REWRITE}"})
    record(project, [commands("echo asked"), "All done."], hooks=own, prompts=["Please."])
    log = tmp_path / "log"
    keep = [{"name": "keep", "command": f"(cat; echo) >> {log}"}]
    events = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
    backtest(project, *new_hooks(tmp_path, **dict.fromkeys(events, keep)), "--hook", "keep")
    told = {line["hook_event_name"]: line for line in map(json.loads, filter(None, log.read_text().splitlines()))}
    assert set(told) == set(events)
    assert all(line["dry_run"] is True for line in told.values())
    assert told["UserPromptSubmit"]["prompt"] == "Please."
    assert told["PreToolUse"]["tool_input"] == {"command": "echo asked"}
    assert told["PostToolUse"]["tool_input"] == {"command": "echo rewritten"}
    assert told["PostToolUse"]["tool_response"] == {"success": True, "content": "rewritten"}
    assert told["Stop"]["last_assistant_message"] == "All done."


def test_calls_and_the_end_of_subagents_are_replayed_as_theirs(project: Path, tmp_path: Path) -> None:
    task = call("Task", description="look", prompt="Look.", subagent_type="general-purpose")
    then = [{"name": "end", "command": '[ -e again ] || { touch again; echo "more" >&2; exit 2; }'}]
    replies = [Reply(tool_calls=[task]), commands("rm -rf build"), "Report.", "Longer report.", "All done."]
    path = record(project, replies, hooks={"SubagentStop": [{"hooks": then}]})
    log = tmp_path / "log"
    guard = [{"name": "guard", "command": f'input=$(cat); echo "$input" >> {log}; echo "$input" | ({GUARD})'}]
    events = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "SubagentStop", "Stop")
    report = backtest(project, *new_hooks(tmp_path, **dict.fromkeys(events, guard)), status=1)
    told = [json.loads(line) for line in log.read_text().splitlines()]
    inside = [(one["hook_event_name"], one["agent_type"]) for one in told if "agent_id" in one]
    assert inside == [
        (event, "general-purpose") for event in ("PreToolUse", "PostToolUse", "SubagentStop", "SubagentStop")
    ]
    order = [(one["hook_event_name"], one.get("tool_name")) for one in told if "agent_id" not in one]
    assert order == [("UserPromptSubmit", None), ("PreToolUse", "Task"), ("PostToolUse", "Task"), ("Stop", None)]
    assert told.index(next(one for one in told if "agent_id" in one)) == 2  # while the Task call runs
    assert [one["stop_block_count"] for one in told if one["hook_event_name"] == "SubagentStop"] == [0, 1]
    kinds = {(one["event"], one["kind"]): one for one in report["findings"]}
    blocked = {(event, "newly blocked") for event in ("PreToolUse", "PostToolUse")}
    assert set(kinds) == {*blocked, ("SubagentStop", "newly allowed")}
    found = kinds["PreToolUse", "newly blocked"]
    child = path.with_suffix("") / "subagents" / f"{found['agent_id']}.jsonl"
    assert "rm -rf build" in child.read_text().splitlines()[found["line"] - 1]
    copied = tmp_path / "copied"
    shutil.copytree(path.parent, copied)
    again = backtest(project, *new_hooks(tmp_path, PreToolUse=guard), "--from", str(copied), status=1)
    assert (again["sessions"], again["events"]) == (1, report["events"])


def test_a_hook_reads_a_transcript_that_ends_where_the_event_happened(project: Path, tmp_path: Path) -> None:
    record(project, [commands("echo one"), commands("echo two"), "Done."])
    log = tmp_path / "log"
    look = (
        "import json, sys; said = open(json.load(sys.stdin)['transcript_path']).read(); "
        "print('one' in said, 'two' in said, 'Done' in said)"
    )
    keep = [{"name": "keep", "command": f'{shlex.quote(sys.executable)} -c "{look}" >> {log}'}]
    backtest(project, *new_hooks(tmp_path, PreToolUse=keep), status=0)
    assert log.read_text().split("\n")[:2] == ["True False False", "True True False"]


def test_a_prompt_that_was_refused_cannot_be_replayed_and_that_is_told(project: Path) -> None:
    refuse = hooks("UserPromptSubmit", {"command": "case $(cat) in *hunter2*) exit 2;; esac"})
    record(project, ["Done."], hooks=refuse, prompts=["hunter2", "Go."])
    report = backtest(project, status=0)
    assert report["events"] == 2
    assert any(note.startswith("1 prompt blocked by hooks was not stored") for note in report["notes"])


# ---------------------------------------------------------------------------------------------------------- which hooks


def test_untrusted_hooks_of_the_project_are_not_run(project: Path, tmp_path: Path) -> None:
    record(project, [commands("rm -rf build"), "Done."])
    proof = tmp_path / "ran"
    script(project / "guard.sh", f"touch {proof}; {GUARD}")
    settings(project / ".wave" / "settings.json", PreToolUse=[{"command": "./guard.sh"}])
    done = wave_hooks(project, "backtest")
    assert done.returncode == 1
    assert "./guard.sh" in done.stderr
    assert "\n  --trust  " in done.stderr
    assert "--no-project-hooks" not in done.stderr, "there is no such option here"
    assert not proof.exists()
    assert totals(backtest(project, "--trust", status=1)) == {"newly blocked": 1, "unchanged": 3}
    assert proof.exists()
    assert wave_hooks(project, "trust", "--yes").returncode == 0
    assert totals(backtest(project, status=1)) == {"newly blocked": 1, "unchanged": 3}


def test_one_hook_is_judged_as_if_it_counted_and_against_what_it_said_itself(project: Path, tmp_path: Path) -> None:
    other = {"name": "other", "command": "echo never >&2; exit 2"}
    record(project, [commands("rm -rf build"), commands("ls"), "Done."], hooks=hooks("PreToolUse", other))
    shadow = {"name": "guard", "command": GUARD, "mode": "shadow"}
    new = new_hooks(tmp_path, PreToolUse=[shadow, {**shadow, "name": "off", "enabled": False}])
    for name in ("guard", "off"):
        report = backtest(project, *new, "--hook", name, status=1)
        assert totals(report) == {"newly blocked": 1, "unchanged": 3}
    done = wave_hooks(project, "backtest", *new, "--hook", "gaurd")
    assert done.returncode == 2
    assert "Available: guard, off" in done.stderr


# ------------------------------------------------------------------------------------------------------- where they run


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """A PATH without the programs that make namespaces."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name in ("bash", "cat", "sh", "touch", "true", "git", "python3", "test", "grep"):
        if found := shutil.which(name):
            (directory / name).symlink_to(found)
    return str(directory)


def without_overlay(project: Path) -> dict[str, str]:
    """An environment in which hooks run in a copy: changes to a directory cannot be kept inside it."""
    (project / "tmp").mkdir(exist_ok=True)
    return {"TMPDIR": str(project / "tmp")}


def test_hooks_have_no_network_where_the_system_can_cut_it(project: Path, tmp_path: Path, bare: str) -> None:
    record(project, ["Done."])
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = server.getsockname()
        attempt = f'import socket; socket.create_connection(("{place[0]}", {place[1]})).close()'
        connect = f"{shlex.quote(sys.executable)} -c {shlex.quote(attempt)}"
        new = new_hooks(tmp_path, Stop=[{"name": "reach", "command": connect}])
        reached = backtest(project, *new, status=None, PATH=bare, **without_overlay(project))
        report = backtest(project, *new)
    assert any("NOT cut" in note for note in reached["notes"])
    assert totals(reached) == {"unchanged": 2}
    if "The network was cut." not in report["notes"]:
        pytest.skip("this system cuts no network")
    assert totals(report) == {"failed": 1, "unchanged": 1}


@pytest.mark.parametrize("programs", [None, ["bwrap"], ["unshare"], []], ids=["overlay", "bwrap", "unshare", "none"])
def test_what_hooks_change_stays_in_the_copy_and_paths_stay_true(
    project: Path, tmp_path: Path, bare: str, programs: list[str] | None
) -> None:
    here = """*'"file_path":"'"$CLAUDE_PROJECT_DIR"/*"""
    change = "touch seen; echo changed > notes.txt; rm -rf kept; mkdir kept"
    inside = f"case $(cat) in {here}) {change};; *) echo outside of $PWD >&2; exit 2;; esac"
    (project / "notes.txt").write_text("x")
    (project / "kept").mkdir()
    (project / "kept" / "file").write_text("x")
    replies = [
        Reply(tool_calls=[call("Read", file_path="notes.txt")]),
        Reply(tool_calls=[call("Read", file_path="/etc/hosts")]),
    ]
    record(project, [*replies, "Done."])
    new = new_hooks(tmp_path, PreToolUse=[{"name": "inside", "command": inside}])
    given = {} if programs is None else {**without_overlay(project), "PATH": bare}
    for name in programs or ():
        if found := shutil.which(name):
            (Path(bare) / name).symlink_to(found)
    for name in ("rm", "mkdir"):
        (Path(bare) / name).symlink_to(shutil.which(name) or "")
    report = backtest(project, *new, status=1, **given)
    assert totals(report)["newly blocked"] == 1
    (finding,) = report["findings"]
    assert (finding["call"], finding["reason"]) == ("/etc/hosts", f"outside of {project}")
    assert sorted(set(os.listdir(project)) - {"tmp"}) == ["kept", "notes.txt"]
    assert ((project / "notes.txt").read_text(), os.listdir(project / "kept")) == ("x", ["file"])


def test_a_hook_that_calls_git_changes_no_repository_above_the_project(project: Path, tmp_path: Path) -> None:
    for words in (["init", "-q", str(tmp_path)], ["-C", str(tmp_path), "symbolic-ref", "HEAD", "refs/heads/trunk"]):
        subprocess.run(["git", *words], check=True)
    record(project, ["Done."])
    move = "git symbolic-ref HEAD refs/heads/other && test $(git symbolic-ref --short HEAD) = other"
    backtest(project, *new_hooks(tmp_path, Stop=[{"name": "move", "command": move}]))
    assert (tmp_path / ".git" / "HEAD").read_text() == "ref: refs/heads/trunk\n"


def test_no_tool_is_run(project: Path, tmp_path: Path) -> None:
    record(project, [commands("touch made"), "Done."])
    (project / "made").unlink()
    backtest(project, *new_hooks(tmp_path, PreToolUse=[{"command": "true"}]), status=0)
    assert not (project / "made").exists()


def test_nothing_is_left_behind(project: Path, tmp_path: Path) -> None:
    record(project, [commands("ls"), "Done."])
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    backtest(project, status=0, TMPDIR=str(temporary))
    assert list(temporary.iterdir()) == []


# ---------------------------------------------------------------------------------------------------- which sessions


def test_the_latest_one_all_one_by_its_id_or_those_of_a_span_of_time(project: Path) -> None:
    first = record(project, ["Done."])
    os.utime(first, (1, 1))
    record(project, [commands("ls"), "Done."])
    assert backtest(project)["events"] == 4
    assert backtest(project, "--all")["events"] == 6
    assert backtest(project, "--session", first.stem[:8])["events"] == 2
    assert backtest(project, "--since", "7d")["events"] == 4
    assert wave_hooks(project, "backtest", "--all", "--session", first.stem).returncode == 2


def foreign(directory: Path) -> Path:
    """A transcript as other agents write it, with what they put in it."""
    lines: list[Any] = [
        {"type": "summary", "summary": "x"},
        {"type": "user", "isMeta": True, "message": {"role": "user", "content": "not a prompt"}},
        {"type": "user", "cwd": "/somewhere/else", "message": {"role": "user", "content": "Tidy up."}},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "I will."}]}},
        {"type": "assistant", "message": {"content": [
            {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "rm -rf /somewhere/else/build"}}]}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "1", "content": "ok"}]},
         "toolUseResult": {"stdout": "ok", "interrupted": False}},
        {"type": "assistant", "message": {"content": [
            {"type": "tool_use", "id": "2", "name": "Bash", "input": {"command": "curl x"}},
            {"type": "tool_use", "id": "3", "name": "mcp__a__b", "input": {}},
            {"type": "tool_use", "id": "4", "name": "Broken", "input": "none"}]}},
        {"type": "user", "message": {"content": [
            {"type": "tool_result", "tool_use_id": "2", "is_error": True, "content": "PreToolUse:Bash hook error: no"},
            {"type": "tool_result", "tool_use_id": "3", "content": [
                {"type": "text", "text": "b"}, {"type": "image"}]}]}},
        {"type": "assistant", "isSidechain": True, "message": {"content": [{"type": "text", "text": "aside"}]}},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "Done."}]}},
    ]  # fmt: skip
    directory.mkdir(parents=True)
    file = directory / "old-session.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines) + "{torn\n")
    return file


def test_transcripts_of_another_agent_are_judged_as_well(project: Path, tmp_path: Path) -> None:
    foreign(tmp_path / "projects" / "-somewhere-else")
    log = tmp_path / "log"
    new = new_hooks(
        tmp_path,
        PreToolUse=[{"name": "guard", "command": GUARD}],
        PostToolUse=[{"name": "keep", "command": f"(cat; echo) >> {log}"}],
    )
    report = backtest(project, "--from", str(tmp_path / "projects"), *new, status=1)
    # A prompt, three calls (one was denied), two results, one end.
    assert totals(report) == {"newly blocked": 1, "newly allowed": 1, "unchanged": 5}
    assert {finding["call"]: finding["kind"] for finding in report["findings"]} == {
        "rm -rf /somewhere/else/build": "newly blocked",
        "curl x": "newly allowed",
    }
    told = [json.loads(line) for line in log.read_text().split("\n") if line]
    assert told[0]["tool_response"] == {"stdout": "ok", "interrupted": False, "success": True, "content": "ok"}
    place = told[0]["cwd"]
    assert place == str(project) or os.path.basename(os.path.dirname(place)).startswith("wave-backtest-")
    assert told[0]["tool_input"]["command"] == f"rm -rf {place}/build"
    assert "1 transcript line could not be read." in report["notes"]


# ------------------------------------------------------------------------------------------------------------- in parts


def test_the_result_does_not_depend_on_the_number_of_processes(project: Path, tmp_path: Path) -> None:
    lines = [f"rm -rf {number} {'x' * 1000}" if number % 3 else f"ls {number}" for number in range(60)]
    for _ in range(3):
        record(project, [commands(*lines), "Done."])
    new = new_hooks(tmp_path, PreToolUse=[{"name": "guard", "command": GUARD}])
    whole = backtest(project, *new, "--all", "--jobs", "1", status=1)
    assert totals(whole) == {"newly blocked": 120, "unchanged": 246}
    several = backtest(project, *new, "--all", "--jobs", "3", status=1)
    same = ("findings", "totals", "events", "judged", "sessions", "notes")
    assert {key: several[key] for key in same} == {key: whole[key] for key in same}
    assert [one["number"] for one in whole["findings"]] == sorted(one["number"] for one in whole["findings"][:40]) * 3


@pytest.mark.parametrize(
    "arguments",
    [["x.json"], ["--from", "missing"], ["--jobs", "0"], ["--resume", "--all"],
     ["--scheduler", "local", "--ask-models"]],
)  # fmt: skip
def test_a_wrong_command_line_is_told_as_one(project: Path, arguments: list[str]) -> None:
    done = wave_hooks(project, "backtest", *arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_an_interrupt_ends_the_hooks_that_run(project: Path, tmp_path: Path) -> None:
    record(project, ["Done."])
    started, proof = tmp_path / "started", tmp_path / "proof"
    hang = f"trap 'echo ended > {proof}; exit' TERM; echo $$ > {started}; while :; do sleep 0.05; done"
    new = new_hooks(tmp_path, Stop=[{"name": "hang", "command": hang}])
    running = subprocess.Popen(
        [WAVE, "hooks", "backtest", *new], cwd=project, stdout=subprocess.PIPE, start_new_session=True
    )
    while not started.exists():
        assert running.poll() is None
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGINT)
    assert running.wait(60) == 130
    assert proof.read_text() == "ended\n"
    assert running.stdout is not None
    running.stdout.close()


def test_on_a_terminal_a_bar_shows_how_far_it_is(project: Path) -> None:
    record(project, [commands("ls"), "Done."])
    terminal, theirs = os.openpty()
    running = subprocess.Popen(
        [WAVE, "hooks", "backtest"], cwd=project, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # that is how a terminal tells that nobody is left to write to it
        while data := os.read(terminal, 1 << 16):
            shown += data
    os.close(terminal)
    assert running.wait(60) == 0
    assert b"Replayed  [########################] 100%" in shown


def test_a_journal_without_hooks_in_it_is_told_by_stats(project: Path) -> None:
    record(project, ["Done."])
    assert wave_hooks(project, "stats").stdout == "No hook ran in 1 session.\n"
