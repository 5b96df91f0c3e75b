"""Commands in a session: those that only read run like Read, and rules about effects apply to all of them."""

import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from wave_agent import Agent, tool
from wave_agent.hooks import rewrite
from wave_agent.testing import Reply, ScriptedModel, call


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    project = (tmp_path / "project").resolve()
    for name, content in {"a.txt": "hello\n", "sub/b.txt": "deep\n", ".env": "TOKEN=1\n"}.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(content)
    (tmp_path / "far.txt").write_text("far away\n")
    (project / "far").symlink_to("../far.txt")
    return project


async def results(project: Path, *calls: Any, **options: Any) -> list[str]:
    """What the model is told about each of these calls, made in one answer."""
    model = ScriptedModel([Reply(tool_calls=list(calls)), "Done."])
    async with await Agent.create(workdir=project, model_client=model, setting_sources=[], **options) as agent:
        await agent.send_message("Go.")
    return [str(one["content"]) for one in model.requests[-1].messages if one["role"] == "tool"]


def bash(line: str, **more: Any) -> Any:
    return call("Bash", command=line, **more)


@pytest.mark.parametrize("mode", ["default", "plan"])
async def test_commands_that_only_read_run_unasked_inside_the_project(project: Path, mode: str) -> None:
    lines = ["cat a.txt", "grep -n hello a.txt", "ls sub", "cd sub && cat b.txt", "wc -l < a.txt"]
    found = await results(project, *map(bash, lines), permission_mode=mode)
    ran = [not one.startswith("Not run") for one in found]
    assert ran[:4] == [True] * 4, found
    assert "deep" in found[3]


@pytest.mark.parametrize("mode", ["default", "plan"])
async def test_other_commands_do_not(project: Path, mode: str) -> None:
    lines = [
        "cat ../far.txt",
        "cat far",
        "cat f*",
        "grep -r away .",
        "ls ..",
        "ls /etc",
        "cd .. && ls",
        "cat a.txt > c.txt",
        "touch c.txt",
        "cat $X",
        "./a.txt",
        "python3 -c 'print(1)'",
    ]
    found = await results(project, *map(bash, lines), bash("ls", run_in_background=True), permission_mode=mode)
    assert [one for one in found if not one.startswith("Not run")] == []
    assert not (project / "c.txt").exists()


async def test_a_program_of_the_project_behind_a_usual_name_is_asked_about(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "bin").mkdir()
    (project / "bin/ls").write_text("#!/bin/sh\ntouch ran\n")
    (project / "bin/ls").chmod(0o755)
    monkeypatch.setenv("PATH", f"{project}/bin", prepend=":")
    (found,) = await results(project, bash("ls"))
    assert found.startswith("Not run")
    assert not (project / "ran").exists()


@pytest.fixture
def repository(project: Path) -> Path:
    """One with settings that run something."""
    (project / "evil.sh").write_text("#!/bin/sh\ntouch ran\n")
    (project / "evil.sh").chmod(0o755)
    script = "git init -q && git config core.fsmonitor ./evil.sh && git config core.pager ./evil.sh"
    script += " && git config diff.external ./evil.sh"
    subprocess.run(["sh", "-ec", script], cwd=project, check=True)
    return project


async def test_git_runs_nothing_of_the_repository_when_it_only_reads(repository: Path) -> None:
    names, branch, diff = await results(
        repository, bash("git ls-files --others"), bash("git branch --show-current"), bash("git diff")
    )
    assert "a.txt" in names
    assert "Not run" not in branch
    assert diff.startswith("Not run")
    assert not (repository / "ran").exists()


async def test_hooks_see_a_command_that_only_reads_as_a_command(project: Path) -> None:
    seen: list[tuple[str, str]] = []

    def hear(event: Any) -> None:
        seen.append((event.payload["tool_name"], event.payload["tool_input"]["command"]))

    await results(project, bash("cat a.txt"), hooks={"PreToolUse": [{"matcher": "Bash", "hooks": [hear]}]})
    assert seen == [("Bash", "cat a.txt")]


