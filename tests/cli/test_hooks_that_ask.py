"""`wave hooks` with hooks that ask a model, as real processes."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.project import Project
from wave_agent.testing import Reply, call
from wave_agent.testing.model_server import RecordingModelServer

TRY = ("hooks", "test", "PreToolUse", "--trust", "--tool", "Bash", "--input", '{"command": "git push"}')
SETTINGS: dict[str, Any] = {
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "prompt", "prompt": "No pushes.", "name": "judge"}]}],
        "Stop": [{"type": "agent", "prompt": "Are the tests green?", "name": "tests"}],
    }
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.settings(SETTINGS)
    return made


def test_a_given_answer_stands_for_the_model(project: Project) -> None:
    no = '{"ok": false, "reason": "Not today."}'
    done = project.wave(*TRY, "--answer", no, "--expect", "block")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "read as" in done.stdout
    assert "the model objects" in done.stdout
    assert "Not today." in done.stdout
    done = project.wave(*TRY, "--answer", '{"ok": true}', "--expect", "none")
    assert "the model has no objection: no opinion" in done.stdout
    assert done.returncode == 0
    done = project.wave(*TRY, "--answer", "I guess so")
    assert "Hook judge got no answer: the answer is not valid: it is not one JSON object" in done.stdout
    assert done.returncode == 1


def test_without_an_answer_no_model_is_asked(project: Project) -> None:
    with RecordingModelServer.in_thread([]) as server:
        done = project.wave(*TRY, server=server)
    assert server.requests == []
    assert "no model is asked here; give an answer (--answer," in done.stdout
    assert done.returncode == 1


def test_the_real_model_is_asked_on_demand(project: Project) -> None:
    with RecordingModelServer.in_thread([Reply(tool_calls=[call("verdict", ok=False, reason="No.")])]) as server:
        done = project.wave(*TRY, "--ask", "--json", server=server)
    (run,) = json.loads(done.stdout)["runs"]
    assert (run["outcome"], run["model"], run["answer"]) == ("deny", "test", {"ok": False, "reason": "No."})
    (request,) = server.requests
    assert "No pushes." in request.body["messages"][0]["content"]


def test_cases_have_answers(project: Project) -> None:
    given = {"event": "PreToolUse", "tool": "Bash", "input": {"command": "git push"}}
    cases = [
        {
            **given,
            "answer": {"ok": False, "reason": "Not today."},
            "expect": {"outcome": "block", "model": "Not today"},
        },
        {**given, "answer": {"ok": True}, "expect": "none"},
        {**given, "answer": "maybe", "expect": "failure"},
        {"event": "Stop", "answer": {"ok": False, "reason": "They are red."}, "expect": "block"},
    ]
    (project.directory / "cases.json").write_text(json.dumps(cases))
    done = project.wave("hooks", "test", "cases.json", "--trust")
    assert "4 passed, 0 failed" in done.stdout, done.stdout + done.stderr


def test_they_are_listed_explained_and_part_of_the_schema(project: Project) -> None:
    assert "No pushes." in project.wave("hooks", "list").stdout
    explained = project.wave("hooks", "explain", "PreToolUse", "Bash")
    assert explained.returncode == 0
    assert "judge" in explained.stdout
    schema = json.loads(project.wave("hooks", "schema").stdout)
    jsonschema.validate(SETTINGS, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"hooks": {"Stop": [{"type": "prompt", "model": "m"}]}}, schema)


def test_trust_covers_the_text_of_a_prompt(project: Project) -> None:
    assert project.wave("hooks", "trust", "--yes").returncode == 0
    assert "trusted" in project.wave("hooks", "list").stdout
    changed = json.loads(json.dumps(SETTINGS).replace("No pushes.", "Anything goes."))
    project.settings(changed)
    done = project.wave("-p", "go")
    assert done.returncode == 1
    assert "Anything goes." in done.stderr
