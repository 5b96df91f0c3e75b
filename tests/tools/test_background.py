"""Background commands: Bash starts them, BashOutput reads, KillShell ends."""

import asyncio
import stat
from pathlib import Path

import pytest

from tests.tools.processes import PROC, is_alive
from tests.tools.session import Session
from tests.waiting import number_in, until
from wave_agent.tools.base import ToolInputError


async def output(session: Session, awaited: str) -> str:
    """The first look at bash_1 that shows what is awaited."""
    content = ""
    while awaited not in content:
        content = (await session.call("BashOutput", bash_id="bash_1")).content
        await asyncio.sleep(0)
    return content


async def test_an_id_comes_at_once_and_new_output_with_each_look(session: Session, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    wait = "while ! [ -e {} ]; do sleep 0.01; done"
    started = await session.bash(
        f"echo one; {wait.format(first)}; echo two; {wait.format(second)}; exit 4", run_in_background=True
    )
    assert started.response["backgroundTaskId"] == "bash_1"
    assert "bash_1" in started.content
    assert await output(session, "one") == "one\n[bash_1: running]"
    assert (await session.call("BashOutput", bash_id="bash_1")).content == "(no new output)\n[bash_1: running]"
    first.touch()
    assert await output(session, "two") == "two\n[bash_1: running]"
    second.touch()
    assert await output(session, "ended") == "(no new output)\n[bash_1: ended with exit code 4]"
    (file,) = session.outputs.iterdir()
    assert str(file) in started.content
    assert file.read_text() == "one\ntwo\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_its_output_is_not_emitted(session: Session) -> None:
    await session.bash("echo hi", run_in_background=True)
    await output(session, "ended")
    assert session.emitted == []


async def test_long_output_is_cut_per_look(session: Session) -> None:
    await session.bash("seq 1 20000", run_in_background=True)
    (file,) = session.outputs.iterdir()
    await until(lambda: file.read_text().endswith("\n20000\n"))
    content = (await session.call("BashOutput", bash_id="bash_1")).content
    assert f"the whole is in {file}: Grep it, or Read it with offset and limit …]" in content
    assert len(content) <= 30_000


async def test_it_runs_in_the_working_directory_and_does_not_change_it(session: Session) -> None:
    await session.bash("cd /")
    await session.bash("pwd; cd /tmp", run_in_background=True)
    assert await output(session, "/") in ("/\n[bash_1: running]", "/\n[bash_1: ended with exit code 0]")
    assert (await session.bash("pwd")).content == "/"


async def test_kill_shell_ends_the_group(session: Session, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    await session.bash(f"sleep 1000 & echo $! > {pid}; wait", run_in_background=True)
    child = await number_in(pid)
    assert (await session.call("KillShell", shell_id="bash_1")).success
    assert not is_alive(child)
    assert (await session.call("BashOutput", bash_id="bash_1")).content.endswith("[bash_1: killed]")
    assert "over already" in (await session.call("KillShell", shell_id="bash_1")).content


@pytest.mark.skipif(not PROC, reason="a group's members are found through /proc")
async def test_it_runs_as_long_as_anything_in_its_group(session: Session, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    await session.bash(f"sleep 1000 >/dev/null 2>&1 & echo $! > {pid}", run_in_background=True)
    child = await number_in(pid)
    assert "running" in (await session.call("BashOutput", bash_id="bash_1")).content
    await session.call("KillShell", shell_id="bash_1")
    assert not is_alive(child)


async def test_closing_the_session_ends_all_of_them(session: Session, tmp_path: Path) -> None:
    pids = [tmp_path / name for name in ("one", "two")]
    for pid in pids:
        await session.bash(f"echo $$ > {pid}; sleep 1000", run_in_background=True)
    children = [await number_in(pid) for pid in pids]
    await session.close()
    assert not any(is_alive(child) for child in children)


@pytest.mark.parametrize(("tool", "field"), [("BashOutput", "bash_id"), ("KillShell", "shell_id")])
async def test_an_unknown_id_is_told_which_there_are(session: Session, tool: str, field: str) -> None:
    with pytest.raises(ToolInputError, match="none was started"):
        await session.call(tool, **{field: "bash_9"})
    await session.bash("true", run_in_background=True)
    with pytest.raises(ToolInputError, match=r'did you mean "bash_1"'):
        await session.call(tool, **{field: "bash_9"})


async def test_no_more_than_a_bounded_number_runs_at_once(session: Session) -> None:
    for _ in range(32):
        await session.bash("sleep 1000", run_in_background=True)
    with pytest.raises(ToolInputError, match="KillShell"):
        await session.bash("sleep 1000", run_in_background=True)
