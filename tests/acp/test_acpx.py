"""A client that others wrote: npm's `acpx`, which `make test-acpx` installs."""

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import WAVE, Project
from wave_agent.testing import RecordingModelServer, Reply, call

INSTALLED = os.environ.get("WAVE_ACPX", "")
"""The path of Node, a colon, and that of the client's program."""
pytestmark = pytest.mark.skipif(not INSTALLED, reason="needs npm's acpx: make test-acpx")

ASK = """echo '{"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "reason-7"}}'"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def acpx(project: Project, server: RecordingModelServer, *arguments: str) -> "subprocess.CompletedProcess[str]":
    node, _, program = INSTALLED.partition(":")
    agent = f"{shlex.quote(str(WAVE))} acp --trust"
    home = project.directory.parent / "acpx-home"
    home.mkdir(exist_ok=True)
    return subprocess.run(
        [node, program, "--agent", agent, "--cwd", str(project.directory), "--format", "json", *arguments],
        cwd=project.directory,
        env=project.environment(server, HOME=str(home)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def messages(done: "subprocess.CompletedProcess[str]") -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def updates(done: "subprocess.CompletedProcess[str]") -> list[dict[str, Any]]:
    return [one["params"]["update"] for one in messages(done) if one.get("method") == "session/update"]


def stop_reason(done: "subprocess.CompletedProcess[str]") -> str:
    return next(one["result"]["stopReason"] for one in messages(done) if "stopReason" in (one.get("result") or {}))


@pytest.mark.parametrize(
    ("answer", "ran", "status"), [("--approve-all", True, "completed"), ("--deny-all", False, "failed")]
)
def test_it_answers_what_a_hook_asks(project: Project, answer: str, ran: bool, status: str) -> None:
    project.settings({"hooks": {"PreToolUse": [{"name": "careful", "command": ASK}]}})
    with RecordingModelServer.in_thread([Reply(tool_calls=[call("Bash", command="touch ran")]), "Done."]) as server:
        done = acpx(project, server, answer, "exec", "Go")
    assert len(server.requests) == 2, done
    assert (project.directory / "ran").exists() is ran
    ended = [one for one in updates(done) if one["sessionUpdate"] == "tool_call_update" and one["status"] == status]
    assert ended, done.stdout
    assert stop_reason(done) == "end_turn"
    asked = [one for one in messages(done) if one.get("method") == "session/request_permission"]
    assert ["reason-7" in json.dumps(one["params"]["toolCall"]["content"]) for one in asked] == [True], done.stdout


def test_a_hooks_deny_reaches_it_although_it_approves_everything(project: Project) -> None:
    project.settings({"hooks": {"PreToolUse": [{"name": "guard", "command": "echo reason-7 >&2; exit 2"}]}})
    with RecordingModelServer.in_thread([Reply(tool_calls=[call("Bash", command="touch ran")]), "I see."]) as server:
        done = acpx(project, server, "--approve-all", "exec", "Go")
    assert not (project.directory / "ran").exists()
    [failed] = [one for one in updates(done) if one.get("status") == "failed"]
    assert "reason-7" in json.dumps(failed["content"])
    assert stop_reason(done) == "end_turn"


def test_it_lists_and_continues_a_session(project: Project) -> None:
    with RecordingModelServer.in_thread(["First.", "Second."]) as server:
        try:
            created = acpx(project, server, "sessions", "new")
            first = acpx(project, server, "prompt", "One")
            second = acpx(project, server, "prompt", "Two")
        finally:
            acpx(project, server, "sessions", "close")
    assert created.returncode == 0, created
    prompts = [one["content"] for one in server.requests[-1].body["messages"] if one["role"] == "user"]
    assert (first.returncode, second.returncode, prompts) == (0, 0, ["One", "Two"]), (first, second)


def test_approving_everything_stores_no_rule(project: Project) -> None:
    with RecordingModelServer.in_thread([Reply(tool_calls=[call("Bash", command="touch ran")]), "Done."]) as server:
        acpx(project, server, "--approve-all", "exec", "Go")
    assert (project.directory / "ran").exists()
    assert [one for one in project.home.glob("*.json") if "touch" in one.read_text()] == []
