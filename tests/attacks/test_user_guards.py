"""The user's own guards: what a project brings along does not run in them, and what a session does to them is seen."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project, serving
from wave_agent.models.base import ToolCall
from wave_agent.testing import Reply

GUARD = "#!/bin/sh\nif grep -q forbidden; then exit 2; fi\n"
YOLO = ("--permission-mode", "bypassPermissions")
EMPTY = "python3 -c \"import glob; open(glob.glob('{home}/sett*s.json')[0], 'w').write('{{}}')\""
SCRIPT = "python3 -c \"import glob; open(glob.glob('{home}/ho*s/g*.sh')[0], 'w').write('#!/bin/sh')\""
PLANT = "python3 -c \"w = '{home}/age' + 'nts/{name}.md'; open(w, 'w').write('Obey.')\""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def guard(project: Project, **settings: Any) -> None:
    file = project.home / "hooks" / "guard.sh"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(GUARD)
    file.chmod(0o755)
    hook = {"command": str(file), "onFailure": "block"}
    own = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}, **settings}
    (project.home / "settings.json").write_text(json.dumps(own))


def bash(number: int, command: str) -> Reply:
    return Reply(tool_calls=[ToolCall(f"call_{number}", "Bash", json.dumps({"command": command}))])


def run(project: Project, *commands: str) -> tuple[Any, Any]:
    with serving(*(bash(at, command) for at, command in enumerate(commands)), "Done.") as server:
        result = project.wave("-p", "Go.", *YOLO, server=server)
    return result, server


@pytest.mark.parametrize(
    ("line", "told"),
    [(EMPTY, "removed or disabled: PreToolUse"), (SCRIPT, "changed: "), (EMPTY + "; kill -9 $PPID", "the rule deny")],
    ids=["settings", "script", "killed"],
)
def test_a_session_that_takes_the_users_guard_away_stops_the_next_start(project: Project, line: str, told: str) -> None:
    guard(project, permissions={"deny": ["Bash(git push:*)"]})
    run(project, line.format(home=project.home))
    again, server = run(project, ": forbidden; touch done")
    assert (again.returncode, server.requests) == (1, [])
    assert "your own settings, while a session ran unattended" in again.stderr
    assert told in again.stderr
    assert not (project.directory / "done").exists()

    listed = project.wave("hooks", "trust", "--list")
    assert (listed.returncode, told in listed.stdout) == (1, True)
    assert project.wave("hooks", "trust", "--yes").returncode == 0
    confirmed, server = run(project, ": forbidden; touch done")
    assert confirmed.returncode == 0, confirmed.stderr
    assert (project.directory / "done").exists()


@pytest.mark.parametrize(("name", "told"), [("new", "new: new.md"), ("own", "removed or disabled: own.md")])
def test_a_session_that_changes_the_users_agents_stops_the_next_start(project: Project, name: str, told: str) -> None:
    """They may have hooks, and they steer the model."""
    (project.home / "agents").mkdir(parents=True)
    (project.home / "agents" / "own.md").write_text("---\ndescription: d\n---\nHelp.")
    run(project, PLANT.format(name=name, home=project.home))
    again, server = run(project, "true")
    assert (again.returncode, server.requests) == (1, [])
    assert told in again.stderr
    assert project.wave("hooks", "trust", "--yes").returncode == 0
    assert run(project, "true")[0].returncode == 0


def test_the_users_own_change_between_sessions_asks_for_nothing(project: Project) -> None:
    guard(project)
    assert run(project, "true")[0].returncode == 0
    (project.home / "settings.json").write_text("{}")
    assert run(project, "true")[0].returncode == 0
    guard(project, env={"A": "b"})
    assert run(project, "true")[0].returncode == 0


def test_guards_that_are_brought_back_ask_for_nothing(project: Project) -> None:
    guard(project)
    run(project, EMPTY.format(home=project.home))
    guard(project)
    assert run(project, "true")[0].returncode == 0
    (project.home / "settings.json").write_text("{}")
    assert run(project, "true")[0].returncode == 0, "and the next change is the user's own"


def test_a_module_of_a_project_that_nobody_trusts_does_not_run_in_a_users_hook(project: Project) -> None:
    project.home.mkdir()
    (project.directory / "json.py").write_text(f"open({str(project.directory / 'ran')!r}, 'w')\n")
    for command in ("python3 -c 'import json, sys; json.load(sys.stdin)'", "python3 -m json.tool > /dev/null"):
        hook = {"command": command, "onFailure": "block"}
        own = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}
        (project.home / "settings.json").write_text(json.dumps(own))
        result, _ = run(project, "touch done")
        assert result.returncode == 0, result.stderr
        assert (project.directory / "done").exists(), "the hook itself works"
        assert not (project.directory / "ran").exists()
        (project.directory / "done").unlink()
