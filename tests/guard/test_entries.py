"""The guard in the settings of hosts: added, found, and removed without a trace."""

import json
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.rows import rows
from wave_agent.guard.entries import EntriesError, entries, installed, uninstalled
from wave_agent.guard.hosts import HOSTS
from wave_agent.guard.lines import PROGRAM, flags_for, guard_line, is_guard_line, timeout_for

BEFORE = {
    **dict.fromkeys(
        ("claude", "codex", "gemini", "qwen"),
        '{\n    "model": "x",\n    "hooks": {\n        "PreToolUse": [\n            {"matcher": "Bash", "hooks": '
        '[{"type": "command", "command": "./own.sh"}]}\n        ]\n    }\n}\n',
    ),
    "cursor": '{"version": 1, "hooks": {"stop": [{"command": "./own.sh"}]}}\n',
    "copilot": '{\n  "version": 1,\n  "other": true\n}\n',
    "kimi": '# mine\nmodel = "x"\n\n[[hooks]]\nevent = "Stop"\ncommand = "./own.sh"\n',
    "vibe": "",
    "opencode": "",
}
FAST = ("/opt/with space/python", "-I", "-S", "/opt/x/guard/client.py")


@rows("host", HOSTS)
def test_what_is_installed_is_found_once_and_can_be_removed(host: str) -> None:
    for program in (PROGRAM, ("/usr/bin/wave", "guard", "run"), FAST):
        text = installed(host, BEFORE[host], program)
        ours = [entry for entry in entries(host, text) if entry.is_guard]
        assert sorted(entry.event for entry in ours) == sorted(HOSTS[host].installed)
        assert installed(host, text, program) == text, "a second time changes nothing"
        assert uninstalled(host, text) == BEFORE[host]
        assert "--pass-allow" in installed(host, text, PROGRAM, flags_for(pass_allow=True))


@rows("host", HOSTS)
def test_a_file_that_only_held_the_guard_is_empty_afterwards(host: str) -> None:
    assert uninstalled(host, installed(host, "", PROGRAM)) == ""


def test_other_entries_of_a_group_stay() -> None:
    text = installed("claude", "{}", PROGRAM)
    both = text.replace('"hooks": [', '"hooks": [\n{"type": "command", "command": "./own.sh"},', 1)
    left = json.loads(uninstalled("claude", both))
    assert left == {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "./own.sh"}]}]}}


def test_a_file_that_has_nothing_of_ours_is_left_alone() -> None:
    assert uninstalled("claude", "{ }") == "{ }"
    assert uninstalled("opencode", "export default 1") == "export default 1"


def test_timeouts_have_the_unit_of_the_host() -> None:
    gemini = json.loads(installed("gemini", "", PROGRAM))["hooks"]["BeforeTool"][0]["hooks"][0]
    claude = json.loads(installed("claude", "", PROGRAM))["hooks"]["PreToolUse"][0]["hooks"][0]
    assert (gemini["timeout"], claude["timeout"]) == (90_000, 90)
    kimi = tomllib.loads(installed("kimi", "", PROGRAM))["hooks"]
    assert all(1 <= entry["timeout"] <= 600 for entry in kimi)
    assert timeout_for("claude", "Stop") == 600


BROKEN = [
    ("claude", "{,", "not JSON"),
    ("claude", "// comment\n{}", "not JSON"),
    ("claude", "[]", "not a JSON object"),
    ("claude", '{"hooks": []}', "hooks is not an object"),
    ("claude", '{"hooks": {"PreToolUse": {}}}', "different type"),
    ("claude", '{"hooks": {"Stop": [{"hooks": {"a": 1}}]}}', "is not a list"),
    ("cursor", '{"hooks": {}}', 'no "version"'),
    ("kimi", "a = = 1", "not TOML"),
    ("kimi", "hooks = []", "not \\[\\[hooks\\]\\] tables"),
    ("kimi", "hooks = 5", "not \\[\\[hooks\\]\\] tables"),
    ("kimi", "hooks = {a = 1}", "not \\[\\[hooks\\]\\] tables"),
    ("opencode", "export default 1", "move it away"),
]


@rows("host, text, why", BROKEN, ids=lambda one: str(one)[:30])
def test_settings_that_cannot_be_changed_say_why(host: str, text: str, why: str) -> None:
    with pytest.raises(EntriesError, match=why):
        installed(host, text, PROGRAM)


def test_hooks_of_another_type_cannot_be_read() -> None:
    with pytest.raises(EntriesError, match="hooks is not a list"):
        entries("kimi", "hooks = 5")


def test_entries_that_are_no_hooks_are_skipped() -> None:
    assert entries("claude", '{"hooks": {"Stop": [5, {"hooks": [7]}, {}], "disabled": true}}')[0].command == ""
    assert entries("cursor", '{"version": 1, "hooks": {"stop": [5]}}')[0].command == ""
    assert entries("kimi", "hooks = [5]") == []


@rows("line", [
    "wave guard run claude PreToolUse --timeout 90; rm -rf x",
    "wave guard run claude PreToolUse --timeout 90",
    "./check && " + guard_line("claude", "PreToolUse"),
    guard_line("claude", "PreToolUse") + "; ./check",
    guard_line("claude", "PreToolUse").replace("PreToolUse", "Stop"),
    guard_line("claude", "PreToolUse").replace("claude", "emacs"),
    guard_line("claude", "PreToolUse", FAST).replace("[ -r /opt", "[ -r /tmp"),
    guard_line("claude", "PreToolUse", FAST, ["--trust-ref", "origin/main"]),
    "python3 -I -S /tmp/other.py" + guard_line("claude", "PreToolUse").removeprefix("wave guard run"),
    "",
])  # fmt: skip
def test_a_line_that_does_anything_else_is_not_the_guard(line: str) -> None:
    assert not is_guard_line(line)


@pytest.mark.parametrize("host", HOSTS)
def test_the_line_denies_by_itself_when_the_program_is_gone(host: str, tmp_path: Path) -> None:
    first = HOSTS[host].installed[0]
    line = guard_line(host, first, ("/nowhere/wave", "guard", "run"))
    done = subprocess.run(["sh", "-c", line], input="{}", capture_output=True, text=True, check=False)
    if line.endswith("exit 2; }"):
        assert done.returncode == 2
        assert "wave guard is not available" in done.stderr
    else:
        assert done.returncode == 0
        assert "deny" in json.loads(done.stdout) or "deny" in json.loads(done.stdout).values()
    for name in HOSTS[host].installed[1:]:
        if not HOSTS[host].events[name].value.startswith(("PreToolUse", "PermissionRequest")):
            line = guard_line(host, name, ("/nowhere/wave", "guard", "run"))
            assert subprocess.run(["sh", "-c", line], capture_output=True, check=False).returncode == 0


def test_the_line_keeps_the_reason_of_a_deny() -> None:
    line = guard_line("claude", "PreToolUse", ("sh", "-c", "echo no >&2; exit 2", "x"))
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "no\n")
