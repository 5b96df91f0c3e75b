"""Commands in a real sandbox: what they cannot do, and what stays as it is without one."""

import asyncio
import os
import shutil
import signal
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.sandboxes import ESCAPEE, Make, is_held, open_sandbox
from tests.waiting import until
from wave_agent.formats.strict_json import Document
from wave_agent.hooks.definitions import Layer
from wave_agent.permissions.sandbox import Sandbox
from wave_agent.settings.hook_entries import SettingsSource, load_hooks
from wave_agent.tools.base import ToolContext, ToolResult
from wave_agent.tools.registry import builtin_tools, find_tool


class TestWriting:
    async def test_the_project_and_added_directories_can_be_written(self, make: Make, tmp_path: Path) -> None:
        added = tmp_path / "added"
        added.mkdir()
        confined = make(directories=[added])
        result = await confined.bash(f"mkdir sub && echo 1 > sub/file && echo 2 > {added}/file")
        assert result.content == "(no output)"
        assert ((confined.project / "sub/file").read_text(), (added / "file").read_text()) == ("1\n", "2\n")

    async def test_nothing_else_can(self, make: Make, tmp_path: Path) -> None:
        confined, victim = make(), tmp_path / "victim"
        victim.write_text("as it was")
        result = await confined.bash(f"echo gotcha > {victim}; echo gotcha > {tmp_path}/new; touch /usr/new")
        assert not result.success
        assert "Read-only file system" in result.content
        assert victim.read_text() == "as it was"
        assert not (tmp_path / "new").exists()
        assert not Path("/usr/new").exists()

    async def test_a_link_in_the_project_leads_nowhere_else(self, make: Make, tmp_path: Path) -> None:
        confined, victim = make(), tmp_path / "victim"
        victim.write_text("as it was")
        (confined.project / "link").symlink_to(victim)
        (confined.project / "etc").symlink_to("/etc")
        result = await confined.bash("echo gotcha > link; echo gotcha > etc/gotcha")
        assert not result.success
        assert victim.read_text() == "as it was"
        assert not Path("/etc/gotcha").exists()

    async def test_tmp_is_private_to_the_session_and_lasts_as_long(self, make: Make) -> None:
        confined, name = make(), f"wave-test-{os.urandom(4).hex()}"
        result = await confined.bash(f"echo hello > /tmp/{name}; echo > $(mktemp); ls /tmp | wc -l")
        assert result.content == "3"  # with the directory that leads to the project
        shown = await confined.bash(f"cat /tmp/{name} /var/tmp/{name}; echo $TMPDIR")
        assert shown.content == "hello\nhello\n/tmp"
        assert not Path(f"/tmp/{name}").exists()
        (place,) = confined.outputs.glob(f"tmp-*/{name}")
        assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
        await confined.close()
        assert not place.parent.exists()

    async def test_tmp_itself_can_be_added(self, make: Make, tmp_path: Path) -> None:
        confined = make(directories=[Path("/tmp")])
        note = Path(f"/tmp/wave-test-{os.urandom(4).hex()}")
        try:
            await confined.bash(f"echo shared > {note}")
            assert note.read_text() == "shared\n"
        finally:
            note.unlink(missing_ok=True)

    async def test_a_link_in_the_place_of_an_added_directory_is_not_followed(self, make: Make, tmp_path: Path) -> None:
        """Nor can one get there while a directory around it can be written as well."""
        around, added = tmp_path / "around", tmp_path / "around" / "deep" / "added"
        added.mkdir(parents=True)
        (tmp_path / "victims").mkdir()
        confined = make(directories=[around, added])
        await confined.bash(
            f"cd {around}; rm -rf deep/added; mv deep away; mkdir deep; ln -s {tmp_path}/victims deep/added; >ok"
        )
        assert (around / "ok").exists()
        assert added.is_dir()
        assert not added.is_symlink()
        shutil.rmtree(added)
        added.symlink_to(tmp_path / "victims")
        await confined.bash(f"echo gotcha > {added}/file; echo gotcha > {tmp_path}/victims/file")
        assert os.listdir(tmp_path / "victims") == []

    async def test_nothing_that_is_mounted_comes_from_where_a_command_can_write(self, make: Make) -> None:
        confined = make()
        confined.environment["TMPDIR"] = str(confined.project)
        await confined.bash("true")
        assert sorted(os.listdir(confined.project)) == [".claude", ".codex", ".wave"]

    async def test_the_state_of_the_agent_is_neither_written_nor_read(self, make: Make) -> None:
        confined = make()
        secret = confined.state / "projects" / "other" / "session.jsonl"
        secret.parent.mkdir()
        secret.write_text("private")
        result = await confined.bash(f"cat {secret}; echo x >> {secret}; echo {{}} > {confined.state}/trust.json")
        assert not result.success
        assert "private" not in result.content
        assert secret.read_text() == "private"
        assert not (confined.state / "trust.json").exists()

    @pytest.mark.parametrize("place", ["project", "project/deep"])
    async def test_also_when_it_lies_in_the_project(self, tmp_path: Path, place: str) -> None:
        (tmp_path / place).mkdir(parents=True)
        state = tmp_path / place / "state"
        state.mkdir()
        (state / "trust.json").write_text("{}")
        project = tmp_path / "project"
        sandbox = open_sandbox(project, state)
        confined = make_around(sandbox, project, state)
        await confined(f"mv {state} {state}2; rm -rf {state}; echo gotcha > {state}/trust.json; touch ok")
        sandbox.close()
        assert (state / "trust.json").read_text() == "{}"
        assert (project / "ok").exists()

    async def test_the_whole_of_a_long_output_can_be_read_where_it_is_said_to_be(self, make: Make) -> None:
        confined = make()
        await confined.bash("seq 1 20000")
        (file,) = confined.outputs.glob("*.txt")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        result = await confined.bash(f"tail -n 1 {file}; echo more >> {file}")
        assert result.content.startswith("20000\n")
        assert not result.success


