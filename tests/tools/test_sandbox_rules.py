"""Rules as mounts: what commands in a real sandbox can do with files that rules deny."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.sandboxes import Confined, Make, open_sandbox
from wave_agent.errors import SandboxError

SECRET = "canary-7f3a"


def put(confined: Confined, *names: str, text: str = SECRET) -> None:
    for name in names:
        file = confined.project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


class TestReading:
    async def test_no_program_reads_a_denied_file_and_each_gets_an_error(self, make: Make) -> None:
        confined = make(denied=["Read(.env)"])
        put(confined, ".env", "sub/.env", ".cache/deep/.env")
        put(confined, "other", text="fine")
        attempts = [
            "cat .env",
            "base64 .env | base64 -d",
            "cp .env copy && cat copy",
            "/usr/bin/python3 -c \"print(open('.env').read())\"",
            "cat sub/.env .cache/deep/.env",
            "cd sub && cat .env",
            "grep -r canary .",
            "tar cf - . | cat",
            "cat < .env",
            "ln .env link && cat link",
            "ln -s .env soft && cat soft",
            "mv .env moved; cat moved",
            "chmod 644 .env; cat .env",
            "cat /proc/self/root/$PWD/.env /proc/1/root/$PWD/.env",
            "cat /proc/self/cwd/.env",
            "umount .env; umount -l .env; cat .env",
            "unshare -Um sh -c 'umount .env; mount --bind . /mnt; cat .env /mnt/.env'",
            "unshare -Um sh -c 'mount --rbind . /mnt; umount -l /mnt/.env; cat /mnt/.env'",
            "unshare -U sh -c 'cat .env'",
            "mv sub gone; cat gone/.env",
        ]
        line = "\n".join(f"({one}) 2>&1 || echo failed" for one in attempts)
        result = await confined.bash(f"{line}\ncat other")
        assert SECRET not in result.content
        assert result.content.endswith("fine")
        assert "Permission denied" in result.content
        assert (confined.project / ".env").read_text() == SECRET

    async def test_a_denied_directory_is_empty(self, make: Make) -> None:
        confined = make(denied=["Read(secrets/**)", "Read(deep/keys/)"])
        put(confined, "secrets/a", "secrets/b/c", "deep/keys/d", "deep/shown")
        result = await confined.bash("ls -A secrets deep/keys; cat secrets/a; echo x > secrets/new; cat deep/shown")
        assert result.content.count(SECRET) == 1  # shown
        assert not (confined.project / "secrets" / "new").exists()
        assert "Read-only file system" in result.content

    @pytest.mark.parametrize("target", ["behind", "../outside"])
    async def test_a_link_hides_its_target(self, make: Make, target: str) -> None:
        confined = make(denied=["Read(.env)"])
        put(confined, target)
        (confined.project / ".env").symlink_to(target)
        result = await confined.bash(f"cat .env; cat {target}")
        assert SECRET not in result.content

    async def test_so_does_a_link_to_the_directory(self, make: Make, tmp_path: Path) -> None:
        confined = make(denied=["Read(config/*.key)"])
        put(confined, "../elsewhere/a.key")
        (confined.project / "config").symlink_to(tmp_path / "elsewhere")
        assert SECRET not in (await confined.bash(f"cat config/a.key; cat {tmp_path}/elsewhere/a.key")).content

    async def test_another_name_of_the_file_is_hidden_too(self, make: Make) -> None:
        confined = make(denied=["Read(.env)"])
        put(confined, ".env")
        os.link(confined.project / ".env", confined.project / "innocent")
        assert SECRET not in (await confined.bash("cat innocent")).content

    async def test_files_outside_the_project(self, make: Make, tmp_path: Path) -> None:
        """As long as they are visible at all: here, the test's directory may be below /tmp."""
        confined = make(denied=[f"Read(/{tmp_path}/added/key)"], directories=[_directory(tmp_path / "added")])
        put(confined, "../added/key", "../added/other")
        result = await confined.bash(f"cat {tmp_path}/added/key || cat {tmp_path}/added/other")
        assert result.content.count(SECRET) == 1

    async def test_a_path_that_is_missing_leaves_nothing_behind(self, make: Make) -> None:
        confined = make(denied=["Read(.env)", "Read(secrets/**)", "Edit(a/b/c)", "Read(//tmp/wave-nothing-here)"])
        result = await confined.bash("ls; echo made > .env; cat .env")
        assert result.content == "made"  # it did not exist when the command started
        (confined.project / ".env").unlink()
        await confined.bash("true")
        await confined.close()
        assert os.listdir(confined.project) == []

    async def test_what_is_created_meanwhile_is_hidden_from_the_next_command(self, make: Make) -> None:
        confined = make(denied=["Read(.env)"])
        assert (await confined.bash(f"mkdir -p a/b; echo {SECRET} > a/b/.env; cat a/b/.env")).content == SECRET
        assert SECRET not in (await confined.bash("cat a/b/.env")).content

    @pytest.mark.parametrize("rule", ["Read(**)", "Read(/{around}/**)"])
    async def test_where_everything_is_denied_commands_see_an_empty_project(
        self, make: Make, tmp_path: Path, rule: str
    ) -> None:
        confined = make(denied=[rule.format(around=tmp_path)])
        put(confined, "file", "sub/file")
        result = await confined.bash("ls -A; cat file sub/file; echo x > new; echo went on")
        assert SECRET not in result.content
        assert "went on" in result.content
        await confined.close()
        assert sorted(os.listdir(confined.project)) == ["file", "sub"]

    async def test_a_command_in_a_directory_that_is_hidden_is_not_started(self, make: Make) -> None:
        confined = make(denied=["Read(sub/**)"])
        put(confined, "sub/inner/file")
        with pytest.raises(SandboxError, match=r"a permission rule denies reading .*/sub, and commands start in"):
            confined.sandbox.command(["true"], {}, cwd=str(confined.project / "sub" / "inner"))

    async def test_in_the_background(self, make: Make) -> None:
        confined = make(denied=["Read(.env)"])
        put(confined, ".env")
        started = await confined.bash("cat .env; touch done", run_in_background=True)
        name = started.response["backgroundTaskId"]
        while (shown := await confined.call("BashOutput", bash_id=name)).response["status"] == "running":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert SECRET not in shown.content
        assert (confined.project / "done").exists()


