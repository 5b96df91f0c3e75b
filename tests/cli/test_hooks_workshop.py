"""`wave hooks list`, `explain`, `test` and `schema`, as real processes on real hooks."""

import json
import shlex
import socket
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.project import Project
from wave_agent.hooks.events import EVENTS

SETTINGS: dict[str, Any] = {
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"command": "./guard.sh", "onFailure": "block"}]},
            {"matcher": "Edit|Write", "hooks": [{"command": "true", "name": "edits", "mode": "shadow"}]},
            {"phase": "rewrite", "hooks": [{"command": "cat tidy.json", "name": "tidy"}]},
        ],
        "UserPromptSubmit": [{"command": "echo the time is late", "name": "clock"}],
    },
    "permissions": {"deny": ["Bash(sudo:*)"], "allow": ["Bash(git fetch:*)"]},
}
GUARD = '#!/bin/sh\ntouch ran\ncase "$2" in *"rm -rf"*) echo "rm -rf is not allowed here" >&2; exit 2;; esac\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.settings(SETTINGS)
    (made.directory / "guard.sh").write_text(GUARD)
    (made.directory / "guard.sh").chmod(0o755)
    (made.directory / "tidy.json").write_text("{}")
    return made


@pytest.fixture
def empty(tmp_path: Path) -> Project:
    return Project(tmp_path)


def has_run(project: Project) -> bool:
    return (project.directory / "ran").exists()


TRY = ("hooks", "test", "PreToolUse", "--tool", "Bash", "--input")


def test_hooks_that_a_session_does_not_wait_for_are_tried_to_their_end(empty: Project) -> None:
    empty.settings({"hooks": {"FileChanged": [{"command": "touch ran", "name": "noted"}]}})
    tried = empty.wave("hooks", "test", "FileChanged", "--trust")
    assert (tried.returncode, tried.stderr) == (0, "")
    assert "noted" in tried.stdout
    assert "not reached" not in tried.stdout
    assert has_run(empty)


def test_a_python_without_the_package_is_named_with_the_type_that_needs_none(empty: Project) -> None:
    (empty.directory / "guard.py").write_text(
        "from wave_agent.hooks import HookCall, deny, hook\n\n\n@hook\ndef guard(call: HookCall):\n"
        '    return deny("not here")\n\n\nif __name__ == "__main__":\n    guard.main()\n'
    )
    (empty.directory / "bin").mkdir()
    (empty.directory / "bin" / "python-without").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S "$@"\n')
    (empty.directory / "bin" / "python-without").chmod(0o755)
    empty.settings({"hooks": {"PreToolUse": [{"command": "bin/python-without guard.py", "onFailure": "block"}]}})
    tried = empty.wave(*TRY, '{"command": "ls"}', "--trust")
    assert "No module named 'wave_agent'" in tried.stdout
    assert '"type": "python"' in tried.stdout
    empty.settings({"hooks": {"PreToolUse": [{"type": "python", "target": "guard.py:guard", "onFailure": "block"}]}})
    tried = empty.wave(*TRY, '{"command": "ls"}', "--trust", "--expect", "block")
    assert (tried.returncode, '"type": "python"' in tried.stdout) == (0, False)


# ---------------------------------------------------------------------------------------------------------- the dialect


