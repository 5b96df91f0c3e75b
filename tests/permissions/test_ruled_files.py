"""What git says about the files that rules are about, and the commands that it decides."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.rows import rows
from wave_agent.effects.calls import effects_of
from wave_agent.effects.values import Effects
from wave_agent.permissions.command_surroundings import CommandSurroundings
from wave_agent.permissions.git.ruled_files import RuledFiles
from wave_agent.rules.rule import Places, parse_rule

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
VARIABLES = {"PATH": os.environ["PATH"], "HOME": "/nowhere"}


def git(project: Path, script: str) -> None:
    who = "git config user.name Me; git config user.email me@example.org"
    script = script.replace("INIT", f"git init -q --template= -b main .; {who}")
    subprocess.run(["sh", "-ec", script], cwd=project, env={**VARIABLES, "HOME": str(project)}, check=True)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`.env` is not tracked, `old.key` was, `now.key` is, `sub/new.key` is neither tracked nor ignored."""
    directory = tmp_path_factory.mktemp("project").resolve()
    for name in (".env", "old.key", "now.key", "a.txt", "sub/b.txt"):
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text("x\n")
    git(directory, "INIT; echo .env > .gitignore; git add -A; git commit -qm 1; git rm -q old.key; git commit -qm 2")
    (directory / "sub" / "new.key").write_text("x\n")
    (directory / "away").mkdir()
    git(directory / "away", "INIT; echo x > .env; git add -A; git commit -qm 1")
    return directory


def files(
    project: Path, *rules: str, scope: str = "tracked", at: str = "", variables: Mapping[str, str] = VARIABLES
) -> list[str] | None:
    places = Places(str(project), str(project / "home"))
    asked = RuledFiles(shutil.which("git"), list(map(parse_rule, rules)), places, patience=60)
    found = asked.of(str(project / at), scope, variables)
    return None if found is None else sorted(os.path.relpath(path, project) for path in found)


def test_files_in_the_index_in_history_and_new_ones(project: Path) -> None:
    assert files(project, "Read(.env)") == []
    assert files(project, "Read(.env)", scope="history") == []
    assert files(project, "Read(.env)", scope="new") == []
    assert files(project, "Read(*.key)") == ["now.key"]
    assert files(project, "Read(*.key)", scope="history") == ["now.key", "old.key"]
    assert files(project, "Read(*.key)", scope="new", at="sub") == ["now.key", "sub/new.key"]
    assert files(project, "Read(sub/**)", "Edit(a.txt)") == ["sub/b.txt"]
    assert files(project, f"Read(/{project}/a.txt)") == ["a.txt"]
    assert files(project, "Read(~/x)") == []
    assert files(project, "Read(//elsewhere/x)") == []


def test_a_repository_in_the_project_is_asked_itself(project: Path) -> None:
    assert files(project, "Read(.env)", at="away") == ["away/.env"]
    assert files(project, "Read(away/.env)", at="away") == ["away/.env"]
    assert files(project, "Read(*/.env)", at="away") is None


def test_what_is_not_known(project: Path, tmp_path: Path) -> None:
    assert files(project, "Read(a.txt)", variables={**VARIABLES, "GIT_DIR": "x"}) is None
    assert files(tmp_path, "Read(a.txt)") is None
    assert files(project / "sub", "Read(a.txt)", at="..") is None
    assert files(project / "sub", "Read(b.txt)") == ["b.txt"]
    assert files(project / "sub", f"Read(/{project}/a.txt)") == ["../a.txt"]
    assert RuledFiles(None, [parse_rule("Read(a)")], Places("/", "/h")).of(str(project), "tracked", VARIABLES) is None


def test_the_project_may_be_named_by_a_link(project: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(project)
    places = Places(str(link), "/h")
    asked = RuledFiles(shutil.which("git"), [parse_rule("Read(a.txt)")], places, patience=60)
    found = asked.of(str(link), "tracked", VARIABLES)
    assert found == [str(link / "a.txt")]


def effects(project: Path, line: str, rule: str) -> Effects:
    commands = CommandSurroundings(str(project), shutil.which("git"), patience=60)
    around = commands.at(str(project), VARIABLES)
    ruled = commands.for_rules(around, [parse_rule(rule)], Places(str(project), "/h"))
    return effects_of("Bash", {"command": line}, ruled)


@rows(
    "line",
    [
        "git diff",
        "git diff HEAD~1",
        "git diff a.txt",
        "git diff .",
        "git diff '*.txt'",
        "git diff ':!a.txt'",
        "git show",
        "git show HEAD -- sub",
        "git log -p",
        "git log -p sub/b.txt",
        "git blame a.txt",
        "git grep x",
        "git status -v",
        "git add -A",
        "git add .",
        "git stash show -p",
    ],
)
def test_a_file_that_git_does_not_know_is_not_shown(line: str, project: Path) -> None:
    found = effects(project, line, "Read(.env)")
    assert found.complete or "stash" in line
    assert not [path for path in found.reads if path.endswith((".env", "*"))]


@rows(
    "line",
    [
        "git diff",
        "git diff .",
        "git diff '*.key'",
        "git diff 'no[w]*'",
        "git diff ':!a.txt'",
        "git --icase-pathspecs diff -- NOW.KEY",
        "git log -p",
        "git grep x",
        "git grep x '*.key'",
        "git status -v",
        "git add -A",
        "git stash show",
    ],
)
def test_a_file_that_git_knows_is_shown(line: str, project: Path) -> None:
    assert f"{project}/now.key" in effects(project, line, "Read(*.key)").reads


@rows("line", ["git diff '*.txt'", "git diff -- sub", "git diff a.txt", "git diff --stat", "git log"])
def test_other_paths_do_not_show_it(line: str, project: Path) -> None:
    assert f"{project}/now.key" not in effects(project, line, "Read(*.key)").reads


def test_paths_outside_are_compared_without_a_repository(project: Path) -> None:
    assert "/out/**" in effects(project, "git diff -- /out a.txt", "Read(//out/**)").reads


@rows("line", ["GIT_DIR=x git diff", "git --git-dir=x diff", "git -c core.x=y diff", "cd $X; git diff"])
def test_another_repository_may_know_other_files(line: str, project: Path) -> None:
    assert not effects(project, line, "Read(.env)").complete