def _directory(path: Path) -> Path:
    path.mkdir()
    return path


class TestChanging:
    @pytest.mark.parametrize("rule", ["Edit(vendor/**)", "Write(vendor/lib.py)", "Edit(lib.py)"])
    async def test_nothing_changes_a_denied_file(self, make: Make, rule: str) -> None:
        confined = make(denied=[rule])
        put(confined, "vendor/lib.py", text="as it was")
        os.link(confined.project / "vendor" / "lib.py", confined.project / "other-name")
        before = os.stat(confined.project / "vendor" / "lib.py")
        attempts = [
            "echo gotcha > vendor/lib.py",
            "echo gotcha >> other-name",
            "rm -f vendor/lib.py",
            "echo gotcha > new; mv -f new vendor/lib.py",
            "mv vendor/lib.py away",
            "mv vendor away; mkdir vendor; echo gotcha > vendor/lib.py",
            "rm -rf vendor",
            "chmod 777 vendor/lib.py",
            "touch vendor/lib.py",
            "truncate -s 0 vendor/lib.py",
            "ln vendor/lib.py hard && echo gotcha > hard",
            "ln -s vendor/lib.py soft && echo gotcha > soft",
            "/usr/bin/python3 -c \"open('vendor/lib.py', 'w').write('gotcha')\"",
            "mount -o remount,rw vendor/lib.py; echo gotcha > vendor/lib.py",
            "unshare -Um sh -c 'mount -o remount,bind,rw vendor/lib.py; echo gotcha > vendor/lib.py'",
            "unshare -Um sh -c 'umount -l vendor/lib.py; umount -l vendor; echo gotcha > vendor/lib.py'",
            "echo gotcha > /proc/1/root/$PWD/vendor/lib.py",
        ]
        line = "\n".join(f"({one}) 2>&1" for one in attempts)
        result = await confined.bash(f"{line}\ncat vendor/lib.py && touch ok")
        after = os.stat(confined.project / "vendor" / "lib.py")
        assert (confined.project / "vendor" / "lib.py").read_text() == "as it was"
        assert (before.st_ino, before.st_mode, before.st_mtime_ns) == (after.st_ino, after.st_mode, after.st_mtime_ns)
        assert result.content.endswith("as it was")
        assert (confined.project / "ok").exists()

    async def test_a_denied_directory_takes_no_new_files(self, make: Make) -> None:
        confined = make(denied=["Edit(vendor/**)"])
        put(confined, "vendor/lib.py")
        await confined.bash("touch vendor/new; mkdir vendor/sub; touch beside")
        assert sorted(os.listdir(confined.project / "vendor")) == ["lib.py"]
        assert (confined.project / "beside").exists()

    @pytest.mark.parametrize("rule", ["Edit(**)", "Edit(/{around}/**)"])
    async def test_where_everything_is_denied_the_project_is_read_only(
        self, make: Make, tmp_path: Path, rule: str
    ) -> None:
        confined = make(denied=[rule.format(around=tmp_path)])
        put(confined, "file", "sub/file")
        result = await confined.bash("cat file; echo x > file; touch new sub/new; touch /tmp/works && echo works")
        assert result.content.startswith(SECRET)
        assert result.content.endswith("works")
        assert not (confined.project / "new").exists()
        assert (confined.project / "file").read_text() == SECRET

    async def test_a_file_that_may_be_neither_read_nor_changed(self, make: Make) -> None:
        confined = make(denied=["Edit(vendor/**)", "Read(vendor/key)"])
        put(confined, "vendor/key")
        result = await confined.bash("cat vendor/key; echo x > vendor/key")
        assert SECRET not in result.content
        assert (confined.project / "vendor" / "key").read_text() == SECRET

    async def test_a_rule_opens_nothing_that_is_protected_anyway(self, make: Make) -> None:
        """The directories on the way to a denied file are mounted, but not writable where they were not."""
        confined = make(denied=["Read(.wave/hooks/deep/key)", "Read(.git/hooks/sub/key)", "Edit(.wave/hooks/deep/x)"])
        put(confined, ".wave/hooks/deep/key", ".wave/hooks/deep/x", ".git/hooks/sub/key", ".wave/settings.json")
        places = ".wave .wave/hooks .wave/hooks/deep .git/hooks .git/hooks/sub"
        await confined.bash(f"for place in {places}; do touch $place/new; done; touch ok")
        assert (confined.project / "ok").exists()
        assert not list(confined.project.rglob("new"))

    async def test_it_holds_in_an_added_directory(self, make: Make, tmp_path: Path) -> None:
        added = _directory(tmp_path / "added")
        confined = make(denied=[f"Edit(/{added}/a)"], directories=[added])
        (added / "a").write_text("as it was")
        await confined.bash(f"echo gotcha > {added}/a; echo fine > {added}/b")
        assert ((added / "a").read_text(), (added / "b").read_text()) == ("as it was", "fine\n")