def test_a_hook_is_listed_explained_and_tried_in_its_dialect_or_in_another(project: Project) -> None:
    allow = '{"hookSpecificOutput": {"permissionDecision": "allow"}}'
    (project.directory / ".claude").mkdir()
    hook = {"command": f"echo '{allow}'; exit 2", "name": "theirs"}
    (project.directory / ".claude" / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [hook]}}))
    project.settings({"compat": {"claude": True}, "hooks": {"PreToolUse": [{**hook, "name": "ours"}]}})
    assert project.wave("hooks", "trust", "--yes").returncode == 0
    listed = project.wave("hooks", "list").stdout
    assert listed.count("dialect claude") == 1
    for dialect, name in (("claude", "theirs"), ("wave", "ours")):
        found = json.loads(project.wave("hooks", "list", "--json", "--dialect", dialect).stdout)["hooks"]
        assert [(one["name"], one["dialect"]) for one in found] == [(name, dialect)]
    explained = project.wave("hooks", "explain", "PreToolUse", "Bash").stdout
    assert "theirs (.claude/settings.json:1, dialect claude)" in explained
    assert "exit 2 with JSON: blocks, whatever the JSON allows or asks" in explained
    ours = json.loads(project.wave("hooks", "explain", "PreToolUse", "Bash", "--dialect", "wave", "--json").stdout)
    assert ours["dialects"] == {"wave": []}
    one = ("hooks", "test", "PreToolUse", "--tool", "Bash", "--trust", "--hook")
    assert project.wave(*one, "theirs", "--expect", "block").returncode == 0
    assert project.wave(*one, "ours", "--expect", "allow").returncode == 0
    tried = project.wave(*one, "ours", "--dialect", "claude", "--expect", "block")
    assert tried.returncode == 0
    assert "read as   exit 2, JSON that states a decision: Block; the reason is stderr" in tried.stdout


def test_a_failed_command_is_no_post_tool_use_for_a_hook_of_another_agent(project: Project) -> None:
    project.settings({"hooks": {"PostToolUse": [{"command": "echo seen >&2; exit 2", "name": "after"}]}})
    failed = ("hooks", "test", "PostToolUse", "--tool", "Bash", "--trust", "--response", '{"success": false}')
    assert project.wave(*failed, "--expect", "block").returncode == 0
    found = project.wave(*failed, "--dialect", "claude", "--expect", "none")
    assert found.returncode == 0
    assert "after (.wave/settings.json:1) was not run: in its dialect this is a different event" in found.stdout


# ------------------------------------------------------------------------------------------------------ nothing to show


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("list",), "There are no hooks in "),
        (("explain", "PreToolUse", "Bash"), "No hook runs: there are none."),
        (("explain", "Stop"), "No hook runs: there are none."),
        (("test", "PreToolUse", "--tool", "Bash"), "There are no hooks in this project."),
        (("test", "Stop", "--hook", "guard"), "There are no hooks in this project."),
    ],
)
def test_without_hooks_every_command_says_so(empty: Project, arguments: tuple[str, ...], told: str) -> None:
    ran = empty.wave("hooks", *arguments)
    assert (ran.returncode, told in ran.stdout, ran.stderr) == (0, True, "")
    as_json = empty.wave("hooks", *arguments, "--json")
    assert as_json.returncode == 0
    json.loads(as_json.stdout)


def test_hooks_that_are_left_out_are_not_said_to_be_missing(project: Project) -> None:
    ran = project.wave("hooks", "test", "UserPromptSubmit", "--no-project-hooks")
    assert "--no-project-hooks skips the project's own (4)" in ran.stdout


def test_a_guard_that_is_gone_does_not_meet_its_expectation(empty: Project) -> None:
    assert empty.wave(*TRY, '{"command": "rm -rf x"}', "--expect", "block").returncode == 1


# ----------------------------------------------------------------------------------------------------------------- list


def test_list_shows_every_hook_in_the_order_in_which_it_would_run_and_runs_none(project: Project) -> None:
    listed = project.wave("hooks", "list")
    assert (listed.returncode, listed.stderr, has_run(project)) == (0, "", False)
    rows = [line.split()[:2] for line in listed.stdout.splitlines() if not line.startswith(" ")]
    assert rows == [
        *(["event", "name"], ["UserPromptSubmit", "clock"], ["PreToolUse", "tidy"]),
        *(["PreToolUse", "guard.sh"], ["PreToolUse", "edits"]),
    ]
    assert 'name "Edit" or name "Write"' in listed.stdout
    assert "NOT TRUSTED (not trusted yet), mode enforce, onFailure block, timeout 60 s" in listed.stdout


