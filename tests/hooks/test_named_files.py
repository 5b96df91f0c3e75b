"""The files that a hook's command names."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wave_agent.hooks.named_files import named_files, runs_alike
from wave_agent.settings.hook_entries import hooks_in_code, load_hooks


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("guard.sh", "hooks/check.py", "hooks/pkg/__main__.py", "conf.json", "log.txt", "sub/a b.sh"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("./guard.sh", ["guard.sh"]),
        ("guard.sh", ["guard.sh"]),
        ("bash guard.sh conf.json", ["guard.sh", "conf.json"]),
        ("$CLAUDE_PROJECT_DIR/guard.sh", ["guard.sh"]),
        ('"$CLAUDE_PROJECT_DIR"/hooks/check.py', ["hooks/check.py"]),
        ("${WAVE_PROJECT_DIR}/guard.sh --x", ["guard.sh"]),
        ("${CLAUDE_PROJECT_DIR:-.}/guard.sh", ["guard.sh"]),
        ("$PWD/guard.sh", ["guard.sh"]),
        ("$(git rev-parse --show-toplevel)/guard.sh", ["guard.sh"]),
        ('"$(git rev-parse --show-toplevel 2>/dev/null)/hooks/check.py"', ["hooks/check.py"]),
        ("$(pwd)/guard.sh", ["guard.sh"]),
        ("python3 -m hooks.check", ["hooks/check.py"]),
        ("python3 -m hooks.pkg", ["hooks/pkg/__main__.py"]),
        ("bash -c 'cat conf.json | ./guard.sh'", ["conf.json", "guard.sh"]),
        ("A=1 ./guard.sh && python hooks/check.py", ["guard.sh", "hooks/check.py"]),
        ("cat <conf.json|./guard.sh", ["conf.json", "guard.sh"]),
        ("./guard.sh --config=conf.json", ["guard.sh", "conf.json"]),
        ("'sub/a b.sh'", ["sub/a b.sh", "sub/a"]),  # may be a command in quotes as well
        ("tee -a log.txt\n./guard.sh", ["guard.sh"]),
        ("diff <(cat conf.json) guard.sh", ["conf.json", "guard.sh"]),
        ("./not-there.sh", ["not-there.sh"]),
        ("(./guard.sh)", ["guard.sh"]),
        ("./guard.sh&", ["guard.sh"]),
        ("./guard.sh #conf.json", ["guard.sh"]),
    ],
)
def test_what_runs_or_is_read_is_named(project: Path, command: str, named: list[str]) -> None:
    found = [os.path.relpath(path, project) for path in named_files(command, None, str(project))]
    assert [path for path in found if path in named or (project / path).exists()] == named


@pytest.mark.parametrize(
    "command",
    [
        "jq -r .tool_input.command >> log.txt",
        "jq . >log.txt",
        "jq . 2> log.txt",
        "jq . &>log.txt",
        "jq . >| log.txt",
        "jq . | tee log.txt",
        "jq . | tee -a log.txt | cat",
        "date",
        "ls hooks",
    ],
)
def test_a_log_that_grows_and_a_directory_are_not(project: Path, command: str) -> None:
    assert [path for path in named_files(command, None, str(project)) if os.path.isfile(path)] == []


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("bash <> ./guard.sh", "guard.sh"),
        ("tee log.txt < ./guard.sh | bash", "guard.sh"),
        ("cd hooks && ./check.py", "hooks/check.py"),
        ("cd hooks; python check.py", "hooks/check.py"),
        ("env -C hooks ./check.py", "hooks/check.py"),
        ("env --chdir=hooks ./check.py", "hooks/check.py"),
        ("python hooks/*.py", "hooks/check.py"),
        ("bash {guard,other}.sh", "guard.sh"),
        ("python hooks/{check,other}.py", "hooks/check.py"),
        ("`pwd`/guard.sh", "guard.sh"),
        ('"$(git rev-parse --show-toplevel 2>/dev/null || pwd)"/guard.sh', "guard.sh"),
        ("${CLAUDE_PROJECT_DIR%/}/guard.sh", "guard.sh"),
        ("${WAVE_PROJECT_DIR:?}/guard.sh", "guard.sh"),
        ("~+/guard.sh", "guard.sh"),
        ("bash $'./guard.sh'", "guard.sh"),
        ("python3 -mhooks.check", "hooks/check.py"),
        ("python3 -Im hooks.check", "hooks/check.py"),
        ("PYTHONPATH=hooks python3 -m check", "hooks/check.py"),
        ("node -r./guard.sh", "guard.sh"),
        ("D=hooks; $D/check.py", "hooks/check.py"),
        ("D=hooks; ${D}/check.py", "hooks/check.py"),
        ("make -fguard.sh", "guard.sh"),
        ("make check", "Makefile"),
        ("npm run guard", "package.json"),
        ("bash late.sh", "late.sh"),
        ("python3 -m late", "late/__main__.py"),
    ],
)
def test_however_it_is_written(project: Path, command: str, named: str) -> None:
    assert str(project / named) in named_files(command, None, str(project))


def test_with_args_each_of_them_is_one_word(project: Path) -> None:
    found = named_files("python3", ("hooks/check.py", "; ./guard.sh"), str(project))
    assert str(project / "hooks/check.py") in found
    assert str(project / "guard.sh") not in found


@given(st.text(max_size=60), st.none() | st.lists(st.text(max_size=20)))
def test_no_command_is_too_odd(command: str, args: list[str] | None) -> None:
    named_files(command, args, "/nowhere")


@pytest.mark.parametrize(
    ("command", "alike"),
    [
        ("pwd", True),
        ("jq -r .tool_input.file_path | xargs grep -q secret && exit 2", True),
        ("/usr/bin/env true", True),
        ('"$CLAUDE_PROJECT_DIR"/guard.sh', True),
        ('python3 "$CLAUDE_PROJECT_DIR"/guard.sh', True),
        ("./guard.sh", False),
        ("bash guard.sh", False),
        ("sub/other.sh", False),
        ("sh only-there.sh", False),
        ("python3 -c 'import guard'", False),
        ("python3 -m guard", False),
        ("node -e 'require(1)'", False),
        ("npx guard", False),
        ("make guard", False),
        ("git diff --quiet", False),
        ("/usr/bin/git status", False),
        ("bash -c 'x=$(git status)'", False),
        ("unheard-of --guard", False),
        ('"$CLAUDE_PROJECT_DIR"/sources.sh', False),
        ('"$CLAUDE_PROJECT_DIR"/runs-python.sh', False),
        ('"$CLAUDE_PROJECT_DIR"/from-here.sh', False),
    ],
)
def test_a_hook_runs_the_same_in_another_directory_if_nothing_that_it_runs_is_found_by_where_it_is(
    tmp_path: Path, command: str, alike: bool
) -> None:
    project, sub = tmp_path / "project", tmp_path / "project" / "sub"
    sub.mkdir(parents=True)
    (project / "guard.sh").write_text("#!/bin/sh\nexit 2\n")
    (project / "sources.sh").write_text("#!/bin/sh\n. ./guard.sh\n")
    (project / "from-here.sh").write_text('#!/bin/sh\nsh "$(pwd)"/guard.sh\n')
    (project / "runs-python.sh").write_text("#!/usr/bin/env bash\npython3 - <<< 'import json'\n")
    (sub / "other.sh").write_text("exit 0\n")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("git", "python3", "node", "npx", "make", "jq", "grep", "unheard-of"):
        (programs / name).touch()
    (sub / "only-there.sh").write_text("exit 0\n")
    (hook,) = load_hooks([hooks_in_code({"Stop": [{"command": command}]})]).hooks
    assert runs_alike(hook, str(project), str(sub), f"{programs}:/nowhere") is alike


def test_a_hook_that_is_no_command_stays_where_it_is() -> None:
    (hook,) = load_hooks([hooks_in_code({"Stop": [{"type": "python", "target": "/a.py:b"}]})]).hooks
    assert not runs_alike(hook, "/srv", "/srv/sub", "")
