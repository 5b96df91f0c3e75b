"""What a command leaves running is named in its result and ends with the session."""

import asyncio
import os
import shlex
import shutil
import signal
from pathlib import Path

import pytest

from tests.rows import rows
from tests.tools.processes import PROC, is_alive
from tests.tools.session import Session
from tests.waiting import number_in
from wave_agent.tools.bash import Bash
from wave_agent.tools.shells import Shells
from wave_agent.tools.stray_processes import _USERS_OWN, MARK

pytestmark = pytest.mark.skipif(not PROC, reason="processes are found through /proc")

QUIET = ">/dev/null 2>&1"


async def close(session: Session) -> str | None:
    told = [await tool.close() for tool in session.tools]
    return told[0]


def starts(pid: Path, prefix: str = "") -> str:
    """A command that leaves a process behind and notes its number."""
    return f"{prefix} sh -c 'echo $$ > {pid}; exec sleep 1000' {QUIET} & while ! [ -s {pid} ]; do sleep 0.01; done"


@pytest.mark.parametrize("prefix", ["", "nohup", "setsid", "env -i", "setsid setsid"])
async def test_it_is_named_and_ended_with_the_session(session: Session, tmp_path: Path, prefix: str) -> None:
    prefix = shutil.which(prefix.split(maxsplit=1)[0]) + prefix[len(prefix.split(maxsplit=1)[0]) :] if prefix else ""  # type: ignore[operator]
    result = await session.bash(f"{starts(tmp_path / 'pid', prefix)}; echo done")
    child = await number_in(tmp_path / "pid")
    assert result.success
    assert result.content.startswith(f"done\n[Left running in the background: {child} (sleep 1000). ")
    assert is_alive(child)

    assert await close(session) == f"Ended 1 process left running by commands: {child} (sleep 1000)."

    assert not is_alive(child)


