"""What commands really did to files: hooks get it, rules that deny it are enforced afterwards, and it can be undone."""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project, serving
from tests.waiting import until
from wave_agent import Agent
from wave_agent.messages import ToolBlock
from wave_agent.testing import RecordingModelServer, Reply, call

GUARD = {"permissions": {"deny": ["Edit(vendor/**)", "Write(.env)", "Read(notes)"]}}


def program(text: str) -> dict[str, str]:
    """A command whose effects cannot be foreseen."""
    return {"command": f'python3 -c "{text}"'}


def guarded(project: Project, **more: Any) -> Path:
    """The project's log of hooks."""
    (project.directory / "vendor").mkdir()
    (project.directory / "vendor" / "x.py").write_text("old\n")
    (project.directory / ".env").write_text("KEY=1\n")
    (project.directory / "notes").write_text("secret\n")
    (project.directory / ".gitignore").write_text(".env\n")
    subprocess.run(["git", "init", "-q"], cwd=project.directory, check=True)
    log = project.directory.parent / "log"
    hook = [{"hooks": [{"type": "command", "command": f"cat >> {log}; echo >> {log}"}]}]
    project.home.mkdir()
    settings = {**GUARD, "hooks": dict.fromkeys(("PostToolUse", "Stop", "SessionEnd"), hook), **more}
    (project.home / "settings.json").write_text(json.dumps(settings))
    return log


def run(project: Project, server: RecordingModelServer) -> tuple[dict[str, Any], str]:
    """The result object, and stderr."""
    found = project.wave(
        *("-p", "go", "--permission-mode", "bypassPermissions", "--output-format", "json"), server=server
    )
    return json.loads(found.stdout), found.stderr


def told(server: RecordingModelServer, request: int) -> str:
    """What the model got with this request, after its own call."""
    messages = server.requests[request].body["messages"]
    own = max(at for at, message in enumerate(messages) if message["role"] == "assistant")
    return "\n".join(message["content"] for message in messages[own + 1 :])


def events(log: Path, name: str) -> list[list[str]]:
    """`changed_files` of the hooks that ran on this event, as names in the project."""
    found = [json.loads(line) for line in log.read_text().splitlines() if line.strip()]
    return [[Path(path).name for path in one["changed_files"]] for one in found if one["hook_event_name"] == name]


def test_a_program_changes_files_that_rules_deny(project: Project) -> None:
    log, here = guarded(project), project.directory
    text = "import os; open('vendor/x.py','a').write('new'); open('vendor/y.py','w'); os.remove('.env')"
    replies = (
        Reply(tool_calls=[call("Bash", **program(f"{text}; open('ok','w'); open('notes','w')"))]),
        Reply(tool_calls=[call("Write", file_path="made", content="x")]),
        "Done.",
    )
    with serving(*replies) as server:
        result, stderr = run(project, server)
    said = told(server, 1)
    assert "Bash changed vendor/x.py, which the rule Edit(vendor/**) denies. It was restored." in said
    assert "Bash created vendor/y.py, which the rule Edit(vendor/**) denies. It was moved to " in said
    assert "Bash deleted .env, which the rule Write(.env) denies. It was restored." in said
    assert events(log, "PostToolUse") == [["notes", "ok"], ["made"]]
    assert events(log, "Stop") == events(log, "SessionEnd") == [["made", "notes", "ok"]]
    assert (here / "vendor" / "x.py").read_text() == "old\n"
    assert (here / ".env").read_text() == "KEY=1\n"
    assert not (here / "vendor" / "y.py").exists()
    assert (here / "notes").read_text() == ""  # Read(notes) denies only reading
    found = {Path(one["path"]).name: one for one in result["violations"]}
    assert sorted(found) == [".env", "x.py", "y.py"]
    assert all(one["restored"] and one["tool_use_id"].startswith("call_") for one in found.values())
    assert found[".env"]["kept_at"] is None
    assert Path(found["x.py"]["kept_at"]).read_text() == "old\nnew"
    assert found["x.py"]["kept_at"] in stderr
    lines = [json.loads(line) for line in Path(result["transcript_path"]).read_text().splitlines()]
    assert [line["path"] for line in lines if line.get("subtype") == "violation"] == [
        str(here / name) for name in (".env", "vendor/x.py", "vendor/y.py")
    ]