async def test_rules_about_the_agents_own_directory_keep_no_command_from_running(make: Make, tmp_path: Path) -> None:
    confined = make(denied=[f"Read(/{tmp_path}/state/**)", f"Edit(/{tmp_path}/state/**)"])
    await confined.bash("true")
    (confined.outputs / "long.txt").write_text(SECRET)
    result = await confined.bash(f"cat {confined.outputs}/long.txt; mkdir sub; cd sub")
    assert SECRET not in result.content
    assert "[Commands now start in" in result.content


class TestLimits:
    async def test_many_files_are_restricted_by_directory_which_is_reported_once(self, make: Make) -> None:
        confined = make(denied=["Read(*.pem)"])
        put(confined, *(f"keys/{number}.pem" for number in range(150)), "one.pem", "keys/readme")
        result = await confined.bash("cat keys/7.pem one.pem; ls -A keys; cat keys/readme")
        assert SECRET not in result.content
        assert "Read(*.pem) cover 151 files" in result.content
        assert str(confined.project / "keys") in result.content
        assert "cover 151 files" not in (await confined.bash("true")).content

    async def test_too_many_that_are_among_others_keep_the_command_from_starting(self, make: Make) -> None:
        confined = make(denied=["Read(*.pem)"])
        put(confined, *(f"{number}.pem" for number in range(150)))
        result = await confined.bash("touch started")
        assert "cannot restrict 150 files one by one" in result.content
        assert (result.ran, (confined.project / "started").exists()) == (False, False)


async def test_hooks_and_the_agent_see_what_is_there(make: Make) -> None:
    """The masks are in the command's own view of the file system, and nowhere else."""
    confined = make(denied=["Read(.env)"])
    put(confined, ".env")
    task = asyncio.create_task(confined.bash("touch begun; until [ -e go ]; do sleep 0.01; done"))
    while not (confined.project / "begun").exists():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert (confined.project / ".env").read_text() == SECRET
    (confined.project / "go").touch()
    assert (await task).success


async def test_the_masks_are_gone_with_the_session(make: Make) -> None:
    confined = make(denied=["Read(.env)"])
    put(confined, ".env")
    await confined.bash("true")
    assert list(confined.outputs.glob("mask-*"))
    await confined.close()
    assert not confined.outputs.exists()


def test_the_model_knows_that_rules_are_enforced(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    sandbox = open_sandbox(tmp_path / "project", tmp_path / "state", denied=["Read(.env)"])
    assert "Files that rules deny are unreadable or read-only." in sandbox.description
