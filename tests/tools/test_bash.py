"""Bash's promises, each kept with real processes."""

import asyncio
import shlex
import stat
import sys
from pathlib import Path

import pytest

from tests.tools.session import Session
from tests.waiting import until
from wave_agent.tools.base import ToolInputError
from wave_agent.tools.bash import Bash
from wave_agent.tools.shells import Shells


class TestOneCommand:
    async def test_its_output_is_the_result(self, session: Session) -> None:
        result = await session.bash("echo hello")
        assert (result.content, result.success, result.ran) == ("hello", True, True)
        assert result.response == {
            "stdout": "hello\n",
            "stderr": "",
            "exit_code": 0,
            "interrupted": False,
            "output": "hello\n",
        }

    async def test_the_two_streams_are_kept_apart_for_hooks_and_together_for_the_model(self, session: Session) -> None:
        result = await session.bash("echo out; echo err >&2")
        assert (result.response["stdout"], result.response["stderr"]) == ("out\n", "err\n")
        assert sorted(result.content.split("\n")) == ["err", "out"]

    async def test_an_exit_code_is_told_and_is_a_failure_that_has_run(self, session: Session) -> None:
        result = await session.bash("echo before; exit 7")
        assert result.content == "before\n[exit code 7]"
        assert (result.success, result.ran, result.response["exit_code"]) == (False, True, 7)

    async def test_death_by_a_signal_has_the_exit_code_that_shells_give_it(self, session: Session) -> None:
        result = await session.bash("kill -KILL $$")
        assert result.response["exit_code"] == 137
        assert not result.success

    async def test_no_output_is_said(self, session: Session) -> None:
        assert (await session.bash("true")).content == "(no output)"

    async def test_stdin_is_empty(self, session: Session) -> None:
        assert (await session.bash("cat; echo end")).content == "end"

    async def test_the_environment_is_the_one_that_is_given(self, session: Session) -> None:
        assert (await session.bash("echo $HOME")).content == session.environment["HOME"]

    async def test_a_syntax_error_shows_the_command_and_nothing_of_ours(self, session: Session) -> None:
        result = await session.bash("if then")
        assert not result.success
        assert "trap" not in result.content
        assert "then" in result.content

    async def test_the_command_sees_no_arguments(self, session: Session) -> None:
        assert (await session.bash('echo "$#:$1"')).content == "0:"

    async def test_it_leads_a_session_of_its_own(self, session: Session) -> None:
        program = "import os; print(os.getppid(), os.getpgrp(), os.getsid(0))"
        pid, group, number = (await session.bash(shlex.join([sys.executable, "-c", program]))).content.split()
        assert pid == group == number

    async def test_bytes_that_are_no_text_are_replaced(self, session: Session) -> None:
        result = await session.bash(r"printf 'a\377b\342\202'")
        assert result.response["stdout"] == "a\ufffdb\ufffd"

    async def test_a_character_that_comes_in_two_pieces_is_whole(self, session: Session, tmp_path: Path) -> None:
        gate = tmp_path / "gate"
        call = asyncio.create_task(
            session.bash(rf"printf 'x\342'; while ! [ -e {gate} ]; do sleep 0.01; done; printf '\202\254'")
        )
        await until(lambda: session.emitted == ["x"])
        gate.touch()
        assert (await call).content == "x€"

    async def test_terminal_escapes_do_not_reach_the_model(self, session: Session) -> None:
        assert (await session.bash(r"printf '\033[31mred\033[0m'")).content == "red"

    async def test_sh_will_do_where_there_is_no_bash(self, session: Session) -> None:
        session.tools = (Bash(Shells(), shell="/bin/sh"),)
        assert (await session.bash("cd /; echo $0")).content == (
            f"sh\n[Commands now start in /. Relative paths of other tools still start in {session.project}]"
        )
        assert (await session.bash("pwd; exit 3")).content == "/\n[exit code 3]"


class TestInput:
    @pytest.mark.parametrize(
        ("tool_input", "named"),
        [
            ({}, "command"),
            ({"command": 3}, "command"),
            ({"command": ""}, "command"),
            ({"command": "true", "timeout": 0}, "timeout"),
            ({"command": "true", "timeout": "soon"}, "timeout"),
            ({"command": "true", "cwd": "/"}, "cwd"),
        ],
    )
    async def test_what_does_not_fit_is_named(
        self, session: Session, tool_input: dict[str, object], named: str
    ) -> None:
        with pytest.raises(ToolInputError, match=named):
            await session.call("Bash", **tool_input)

    async def test_a_command_that_cannot_be_passed_on_has_not_run(self, session: Session) -> None:
        result = await session.bash("echo \0")
        assert (result.ran, result.success) == (False, False)
        assert "null" in result.content

    async def test_a_command_that_is_too_long_for_the_system_is_told_what_to_do(self, session: Session) -> None:
        result = await session.bash(f": {'x' * (1 << 22)}")
        assert not result.ran
        assert "file" in result.content