def test_list_tells_trust_as_it_is(project: Project) -> None:
    assert project.wave("hooks", "trust", "--yes").returncode == 0
    trusted = json.loads(project.wave("hooks", "list", "--json").stdout)
    assert {hook["trusted"] for hook in trusted["hooks"]} == {True}
    (project.directory / "guard.sh").write_text("#!/bin/sh\n")
    changed = json.loads(project.wave("hooks", "list", "--json").stdout)
    assert {hook["name"]: hook["why_not_trusted"] for hook in changed["hooks"] if not hook["trusted"]} == {
        "guard.sh": "changed since it was trusted: guard.sh"
    }


def test_list_for_programs_has_every_fact(project: Project) -> None:
    listed = json.loads(project.wave("hooks", "list", "--json").stdout)
    guard = next(hook for hook in listed["hooks"] if hook["name"] == "guard.sh")
    wanted = {
        "event": "PreToolUse",
        "matcher": "Bash",
        "matcher_read_as": 'name "Bash"',
        "command": "./guard.sh",
        "layer": "project",
        "line": 1,
        "path": "hooks.PreToolUse[0].hooks[0]",
        "mode": "enforce",
        "onFailure": "block",
        "timeout": 60,
        "problems": [],
    }
    assert guard.items() >= wanted.items()


def test_list_has_the_hooks_of_all_layers_and_named_files(project: Project) -> None:
    project.home.mkdir()
    (project.home / "settings.json").write_text('{"hooks": {"Stop": ["./mine"]}}')
    (project.directory / "more.json").write_text('{"hooks": {"Stop": ["./flag"]}}')
    listed = json.loads(project.wave("hooks", "list", "--json", "--settings", "more.json").stdout)
    stop = [(hook["layer"], hook["name"], hook["trusted"]) for hook in listed["hooks"] if hook["event"] == "Stop"]
    assert stop == [("user", "mine", True), ("flag", "flag", True)]


def test_list_tells_what_is_wrong_at_its_place_and_fails_for_what_is_broken(project: Project) -> None:
    project.settings({"hooks": {"Stop": [{"hooks": [{"command": "true", "tiemout": 3}]}]}})
    warned = project.wave("hooks", "list")
    assert (warned.returncode, 'unknown key "tiemout" (did you mean "timeout"?)' in warned.stdout) == (0, True)
    project.settings({"hooks": {"Stop": [{"hooks": [{"command": "true"}]}], "Sotp": ["x"]}})
    broken = project.wave("hooks", "list")
    assert broken.returncode == 1
    assert 'settings.json:1: hooks.Sotp: unknown event "Sotp" (did you mean "Stop"?)' in broken.stdout


def test_settings_that_are_no_json_are_told_with_their_place(project: Project) -> None:
    (project.directory / ".wave" / "settings.json").write_text('{"hooks": }')
    listed = project.wave("hooks", "list")
    assert (listed.returncode, "settings.json:1:11: not valid JSON" in listed.stderr) == (1, True)


# -------------------------------------------------------------------------------------------------------------- explain


def test_explain_tells_order_reasons_and_permission_and_runs_nothing(project: Project) -> None:
    told = project.wave("hooks", "explain", "PreToolUse", "Bash", "--input", '{"command": "sudo ls"}')
    assert (told.returncode, told.stderr, has_run(project)) == (0, "", False)
    assert told.stdout.splitlines() == [
        'PreToolUse Bash {"command": "sudo ls"}',
        "It touches no file and reaches no host.",
        "1. rewrite phase, one after another",
        "   tidy (.wave/settings.json:1, NOT TRUSTED: not trusted yet)",
        "2. in parallel",
        "   guard.sh (.wave/settings.json:1, NOT TRUSTED: not trusted yet)",
        "3. if one of these rewrites the input: every guard that saw the old input runs again on the new one",
        "Not run:",
        "   edits (.wave/settings.json:1, shadow: its decision is ignored, NOT TRUSTED: not trusted yet): "
        'its matcher (name "Edit" or name "Write") does not match "Bash"',
        "Permission, if no hook decides: deny (rule Bash(sudo:*))",
        "   Not run: denied by the permission rule Bash(sudo:*). Do without it, or tell the user.",
    ]


