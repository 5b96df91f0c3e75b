"""Guards that see one way to do something: what lint proposes instead."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.lint.workbench import Workbench


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path)


def reasons(bench: Workbench, code: str) -> list[str]:
    return [one.reason for one in bench.check().findings if one.code == code]


def rules(bench: Workbench, kind: str, *texts: object) -> None:
    bench.write(".wave/settings.json", json.dumps({"permissions": {kind: texts}}), 0o644)


@pytest.mark.parametrize("kind", ["deny", "ask"])
@pytest.mark.parametrize(
    ("rule", "does", "instead"),
    [
        ("Bash(cat .env)", "reads .env", "Read(.env)"),
        ("Bash(cat ./.env:*)", "reads .env", "Read(.env)"),
        ("Bash(cat '.env')", "reads .env", "Read(.env)"),
        ("Bash(cat .env*)", "reads .env*", "Read(.env*)"),
        ("Bash(cat /etc/passwd)", "reads /etc/passwd", "Read(//etc/passwd)"),
        ("Bash(rm -rf build)", "deletes build/", "Edit(build)"),
        ("Bash(sed -i s/a/b/ vendor/x.c)", "reads vendor/x.c, writes vendor/x.c", "Edit(vendor/x.c)"),
        ("Bash(cp secret.txt /tmp/out)", "reads secret.txt, writes 2 files", "Read(secret.txt) and Edit(//tmp/out)"),
        ("Bash(curl https://evil.example/x:*)", "reaches evil.example", "Net(evil.example)"),
    ],
)
def test_a_rule_for_one_command_that_means_what_it_touches(
    bench: Workbench, kind: str, rule: str, does: str, instead: str
):
    rules(bench, kind, rule)
    assert reasons(bench, "W118") == [f"{rule}: it {does}, and other commands can too; write {instead}"]


@pytest.mark.parametrize(
    "rule",
    [
        "Bash", "Bash(*)", "Bash(rm:*)", "Bash(sudo:*)", "Bash(git push:*)", "Bash(git push origin main)",
        "Bash(npm publish:*)", "Bash(bash deploy.sh)", "Bash(make release)", "Bash(git commit --no-verify:*)",
        "Read(.env)", "Net(evil.example)", "Bash(", 5,
    ],
)  # fmt: skip
def test_a_rule_that_means_the_command(bench: Workbench, rule: object):
    rules(bench, "deny", rule)
    assert reasons(bench, "W118") == []


def test_an_allow_rule_covers_no_more_than_it_says(bench: Workbench):
    rules(bench, "allow", "Bash(cat .env)")
    assert reasons(bench, "W118") == []


@pytest.mark.parametrize("settings", ['{"permissions": []}', '{"permissions": {"deny": {}}}', "[]", "{"])
def test_settings_of_another_shape_are_left_to_the_loader(bench: Workbench, settings: str):
    bench.write(".wave/settings.json", settings, 0o644)
    assert reasons(bench, "W118") == []


def test_a_condition_for_one_command(bench: Workbench):
    bench.hook("true", **{"if": "Bash(cat .env)"})
    assert reasons(bench, "W118") == [
        '"if": "Bash(cat .env)": it reads .env, and other commands can too; write Read(.env)'
    ]


GUARD = """#!/usr/bin/env bash
case $(jq -r .tool_input.file_path) in */vendor/*) echo "protected" >&2; exit 2 ;; esac
"""


def guarded(bench: Workbench, matcher: str, script: str = GUARD, event: str = "PreToolUse") -> list[str]:
    bench.write("guard.sh", script)
    bench.settings({event: [{"matcher": matcher, "hooks": [{"command": "./guard.sh"}]}]})
    return reasons(bench, "W119")


def test_a_guard_of_files_that_does_not_see_commands(bench: Workbench):
    assert guarded(bench, "Edit|Write") == [
        'guard.sh: its matcher (name "Edit" or name "Write") omits Bash, which can touch the same files'
    ]


@pytest.mark.parametrize(
    ("arguments"),
    [
        ("*",),
        ("Edit|Write|Bash",),
        ("Edit", GUARD.replace("file_path", "effects.writes[]")),
        ("Edit", GUARD + "jq .effects.writes\n"),
        ("Edit", GUARD.replace("exit 2", "exit 0")),
        ("Edit", GUARD, "PostToolUse"),
    ],
)
def test_a_guard_that_sees_them_or_does_not_guard(bench: Workbench, arguments: Sequence[str]):
    assert guarded(bench, *arguments) == []


def test_a_guard_of_another_agent_has_no_effects_to_read(bench: Workbench):
    bench.write("guard.sh", GUARD)
    bench.settings({"PreToolUse": [{"matcher": "Edit", "hooks": [{"command": "./guard.sh"}]}]}, ".claude/settings.json")
    assert reasons(bench, "W119") == []