class TestWorkingDirectory:
    async def test_it_begins_in_the_project(self, session: Session) -> None:
        assert (await session.bash("pwd")).content == str(session.project)

    async def test_cd_persists_and_is_told(self, session: Session) -> None:
        (session.project / "a b").mkdir()
        result = await session.bash("cd 'a b'")
        assert result.content == (
            f"(no output)\n[Commands now start in {session.project}/a b. "
            f"Relative paths of other tools still start in {session.project}]"
        )
        assert (await session.bash("pwd")).content == f"{session.project}/a b"
        back = await session.bash("cd ..")
        assert back.content == f"(no output)\n[Commands now start in {session.project} again]"

    @pytest.mark.parametrize("end", ["exit 3", "false", "set -e; false; true", "set -C; exit 1"])
    async def test_cd_persists_however_the_command_ends(self, session: Session, end: str) -> None:
        await session.bash(f"cd /; {end}")
        assert (await session.bash("pwd")).content == "/"

    async def test_cd_in_a_subshell_does_not_persist(self, session: Session) -> None:
        await session.bash("(cd /); x=$(cd /; pwd)")
        assert (await session.bash("pwd")).content == str(session.project)

    async def test_a_name_with_any_character_persists(self, session: Session) -> None:
        name = "line\nbreak 'quote' $x"
        (session.project / name).mkdir()
        await session.bash('cd "$(ls -d line*)"')
        assert (await session.bash('basename "$PWD"')).content == name

    async def test_a_directory_that_vanished_is_told_and_the_project_takes_its_place(self, session: Session) -> None:
        (session.project / "gone").mkdir()
        await session.bash("cd gone")
        (session.project / "gone").rmdir()
        result = await session.bash("pwd")
        lines = result.content.split("\n")
        assert lines[0] == str(session.project)
        assert f"{session.project}/gone no longer exists" in lines[1]
        assert (await session.bash("pwd")).content == str(session.project)

    async def test_a_project_that_vanished_is_an_error(self, session: Session) -> None:
        session.project.rmdir()
        result = await session.bash("pwd")
        assert not result.ran
        assert "does not exist" in result.content

    async def test_nothing_is_left_behind_in_the_outputs(self, session: Session) -> None:
        await session.bash("cd /; echo hi")
        assert list(session.outputs.iterdir()) == []


class TestLongOutput:
    async def test_a_progress_bar_is_seen_in_its_last_state(self, session: Session) -> None:
        result = await session.bash(
            r"for i in $(seq 1 20000); do printf '\r%d of 20000' $i; done; echo; printf 'a\rb' >&2"
        )
        assert result.content == "20000 of 20000\nb"
        assert (result.response["stdout"], result.response["stderr"]) == ("20000 of 20000\n", "b")
        assert result.response["output"] == "20000 of 20000\nb"
        assert list(session.outputs.iterdir()) == []
        assert "1 of 20000" in "".join(session.emitted), "a front end is given what was printed"

    async def test_the_file_with_the_whole_output_has_the_last_state_of_each_line_too(self, session: Session) -> None:
        await session.bash(r"for i in $(seq 1 9000); do printf '10%%\r100%%\n'; done")
        (file,) = session.outputs.iterdir()
        assert file.read_text() == "100%\n" * 9000

    async def test_it_is_streamed_as_it_comes(self, session: Session, tmp_path: Path) -> None:
        gate = tmp_path / "gate"
        call = asyncio.create_task(session.bash(f"echo one; while ! [ -e {gate} ]; do sleep 0.01; done; echo two"))
        await until(lambda: "".join(session.emitted) == "one\n")
        gate.touch()
        await call
        assert "".join(session.emitted) == "one\ntwo\n"

    async def test_head_and_tail_are_kept_and_the_whole_is_in_a_private_file(self, session: Session) -> None:
        result = await session.bash("seq 1 20000")
        whole = "".join(f"{number}\n" for number in range(1, 20001))
        (file,) = session.outputs.iterdir()
        assert file.read_text() == whole
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(session.outputs.stat().st_mode) == 0o700
        head, note, tail = result.content.partition("\n[… ")
        assert note
        said, _, tail = tail.partition("\n")
        left_out = len(whole) - len(head) - len(tail) - 1  # the last newline is not shown
        reading = "Grep it, or Read it with offset and limit"
        assert said == f"{left_out:,} characters omitted here; the whole is in {file}: {reading} …]"
        assert whole.startswith(head)
        assert whole.rstrip("\n").endswith(tail)
        assert 29_000 < len(result.content) <= 30_000

    async def test_what_just_fits_is_not_cut(self, session: Session) -> None:
        result = await session.bash("head -c 30000 /dev/zero | tr '\\0' x")
        assert result.content == "x" * 30_000
        assert list(session.outputs.iterdir()) == []

    async def test_hundreds_of_megabytes_are_read_without_being_kept(self, session: Session) -> None:
        result = await session.bash("head -c 200000000 /dev/zero | tr '\\0' x")
        (file,) = session.outputs.iterdir()
        assert result.success
        assert file.stat().st_size == 64 << 20
        assert "its start" in result.content
        assert len("".join(session.emitted)) <= 200_000_000

    async def test_outputs_that_cannot_be_written_cost_the_copy_only(self, session: Session) -> None:
        session.outputs.mkdir()
        result = await session.bash(f"rmdir {session.outputs}; touch {session.outputs}; seq 1 20000")
        assert result.success
        assert "characters omitted here …]" in result.content
        assert result.response["stderr"] == ""
        assert (await session.bash("echo hi")).content == "hi"
