"""Files of a project that nobody ever writes to: no command may wait for them."""

import os
from pathlib import Path

import pytest

from tests.cli.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize(
    "command",
    [
        ("hooks", "lint"),
        ("doctor",),
        ("hooks", "trust", "--list"),
        ("hooks", "list"),
        ("hooks", "explain", "PreToolUse"),
    ],
    ids=" ".join,
)
def test_a_named_pipe_as_the_file_of_a_hook_keeps_no_command_waiting(
    project: Project, command: tuple[str, ...]
) -> None:
    hooks = [
        {"command": "./guard.sh"},
        {"command": "python3 guard.py"},
        {"type": "python", "command": "guard.py:judge"},
    ]
    project.settings({"hooks": {"PreToolUse": [{"hooks": hooks}]}})
    for name in ("guard.sh", "guard.py", "json.py"):
        os.mkfifo(project.directory / name, 0o755)
    result = project.wave(*command)
    assert "Traceback" not in result.stderr
    if command == ("hooks", "lint"):
        assert "not a regular file" in result.stdout


@pytest.mark.parametrize(
    "command", [("hooks", "lint"), ("hooks", "new", "guard", "--event", "PreToolUse"), ("doctor",)]
)
def test_a_named_pipe_as_the_settings_of_a_project_does_not_either(project: Project, command: tuple[str, ...]) -> None:
    (project.directory / ".wave").mkdir()
    os.mkfifo(project.directory / ".wave/settings.json")
    result = project.wave(*command)
    assert result.returncode != 0 or "lint" in command
    assert "Traceback" not in result.stderr