def permission(project: Project, *arguments: str) -> tuple[str, str]:
    told = json.loads(project.wave("hooks", "explain", "PreToolUse", *arguments, "--json").stdout)["permission"]
    return told["answer"], told["by"]


def test_explain_counts_an_allow_rule_only_once_the_project_is_trusted(project: Project) -> None:
    call = ("Bash", "--input", '{"command": "git fetch"}')
    assert permission(project, *call) == ("ask", "mode default")
    assert project.wave("hooks", "trust", "--yes").returncode == 0
    assert permission(project, *call) == ("allow", "rule Bash(git fetch:*)")


def test_explain_judges_by_mode_place_and_protection(project: Project) -> None:
    assert permission(project, "Read", "--input", '{"file_path": "a"}') == ("allow", "mode default")
    assert permission(project, "Read", "--input", '{"file_path": "/etc/passwd"}') == ("ask", "mode default")
    assert permission(project, "Bash", "--permission-mode", "plan") == ("deny", "mode plan")
    edit = ("Write", "--input", '{"file_path": "guard.sh", "content": ""}', "--permission-mode", "acceptEdits")
    assert permission(project, *edit)[1].startswith("protected path ")
    assert permission(project, "Bash", "--input", '{"cmd": "ls"}') == ("deny", "the input does not fit the tool")


def test_explain_takes_what_else_a_matcher_is_compared_with(empty: Project) -> None:
    empty.settings({"hooks": {"SessionStart": [{"matcher": "resume", "command": "echo", "name": "r"}]}})
    told = [json.loads(empty.wave("hooks", "explain", *words, "--json").stdout) for words in (
        ("SessionStart", "resume"), ("SessionStart", "startup"), ("SessionStart",))]  # fmt: skip
    assert [len(one["parallel"]) for one in told] == [1, 0, 0]
    assert told[0]["permission"] is None


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("explain", "PreToolUs", "Bash"), 'no event "PreToolUs" (did you mean "PreToolUse"?)'),
        (("explain", "PreToolUse", "Bsh"), 'no tool "Bsh" (did you mean "Bash"?)'),
        (("explain", "PreToolUse"), "PreToolUse needs a tool"),
        (("explain", "Stop", "Bash"), "Stop has no value to compare a matcher with"),
        (("explain", "Stop", "--input", "{}"), "Stop has no input"),
        (("explain", "PreToolUse", "Bash", "--input", "{x"), "--input:1:2: not valid JSON"),
        (("explain", "PreToolUse", "Bash", "--input", "[]"), "--input must be a JSON object, not a list"),
        (("test",), "Missing argument"),
        (("test", "PreToolUs"), 'did you mean "PreToolUse"'),
        (("test", "PreToolUse", "--tool", "Bsh"), 'did you mean "Bash"'),
        (("test", "PreToolUse", "--tool", "Bash", "--hook", "gaurd.sh"), 'did you mean "guard.sh"'),
        (("test", "PreToolUse", "--tool", "Bash", "--hook", "clock"), 'the hook "clock" runs on UserPromptSubmit'),
        (("test", "PreToolUse", "--tool", "Bash", "--input", "{"), "--input:1:2: not valid JSON"),
        (("test", "Stop", "--payload", "none.json"), "none.json cannot be read"),
        (("test", "Stop", "--expect", "blok"), "blok"),
        (("test", "Stop", "cases.yaml"), "Expected one event, or files"),
        (("test", "cases.yaml", "--tool", "Bash"), "Case files define their own"),
        (("test", "cases.yaml"), "cases.yaml cannot be read"),
        (("test", ".wave/"), ".wave/ is a directory; name the files of cases in it, which end in"),
        (("test", "guard.sh"), "guard.sh is not a file of cases; these end in"),
        (("schema", "input"), "Name the event"),
        (("schema", "input", "Stpo"), 'did you mean "Stop"'),
        (("schema", "settings", "Stop"), "the same for all events"),
        (("list", "--settings", "none.json"), "Settings file not found:"),
        (("lint", "/bin/ls"), "/bin/ls: not a settings file, script or project."),
    ],
)
def test_wrong_usage_is_told_with_the_nearest_name(project: Project, arguments: tuple[str, ...], told: str) -> None:
    trusting = ("--trust",) if arguments[0] == "test" else ()
    ran = project.wave("hooks", *arguments, *trusting)
    assert (ran.stdout, told in ran.stderr) == ("", True), ran.stderr
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr


