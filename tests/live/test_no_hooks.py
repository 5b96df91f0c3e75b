"""The day a guard locks out its owner: a person gets out, and nobody else does."""

import errno
import json
import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import WAVE, Project, serving
from wave_agent.testing import RecordingModelServer, Reply, call

GUARD = "cat >> guard.log; echo 'the guard is broken' >&2; exit 2"
NOTICE = "--no-hooks: hooks do not run in this session, except managed ones: "


def guards(*events: str, name: str = "guard", command: str = GUARD) -> dict[str, Any]:
    entry = {"type": "command", "command": command, "name": name}
    return {"hooks": {event: [{"hooks": [entry]}] for event in events}}


def at_terminal(
    project: Project, server: RecordingModelServer, *arguments: str, program: str = WAVE, **env: str
) -> tuple[int, str]:
    """Runs `wave` in the foreground of a terminal of its own. Its exit status, and what the terminal shows.

    The first terminal that a new session opens is the one that controls it.
    """
    master, slave = pty.openpty()
    terminal = os.ttyname(slave)
    line = f"exec {shlex.join([program, *arguments])} <>{terminal} >&0 2>&0"
    process = subprocess.Popen(
        ["/bin/sh", "-c", line],
        cwd=project.directory,
        env=project.environment(server, **env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    shown = bytearray()
    status = _read_until_it_ends(process, master, slave, shown)
    return status, shown.decode().replace("\r\n", "\n")


def _read_until_it_ends(process: "subprocess.Popen[bytes]", master: int, slave: int, shown: bytearray) -> int:
    status = process.wait(timeout=60)  # all that is printed here fits into the terminal's buffer
    os.close(slave)
    while part := _read(master):
        shown += part
    os.close(master)
    return status


def _read(master: int) -> bytes:
    try:
        return os.read(master, 1 << 16)
    except OSError as error:
        if error.errno != errno.EIO:  # that is how a terminal ends
            raise
        return b""


def records(project: Project) -> list[dict[str, Any]]:
    (file,) = project.home.glob("projects/*/*.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


def locked_out(project: Project) -> None:
    """The user's guard refuses every prompt, the project's every call."""
    project.home.mkdir()
    (project.home / "settings.json").write_text(json.dumps(guards("UserPromptSubmit", name="mine")))
    project.settings(guards("PreToolUse", name="theirs"))


def test_a_person_whom_a_guard_has_locked_out_gets_out_and_is_told(project: Project) -> None:
    locked_out(project)
    replies = [Reply(tool_calls=[call("Bash", command="touch made")]), "Done."]
    arguments = ("-p", "Make it.", "--permission-mode", "bypassPermissions")

    with serving("unused") as server:
        status, shown = at_terminal(project, server, *arguments, "--trust")
        assert (status, server.requests) == (3, [])
        assert "the guard is broken" in shown
    (project.directory / "guard.log").unlink()
    for file in project.home.glob("projects/*/*.jsonl"):
        file.unlink()

    with serving(*replies) as server:  # neither trusted nor asked about: nothing of the project's hooks runs
        status, shown = at_terminal(project, server, *arguments, "--no-hooks")
        assert len(server.requests) == 2
    assert not (project.directory / "guard.log").exists()
    assert (project.directory / "made").exists()
    assert (status, "Done." in shown) == (0, True)
    told = f"{NOTICE}mine (UserPromptSubmit), theirs (PreToolUse). Rules still apply."
    assert f"wave: {told}" in shown
    assert told in [one.get("content") for one in records(project) if one.get("subtype") == "notice"]


def test_managed_guards_cannot_be_switched_off(project: Project, tmp_path: Path) -> None:
    locked_out(project)
    managed = tmp_path / "managed.json"
    managed.write_text(json.dumps(guards("PreToolUse", name="policy", command="echo 'by order' >&2; exit 2")))
    managed.chmod(0o600)
    replies = [Reply(tool_calls=[call("Bash", command="touch made")]), "I must not."]

    with serving(*replies) as server:
        arguments = ("-p", "Make it.", "--no-hooks", "--permission-mode", "bypassPermissions")
        status, _ = at_terminal(project, server, *arguments, WAVE_MANAGED_SETTINGS=str(managed))
        assert "by order" in json.dumps(server.requests[1].body)
    assert not (project.directory / "made").exists()
    assert status == 0


def test_the_scripts_of_hooks_stay_protected_while_hooks_are_off(project: Project) -> None:
    script = project.directory / "guard.sh"
    script.write_text("#!/bin/sh\nexit 2\n")
    script.chmod(0o755)
    project.settings(guards("PreToolUse", command="./guard.sh"))
    emptied = call("Bash", command="echo exit 0 > guard.sh")

    with serving(Reply(tool_calls=[emptied]), "I may not.") as server:
        at_terminal(project, server, "-p", "Empty it.", "--no-hooks", "--permission-mode", "bypassPermissions")
        assert len(server.requests) == 2
    assert script.read_text() == "#!/bin/sh\nexit 2\n"


@pytest.mark.parametrize("where", ["no terminal", "a terminal that controls another session"])
def test_a_script_cannot_switch_hooks_off(project: Project, where: str) -> None:
    locked_out(project)
    master, slave = pty.openpty()
    stdin = subprocess.DEVNULL if where == "no terminal" else slave

    with serving("unused") as server:
        process = project.command("-p", "Make it.", "--no-hooks", "--output-format", "json", server=server, stdin=stdin)
        out, _ = process.communicate(timeout=60)
        assert server.requests == []
    os.close(master)
    os.close(slave)
    assert process.returncode == 1
    assert json.loads(out)["error"].startswith("--no-hooks needs a person: run it in the foreground of a terminal")


@pytest.mark.parametrize("variable", ["CLAUDECODE", "GEMINI_CLI"])
def test_another_agent_cannot_either(project: Project, variable: str) -> None:
    locked_out(project)
    with serving("unused") as server:
        status, shown = at_terminal(project, server, "-p", "Make it.", "--no-hooks", **{variable: "1"})
        assert server.requests == []
    assert status == 1
    assert "started this program: not started." in shown


def test_nor_can_the_agent_itself_with_a_terminal_that_it_has_made(project: Project, tmp_path: Path) -> None:
    """Its own tool opens a terminal, takes the variable away, and starts `wave --no-hooks` in its foreground."""
    locked_out(project)
    inner = tmp_path / "inner.py"
    inner.write_text(
        "import os, pty, sys\n"
        "os.environ.pop('WAVE_PARENT', None)\n"
        f"sys.exit(os.waitstatus_to_exitcode(pty.spawn([{WAVE!r}, '-p', 'Make it.', '--no-hooks'])))\n"
    )
    start = call("Bash", command=shlex.join([sys.executable, str(inner)]))
    with serving(Reply(tool_calls=[start]), "I could not.") as server:
        arguments = ("-p", "Get out.", "--no-project-hooks", "--permission-mode", "bypassPermissions")
        (project.home / "settings.json").unlink()
        ran = project.wave(*arguments, server=server)
        assert len(server.requests) == 2
        assert "another agent started this program: not started." in json.dumps(server.requests[1].body)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("way", ["environment", "settings"])
def test_nothing_but_the_flag_switches_hooks_off(project: Project, way: str) -> None:
    locked_out(project)
    env = {"WAVE_NO_HOOKS": "1", "NO_HOOKS": "1"} if way == "environment" else {}
    if way == "settings":
        hooks = json.loads((project.home / "settings.json").read_text())
        (project.home / "settings.json").write_text(json.dumps({**hooks, "noHooks": True, "disableHooks": True}))
    with serving("unused") as server:
        status, _ = at_terminal(project, server, "-p", "Make it.", "--trust", **env)
        assert server.requests == []
    assert status == 3


def test_nor_does_it_work_in_ci(project: Project) -> None:
    done = project.wave("-p", "go", "--no-hooks", CI="true")
    assert (done.returncode, "CI is set in the environment" in done.stderr) == (1, True)
