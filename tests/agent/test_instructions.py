"""AGENTS.md and CLAUDE.md: whose, from where, in which order, and how much of them."""

import os
from pathlib import Path

import pytest

from wave_agent.agent.instructions import LIMIT, NAMES, TOTAL, LoadedInstructions, instructions
from wave_agent.system.project import Project


def at(directory: Path) -> Project:
    return Project.at(str(directory))


@pytest.mark.parametrize("name", NAMES)
def test_a_project_says_something_about_itself(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"Use tabs.\n\xff\n")
    assert instructions(at(tmp_path), tmp_path / "home") == {
        f"Instructions of this project ({name})": "Use tabs.\n\ufffd"
    }


def test_instructions_under_two_names_are_given_once_empty_ones_not_and_long_ones_are_cut(tmp_path: Path) -> None:
    first, second = NAMES
    (tmp_path / first).write_text("Use tabs.")
    (tmp_path / second).symlink_to(tmp_path / first)
    assert instructions(at(tmp_path), tmp_path / "home") == {f"Instructions of this project ({first})": "Use tabs."}
    (tmp_path / first).write_text(" \n")
    assert instructions(at(tmp_path), tmp_path / "home") == {}
    (tmp_path / first).write_text("x" * (LIMIT + 1))
    (cut,) = instructions(at(tmp_path), tmp_path / "home").values()
    assert "[cut here" in cut
    (tmp_path / first).unlink()
    (tmp_path / first).mkdir()
    assert instructions(at(tmp_path), tmp_path / "home") == {}


def test_the_users_come_first_then_those_from_the_root_to_where_the_agent_was_started(tmp_path: Path) -> None:
    root, home, claude = tmp_path / "repo", tmp_path / "home", tmp_path / "claude"
    start = root / "pkg" / "deep"
    for directory in (start, home, claude):
        directory.mkdir(parents=True)
    (home / "AGENTS.md").write_text("mine")
    (claude / "CLAUDE.md").write_text("mine, for others")
    (root / "AGENTS.md").write_text("outer")
    (root / "pkg" / "CLAUDE.md").write_text("middle")
    (start / "AGENTS.md").write_text("outer")
    (tmp_path / "AGENTS.md").write_text("of nobody")
    project = Project(str(root / "pkg"), str(start), str(root))
    assert [*instructions(project, home, claude).items()] == [
        ("The user's instructions for all projects (AGENTS.md)", "mine"),
        ("The user's instructions for all projects (CLAUDE.md)", "mine, for others"),
        ("Instructions of this project (AGENTS.md)", "outer"),
        ("Instructions of this project (pkg/CLAUDE.md)", "middle"),
    ]
    assert not any("for others" in one for one in instructions(project, home).values())


def test_together_they_are_bounded_and_the_innermost_is_whole(tmp_path: Path) -> None:
    start = tmp_path
    for number in range(4):
        (start / "AGENTS.md").write_text(str(number) * 30_000)
        start = start / "deeper"
        start.mkdir()
    found = [*instructions(Project(str(tmp_path), str(start), str(tmp_path)), tmp_path / "home").values()]
    assert sum(map(len, found)) < TOTAL + 1000
    assert [one[-30_000:] for one in found[2:]] == ["2" * 30_000, "3" * 30_000]
    assert all("[omitted: " in one for one in found[:2])


def test_a_pipe_in_their_place_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "AGENTS.md")
    assert instructions(at(tmp_path), tmp_path / "home") == {}


def test_files_that_are_passed_to_the_model_are_told_and_others_are_not(tmp_path: Path) -> None:
    home, inner = tmp_path / "home", tmp_path / "project" / "inner"
    inner.mkdir(parents=True)
    home.mkdir()
    (home / "AGENTS.md").write_text("Mine. " * LIMIT)
    (inner.parent / "AGENTS.md").write_text("Outer. " * LIMIT)
    (inner / "AGENTS.md").write_text("Inner. " * LIMIT)
    (inner / "CLAUDE.md").write_text("Inner. " * LIMIT)
    told: list[LoadedInstructions] = []
    found = instructions(at(inner), home, loaded=told.append)
    assert [one.file_path for one in told][-1] == str(inner / "AGENTS.md")
    assert len(told) == sum("omitted" not in text for text in found.values())
    assert told[-1].memory_type == "Project"