# ----------------------------------------------------------------------------------------------------------------- test


@pytest.mark.parametrize(
    ("command", "read_as"),
    [
        ("./missing", "exit 127"),
        ("sleep 60", "it did not exit by itself"),
        ("kill -9 $$", "it did not exit by itself"),
        ("exit 3", "exit 3"),
    ],
)
def test_a_broken_hook_makes_test_fail_unless_that_was_expected(empty: Project, command: str, read_as: str) -> None:
    empty.settings({"hooks": {"Stop": [{"command": command, "timeout": 0.3}]}})
    ran = empty.wave("hooks", "test", "Stop", "--trust")
    [line] = [one for one in ran.stdout.splitlines() if "read as" in one]
    assert (ran.returncode, read_as in line) == (1, True), ran.stdout


def test_a_service_that_is_down_did_not_answer(empty: Project) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there, and nobody else can
        host = f"127.0.0.1:{taken.getsockname()[1]}"
        hook = {"type": "http", "url": f"http://{host}/"}
        empty.settings({"hooks": {"Stop": [hook]}, "httpHooks": {"hosts": [host]}})
        ran = empty.wave("hooks", "test", "Stop", "--trust")
    assert (ran.returncode, "could not start" in ran.stdout) == (1, False)
    assert "): no answer, " in ran.stdout
    assert "there is no answer\n" in ran.stdout


def test_test_runs_no_hook_of_a_project_that_is_not_trusted(project: Project) -> None:
    refused = project.wave(*TRY, '{"command": "ls"}')
    assert (refused.returncode, refused.stdout, has_run(project)) == (1, "", False)
    for way in ("./guard.sh", "wave hooks trust", "--trust", "--no-project-hooks"):
        assert way in refused.stderr
    without = project.wave(*TRY, '{"command": "ls"}', "--no-project-hooks")
    assert (without.returncode, has_run(project)) == (0, False)
    assert project.wave("hooks", "trust", "--yes").returncode == 0
    assert project.wave(*TRY, '{"command": "ls"}').returncode == 0
    assert has_run(project)


def test_test_shows_each_run_and_what_comes_of_it(project: Project) -> None:
    ran = project.wave(*TRY, '{"command": "rm -rf build"}', "--trust", "--expect", "block")
    assert (ran.returncode, ran.stderr) == (0, "")
    for line in (
        'PreToolUse Bash {"command": "rm -rf build"}',
        "    stderr    rm -rf is not allowed here",
        "    says      deny",
        'edits (.wave/settings.json:1) was not run: its matcher (name "Edit" or name "Write") does not match "Bash"',
        "Outcome: block",
        "    The tool does not run; the model continues.",
        "    the model sees   rm -rf is not allowed here",
        "    the user sees    nothing",
        "As expected.",
    ):
        assert line in ran.stdout.splitlines(), ran.stdout
    assert "guard.sh (.wave/settings.json:1): exit 2, " in ran.stdout


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        ({"decision": "block", "reason": "no"}, "block"),
        ({"decision": "approve"}, "allow"),
        ({"decision": "ask", "reason": "sure?"}, "ask"),
        ({"continue": False, "stopReason": "enough"}, "stop"),
        ({"additionalContext": "by the way"}, "context"),
        ({"systemMessage": "hm"}, "none"),
    ],
)
def test_each_outcome_can_be_expected(project: Project, answer: dict[str, Any], word: str) -> None:
    (project.directory / "tidy.json").write_text(json.dumps(answer))
    for expected in ("block", "allow", "ask", "stop", "context", "none"):
        if expected in (word, "none"):
            ran = project.wave(*TRY, '{"command": "ls"}', "--trust", "--hook", "tidy", "--expect", expected)
            assert ran.returncode == (0 if expected == word else 1), ran.stdout