async def test_commands_that_only_read_run_at_the_same_time(project: Path) -> None:
    """Nothing is written to either pipe before both have a reader."""
    pipes = [project / "one", project / "two"]
    for pipe in pipes:
        os.mkfifo(pipe)

    def answer() -> None:
        with pipes[0].open("w") as one, pipes[1].open("w") as two:
            one.write("from one")
            two.write("from two")

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    calls = [bash("cat one", timeout=20_000), bash("cat two", timeout=20_000)]
    assert await results(project, *calls, permission_mode="bypassPermissions") == ["from one", "from two"]
    thread.join(20)


async def test_a_command_that_a_hook_replaces_runs_alone(project: Path) -> None:
    """A hook turns one of several commands that only read into one that acts: the others run before or after it."""

    def replace(event: Any) -> Any:
        acting = "ls > begin; sleep 0.3; ls > end"
        return rewrite(command=acting) if event.input["command"] == "ls" else None

    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [replace]}]}
    lines = ["ls", "test ! -e begin || test -e end"]
    found = await results(project, *map(bash, lines), hooks=hooks, permission_mode="bypassPermissions")
    assert (project / "end").exists()
    assert "exit code" not in found[1]


async def test_rules_about_paths_and_hosts_apply_to_every_tool(project: Path) -> None:
    deny = ["Read(.env)", "Edit(vendor/**)", "Net(evil.example)"]
    found = await results(
        project,
        bash("base64 .env"),
        call("Edit", file_path=".env", old_string="1", new_string="2"),
        call("Grep", pattern="TOKEN", path=".env"),
        call("Write", file_path="vendor/x", content=""),
        bash("mkdir -p vendor/x"),
        bash("curl https://evil.example"),
        bash("cat a.txt"),
        settings={"permissions": {"deny": deny}},
        permission_mode="bypassPermissions",
    )
    rules = [deny[0]] * 3 + [deny[1]] * 2 + [deny[2]]
    for told, rule in zip(found, rules, strict=False):
        assert f"denied by the permission rule {rule}, because the call would" in told
    assert found[-1].strip() == "hello"
    assert not (project / "vendor").exists()


async def test_searches_leave_out_what_must_not_be_read_and_say_how_much(project: Path) -> None:
    (project / "sub/.env").write_text("TOKEN=2\n")
    settings = {"permissions": {"deny": ["Read(.env)"]}}
    grep, glob, one = await results(
        project,
        call("Grep", pattern="TOKEN|hello", output_mode="content"),
        call("Glob", pattern="**/*"),
        call("Glob", pattern=".env"),
        settings=settings,
    )
    assert "TOKEN" not in grep
    assert "hello" in grep
    assert ".env" not in glob
    assert "a.txt" in glob
    for found in (grep, glob, one):
        assert "[2 files are not shown: a permission rule denies reading them]" in found


async def test_an_ask_rule_keeps_a_file_from_being_opened_but_not_from_being_listed(project: Path) -> None:
    settings = {"permissions": {"ask": ["Read(.env)"]}}
    grep, glob = await results(project, call("Grep", pattern="TOKEN"), call("Glob", pattern=".env"), settings=settings)
    assert "[1 file is not shown: a permission rule denies reading it]" in grep
    assert ".env" in glob


async def test_a_tool_of_the_embedding_program_that_is_named_bash_may_do_anything(project: Path) -> None:
    @tool
    def Bash(command: str) -> str:  # noqa: N802
        """Runs a command on another machine."""
        return f"{command} ran elsewhere"

    assert (await results(project, bash("ls"), tools=[Bash]))[0].startswith("Not run")
    assert await results(project, bash("ls"), tools=[Bash], permission_mode="bypassPermissions") == ["ls ran elsewhere"]
