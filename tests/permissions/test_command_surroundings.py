"""What the effects of commands depend on: scripts, settings of git, programs."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from wave_agent.effects.surroundings import Surroundings
from wave_agent.permissions.command_surroundings import LONGEST, CommandSurroundings, find_program

GIT = shutil.which("git")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "p/sub").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    return tmp_path / "p"


def variables(project: Path) -> Mapping[str, str]:
    return {"HOME": str(project.parent / "home"), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}


def git(project: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=project, env=variables(project), check=True, capture_output=True)


def at(project: Path) -> Surroundings:
    return CommandSurroundings(str(project), GIT).at(str(project), variables(project))


def test_the_texts_of_the_project_are_read_and_no_others(project: Path) -> None:
    read = at(project).read_text
    (project / "x.sh").write_text("echo hi")
    (project.parent / "outside.sh").write_text("echo hi")
    (project / "link.sh").symlink_to("../outside.sh")
    (project / "long.sh").write_text("x" * (LONGEST + 1))
    (project / "program").write_bytes(b"\x7fELF\0\0")
    os.mkfifo(project / "pipe")
    assert read(f"{project}/x.sh") == "echo hi"
    for name in ("none.sh", "link.sh", "../outside.sh", "long.sh", "program", "pipe", "sub", "a\0b"):
        assert read(f"{project}/{name}") is None, name


def test_settings_of_git_are_those_of_its_files(project: Path) -> None:
    assert at(project).git_settings(str(project)) is not None
    git(project, "init", "-q")
    git(project, "config", "alias.Pu", "push --force")
    git(project, "config", "--global", "core.fsmonitor", "x")
    found = at(project)
    settings = found.git_settings(str(project / "sub"))
    assert settings is not None
    assert (settings["alias.pu"], settings["core.fsmonitor"]) == ("push --force", "x")
    assert found.git_alias("pu", str(project)) == "push --force"
    assert found.git_alias("none", str(project)) is None


def test_settings_are_asked_for_again_when_a_file_changes(project: Path) -> None:
    found = at(project)
    assert found.git_alias("x", str(project)) is None
    git(project, "init", "-q")
    git(project, "config", "alias.x", "push")
    assert found.git_alias("x", str(project)) == "push"
    git(project, "config", "alias.x", "pull")
    assert found.git_alias("x", str(project)) == "pull"
    git(project, "config", "--unset", "alias.x")
    git(project, "config", "--global", "alias.x", "log")
    assert found.git_alias("x", str(project)) == "log"
    git(project, "config", "include.path", "more")
    assert found.git_alias("x", str(project)) == "log"
    (project / ".git/more").write_text("[alias]\nx = show\n")
    assert found.git_alias("x", str(project)) == "show"


def test_settings_that_have_not_changed_are_not_asked_for_again(project: Path) -> None:
    git(project, "init", "-q")
    mine = CommandSurroundings(str(project), GIT)
    first = mine.settings(str(project), variables(project))
    assert mine.settings(str(project), variables(project)) is first
    inner = mine.settings(f"{project}/sub", variables(project))
    assert mine.settings(f"{project}/sub", variables(project)) is inner
    for number in range(70):
        (project / f"d{number}").mkdir()
        assert mine.settings(f"{project}/d{number}", variables(project)) is not None
    assert mine.settings(str(project), variables(project)) == first


def test_the_address_of_a_remote(project: Path) -> None:
    git(project, "init", "-q")
    found = at(project)
    assert found.git_remote("", str(project)) is None
    assert found.git_remote("origin", str(project)) is None
    git(project, "remote", "add", "origin", "mine:a/b")
    git(project, "config", "url.https://host.example/.insteadOf", "mine:")
    assert found.git_remote("", str(project)) == "https://host.example/a/b"
    assert found.git_remote("origin", str(project)) == "https://host.example/a/b"
    git(project, "config", "remote.origin.pushurl", "https://other.example/")
    assert found.git_remote("origin", str(project)) is None


def test_without_a_git_nothing_is_known_about_it(project: Path) -> None:
    found = CommandSurroundings(str(project), None).at(str(project), variables(project))
    assert found.git_settings(str(project)) is None
    assert found.git_alias("x", str(project)) is None
    assert found.git_remote("x", str(project)) is None


def test_a_program_is_found_by_the_path_of_commands(project: Path) -> None:
    tool = project / "bin/tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    path = {"PATH": f"/none:{tool.parent}:/usr/bin"}
    assert find_program("tool", path) is None
    tool.chmod(0o755)
    assert find_program("tool", path) == str(tool)
    (project / "bin/same").symlink_to(tool)
    assert find_program("same", path) == str(tool)
    assert find_program("tool", {"PATH": f"bin:{tool.parent}"}) is None
    assert find_program("tool", {}) is None


def test_what_is_behind_a_path_or_a_pattern(project: Path) -> None:
    (project / "d").symlink_to("sub")
    (project / "e").symlink_to("/usr")
    behind = at(project).behind
    assert behind(f"{project}/d") == (f"{project}/sub",)
    assert behind(f"{project}/[de]") is not None
    assert set(behind(f"{project}/?") or ()) == {f"{project}/sub", "/usr"}
    assert behind(f"{project}/**") is None
    for number in range(300):
        (project / f"n{number}").mkdir()
    assert behind(f"{project}/n*") is None


def test_names_like_options(project: Path) -> None:
    (project / "-r").touch()
    (project / "x-r").touch()
    assert at(project).option_names(str(project)) == ["-r"]
    assert at(project).option_names(f"{project}/none") == ()
    assert at(project).option_names("\0") == ()