def test_a_rewritten_input_is_shown_and_judged(project: Project) -> None:
    (project.directory / "tidy.json").write_text(
        '{"hookSpecificOutput": {"updatedInput": {"command": "sudo rm -r build"}}}'
    )
    ran = json.loads(project.wave(*TRY, '{"command": "rm -rf build"}', "--trust", "--json").stdout)
    assert (ran["outcome"], ran["tool_input"], ran["rewritten_by"]) == (
        *("none", {"command": "sudo rm -r build"}, {"command": "tidy"}),
    )
    assert ran["permission"] == {"answer": "deny", "by": "rule Bash(sudo:*)"}


def test_what_was_wrong_with_an_answer_is_shown(project: Project) -> None:
    (project.directory / "tidy.json").write_text('{"decision": "blok"}')
    ran = project.wave(*TRY, '{"command": "ls"}', "--trust", "--hook", "tidy")
    assert 'problem   hook tidy: decision "blok" cannot be read on PreToolUse (did you mean "block"?)' in ran.stdout
    assert "read as   exit 0, JSON with a decision that cannot be read: " in ran.stdout


def test_a_hook_that_fails_meets_no_expectation(project: Project) -> None:
    (project.directory / "tidy.json").unlink()
    ran = project.wave(*TRY, '{"command": "ls"}', "--trust", "--hook", "tidy", "--expect", "none")
    assert (ran.returncode, "+ failures is 1" in ran.stdout) == (1, True)


def test_prompts_payloads_and_other_events_can_be_tried(project: Project) -> None:
    prompt = project.wave("hooks", "test", "UserPromptSubmit", "--prompt", "hello", "--trust", "--expect", "context")
    assert (prompt.returncode, "    the model sees   the time is late" in prompt.stdout) == (0, True)
    payload = project.wave(
        "hooks", "test", "PreToolUse", "--payload", "-", "--trust", "--json", "--expect", "block",
        piped='{"tool_name": "Bash", "tool_input": {"command": "rm -rf x"}, "permission_mode": "plan"}',
    )  # fmt: skip
    assert payload.returncode == 0
    assert json.loads(payload.stdout)["reason"] == "rm -rf is not allowed here"


