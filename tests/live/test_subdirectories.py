"""An agent that is started somewhere below the top of its project."""

import copy
import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import WAVE, Project, serving
from wave_agent.testing import Reply, call

LOG = 'jq -c --arg dir "$WAVE_PROJECT_DIR" --arg pwd "$PWD" \'{cwd, $dir, $pwd, command: .tool_input.command}\''


def below(project: Project, name: str) -> Project:
    """The same, started in a directory of the project."""
    other = copy.copy(project)
    other.directory = project.directory / name
    other.directory.mkdir(parents=True, exist_ok=True)
    return other


def write(directory: Path, name: str, settings: dict[str, Any]) -> None:
    (directory / name).parent.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(json.dumps(settings))


def before_bash(*commands: str) -> dict[str, Any]:
    return {"PreToolUse": [{"matcher": "Bash", "hooks": [{"command": command} for command in commands]}]}


def git(directory: Path, *arguments: str) -> None:
    name = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    subprocess.run(["git", *name, *arguments], cwd=directory, check=True, capture_output=True)


def results(request: Any) -> list[str]:
    return [message["content"] for message in request.body["messages"] if message["role"] == "tool"]


@pytest.fixture
def package(project: Project) -> Project:
    """Started in packages/web of a repository."""
    git(project.directory, "init", "-q", "-b", "main")
    return below(project, "packages/web")


def test_guards_and_instructions_vanish_when_the_agent_is_started_one_directory_below(
    project: Project, package: Project
) -> None:
    guard = f"{LOG} >> log; grep -q 'rm -rf' log && {{ echo 'Never remove.' >&2; exit 2; }}; exit 0"
    write(project.directory, ".wave/settings.json", {"hooks": before_bash(guard)})
    (project.directory / "AGENTS.md").write_text("Instructions of the repository.")
    (package.directory / "CLAUDE.md").write_text("Instructions of the package.")
    (package.directory / "notes.txt").write_text("Read by a relative path.")
    project.home.mkdir()
    (project.home / "AGENTS.md").write_text("Instructions of the user.")
    assert package.wave("hooks", "trust", "--yes").returncode == 0
    calls = [
        call("Bash", command="pwd; touch here"),
        call("Read", file_path="notes.txt"),
        call("Glob", pattern="*.txt"),
        call("Bash", command="rm -rf notes.txt"),
    ]
    with serving(Reply(tool_calls=calls), "done") as server:
        done = package.wave("-p", "go", "--permission-mode", "bypassPermissions", server=server)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert "denied Bash (rm -rf notes.txt): Never remove." in done.stderr
    system = server.requests[0].body["messages"][0]["content"]
    assert f"Project directory: {project.directory}\nWorking directory: {package.directory}" in system
    places = [system.index(f"Instructions of the {whose}.") for whose in ("user", "repository", "package")]
    assert places == sorted(places)
    ran, read, found, refused = results(server.requests[1])
    assert str(package.directory) in ran
    assert "Read by a relative path." in read
    assert found == "notes.txt"
    assert "Never remove." in refused
    logged = [json.loads(line) for line in (project.directory / "log").read_text().splitlines()]
    assert logged[0] == {
        "cwd": str(package.directory),
        "dir": str(project.directory),
        "pwd": str(project.directory),
        "command": "pwd; touch here",
    }
    assert (package.directory / "here").exists()
    assert (package.directory / "notes.txt").exists()


def test_settings_of_a_directory_below_take_guards_away_or_loosen_what_holds(
    project: Project, package: Project
) -> None:
    write(
        project.directory,
        ".wave/settings.json",
        {"hooks": before_bash("echo outer >> log"), "permissions": {"deny": ["Bash(curl:*)"]}, "strictHooks": True},
    )
    write(
        package.directory,
        ".wave/settings.json",
        {
            "hooks": {"PreToolUse": [{"matcher": "Bash", "sequential": True, "hooks": ["echo inner >> log"]}]},
            "permissions": {
                "allow": ["Bash"],
                "deny": ["Read(secret/**)"],
                "defaultMode": "acceptEdits",
                "additionalDirectories": ["/"],
            },
            "strictHooks": False,
            "model": "inner",
        },
    )
    (package.directory / "secret").mkdir()
    (package.directory / "secret" / "key").write_text("hunter2")
    calls = [
        call("Bash", command="curl http://example.com"),
        call("Bash", command="touch made"),
        call("Read", file_path="secret/key"),
        call("Write", file_path="new", content="x"),
    ]
    with serving(Reply(tool_calls=calls), "done") as server:
        done = package.wave("-p", "go", "--trust", server=server, WAVE_MODEL="")
    assert server.requests[0].body["model"] == "inner"
    assert not any("hunter2" in result for result in results(server.requests[1]))
    assert sorted((project.directory / "log").read_text().split()) == ["inner", "inner", "outer", "outer"]
    assert sorted(one.name for one in package.directory.iterdir()) == [".wave", "secret"]
    for key in ("permissions.allow", "permissions.defaultMode", "permissions.additionalDirectories", "strictHooks"):
        assert f"{key}: has no effect in a subdirectory of the project" in done.stderr


