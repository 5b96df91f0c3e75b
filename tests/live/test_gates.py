"""Gates before the end, and hooks that fail: what the model is told, and what the run amounts to."""

import json
from typing import Any

from tests.cli.project import Project, serving
from wave_agent.testing import RecordingModelServer, Reply, call

MAKEFILE = """test:
	@echo "collected 1 item"
	@grep -q 'return a + b' sum.py || { echo "test_sum FAILED"; exit 1; }
"""
EDIT = call("Bash", command="sed -i 's/a - b/a + b/' sum.py")


def gated(project: Project, command: str = "make test", **settings: Any) -> None:
    """A project with a bug, and a gate that finds it."""
    (project.directory / "Makefile").write_text(MAKEFILE)
    (project.directory / "sum.py").write_text("def add(a, b):\n    return a - b\n")
    gate = {"command": command, "onFailure": "block", "name": "tests"}
    project.settings({"hooks": {"Stop": [{"hooks": [gate]}]}, **settings})


def run(project: Project, server: RecordingModelServer, *flags: str) -> tuple[int, dict[str, Any]]:
    """One prompt of a user who trusts the project: exit status and result."""
    project.wave("hooks", "trust", "--yes")
    done = project.wave("-p", "Fix it.", "--output-format", "json", *flags, server=server)
    return done.returncode, json.loads(done.stdout)


def last(server: RecordingModelServer, number: int) -> str:
    """The last message of a request."""
    return str(server.requests[number].body["messages"][-1]["content"])


def outcomes(result: dict[str, Any]) -> list[tuple[str, bool]]:
    return [(hook["outcome"], hook["let_through"]) for hook in result["hooks"]]


def test_red_tests_do_not_end_as_completed(project: Project) -> None:
    gated(project, maxStopBlocks=2)
    with serving("Done.", "Really done.", "I am sure.") as server:
        status, result = run(project, server)
    for number in (1, 2):
        assert "Blocked by hook tests" in last(server, number)
        assert "test_sum FAILED" in last(server, number)  # stdout
        assert "Makefile:3: test" in last(server, number)  # stderr
    assert len(server.requests) == 3
    assert (status, result["status"], result["hooks_failed_open"]) == (3, "stop_limit", 0)
    assert "tests" in result["error"]
    assert outcomes(result) == [("block", False)] * 3


def test_a_gate_that_the_model_satisfies_lets_it_end(project: Project) -> None:
    gated(project)
    with serving("Done.", Reply(tool_calls=[EDIT]), "Now it is.") as server:
        status, result = run(project, server, "--permission-mode", "bypassPermissions")
    assert "test_sum FAILED" in last(server, 1)
    assert "a + b" in (project.directory / "sum.py").read_text()
    assert (status, result["status"], result["result"], result["error"]) == (0, "completed", "Now it is.", None)
    assert outcomes(result) == [("block", False), ("none", False)]


def test_a_gate_that_is_not_there_does_not_end_as_completed(project: Project) -> None:
    gated(project, "./no-such-gate")
    with serving("Done.", "I cannot repair that.") as server:
        status, result = run(project, server)
    assert "No such file" in last(server, 1)
    assert len(server.requests) == 2
    assert (status, result["status"]) == (3, "stop_limit")
    assert "hook tests did not pass" in result["error"]


def test_a_redactor_that_crashes_does_not_show_the_secret(project: Project) -> None:
    redact = {"command": "cat > seen.json; exit 1", "onFailure": "block", "name": "redact"}
    project.settings({"hooks": {"PostToolUse": [{"matcher": "Bash", "hooks": [redact]}]}})
    shows = call("Bash", command="tr a-z b-za <<< 'gtmsdq2'")  # hunter2 + 1
    with serving(Reply(tool_calls=[shows]), "Hm.") as server:
        project.wave("hooks", "trust", "--yes")
        flags = ("--output-format", "stream-json", "--permission-mode", "bypassPermissions")
        done = project.wave("-p", "Show it.", *flags, server=server)
    sent = server.requests[1].body["messages"]
    assert sent[-2]["content"] == "[The tool has run. Its result is withheld: hook redact failed with exit code 1]"
    assert "Hook redact failed with exit code 1" in sent[-1]["content"]
    assert "hunter2" not in json.dumps(server.requests[1].body)
    assert "hunter2" in (project.directory / "seen.json").read_text()  # the hook itself had it
    [finished] = [one for one in map(json.loads, done.stdout.splitlines()) if one["type"] == "tool_finished"]
    assert finished["success"] is True
    assert "hunter2" not in done.stdout + done.stderr
    kept = [file for file in project.home.rglob("*") if file.is_file() and b"hunter2" in file.read_bytes()]
    assert kept == []
    assert done.returncode == 0


def test_a_line_of_chatter_does_not_cost_a_deny(project: Project) -> None:
    deny = json.dumps({"decision": "block", "reason": "Not in June."})
    guard = {"command": f"echo checking...; echo '{deny}'", "name": "guard"}
    project.settings({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [guard]}]}})
    with serving(Reply(tool_calls=[call("Bash", command="touch made")]), "Then not.") as server:
        status, result = run(project, server, "--permission-mode", "bypassPermissions")
    assert last(server, 1).startswith("Not run: ")
    assert "Not in June." in last(server, 1)
    assert not (project.directory / "made").exists()
    blocks = [block for message in result["messages"] for block in message["blocks"]]
    [tool] = [block for block in blocks if block["type"] == "tool"]
    assert (tool["result"], tool["success"], tool["error"]) == ("Not in June.", False, "Hook blocked tool execution")
    [notice] = [block["content"] for block in blocks if block["type"] == "notice"]
    assert "text before the JSON" in notice
    assert (status, outcomes(result)) == (0, [("deny", False)])


def test_a_hook_with_nothing_to_object_does_not_skip_the_question(project: Project) -> None:
    fine = {"command": """echo '{"decision": "allow"}'""", "name": "fine"}
    project.settings({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [fine]}]}})
    with serving(Reply(tool_calls=[call("Bash", command="touch made")]), "Then not.") as server:
        _, result = run(project, server)
    assert not (project.directory / "made").exists()
    blocks = [block for message in result["messages"] for block in message["blocks"]]
    notices = [block["content"] for block in blocks if block["type"] == "notice"]
    assert any("hookSpecificOutput.permissionDecision" in notice for notice in notices)
    assert outcomes(result) == [("none", False)]
