"""What a call of a session would do, where the session is now."""

import os
from pathlib import Path
from typing import Any

import pytest

from wave_agent.agent.hook_effects import effects_outside
from wave_agent.effects.values import Effects
from wave_agent.tools.base import ToolContext
from wave_agent.tools.registry import builtin_tools


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = Path(os.path.realpath(tmp_path)) / "project"
    made.mkdir()
    (made / ".env").write_text("A=1")
    return made


def effects(project: Path, tool: str = "Bash", **tool_input: Any) -> Effects:
    found = next(one for one in builtin_tools() if one.name == tool)
    context = ToolContext(project_dir=project, environment={"HOME": "/home/me"}, outputs=project)
    return effects_outside(found, context, os.environ["PATH"])(tool_input)


def test_a_command_is_read_in_the_directory_of_the_session(project: Path) -> None:
    found = effects(project, command='base64 < .env > "$HOME/x"')
    assert (found.reads, found.writes, found.complete) == ((f"{project}/.env",), ("/home/me/x",), True)


def test_a_link_also_stands_for_its_target(project: Path) -> None:
    (project / "notes").symlink_to(".env")
    for found in (effects(project, command="cat notes"), effects(project, "Read", file_path="notes")):
        assert found.reads == (f"{project}/notes", f"{project}/.env")
    assert f"{project}/.env" not in effects(project, command="rm notes").deletes


def test_a_pattern_also_stands_for_the_files_that_it_matches(project: Path) -> None:
    (project / "a[1].txt").write_text("")
    assert effects(project, command="cat .e*").reads == (f"{project}/.e*", f"{project}/.env")
    assert f"{project}/a[[]1].txt" in effects(project, command="rm *.txt").deletes
    assert effects(project, command="grep -r x .").reads == (str(project), f"{project}/**")


def test_more_files_than_hooks_get_are_not_listed(project: Path) -> None:
    for number in range(210):
        (project / f"{number}.log").touch()
    assert len(effects(project, command="rm *.log").deletes) == 202


def test_a_script_of_the_project_is_looked_into(project: Path) -> None:
    (project / "x.sh").write_text("base64 < .env\n")
    found = effects(project, command="bash x.sh")
    assert (found.reads.count(f"{project}/.env"), found.complete) == (1, True)


def endless(project: Path) -> None:
    os.mkfifo(project / "x.sh")


def long(project: Path) -> None:
    (project / "x.sh").write_text("true\n" * 60_000)


def elsewhere(project: Path) -> None:
    (project.parent / "y.sh").write_text("true")
    (project / "x.sh").symlink_to("../y.sh")


def absent(_: Path) -> None:
    pass


@pytest.mark.parametrize("make", [endless, long, elsewhere, absent])
def test_a_script_that_cannot_be_looked_into_may_do_anything(project: Path, make: Any) -> None:
    make(project)
    assert not effects(project, command="bash x.sh").complete
