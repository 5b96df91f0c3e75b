"""A hook that is a function in a file is treated like any other by the commands of the workshop."""

import json
from pathlib import Path

import pytest

from tests.cli.project import Project, serving
from wave_agent.testing import Reply, call

GUARD = """
def check(call):
    print("noise")
    if "rm -rf" in call.input.get("command", ""):
        return {"decision": "block", "reason": "not that"}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    hook = {"type": "python", "target": ".wave/guard.py:check", "onFailure": "block"}
    made.settings({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}})
    (made.directory / ".wave" / "guard.py").write_text(GUARD)
    return made


def test_it_is_tested_traced_counted_and_replayed(project: Project) -> None:
    asked = ("hooks", "test", "PreToolUse", "--tool", "Bash", "--input", '{"command": "rm -rf x"}', "--expect", "block")
    assert project.wave(*asked).returncode == 1  # not trusted
    assert project.wave("hooks", "trust", "--yes").returncode == 0
    tested = project.wave(*asked, "--json")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "noise" in json.dumps(json.loads(tested.stdout)["runs"])
    commands = [call("Bash", command="rm -rf x"), call("Bash", command="true")]
    with serving(Reply(tool_calls=commands), "Done.") as server:
        done = project.wave("-p", "go", "--permission-mode", "bypassPermissions", server=server)
    assert done.stdout == "Done.\n"
    assert "not that" in json.dumps(server.requests[1].body)
    replayed = json.loads(project.wave("hooks", "backtest", "--json").stdout)
    assert replayed["totals"]["unchanged"] > 0
    assert "guard.py:check" in project.wave("hooks", "stats").stdout
    assert "guard.py:check" in project.wave("hooks", "trace").stdout
    (project.directory / ".wave" / "guard.py").write_text("def check(call):\n    return None\n")
    assert project.wave("hooks", "trust", "--list").returncode == 1
    changed = json.loads(project.wave("hooks", "backtest", "--trust", "--json").stdout)
    assert changed["totals"]["newly allowed"] == 1