async def test_what_ignores_sigterm_is_killed(session: Session, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    await session.bash(f"sh -c \"trap '' TERM; echo $$ > {pid}; while :; do sleep 0.01; done\" {QUIET} &")
    child = await number_in(pid)
    await close(session)
    assert not is_alive(child)


async def test_what_an_orphan_starts_later_ends_too(session: Session, tmp_path: Path) -> None:
    gate, pid = tmp_path / "gate", tmp_path / "pid"
    script = f"while ! [ -e {gate} ]; do sleep 0.01; done; setsid sh -c 'echo $$ > {pid}; exec sleep 1000' & sleep 1000"
    await session.bash(f"setsid sh -c {shlex.quote(script)} {QUIET} &")
    gate.touch()
    child = await number_in(pid)
    await close(session)
    assert not is_alive(child)


async def test_only_a_few_are_named(session: Session) -> None:
    result = await session.bash(f"for i in 1 2 3 4 5; do sleep 1000 {QUIET} & done")
    assert result.content.count("(sleep 1000)") == 3
    assert " and 2 more. " in result.content
    assert (await close(session) or "").startswith("Ended 5 processes left running by commands: ")


async def test_a_process_that_is_about_to_end_is_not_left_behind(session: Session) -> None:
    result = await session.bash("echo hi > >(cat)")
    assert "Left running" not in result.content
    assert await close(session) == ""


async def test_the_agents_of_the_login_and_what_runs_in_them_are_kept_and_told(
    session: Session, tmp_path: Path
) -> None:
    """A terminal multiplexer that the model has started is full of the user's work by the evening."""
    pid, inner = tmp_path / "pid", tmp_path / "inner"
    program = tmp_path / "tmux"
    program.symlink_to(shutil.which("bash") or "/bin/bash")
    script = f"setsid sleep 1000 & echo $! > {inner}; echo $$ > {pid}; wait; wait"
    result = await session.bash(f"setsid {program} -c {shlex.quote(script)} {QUIET} & while ! [ -s {pid} ]; do :; done")
    kept, below = await number_in(pid), await number_in(inner)
    try:
        assert result.content == "(no output)"
        told = await close(session)
        assert told is not None
        assert told.startswith(f"Still running, since it may be in use outside this session: {kept} ({program} -c ")
        assert (is_alive(kept), is_alive(below)) == (True, True)
    finally:
        os.kill(below, signal.SIGKILL)
        os.kill(kept, signal.SIGKILL)


@rows(
    ("command", "kept"),
    [
        ("tmux new-session -d", True),
        ("tmux: server", True),
        ("/usr/bin/gpg-agent --homedir /home/ada/.gnupg --daemon", True),
        ("git gc --auto --quiet", True),
        ("/usr/bin/git --git-dir=/x maintenance run --auto", True),
        ("/opt/jdk/bin/java -Xmx512m org.gradle.launcher.daemon.bootstrap.GradleDaemon 8.5", True),
        ("/usr/lib/firefox/firefox report.html", True),
        ("/opt/google/chrome/chrome --headless=new --no-sandbox", False),
        ("/opt/google/chrome/chrome --type=renderer", False),
        ("java -jar server.jar", False),
        ("git fetch", False),
        ("code-server", False),
        ("screenshot --forever", False),
        ("python -m http.server", False),
        ("", False),
    ],
)
def test_which_programs_serve_more_than_one_session(command: str, kept: bool) -> None:
    assert bool(_USERS_OWN.fullmatch(command)) is kept


async def test_what_is_started_without_the_number_of_its_command_is_kept(session: Session, tmp_path: Path) -> None:
    """The way out that the documentation names."""
    result = await session.bash(starts(tmp_path / "pid", f"env -u {MARK} setsid"))
    child = await number_in(tmp_path / "pid")
    try:
        assert result.content == "(no output)"
        assert await close(session) == ""
        assert is_alive(child)
    finally:
        os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("how", ["timeout", "cancellation"])
async def test_a_command_that_is_cut_short_leaves_nothing_behind(session: Session, tmp_path: Path, how: str) -> None:
    pid = tmp_path / "pid"
    seconds = 2000 if how == "timeout" else 600_000
    call = asyncio.create_task(session.bash(f"{starts(pid, 'setsid')}; sleep 1000", timeout=seconds))
    child = await number_in(pid)
    if how == "cancellation":
        call.cancel()
    await asyncio.wait([call])
    assert not is_alive(child)


async def test_a_background_command_that_ends_names_what_it_leaves(session: Session, tmp_path: Path) -> None:
    await session.bash(starts(tmp_path / "pid", "setsid"), run_in_background=True)
    child = await number_in(tmp_path / "pid")
    content = ""
    while "ended" not in content:
        content = (await session.call("BashOutput", bash_id="bash_1", wait_ms=20_000)).content
    assert content.endswith(f"[bash_1: ended with exit code 0; it left running: {child} (sleep 1000)]")
    await close(session)
    assert not is_alive(child)


async def test_kill_shell_also_ends_what_has_left_the_group(session: Session, tmp_path: Path) -> None:
    await session.bash(f"{starts(tmp_path / 'pid', 'setsid')}; sleep 1000", run_in_background=True)
    child = await number_in(tmp_path / "pid")
    await session.call("KillShell", shell_id="bash_1")
    assert not is_alive(child)


async def test_what_runs_in_the_background_is_not_taken_for_the_orphan_of_another_command(
    session: Session, tmp_path: Path
) -> None:
    await session.bash(f"{starts(tmp_path / 'pid', 'setsid')}; sleep 1000", run_in_background=True)
    child = await number_in(tmp_path / "pid")
    assert (await session.bash("echo hi")).content == "hi"
    await session.call("KillShell", shell_id="bash_1")
    assert not is_alive(child)


async def test_a_session_without_commands_looks_at_nothing() -> None:
    assert await Bash(Shells()).close() == ""