def make_around(sandbox: Sandbox, project: Path, state: Path) -> Callable[[str], Any]:
    async def bash(command: str) -> ToolResult:
        tool = find_tool("Bash", builtin_tools())
        context = ToolContext(
            project_dir=project, environment=os.environ, outputs=state / "projects/this/session", sandbox=sandbox
        )
        return await tool.run(tool.parse({"command": command}), context)

    return bash


class TestProtectedPaths:
    @pytest.mark.parametrize(
        "path", [".git/config", ".git/hooks/pre-commit", ".wave/settings.json", ".claude/settings.local.json"]
    )
    @pytest.mark.parametrize(
        "attack",
        [
            "echo gotcha > {path}",
            "rm -f {path}; echo gotcha > {path}",
            "echo gotcha > other; mv -f other {path}",
            "echo gotcha > other; ln -f other {path}",
            "mv {parent} away; mkdir -p {parent}; echo gotcha > {path}",
            "rm -rf {top}; mkdir -p {parent}; echo gotcha > {path}",
            "mv {top} away; mkdir -p {parent}; echo gotcha > {path}",
            "chmod u+w {path}; echo gotcha > {path}",
            "mount -o remount,bind,rw {path}; umount -l {path}; echo gotcha > {path}",
            "unshare -Urm sh -c 'mount -o remount,bind,rw {path}; umount -l {path}; echo gotcha > {path}'",
        ],
    )
    async def test_they_are_read_only_whatever_is_tried(self, make: Make, path: str, attack: str) -> None:
        confined = make()
        file = confined.project / path
        file.parent.mkdir(parents=True)
        file.write_text("as it was")
        words = {"path": path, "parent": os.path.dirname(path), "top": path.split("/", maxsplit=1)[0]}
        await confined.bash(attack.format(**words))
        assert file.read_text() == "as it was"

    @pytest.mark.parametrize("name", ["guard.sh", "scripts/guard.sh", ".wave/hooks/guard.sh"])
    async def test_scripts_of_hooks_are_too(self, make: Make, tmp_path: Path, name: str) -> None:
        script = tmp_path / "project" / name
        script.parent.mkdir(parents=True)
        script.write_text("exit 2")
        settings = {"hooks": {"Stop": [{"hooks": [{"command": f"$WAVE_PROJECT_DIR/{name}"}]}]}}
        hooks = load_hooks([SettingsSource(Layer.PROJECT, "test", Document(settings, {}))], strict=False).hooks
        confined = make(hooks=hooks)
        top = name.split("/", maxsplit=1)[0]
        await confined.bash(f"echo exit 0 > {name}; mv {top} away; mkdir {top}; echo exit 0 > {name}; touch done")
        assert script.read_text() == "exit 2"
        assert (confined.project / "done").exists()

    @pytest.mark.parametrize("path", [".wave/settings.json", ".claude/settings.json", ".codex/hooks.json"])
    async def test_settings_that_do_not_exist_cannot_be_made(self, make: Make, path: str) -> None:
        confined = make()
        result = await confined.bash(f"mkdir -p {os.path.dirname(path)}; echo '{{}}' > {path}; touch done")
        assert "Read-only file system" in result.content
        assert not (confined.project / path).exists()
        await confined.close()
        assert os.listdir(confined.project) == ["done"]

    async def test_nor_can_hooks_of_a_repository_that_has_none(self, make: Make) -> None:
        confined = make()
        (confined.project / ".git").mkdir()
        await confined.bash("mkdir -p .git/hooks; echo gotcha > .git/hooks/pre-commit; echo ref > .git/HEAD")
        assert (confined.project / ".git" / "HEAD").exists()
        await confined.close()
        assert os.listdir(confined.project / ".git") == ["HEAD"]

    async def test_a_repository_that_a_command_makes_is_moved_away_and_that_is_an_error(self, make: Make) -> None:
        confined = make()
        result = await confined.bash("mkdir -p .git/hooks && echo gotcha > .git/hooks/post-checkout")
        assert not result.success
        assert not (confined.project / ".git").exists()
        (moved,) = confined.outputs.glob("moved-*")
        assert f"{confined.project}/.git is protected" in result.content
        assert str(moved) in result.content
        assert (moved / "hooks" / "post-checkout").read_text() == "gotcha\n"

    async def test_the_file_of_a_worktree_cannot_become_a_repository(self, make: Make) -> None:
        confined = make()
        (confined.project / ".git").write_text("gitdir: /nowhere")
        await confined.bash("rm -f .git; mkdir .git; echo gotcha > .git/config")
        assert (confined.project / ".git").read_text() == "gitdir: /nowhere"

    async def test_a_link_to_settings_is_put_back_when_it_was_replaced(self, make: Make, tmp_path: Path) -> None:
        confined, dots = make(), tmp_path / "dots"
        dots.mkdir()
        (dots / "settings.json").write_text("{}")
        (confined.project / ".wave").symlink_to(dots)
        result = await confined.bash("rm .wave; mkdir .wave; echo gotcha > .wave/settings.json")
        assert "is protected" in result.content
        assert not result.success
        assert (confined.project / ".wave").readlink() == dots
        assert (dots / "settings.json").read_text() == "{}"

    async def test_start_up_files_of_a_home_that_is_the_project(self, make: Make, tmp_path: Path) -> None:
        (tmp_path / "project").mkdir()
        (tmp_path / "project" / ".bashrc").write_text("as it was")
        confined = make(home=tmp_path / "project")
        await confined.bash("echo gotcha >> .bashrc; echo gotcha > .zshrc; mkdir -p .config/fish; touch done")
        assert (confined.project / ".bashrc").read_text() == "as it was"
        await confined.close()
        assert sorted(os.listdir(confined.project)) == [".bashrc", "done"]

    async def test_git_works_within_them(self, make: Make) -> None:
        if shutil.which("git") is None:
            pytest.skip("needs git")
        confined = make()
        process = await asyncio.create_subprocess_exec("git", "init", "-q", str(confined.project))
        assert await process.wait() == 0
        identity = "-c user.name=a -c user.email=a@b -c safe.directory='*'"
        result = await confined.bash(
            f"echo 1 > file && git add file && git {identity} commit -qm one && git log --oneline"
        )
        assert result.content.endswith(" one")
        assert not (await confined.bash("git config alias.x '!sh'")).success