def test_a_session_and_the_trust_of_a_project_are_lost_in_its_directories(project: Project, package: Project) -> None:
    write(project.directory, ".wave/settings.json", {"hooks": before_bash("true")})
    write(package.directory, ".wave/settings.json", {"hooks": {"Stop": ["echo stopped >> log"]}})
    with serving("first", "second") as server:
        assert project.wave("hooks", "trust", "--yes").returncode == 0
        assert "NOT TRUSTED" not in project.wave("hooks", "list").stdout
        refused = package.wave("-p", "hi", server=server)
        assert "echo stopped >> log" in refused.stderr
        assert "true (" not in refused.stderr
        assert package.wave("hooks", "trust", "--yes").returncode == 0
        # Trusted where it is started, and the settings below are no matter of who starts at the top.
        first = project.wave("-p", "one", server=server)
        assert (first.returncode, first.stdout, first.stderr) == (0, "first\n", "")
        project.wave("hooks", "trust", "--yes")
        second = package.wave("-c", "-p", "two", server=server)
        assert (second.returncode, second.stdout, second.stderr) == (0, "second\n", "")
    *said, news, prompt = [message["content"] for message in server.requests[1].body["messages"][1:]]
    assert (said, prompt) == (["one", "first"], "two")
    assert news.splitlines()[1:] == [f"Working directory: {package.directory} (commands and relative paths start here)"]
    assert (project.directory / "log").read_text() == "stopped\n"
    (transcript,) = (project.home / "projects").glob("*/*.jsonl")
    cwds = {json.loads(line)["cwd"] for line in transcript.read_text().splitlines()}
    assert cwds == {str(project.directory), str(package.directory)}
    listed = json.loads(package.wave("sessions", "--json").stdout)
    assert len(listed) == 1


def test_an_empty_settings_file_above_disables_the_guards_of_a_trusted_ref(project: Project, package: Project) -> None:
    write(package.directory, ".wave/settings.json", {"hooks": before_bash(".wave/guard.sh")})
    (package.directory / ".wave" / "guard.sh").write_text("#!/bin/sh\necho no >&2; exit 2\n")
    (package.directory / ".wave" / "guard.sh").chmod(0o755)
    git(project.directory, "add", ".")
    git(project.directory, "commit", "-qm", "guarded")
    command = ("-p", "go", "--trust-ref", "main", "--permission-mode", "bypassPermissions")
    with serving(Reply(tool_calls=[call("Bash", command="touch ran")]), "done") as server:
        assert package.wave(*command, server=server).returncode == 0
        assert "no" in results(server.requests[1])[0]
        write(project.directory, ".wave/settings.json", {})
        done = package.wave(*command, server=server)
    assert done.returncode == 1
    assert "write packages/web/.wave/guard.sh" in done.stderr
    assert not (package.directory / "ran").exists()


def test_an_agent_below_another_escapes_its_guards_by_starting_further_out(project: Project, package: Project) -> None:
    write(project.directory, ".wave/settings.json", {"permissions": {"deny": ["Bash(curl:*)"]}})
    write(package.directory, ".wave/settings.json", {"permissions": {"deny": ["Bash(wget:*)"]}})
    commands = [f"(cd {directory} && {shlex.quote(WAVE)} -p inner)" for directory in ("../..", "src")]
    (package.directory / "src").mkdir()
    with serving(Reply(tool_calls=[call("Bash", command=one) for one in commands]), "answer", "done") as server:
        package.wave("-p", "go", "--permission-mode", "bypassPermissions", server=server)
    outside, inside = results(server.requests[2])
    assert f"may not work in {project.directory}, only in {package.directory}" in outside
    assert "answer" in inside


def test_the_workshop_looks_at_other_settings_than_the_agent(project: Project, package: Project) -> None:
    write(project.directory, ".wave/settings.json", {"hooks": before_bash("echo outer >&2; exit 2")})
    write(package.directory, ".wave/settings.json", {"hooks": before_bash("sh gone.sh")})
    listed = json.loads(package.wave("hooks", "list", "--json").stdout)
    assert listed["project"] == str(project.directory)
    assert [hook["command"] for hook in listed["hooks"]] == ["echo outer >&2; exit 2", "sh gone.sh"]
    assert "packages/web/.wave/settings.json" in package.wave("hooks", "lint").stdout
    tried = package.wave("hooks", "test", "PreToolUse", "--tool", "Bash", "--trust", "--expect", "block")
    assert tried.returncode == 0, tried.stdout
    explained = json.loads(package.wave("hooks", "explain", "PreToolUse", "Read", "--input", '{"file_path": "a"}',
                                        "--json").stdout)  # fmt: skip
    assert explained["facts"]["tool_input"]["file_path"] == str(package.directory / "a")
    made = package.wave("hooks", "new", "mine", "--event", "Stop", "--yes")
    assert "wave hooks test ../../.wave/hooks/mine.cases.json" in made.stdout
    assert (project.directory / ".wave" / "hooks" / "mine.sh").exists()
