"""Rules for settings: each finds what it is for, and leaves alone what is sound."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lint.workbench import Workbench

CLAUDE = ".claude/settings.json"


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    made = Workbench(tmp_path)
    made.write("hooks/x.sh", "#!/bin/sh\ncat >/dev/null\n")
    made.write(".claude/hooks/x.sh", "#!/bin/sh\ncat >/dev/null\n")
    return made


@pytest.mark.parametrize(
    ("command", "codes"),
    [
        ("$CLAUDE_PROJECT_DIR/hooks/x.sh", ["W101"]),
        ("${CLAUDE_PROJECT_DIR}/hooks/x.sh", ["W101"]),
        ("bash $WAVE_PROJECT_DIR/hooks/x.sh", ["W101"]),
        ("cd $CLAUDE_PROJECT_DIR && hooks/x.sh", ["W101"]),
        ('"$CLAUDE_PROJECT_DIR"/hooks/x.sh', []),
        ('"${CLAUDE_PROJECT_DIR}/hooks/x.sh"', []),
        ("ROOT=$CLAUDE_PROJECT_DIR hooks/x.sh", []),
        ("bash -c '\"$CLAUDE_PROJECT_DIR\"/hooks/x.sh'", []),
        ("hooks/x.sh # \\$CLAUDE_PROJECT_DIR", []),
        ("echo $HOME", []),
    ],
)
def test_a_variable_with_a_path_is_quoted(bench: Workbench, command: str, codes: list[str]) -> None:
    bench.hook(command)
    assert bench.codes() == codes


def test_arguments_without_a_shell_need_no_quotes(bench: Workbench) -> None:
    bench.hook({"command": "bash", "args": ["hooks/x.sh", "$CLAUDE_PROJECT_DIR"]})
    assert bench.codes() == []


@pytest.mark.parametrize(
    ("file", "command", "codes"),
    [
        (CLAUDE, "./hooks/x.sh", ["W102"]),
        (CLAUDE, ".claude/hooks/x.sh", ["W102"]),
        (CLAUDE, "bash hooks/x.sh", ["W102"]),
        (CLAUDE, '"$CLAUDE_PROJECT_DIR"/hooks/x.sh', []),
        (CLAUDE, 'cd "$CLAUDE_PROJECT_DIR" && ./hooks/x.sh', []),
        (CLAUDE, "npx prettier --check src/a.ts", []),
        (CLAUDE, "echo done", []),
        (".wave/settings.json", "./hooks/x.sh", []),
    ],
)
def test_a_path_relative_to_the_current_directory_is_told_where_others_read_it(
    bench: Workbench, file: str, command: str, codes: list[str]
) -> None:
    bench.hook(command, name=file)
    assert bench.codes() == codes


@pytest.mark.parametrize(("timeout", "codes"), [(5000, ["W103"]), (999, ["W113"]), (60, []), (0.5, [])])
def test_a_timeout_is_in_seconds(bench: Workbench, timeout: float, codes: list[str]) -> None:
    bench.hook("hooks/x.sh", timeout=timeout)
    assert bench.codes() == codes


@pytest.mark.parametrize(
    ("file", "command", "codes"),
    [
        (".wave/settings.json", "/home/kim/bin/x.sh --flag; true", ["W104"]),
        (CLAUDE, "python3 '/Users/kim/x.py' && true", ["W104"]),
        (".wave/settings.local.json", "/home/kim/bin/x.sh; true", []),
        (".wave/settings.json", "~/bin/x.sh; true", []),
        (".wave/settings.json", "/usr/local/bin/x; true", []),
    ],
)
def test_nobodys_home_is_in_shared_settings(bench: Workbench, file: str, command: str, codes: list[str]) -> None:
    bench.hook(command, name=file)
    assert bench.codes() == codes


@pytest.mark.parametrize(
    ("command", "codes"), [("./plain.sh", ["W105"]), ("bash ./plain.sh", []), ("python3 -c pass ./plain.sh", [])]
)
def test_a_script_that_is_run_by_itself_has_the_run_bit(bench: Workbench, command: str, codes: list[str]) -> None:
    bench.write("plain.sh", "#!/bin/sh\ncat >/dev/null\n", 0o644)
    bench.hook(command)
    assert bench.codes() == codes


@pytest.mark.parametrize(
    ("matcher", "codes"),
    [
        ("Bash(git push*)", ["W106"]),
        ('tool == "Bash" && tool_input.command matches "git"', ["W106"]),
        ("Write|Edit", []),
        ("mcp__.*", []),
        ("*", []),
        ("Bahs", ["W113"]),
    ],
)
def test_a_matcher_can_match(bench: Workbench, matcher: str, codes: list[str]) -> None:
    bench.settings({"PreToolUse": [{"matcher": matcher, "hooks": [{"command": "hooks/x.sh"}]}]})
    assert bench.codes() == codes


@pytest.mark.parametrize(
    ("groups", "codes"),
    [
        ({"PreToolUse": [{"matcher": "Bash"}]}, ["W107"]),
        ({"PreToolUse": [{"matcher": "Bash", "command": "hooks/x.sh"}]}, []),
        ({"PreToolUse": [{"hooks": [{"type": "command"}]}]}, ["W107"]),
        ({"PreToolUse": ["hooks/x.sh"]}, []),
        ({"PreTolUse": [{"hooks": [{"command": "hooks/x.sh"}]}]}, ["W108"]),
        ({"// a note": []}, []),
        ({"PreToolUse": [{"hooks": [{"command": "hooks/x.sh", "timeuot": 3}]}]}, ["W109"]),
        ({"PreToolUse": [{"hooks": [{"command": "hooks/x.sh", "description": "what it does"}]}]}, []),
    ],
)
def test_what_the_loader_reports_has_a_code(bench: Workbench, groups: dict[str, Any], codes: list[str]) -> None:
    bench.settings(groups)
    assert bench.codes() == codes


@pytest.mark.parametrize(
    ("command", "codes"),
    [
        ("./gone.sh", ["W110"]),
        ("python3 gone.py", ["W110"]),
        ('"$CLAUDE_PROJECT_DIR"/gone.sh', ["W110"]),
        ("[ -x gone.sh ] && ./gone.sh", []),
        ("./$NAME.sh", []),
        ("python3 -m gone", []),
        ("hooks/x.sh", []),
    ],
)
def test_a_script_is_there(bench: Workbench, command: str, codes: list[str]) -> None:
    bench.hook(command)
    assert bench.codes() == codes


GUARD = "#!/bin/bash\nif [[ $(cat) == *x* ]]; then echo no >&2; exit 2; fi\n"


@pytest.mark.parametrize(
    ("event", "more", "codes"),
    [
        ("PreToolUse", {"async": True}, ["W111"]),
        ("PreToolUse", {"onFailure": "block"}, []),
        ("PreToolUse", {}, ["W112"]),
        ("UserPromptSubmit", {}, ["W112"]),
        ("PostToolUse", {}, []),
        ("SessionStart", {"async": True}, []),
    ],
)
def test_a_guard_is_waited_for_and_fails_closed(
    bench: Workbench, event: str, more: dict[str, Any], codes: list[str]
) -> None:
    bench.write("guard.sh", GUARD)
    bench.hook("./guard.sh", event, **more)
    assert bench.codes() == codes


def test_a_hook_that_only_looks_on_may_be_async_and_fail(bench: Workbench) -> None:
    bench.hook({"command": "hooks/x.sh", "async": True})
    assert bench.codes() == []


def test_only_our_own_files_are_advised_to_say_what_only_we_understand(bench: Workbench) -> None:
    bench.write("guard.sh", GUARD)
    bench.hook('"$CLAUDE_PROJECT_DIR"/guard.sh', name=CLAUDE)
    assert bench.codes() == []


@pytest.mark.parametrize(
    ("command", "codes"),
    [
        ("echo $CLAUDE_TOOL_INPUT >> log", ["W207"]),
        ("prettier --write ${CLAUDE_FILE_PATHS}", ["W207"]),
        ("curl -s https://example.com/x", ["W208"]),
        ("curl -m 2 -s https://example.com/x", []),
        ("echo BLOCKED; exit 1", ["W210"]),
        ("jq -r .tool_input.command", []),
    ],
)
def test_a_command_line_is_looked_at_too(bench: Workbench, command: str, codes: list[str]) -> None:
    bench.hook(command)
    assert bench.codes() == codes


def test_a_variable_that_settings_define_is_set(bench: Workbench) -> None:
    settings = {
        "env": {"CLAUDE_FILE_PATHS": "a"},
        "hooks": {"PostToolUse": [{"hooks": [{"command": "echo $CLAUDE_FILE_PATHS"}]}]},
    }
    bench.write(".wave/settings.json", json.dumps(settings))
    assert bench.codes() == []


def test_settings_that_are_no_json_are_told_with_their_place_and_the_rest_is_looked_at(bench: Workbench) -> None:
    bench.write(".wave/settings.json", '{\n  "hooks": {,}\n}')
    bench.hook("./hooks/x.sh", name=CLAUDE)
    first, second = bench.check().findings
    assert (first.code, first.line, second.code) == ("W100", 2, "W102")


def test_the_other_settings_of_another_agent_are_its_own_business(bench: Workbench) -> None:
    hooks = {"PreToolUse": [{"hooks": [{"command": '"$CLAUDE_PROJECT_DIR"/hooks/x.sh'}]}]}
    bench.write(CLAUDE, json.dumps({"statusLine": {}, "enabledPlugins": {}, "hooks": hooks}))
    assert bench.codes() == []


@pytest.mark.parametrize(
    ("file", "event", "codes"),
    [
        (CLAUDE, "TaskCompleted", []),
        (CLAUDE, "PreTolUse", ["W108"]),
        (".wave/settings.json", "WasNeverHeardOf", ["W108"]),
    ],
)
def test_an_event_of_another_agent_is_no_mistake_in_a_file_for_it(
    bench: Workbench, file: str, event: str, codes: list[str]
) -> None:
    bench.hook('"$CLAUDE_PROJECT_DIR"/hooks/x.sh', event, name=file)
    assert bench.codes() == codes


@pytest.mark.parametrize("bare", [True, False])
def test_a_plugin_may_have_the_bare_map_of_events(bench: Workbench, bare: bool) -> None:
    bench.write("scripts/x.sh", "#!/bin/sh\ncat >/dev/null\n")
    hooks = {
        "PreToolUse": [
            {"hooks": [{"command": "${CLAUDE_PLUGIN_ROOT}/scripts/x.sh"}, {"command": "scripts/x.sh", "timeout": 5000}]}
        ]
    }
    bench.write("hooks/hooks.json", json.dumps(hooks if bare else {"description": "d", "hooks": hooks}, indent=1))
    findings = bench.check().findings
    assert [one.code for one in findings] == ["W101", "W102", "W103"]
    assert findings[2].line > findings[0].line > 1


def test_the_users_settings_are_looked_at_and_name_no_script_of_one_project(bench: Workbench) -> None:
    bench.home.mkdir()
    hooks = {"PreToolUse": [{"hooks": [{"command": "./hooks/x.sh"}]}]}
    (bench.home / "settings.json").write_text(json.dumps({"hooks": hooks}))
    assert bench.codes() == ["W102"]


def test_with_paths_only_these_are_looked_at(bench: Workbench) -> None:
    bench.hook("./gone.sh")
    bench.hook("./hooks/x.sh", name=CLAUDE)
    assert bench.codes(CLAUDE) == ["W102"]
    assert bench.codes("hooks/x.sh") == []
    assert sorted(bench.codes(".")) == ["W102", "W110"]


@pytest.mark.parametrize(
    ("text", "target", "codes"),
    [
        ("def check(call): ...", "check", []),
        ("async def check(call): ...", "check", []),
        ("class Guard:\n    def check(call): ...", "Guard.check", []),
        ("from guards import check", "check", []),
        ("import guards as check", "check", []),
        ("check = lambda call: None", "check", []),
        ("from guards import *", "check", []),
        ("def other(call): ...", "check", ["W114"]),
        ("def check(:", "check", ["W114"]),
        ("\0", "check", ["W114"]),
        ("", "check", ["W114"]),
        ("from wave_agent.hooks import deny\ndef check(call):\n    return deny('no')", "check", ["W112"]),
        ("def check(call):\n    return {'decision': 'block'}", "check", ["W112"]),
    ],
)
def test_a_function_in_a_file_can_be_called(bench: Workbench, text: str, target: str, codes: list[str]) -> None:
    (bench.project / "guard.py").write_text(text)
    hooks = {"PreToolUse": [{"hooks": [{"type": "python", "target": f"guard.py:{target}"}]}]}
    bench.write(".wave/settings.json", json.dumps({"hooks": hooks}), 0o644)
    assert bench.codes() == codes


def test_a_service_that_is_asked_before_a_tool_is_a_guard(bench: Workbench) -> None:
    hook = {"type": "http", "url": "http://127.0.0.1:1/x"}
    for more, codes in (({}, ["W112"]), ({"async": True}, []), ({"onFailure": "block"}, [])):
        settings = {"hooks": {"PreToolUse": [{"hooks": [{**hook, **more}]}]}, "httpHooks": {"hosts": ["127.0.0.1"]}}
        bench.write(".wave/settings.json", json.dumps(settings), 0o644)
        assert bench.codes() == codes


def test_a_prompt_is_a_guard_that_costs_tokens(bench: Workbench) -> None:
    hook = {"type": "prompt", "prompt": "No pushes."}
    for more, codes in (
        ({}, ["W112", "W121"]),
        ({"if": "Bash(git push:*)"}, ["W112"]),
        ({"onFailure": "block", "if": "Bash(git push:*)", "prompt": "Judge $ARGUMENTS"}, []),
        ({"onFailure": "block", "if": "Bash(git:*)", "prompt": "Is ${tool_input.command} fine?"}, ["W120"]),
        ({"onFailure": "block", "if": "Bash(git:*)", "prompt": "Is {{command}} fine?"}, ["W120"]),
        ({"async": True}, ["W111"]),
    ):
        settings = {"hooks": {"PreToolUse": [{"hooks": [{**hook, **more}]}]}}
        bench.write(".wave/settings.json", json.dumps(settings), 0o644)
        assert bench.codes() == codes


def test_a_function_in_a_file_is_there_and_a_service_is_left_alone(bench: Workbench) -> None:
    hooks = [
        {"type": "python", "target": "gone.py:check", "onFailure": "block"},
        {"type": "http", "url": "http://127.0.0.1:1/x", "onFailure": "block"},
    ]
    settings = {"hooks": {"PreToolUse": [{"hooks": hooks}]}, "httpHooks": {"hosts": ["127.0.0.1:1"]}}
    bench.write(".wave/settings.json", json.dumps(settings), 0o644)
    assert bench.codes() == ["W110"]
    (bench.project / "gone.py").write_text("def check(call):\n    return None\n")
    assert bench.codes() == []
