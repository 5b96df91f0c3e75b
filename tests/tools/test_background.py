"""Background commands: Bash starts them, BashOutput reads, KillShell ends."""

import asyncio
import stat
from pathlib import Path

import pytest

from tests.tools.processes import PROC, is_alive
from tests.tools.session import Session
from tests.waiting import number_in, until
from wave_agent.messages import HARNESS, Block, Message, TextBlock, ToolBlock
from wave_agent.tools.base import ToolInputError
from wave_agent.tools.bash import Bash
from wave_agent.tools.registry import builtin_tools
from wave_agent.tools.shells import EarlierShell, Shell, directory_left, earlier_shells


def shells(session: Session) -> list[Shell]:
    bash = session.tools[0]
    assert isinstance(bash, Bash)
    return list(bash._shells._shells.values())


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


async def test_a_line_that_is_written_over_is_seen_as_it_is_now(session: Session, tmp_path: Path) -> None:
    gates = [tmp_path / str(number) for number in range(4)]
    wait = "; ".join(["while ! [ -e {} ]; do sleep 0.01; done"])
    steps = ["printf '10%%'", "printf '\\r50%%'", "printf ' of all'", "printf '\\r100%%\\033[K\\nend\\n'"]
    await session.bash(
        "; ".join(f"{wait.format(gate)}; {step}" for gate, step in zip(gates, steps, strict=True)),
        run_in_background=True,
    )
    seen: list[str] = []
    for gate in gates:
        gate.touch()
        result = await session.call("BashOutput", bash_id="bash_1", wait_ms=20_000)
        seen.append(result.response["output"])
    assert seen == ["10%", "50%", " of all", "100%\nend\n"]
    (file,) = session.outputs.iterdir()
    assert file.read_text() == "100%\nend\n"


