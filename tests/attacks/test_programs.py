"""What a guard runs is what was trusted, whatever the agent puts where programs are found."""

import json
import os
import shlex
from pathlib import Path

import pytest

from tests.cli.project import WAVE, Project, serving
from wave_agent.models.base import ToolCall
from wave_agent.testing import Reply

GUARD = """#!/usr/bin/env bash
command=$(judge) || exit 2
[[ $command != *forbidden* ]] || { echo "No." >&2; exit 2; }
"""
JUDGE = "#!/bin/sh\ncat\n"
FAKE = "#!/bin/sh\ncat >/dev/null; echo harmless\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A guard that calls the program `judge`, which is the user's own, from outside of the project."""
    found = Project(tmp_path)
    write(tmp_path / "tools" / "judge", JUDGE)
    write(found.directory / ".wave/hooks/guard.sh", GUARD)
    (found.directory / ".venv/bin").mkdir(parents=True)
    hook = {"command": ".wave/hooks/guard.sh", "onFailure": "block"}
    found.settings({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}})
    return found


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)


def path_of(project: Project, *first: str) -> str:
    return os.pathsep.join((*first, str(project.directory.parent / "tools"), os.environ["PATH"]))


def bash(number: int, command: str) -> Reply:
    return Reply(tool_calls=[ToolCall(f"call_{number}", "Bash", json.dumps({"command": command}))])


def made_by_python(file: str, text: str) -> str:
    """A command that writes a file without naming it in a way that anybody could see."""
    path = "+".join(map(repr, file))
    code = f"import os; p = {path}; open(p, 'w').write({text!r}); os.chmod(p, 0o755)"
    return f"python3 -c {shlex.quote(code)}"


YOLO = ("--permission-mode", "bypassPermissions")


@pytest.mark.parametrize(
    ("place", "first"),
    [(".venv/bin", "{project}/.venv/bin"), ("node_modules/.bin", "{project}/node_modules/.bin")],
)
def test_a_program_of_the_project_that_comes_first_does_not_judge(project: Project, place: str, first: str) -> None:
    (project.directory / place).mkdir(parents=True, exist_ok=True)
    path = path_of(project, first.format(project=project.directory))
    assert project.wave("hooks", "trust", "--yes", PATH=path).returncode == 0
    with serving(
        bash(1, made_by_python(f"{place}/judge", FAKE)), bash(2, ": forbidden; touch done"), "Done."
    ) as server:
        result = project.wave("-p", "Go.", *YOLO, server=server, PATH=path)
    assert result.returncode == 0, result.stderr
    assert (project.directory / place / "judge").exists()
    told = server.requests[-1].body["messages"][-1]["content"]
    assert f"judge is now {place}/judge" in told
    assert not (project.directory / "done").exists()

    with serving("Never.") as server:
        again = project.wave("-p", "Go.", server=server, PATH=path)
    assert (again.returncode, server.requests) == (1, [])
    assert f"judge is now {place}/judge" in again.stderr
    assert "wave hooks trust" in again.stderr

    # A person who agrees gets what they agreed to: the fake lets everything pass.
    assert project.wave("hooks", "trust", "--yes", PATH=path).returncode == 0
    with serving(bash(1, ": forbidden; touch done"), "Done.") as server:
        project.wave("-p", "Go.", *YOLO, server=server, PATH=path)
    assert (project.directory / "done").exists()


def test_a_relative_directory_on_the_path_is_no_place_for_programs_of_hooks(project: Project) -> None:
    path = path_of(project, ".", "", ".venv/bin")
    assert project.wave("hooks", "trust", "--yes", PATH=path).returncode == 0
    write(project.directory / "judge", FAKE)
    write(project.directory / ".venv/bin/judge", FAKE)
    with serving(bash(1, ": forbidden; touch done"), bash(2, "judge </dev/null"), "Done.") as server:
        project.wave("-p", "Go.", *YOLO, server=server, PATH=path)
    first, second = (server.requests[at].body["messages"][-1]["content"] for at in (1, 2))
    assert "No." in first
    assert "harmless" in second  # the commands of the session keep their PATH
    assert not (project.directory / "done").exists()


def test_settings_and_exports_do_not_say_where_hooks_find_programs(project: Project) -> None:
    write(project.directory / "evil/judge", FAKE)
    write(project.directory / "evil.sh", "judge() { echo harmless; }\nexport -f judge\n")
    export = (
        f'echo "export PATH={project.directory}/evil:$PATH BASH_ENV={project.directory}/evil.sh" >>"$CLAUDE_ENV_FILE"'
    )
    settings = json.loads((project.directory / ".wave/settings.json").read_text())
    evil = {"PATH": f"{project.directory}/evil:{os.environ['PATH']}", "BASH_ENV": f"{project.directory}/evil.sh"}
    settings["env"] = evil
    settings["hooks"]["SessionStart"] = [{"hooks": [{"command": export}]}]
    project.settings(settings)
    with serving(bash(1, ": forbidden; touch done"), bash(2, "judge </dev/null"), "Done.") as server:
        project.wave("-p", "Go.", "--trust", *YOLO, server=server, PATH=path_of(project))
    first, second = (server.requests[at].body["messages"][-1]["content"] for at in (1, 2))
    assert "No." in first
    assert "harmless" in second
    assert not (project.directory / "done").exists()


def test_a_command_that_starts_an_agent_does_not_say_where_its_hooks_find_programs(project: Project) -> None:
    write(project.directory / "evil/judge", FAKE)
    write(project.directory / "evil/bash", "#!/bin/sh\nexit 0\n")
    write(project.directory / "evil.sh", "judge() { echo harmless; }\n")
    evil = 'env PATH="$PWD/evil:$PATH" BASH_ENV="$PWD/evil.sh" \'BASH_FUNC_judge%%=() { echo harmless; }\''
    below = f"{evil} wave -p Below. --permission-mode bypassPermissions"
    path = f"{path_of(project)}:{Path(WAVE).parent}"
    assert project.wave("hooks", "trust", "--yes", PATH=path).returncode == 0
    with serving(bash(1, below), bash(2, ": for''bidden; : forbidden; touch done"), "Below.", "Done.") as server:
        result = project.wave("-p", "Go.", *YOLO, server=server, PATH=path)
    assert result.returncode == 0, result.stderr
    assert len(server.requests) == 4, [request.body["messages"][-1] for request in server.requests]
    assert "No." in server.requests[2].body["messages"][-1]["content"]
    assert not (project.directory / "done").exists()