class TestTheOutsideWorld:
    @pytest.mark.parametrize("network", [False, True])
    async def test_the_network_is_there_only_if_it_is_allowed(self, make: Make, network: bool) -> None:
        confined = make(network=network)
        with socket.create_server(("127.0.0.1", 0)) as server:
            result = await confined.bash(f"exec 3<> /dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo reached")
        assert ("reached" in result.content) is network

    async def test_sockets_in_the_file_system_are_out_of_reach(self, make: Make) -> None:
        confined = make()
        connect = "import socket; socket.socket(socket.AF_UNIX).connect('service'); print('reached')"
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(confined.project / "service"))
            server.listen()
            result = await confined.bash(f'/usr/bin/python3 -c "{connect}"')
        assert "reached" not in result.content
        assert not result.success

    async def test_services_in_run_are_not_seen_and_nothing_points_to_them(self, make: Make) -> None:
        confined = make()
        confined.environment["SSH_AUTH_SOCK"] = "/run/agent"
        assert (await confined.bash("ls -A /run; echo $SSH_AUTH_SOCK")).content == "(no output)"

    async def test_other_processes_are_not_seen(self, make: Make) -> None:
        result = await make().bash(f"ls /proc | grep -c '^[0-9]'; cat /proc/{os.getpid()}/environ; kill {os.getpid()}")
        assert int(result.content.split()[0]) < 10
        assert "No such" in result.content

    async def test_there_are_no_capabilities(self, make: Make) -> None:
        result = await make().bash("grep CapEff /proc/self/status; grep NoNewPrivs /proc/self/status")
        assert result.content.split() == ["CapEff:", "0" * 16, "NoNewPrivs:", "1"]


