"""The workshop tells the truth: what it says of a hook is what a session would see."""

import json
import os
from typing import Any

import pytest

from tests.cli.project import Project, serving
from wave_agent.testing import Reply, call

TRY = ("hooks", "test", "PreToolUse", "--tool", "Bash", "--input", '{"command": "ls"}', "--trust")


def guard(project: Project, script: str, **fields: Any) -> None:
    file = project.directory / "guard.sh"
    file.write_bytes(script.encode())
    file.chmod(0o755)
    hook = {"command": "./guard.sh", "name": "guard", **fields}
    project.settings({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}})


@pytest.mark.parametrize("fields", [{"onFailure": "block"}, {}], ids=["blocks", "is let through"])
def test_a_guard_that_only_crashes_does_not_pass_its_test(project: Project, fields: dict[str, str]) -> None:
    guard(project, "#!/bin/sh\nexit 1\n", **fields)
    for expected in ("block", "none"):
        done = project.wave(*TRY, "--expect", expected)
        assert (done.returncode, '+ outcome is "failure"' in done.stdout) == (1, True)
    assert project.wave(*TRY, "--expect", "failure").returncode == 0


def test_the_next_steps_of_a_new_hook_work_in_their_order(project: Project) -> None:
    project.settings({"hooks": {"PreToolUse": [{"hooks": [{"command": "exit 2", "name": "another guard"}]}]}})
    made = project.wave("hooks", "new", "no-todo", "--event", "PreToolUse", "--matcher", "Bash", "--yes")
    steps = [line.split("  ")[1] for line in made.stdout.splitlines() if line.startswith("  wave ")]
    assert [step.split()[2] for step in steps] == ["lint", "trust", "test"]
    assert project.wave("hooks", "trust", "--yes").returncode == 0
    tested = project.wave(*steps[2].split()[1:])
    assert (tested.returncode, tested.stdout.splitlines()[-1]) == (0, "2 passed, 0 failed")


def test_lint_and_doctor_find_what_keeps_a_hook_from_starting(project: Project) -> None:
    guard(project, "#!/usr/bin/env missing-interpreter\nexit 0\n")
    linted, examined = project.wave("hooks", "lint"), project.wave("doctor")
    assert "names missing-interpreter, which was not found on this machine" in linted.stdout
    assert "names missing-interpreter, which was not found on this machine (W115)" in examined.stdout
    assert (linted.returncode, examined.returncode) == (1, 1)
    for done in (linted, examined):
        assert "guard on PreToolUse: " in done.stdout, "it is not trusted either"
    guard(project, "#!/bin/bash\r\nexit 0\r\n")
    assert "W116" in project.wave("hooks", "lint").stdout
    assert "W116" in project.wave("doctor").stdout
    assert project.wave("hooks", "lint", "--fix").returncode == 0
    assert (project.directory / "guard.sh").read_bytes() == b"#!/bin/bash\nexit 0\n"
    project.wave("hooks", "trust", "--yes")
    assert "W117" not in project.wave("hooks", "lint").stdout
    os.chmod(project.directory / "guard.sh", 0o644)
    assert "W105" in project.wave("doctor").stdout


def test_a_misspelt_event_is_not_explained_as_one_without_hooks(project: Project) -> None:
    done = project.wave("hooks", "explain", "PreToolUsed")
    assert (done.returncode, 'did you mean "PreToolUse"' in done.stderr) == (2, True)


def test_a_trailing_comma_is_called_that(project: Project) -> None:
    guard(project, """#!/bin/sh\necho '{"decision": "block", "reason": "no",}'\n""")
    with serving(Reply(tool_calls=[call("Bash", command="true")]), "Done.") as server:
        done = project.wave("-p", "go", "--trust", "--allowed-tools", "Bash", server=server)
    assert "trailing comma: remove it" in done.stderr


def test_an_exit_2_of_uv_itself_is_called_an_accident(project: Project) -> None:
    guard(project, "#!/bin/sh\necho 'error: Failed to spawn: `check.py`' >&2\nexit 2\n")
    with serving(Reply(tool_calls=[call("Bash", command="touch made")]), "Done.") as server:
        done = project.wave("-p", "go", "--trust", "--output-format", "json", "--allowed-tools", "Bash", server=server)
    assert "looks broken: uv could not run it" in done.stderr
    assert not (project.directory / "made").exists()
    assert json.loads(done.stdout)["hooks"][0]["outcome"] == "deny"