async def test_a_look_can_wait_for_output(session: Session, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    await session.bash(f"while ! [ -e {gate} ]; do sleep 0.01; done; echo ready; sleep 1000", run_in_background=True)
    look = asyncio.create_task(session.call("BashOutput", bash_id="bash_1", wait_ms=10**9))
    await until(lambda: any(shell._listeners for shell in shells(session)))
    gate.touch()
    assert (await look).content == "ready\n[bash_1: running]"
    assert not any(shell._listeners for shell in shells(session))


async def test_a_look_that_waits_ends_with_the_command(session: Session, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    await session.bash(f"while ! [ -e {gate} ]; do sleep 0.01; done; exit 3", run_in_background=True)
    look = asyncio.create_task(session.call("BashOutput", bash_id="bash_1", wait_ms=60_000))
    await until(lambda: any(shell._listeners for shell in shells(session)))
    gate.touch()
    assert (await look).content == "(no new output)\n[bash_1: ended with exit code 3]"


async def test_a_look_waits_no_longer_than_it_was_told(session: Session) -> None:
    await session.bash("sleep 1000", run_in_background=True)
    assert (await session.call("BashOutput", bash_id="bash_1", wait_ms=1)).content.endswith("[bash_1: running]")


async def test_a_look_that_waits_can_be_interrupted_and_takes_nothing(session: Session, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    await session.bash(f"while ! [ -e {gate} ]; do sleep 0.01; done; echo ready; sleep 1000", run_in_background=True)
    look = asyncio.create_task(session.call("BashOutput", bash_id="bash_1", wait_ms=600_000))
    await until(lambda: any(shell._listeners for shell in shells(session)))
    look.cancel()
    with pytest.raises(asyncio.CancelledError):
        await look
    gate.touch()
    assert (await session.call("BashOutput", bash_id="bash_1", wait_ms=20_000)).content.startswith("ready\n")


class TestReports:
    async def test_an_end_is_reported_once(self, session: Session) -> None:
        await session.bash("echo hi;  exit 4", run_in_background=True)
        await session.bash("sleep 1000", run_in_background=True)
        reports: list[str] = []
        while not reports:
            reports = list(session.tools[0].reports())
            await asyncio.sleep(0)
        assert reports == [
            "The background command bash_1 (echo hi; exit 4) ended with exit code 4. Read its output with BashOutput."
        ]
        assert session.tools[0].reports() == []

    async def test_an_end_that_was_looked_at_is_not_reported(self, session: Session) -> None:
        await session.bash("true", run_in_background=True)
        await output(session, "ended")
        assert session.tools[0].reports() == []

    async def test_a_command_that_was_killed_is_not_reported(self, session: Session) -> None:
        await session.bash("sleep 1000", run_in_background=True)
        await session.call("KillShell", shell_id="bash_1")
        assert session.tools[0].reports() == []


def conversation(*blocks: Block) -> list[Message]:
    return [Message("assistant", blocks)]


def begun(name: str, command: str, output: str = "/outputs/1.txt") -> ToolBlock:
    text = f"Started in the background as {name}: BashOutput tells what it prints, KillShell ends it."
    parameters = {"command": command, "run_in_background": True}
    return ToolBlock(name, "Bash", parameters, f"[The note]\n{text} All its output goes to {output}", success=True)


class TestAfterAResume:
    async def test_what_the_model_reads_at_the_start_is_found_again(self, session: Session) -> None:
        result = await session.bash("sleep 1000", run_in_background=True)
        (file,) = session.outputs.iterdir()
        block = ToolBlock("id", "Bash", {"command": "sleep 1000", "run_in_background": True}, result.content)
        assert earlier_shells(conversation(block)) == (EarlierShell("bash_1", "sleep 1000", str(file)),)

    @pytest.mark.parametrize(
        ("block", "known"),
        [
            (ToolBlock("id", "BashOutput", {}, "hi\n[bash_1: running]"), False),
            (ToolBlock("id", "BashOutput", {}, "hi\n[bash_1: ended with exit code 0]"), True),
            (ToolBlock("id", "BashOutput", {}, "hi\n[bash_10: ended with exit code 0]"), False),
            (ToolBlock("id", "KillShell", {}, "bash_1 and everything it started were ended."), True),
            (TextBlock("The background command bash_1 (x) ended with exit code 1.", "hook", HARNESS), True),
            (TextBlock("The background command bash_1 (x) ended with exit code 1.", "user"), False),
            (ToolBlock("id", "Bash", {}, None), False),
        ],
    )
    def test_whether_the_model_knows_the_end(self, block: Block, known: bool) -> None:
        (shell,) = earlier_shells(conversation(begun("bash_1", "npm run dev"), block))
        assert shell.end_is_known is known

    @pytest.mark.parametrize(("tool", "field"), [("BashOutput", "bash_id"), ("KillShell", "shell_id")])
    async def test_a_command_from_before_is_said_to_be_gone(self, session: Session, tool: str, field: str) -> None:
        session.tools = builtin_tools(earlier=earlier_shells(conversation(begun("bash_2", "npm run\n dev"))))
        with pytest.raises(
            ToolInputError, match=r"bash_2 \(npm run dev\) ended with the earlier session.*/outputs/1\.txt"
        ):
            await session.call(tool, **{field: "bash_2"})
        assert session.tools[0].reports() == [
            "The background command bash_2 (npm run dev) ended with the earlier session."
        ]
        assert session.tools[0].reports() == []

    def test_where_commands_started_before(self) -> None:
        moved = ToolBlock("id", "Bash", {}, "out\n[Commands now start in /a.b/c d. Relative paths …]")
        report = "The session was resumed: commands start in the project again, no longer in /a.b/c d."
        assert directory_left(conversation(moved)) == "/a.b/c d"
        assert directory_left(conversation(moved, TextBlock("Commands start in /tmp.", "hook", HARNESS))) == "/tmp"
        back = ToolBlock("id", "Bash", {}, "out\n[Commands now start in /a.b again]")
        assert directory_left(conversation(moved, back)) is None
        facts = Message("user", (TextBlock("Commands start in /var.", "model"),))
        assert directory_left([*conversation(moved), facts]) == "/var"
        assert directory_left(conversation(TextBlock("Commands start in /tmp.", "user"))) is None
        assert directory_left(conversation(ToolBlock("id", "Read", {}, moved.result))) is None
        bash = builtin_tools(left="/a.b/c d")[0]
        assert (bash.reports(), bash.reports()) == ([report], [])
        told = TextBlock(report, "hook", HARNESS)
        assert directory_left(conversation(moved, told)) is None
        assert directory_left(conversation(moved, told, moved)) == "/a.b/c d"

    async def test_a_new_command_does_not_get_the_name_of_an_old_one(self, session: Session) -> None:
        session.tools = builtin_tools(earlier=earlier_shells(conversation(begun("bash_2", "npm run dev"))))
        result = await session.bash("sleep 1000", run_in_background=True)
        assert result.response["backgroundTaskId"] == "bash_3"


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


async def test_a_look_waits_for_a_pause_and_not_for_each_line(session: Session) -> None:
    await session.bash("for i in 1 2 3 4 5; do echo $i; sleep 0.1; done; exec sleep 600", run_in_background=True)
    result = await session.call("BashOutput", bash_id="bash_1", wait_ms=60_000)
    assert result.content == "1\n2\n3\n4\n5\n[bash_1: running]"


async def test_what_runs_is_told_when_the_conversation_is_summarised(session: Session) -> None:
    (session.project / "sub").mkdir()
    bash = session.tools[0]
    assert bash.standing() == ()
    await session.bash("cd sub")
    await session.bash("exec sleep 600", run_in_background=True)
    assert bash.standing() == (
        f"Commands start in {session.project}/sub.",
        "The background command bash_1 (exec sleep 600) is still running.",
    )


async def test_where_a_hook_may_redact_it_the_whole_output_is_kept_nowhere(session: Session) -> None:
    session.hold = True
    started = await session.bash("echo hunter2; exec sleep 600", run_in_background=True)
    assert "All its output goes to" not in started.content
    assert (await session.call("BashOutput", bash_id="bash_1", wait_ms=60_000)).content.startswith("hunter2")
    assert not [file for file in session.context.outputs.rglob("*") if file.is_file()]