def test_a_hook_gets_what_an_agent_would_give_it(empty: Project) -> None:
    command = (
        'cat > seen.json; cat "$(sed -E \'s/.*"transcript_path":"([^"]*)".*/\\1/\' seen.json)" > t; env > env; pwd > p'
    )
    empty.settings({"hooks": {"PostToolUse": [command]}, "env": {"OWN": "1"}})
    ran = empty.wave(
        "hooks", "test", "PostToolUse", "--tool", "Read", "--input", '{"file_path": "a"}',
        "--response", '{"success": true, "content": "text"}', "--trust", WAVE_API_KEY="secret",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    seen = json.loads((empty.directory / "seen.json").read_text())
    assert seen["tool_input"] == {"file_path": str(empty.directory / "a")}
    assert (seen["tool_response"]["content"], seen["cwd"]) == ("text", str(empty.directory))
    assert json.loads((empty.directory / "t").read_text())["session_id"] == seen["session_id"]
    environment = (empty.directory / "env").read_text().splitlines()
    assert {"OWN=1", "HOOK_EVENT=PostToolUse", f"WAVE_PROJECT_DIR={empty.directory}"} <= set(environment)
    assert "WAVE_API_KEY=secret" not in environment
    assert (empty.directory / "p").read_text().strip() == str(empty.directory)
    assert not Path(seen["transcript_path"]).exists()


def test_an_async_hook_is_waited_for_and_shown(empty: Project) -> None:
    empty.settings({"hooks": {"Stop": [{"command": "echo late; touch done", "async": True, "name": "late"}]}})
    ran = empty.wave("hooks", "test", "Stop", "--trust")
    assert (ran.returncode, "    stdout    late" in ran.stdout, (empty.directory / "done").exists()) == (0, True, True)


# ------------------------------------------------------------------------------------------------------ files of cases


CASES = """\
- name: rm -rf is denied
  event: PreToolUse
  tool: Bash
  input: {command: rm -rf build}
  expect: {outcome: block, reason: not allowed}
- name: the clock
  event: UserPromptSubmit
  prompt: hello
  expect: {context: late, exit_code: 0}
"""
FAILING = """\
- name: ls is denied
  event: PreToolUse
  tool: Bash
  hook: guard.sh
  input: {command: ls}
  expect: block
"""


@pytest.mark.parametrize("jobs", ["1", "4"])
def test_files_of_cases_give_one_line_a_case_and_a_diff_for_what_differs(project: Project, jobs: str) -> None:
    (project.directory / "good.yaml").write_text(CASES)
    (project.directory / "bad.yml").write_text(FAILING)
    good = project.wave("hooks", "test", "good.yaml", "--trust", "--jobs", jobs)
    assert (good.returncode, good.stdout, good.stderr) == (
        *(0, "ok     rm -rf is denied\nok     the clock\n2 passed, 0 failed\n", ""),
    )
    both = project.wave("hooks", "test", "bad.yml", "good.yaml", "--trust", "--jobs", jobs)
    assert both.returncode == 1
    assert both.stdout.splitlines() == [
        "FAILED ls is denied (bad.yml:1)",
        '    - outcome is "block"',
        '    + outcome is "none"',
        "    guard.sh: exit 0, none",
        "ok     rm -rf is denied",
        "ok     the clock",
        "2 passed, 1 failed",
    ]


def test_cases_for_programs(project: Project) -> None:
    (project.directory / "bad.json").write_text(
        '[{"event": "PreToolUse", "tool": "Bash", "hook": "guard.sh", "expect": "block"}]'
    )
    ran = project.wave("hooks", "test", "bad.json", "--trust", "--json")
    (case,) = json.loads(ran.stdout)
    assert (ran.returncode, case["passed"], case["place"]) == (1, False, "bad.json:1")
    assert case["differences"] == [{"what": "outcome", "how": "is", "expected": "block", "actual": "none"}]


def test_a_mistake_in_a_file_of_cases_is_told_with_its_line(project: Project) -> None:
    (project.directory / "bad.yaml").write_text(CASES + "- event: PreToolUse\n  tol: Bash\n")
    ran = project.wave("hooks", "test", "bad.yaml", "--trust")
    assert (ran.returncode, ran.stdout, has_run(project)) == (2, "", False)
    assert 'bad.yaml:11: [2].tol: unknown key "tol" (did you mean "tool"?)' in ran.stderr
    before_trust = project.wave("hooks", "test", "bad.yaml")
    assert (before_trust.returncode, before_trust.stderr) == (2, ran.stderr)
    (project.directory / "bad.yaml").write_text(CASES)
    untrusted = project.wave("hooks", "test", "bad.yaml")
    assert (untrusted.returncode, "not trusted" in untrusted.stderr, has_run(project)) == (1, True, False)


# --------------------------------------------------------------------------------------------------------------- schema


def test_the_schema_of_the_settings_is_the_one_without_a_word(empty: Project) -> None:
    plain, named = empty.wave("hooks", "schema"), empty.wave("hooks", "schema", "settings", "--json")
    assert json.loads(plain.stdout) == json.loads(named.stdout)
    jsonschema.validate(SETTINGS, json.loads(plain.stdout))


@pytest.mark.parametrize("what", ["input", "output"])
def test_every_event_has_its_schemas(empty: Project, what: str) -> None:
    for event in list(EVENTS)[:2]:
        schema = json.loads(empty.wave("hooks", "schema", what, event.value).stdout)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["title"].startswith(f"{event}: ")


def test_a_wrong_event_is_told_before_it_is_asked_whether_hooks_are_trusted(project: Project) -> None:
    done = project.wave("hooks", "test", "PreTolUse")
    assert done.returncode == 2
    assert 'there is no event "PreTolUse"' in done.stderr
    assert not has_run(project)