class TestWhatStaysAsItIs:
    async def test_streams_exit_codes_and_signals(self, make: Make) -> None:
        confined = make()
        result = await confined.bash("echo out; echo err >&2; exit 7")
        assert (result.response["stdout"], result.response["stderr"], result.response["exit_code"]) == (
            "out\n", "err\n", 7,
        )  # fmt: skip
        assert (await confined.bash("kill -KILL $$")).response["exit_code"] == 128 + signal.SIGKILL

    async def test_the_working_directory_persists_and_nothing_is_left_behind(self, make: Make) -> None:
        confined = make()
        (confined.project / "sub").mkdir()
        await confined.bash("cd sub")
        assert (await confined.bash("pwd; cd /usr; exit 3")).content.startswith(f"{confined.project}/sub\n")
        assert (await confined.bash("pwd")).content == "/usr"
        await confined.close()
        assert not confined.outputs.exists()

    async def test_a_command_can_clean_up_at_a_timeout(self, make: Make) -> None:
        confined = make()
        result = await confined.bash(
            "trap 'echo cleaned > trace; exit' TERM; while :; do sleep 0.01; done", timeout=300
        )
        assert "Timed out" in result.content
        assert (confined.project / "trace").read_text() == "cleaned\n"

    async def test_at_a_timeout_everything_dies_even_what_left_the_session(self, make: Make) -> None:
        confined = make()
        waits = "until [ -e held ] && ! flock -n held true; do sleep 0.01; done"
        result = await confined.bash(f"{ESCAPEE} & {waits}; touch begun; sleep 60", timeout=2000)
        assert "Timed out" in result.content
        assert (confined.project / "begun").exists()
        await until(lambda: not is_held(confined.project))

    async def test_cancelling_ends_it(self, make: Make) -> None:
        confined = make()
        task = asyncio.create_task(confined.bash("touch begun; sleep 60"))
        await until((confined.project / "begun").exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def test_in_the_background_the_borders_are_the_same(self, make: Make, tmp_path: Path) -> None:
        confined = make()
        command = f"echo x > {tmp_path}/new; mkdir .git; touch begun; while ! [ -e go ]; do sleep 0.01; done; exit 5"
        started = await confined.bash(command, run_in_background=True)
        name = started.response["backgroundTaskId"]
        await until((confined.project / "begun").exists)
        assert (await confined.call("BashOutput", bash_id=name)).response["status"] == "running"
        (confined.project / "go").touch()

        async def ended() -> bool:
            return (await confined.call("BashOutput", bash_id=name)).response["status"] != "running"

        while not await ended():  # noqa: ASYNC110 - nobody tells when it has ended
            await asyncio.sleep(0.01)
        last = await confined.call("BashOutput", bash_id=name)
        assert ".git is protected" in last.content
        assert last.response["exit_code"] == 5
        assert not (tmp_path / "new").exists()
        assert not (confined.project / ".git").exists()

    async def test_killing_a_background_command_kills_all_of_it(self, make: Make) -> None:
        confined = make()
        started = await confined.bash(f"{ESCAPEE} & sleep 60", run_in_background=True)
        await until(lambda: is_held(confined.project))
        await confined.call("KillShell", shell_id=started.response["backgroundTaskId"])
        await until(lambda: not is_held(confined.project))


async def test_a_pdf_is_read_by_a_program_inside(make: Make, tmp_path: Path) -> None:
    confined = make()
    program = confined.project / "bin" / "pdftotext"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho text\necho escaped > {tmp_path}/outside\nexit 0\n")
    program.chmod(0o755)
    confined.environment = {**confined.environment, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    (confined.project / "a.pdf").write_bytes(b"%PDF-1.7\n")
    result = await confined.call("Read", file_path=str(confined.project / "a.pdf"))
    assert result.content == "     1\t[Page 1 of 1]\n     2\ttext"
    assert not (tmp_path / "outside").exists()