def test_a_background_command_may_have_done_it(project: Project) -> None:
    """Nothing is restored then: it might destroy the work of someone else."""
    guarded(project)
    change = program("open('vendor/x.py','w').write('new')")["command"]
    waiting = f"until [ -e go ]; do sleep 0.02; done; {change}; touch done"
    replies = (
        Reply(tool_calls=[call("Bash", command=waiting, run_in_background=True)]),
        Reply(tool_calls=[call("Bash", command="touch go; until [ -e done ]; do sleep 0.02; done")]),
        "Done.",
    )
    with serving(*replies) as server:
        result, stderr = run(project, server)
    assert "Bash changed vendor/x.py, which the rule Edit(vendor/**) denies. It was not restored: " in told(server, 2)
    assert (project.directory / "vendor" / "x.py").read_text() == "new"
    assert [(one["restored"], one["kept_at"]) for one in result["violations"]] == [(False, None)]
    assert "a background command or an async hook ran meanwhile" in stderr


def test_a_background_command_changes_files_between_calls(project: Project) -> None:
    log = guarded(project)
    change = program("open('vendor/x.py','w').write('new'); open('ok','w')")["command"]
    after_the_call = f"until [ -s {log} ]; do sleep 0.02; done"  # its PostToolUse hook has run
    replies = (
        Reply(tool_calls=[call("Bash", command=f"{after_the_call}; {change}", run_in_background=True)]),
        Reply(tool_calls=[call("BashOutput", bash_id="bash_1", wait_ms=20000)]),
        "Done.",
    )
    with serving(*replies) as server:
        result, _ = run(project, server)
    assert "A background command changed vendor/x.py, which the rule Edit(vendor/**) denies." in told(server, 2)
    assert events(log, "Stop") == [["ok", "x.py"]]
    assert [one["restored"] for one in result["violations"]] == [False]


@pytest.fixture
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    directory = tmp_path / "project"
    directory.mkdir()
    return directory


def snapshot(directory: Path) -> dict[str, str | None]:
    found = sorted(directory.rglob("*"))
    return {str(path.relative_to(directory)): path.read_text() if path.is_file() else None for path in found}


async def test_what_a_command_did_cannot_be_undone(quiet: Path) -> None:
    for name in ("changed", "deleted", "kept"):
        (quiet / name).write_text(name)
    (quiet / ".gitignore").write_text("ignored\n")
    before = snapshot(quiet)
    line = "echo more >> changed; rm deleted; mkdir -p a/b; echo new > a/b/created; echo x > ignored; chmod 600 kept"
    replies = [
        Reply(tool_calls=[call("Bash", command=line), call("Write", file_path="w", content="w")]),
        "Done.",
        "Ok.",
    ]
    async with (
        RecordingModelServer(replies) as server,
        await Agent.create(
            workdir=quiet, base_url=server.base_url, model="m", api_key="k", permission_mode="bypassPermissions"
        ) as agent,
    ):
        await agent.send_message("go")
        (quiet / "mine").write_text("mine")
        taken = await agent.undo()
        assert await agent.undo() == type(taken)()  # the undo itself is no change
    names = {Path(path).name for path in taken.restored}, {Path(path).name for path in taken.removed}
    assert names == ({"changed", "deleted", "kept"}, {"created", "w"})
    assert snapshot(quiet) == {**before, "ignored": "x\n", "mine": "mine"}
    assert (quiet / "kept").stat().st_mode & 0o777 != 0o600
    assert taken.refused == {}


async def test_an_interrupted_command_has_changed_a_file_that_a_rule_denies(quiet: Path) -> None:
    (quiet / "vendor").mkdir()
    (quiet / "vendor" / "x").write_text("old")
    hang = program("import time; open('vendor/x','w').write('new'); open('gate','w'); time.sleep(60)")
    async with RecordingModelServer([Reply(tool_calls=[call("Bash", **hang)]), "Done."]) as server:
        agent = await Agent.create(
            workdir=quiet,
            base_url=server.base_url,
            model="m",
            api_key="k",
            settings=GUARD,
            permission_mode="bypassPermissions",
        )
        async with agent:
            turn = asyncio.create_task(agent.send_message("go"))
            await until((quiet / "gate").exists)
            agent.interrupt()
            result = await turn
    assert result.status == "interrupted"
    assert (quiet / "vendor" / "x").read_text() == "old"
    (found,) = result.violations
    assert found.restored
    assert found.kept_at is not None
    assert Path(found.kept_at).read_text() == "new"
    (block,) = (block for block in agent.messages[1].blocks if isinstance(block, ToolBlock))
    assert "Bash changed vendor/x, which the rule Edit(vendor/**) denies. It was restored." in (block.result or "")
