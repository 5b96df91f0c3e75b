"""What changed while a command ran: real commands on real files."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.tools.changes.snapshots import overflow, reported
from tests.tools.trees import write
from wave_agent.tools.changes.found import FoundChanges
from wave_agent.tools.changes.versions import NotKeptError
from wave_agent.tools.changes.watcher import ProjectWatcher, WatchLimits

GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"}
NO_COPIES = WatchLimits(copied_files=0)
Watching = Callable[..., ProjectWatcher]


class Project:
    def __init__(self, top: Path) -> None:
        self.root = top / "project"
        self.private = top / "private"
        self.root.mkdir()
        self.environment = {**os.environ, **GIT}

    def sh(self, line: str) -> None:
        subprocess.run(["bash", "-c", line], cwd=self.root, env=self.environment, check=True, timeout=30)

    def commit(self) -> None:
        """Git can tell a file from a later change of it only if the file is older than the index."""
        self.sh("git init -q . && git add -A")
        for name in self.git("ls-files", "-z").split("\0")[:-1]:
            os.utime(self.root / name, (1_700_000_000, 1_700_000_000), follow_symlinks=False)
        self.sh("git add -A && git -c user.name=n -c user.email=e commit -qm first && git update-index -q --refresh")

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env=self.environment, check=True, capture_output=True, text=True
        )
        return done.stdout

    def names(self, found: FoundChanges) -> dict[str, str]:
        return {os.path.relpath(path, self.root): kind for path, kind in reported(found).items()}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path.resolve())


@pytest.fixture(params=["watched", "compared"])
def watching(request: pytest.FixtureRequest, project: Project) -> Iterator[Watching]:
    made: list[ProjectWatcher] = []

    def start(**given: object) -> ProjectWatcher:
        watch = request.param == "watched"
        one = ProjectWatcher(
            str(project.root),
            project.private,
            environment=project.environment,
            **{"watch": watch, **given},  # pyright: ignore[reportArgumentType]
        )
        one.arm()
        assert one.watches is (watch and sys.platform == "linux")
        made.append(one)
        return one

    yield start
    for one in made:
        one.close()


def test_what_a_command_creates_changes_and_deletes(project: Project, watching: Watching) -> None:
    write(project.root, {"a": "1", "b/c": "2", "b/d": "3"})
    watcher = watching()
    project.sh("echo x >> a; rm b/c; mkdir -p new/deep/er && echo y > new/deep/er/file; mv b/d e")
    found = watcher.settle()
    expected = {"a": "changed", "b/c": "deleted", "b/d": "deleted", "e": "created", "new/deep/er/file": "created"}
    assert project.names(found) == expected
    assert [os.path.relpath(path, project.root) for path in found.directories] == ["new", "new/deep", "new/deep/er"]
    assert watcher.settle() == FoundChanges()


def test_the_same_content_again_and_a_new_time_are_no_change(project: Project, watching: Watching) -> None:
    write(project.root, {"a": "1", "b": "2"})
    watcher = watching()
    project.sh("touch a; echo other > b; printf 2 > b; echo x > c; rm c")
    assert watcher.settle() == FoundChanges()


def test_permissions_are_a_change(project: Project, watching: Watching) -> None:
    write(project.root, {"a": "1"})
    watcher = watching()
    project.sh("chmod 755 a")
    (change,) = watcher.settle().changes
    assert change.before is not None
    assert change.after is not None
    assert (change.kind, change.before.mode, change.after.mode) == ("changed", 0o100644, 0o100755)


def test_a_link_is_a_file_and_is_not_followed(project: Project, watching: Watching, tmp_path: Path) -> None:
    write(tmp_path, {"outside/secret": "1"})
    (project.root / "inside").symlink_to(tmp_path / "outside")
    watcher = watching()
    project.sh("echo 2 > inside/secret; ln -s ../outside other")
    assert project.names(watcher.settle()) == {"other": "created"}
    project.sh("ln -sfn elsewhere inside")
    (change,) = watcher.settle().changes
    assert change.before is not None
    assert (change.kind, change.before.content.read()) == ("changed", os.fsencode(tmp_path / "outside"))


def test_what_others_did_before_is_not_the_commands(project: Project, watching: Watching) -> None:
    watcher = watching()
    write(project.root, {"by-the-user": "1"})
    assert project.names(watcher.settle()) == {"by-the-user": "created"}
    project.sh("echo > by-the-command")
    assert project.names(watcher.settle()) == {"by-the-command": "created"}


def test_a_process_that_still_runs_is_seen_at_the_next_look(project: Project, watching: Watching) -> None:
    watcher = watching()
    gate = project.root.parent / "gate"
    os.mkfifo(gate)
    line = f"mkdir -p n/m; echo 1 > n/m/first; cat {gate} > /dev/null; mkdir n/m/o; echo 2 > n/m/o/second"
    process = subprocess.Popen(["bash", "-c", line], cwd=project.root)
    with gate.open("w"):  # opens when the process waits there
        assert project.names(watcher.settle()) == {"n/m/first": "created"}
    assert process.wait(timeout=30) == 0
    assert project.names(watcher.settle()) == {"n/m/o/second": "created"}


def test_directories_made_while_others_are_looked_at_are_not_missed(project: Project, watching: Watching) -> None:
    watcher = watching()
    line = "for i in $(seq 60); do mkdir -p d$i/e/f; echo $i > d$i/e/f/g; done"
    process = subprocess.Popen(["bash", "-c", line], cwd=project.root)
    seen: dict[str, str] = {}
    while process.poll() is None:
        seen = project.names(watcher.settle()) | seen  # a file may be seen before anything is written to it
    seen = project.names(watcher.settle()) | seen
    assert seen == {f"d{i}/e/f/g": "created" for i in range(1, 61)}


def test_a_file_written_through_another_name_is_seen(project: Project, watching: Watching) -> None:
    write(project.root, {"one": "1"})
    os.link(project.root / "one", project.root / "two")
    watcher = watching()
    project.sh("echo more >> two")
    assert project.names(watcher.settle()) == {"one": "changed", "two": "changed"}


def test_a_change_through_a_memory_map_is_seen(project: Project, watching: Watching) -> None:
    write(project.root, {"a": "1" * 5000})
    watcher = watching()
    code = "import mmap\nwith open('a', 'r+b') as f:\n m = mmap.mmap(f.fileno(), 0)\n m[0] = 50\n m.close()"
    subprocess.run([sys.executable, "-c", code], cwd=project.root, check=True)
    assert project.names(watcher.settle()) == {"a": "changed"}


@pytest.mark.skipif(sys.platform != "linux", reason="only there is a queue")
def test_more_events_than_the_queue_takes(project: Project) -> None:
    write(project.root, {"a/b": "1", "c": "2"})
    watcher = ProjectWatcher(str(project.root), project.private)
    watcher.arm()
    overflow(project.root)
    project.sh("mv a d; echo more >> c; mkdir -p n/m; echo > n/m/o")
    expected = {"a/b": "deleted", "c": "changed", "d/b": "created", "n/m/o": "created"}
    assert project.names(watcher.settle()) == expected
    project.sh("echo more > n/m/o; rm d/b")  # the watches are complete again
    assert watcher.watches
    assert project.names(watcher.settle()) == {"d/b": "deleted", "n/m/o": "changed"}
    watcher.close()


def test_more_directories_than_may_be_watched_are_compared(project: Project) -> None:
    write(project.root, {f"d{number}/file": "1" for number in range(6)})
    watcher = ProjectWatcher(str(project.root), project.private, limits=WatchLimits(watches=5))
    watcher.arm()
    assert not watcher.watches
    project.sh("echo more >> d3/file; mkdir d9; echo > d9/file")
    assert project.names(watcher.settle()) == {"d3/file": "changed", "d9/file": "created"}


def test_directories_beyond_the_limit_later_on(project: Project) -> None:
    write(project.root, {"d0/file": "1"})
    watcher = ProjectWatcher(str(project.root), project.private, limits=WatchLimits(watches=4))
    watcher.arm()
    project.sh("for i in $(seq 8); do mkdir d$i; echo > d$i/file; done; echo more >> d0/file")
    expected = {"d0/file": "changed", **{f"d{number}/file": "created" for number in range(1, 9)}}
    assert project.names(watcher.settle()) == expected
    assert not watcher.watches


# -------------------------------------------------------------------------------------------------------------- ignored


def test_ignored_files_are_left_out(project: Project, watching: Watching) -> None:
    write(project.root, {".gitignore": "*.log\nbuild/\n", "build/old": "1", "src/.gitignore": "made\n"})
    watcher = watching()
    project.sh("git init -q .; echo > a.log; mkdir build/deep; echo > build/deep/x; echo > src/made; echo > made")
    assert project.names(watcher.settle()) == {"made": "created"}


def test_a_new_ignore_file_hides_nothing_of_the_same_command(project: Project, watching: Watching) -> None:
    write(project.root, {"a": "1"})
    watcher = watching()
    project.sh("echo '*' > .gitignore; echo 2 > a; echo 3 > b")
    assert project.names(watcher.settle()) == {".gitignore": "created", "a": "changed", "b": "created"}
    project.sh("echo 4 > a; echo 5 > c")  # what was known stays known
    assert project.names(watcher.settle()) == {"a": "changed"}


def test_a_file_that_is_no_longer_ignored_is_not_new(project: Project, watching: Watching) -> None:
    write(project.root, {".gitignore": "data/\n", "data/a": "1"})
    watcher = watching()
    project.sh("rm .gitignore")
    assert project.names(watcher.settle()) == {".gitignore": "deleted"}
    assert watcher.settle() == FoundChanges()
    project.sh("echo 2 > data/a; echo 3 > data/b")
    found = watcher.settle()
    assert project.names(found) == {"data/a": "changed", "data/b": "created"}
    assert found.changes[0].before is not None
    assert found.changes[0].before.content.read() == b"1"


def test_an_ignored_file_that_git_tracks_is_covered(project: Project, watching: Watching) -> None:
    write(project.root, {"vendor/deep/lib": "1", "vendor/other": "2"})
    project.commit()
    write(project.root, {".gitignore": "vendor/\n"})
    watcher = watching()
    project.sh("echo 2 > vendor/deep/lib; echo 3 > vendor/deep/new")
    assert project.names(watcher.settle()) == {"vendor/deep/lib": "changed"}


def test_a_file_that_a_rule_denies_is_covered_wherever_it_is(project: Project, watching: Watching) -> None:
    write(project.root, {".gitignore": "node_modules/\n.env\n", ".env": "1", "node_modules/x/.env": "2"})
    project.sh("git init -q .")
    watcher = watching(is_denied=lambda path: path.endswith(("/.env", "/.git/config")))
    project.sh("echo > node_modules/x/other; echo 3 > .env; echo 4 > node_modules/x/.env; git config a.b c")
    project.sh("mkdir -p node_modules/y/z; echo > node_modules/y/z/.env; echo > node_modules/y/z/file")
    found = watcher.settle()
    expected = {".env": "changed", "node_modules/x/.env": "changed", "node_modules/y/z/.env": "created"}
    assert project.names(found) == {**expected, ".git/config": "changed"}
    assert found.violations == found.changes
    former = [change.before.content.read() for change in found.changes if change.before is not None]
    assert (former[0], former[2]) == (b"1", b"2")


def test_ignored_directories_that_no_rule_speaks_of_are_not_entered(project: Project, watching: Watching) -> None:
    write(project.root, {".gitignore": "node_modules/\n", "node_modules/x/.env": "2", "conf/.env": "1"})
    asked: list[str] = []

    def is_denied(path: str) -> bool:
        asked.append(os.path.relpath(path, project.root))
        return path.endswith("/.env")

    watcher = watching(is_denied=is_denied, places=[str(project.root / "conf")])
    assert asked
    assert not [path for path in asked if path.startswith("node_modules")]
    project.sh("echo 3 > conf/.env; echo 3 > node_modules/x/.env")
    assert project.names(watcher.settle()) == {"conf/.env": "changed"}


def test_a_denied_file_written_through_a_name_outside_the_project_is_seen(
    project: Project, watching: Watching, tmp_path: Path
) -> None:
    write(project.root, {".env": "1"})
    watcher = watching(is_denied=lambda path: path.endswith("/.env"))
    project.sh(f"ln .env {tmp_path}/other; echo 2 > {tmp_path}/other")
    assert project.names(watcher.settle()) == {".env": "changed"}


def test_a_denied_file_is_written_again_and_again_through_a_name_outside_the_project(
    project: Project, watching: Watching, tmp_path: Path
) -> None:
    write(project.root, {".env": "1", "vendor.env": "1"})
    watcher = watching(is_denied=lambda path: path.endswith(".env"))
    project.sh(f"ln .env {tmp_path}/other; echo 2 > {tmp_path}/other")
    assert project.names(watcher.settle()) == {".env": "changed"}
    project.sh(f"echo 3 > {tmp_path}/other")
    assert project.names(watcher.settle()) == {".env": "changed"}
    project.sh(f"echo new > x; mv x .env; echo 4 > {tmp_path}/other")  # no longer the same file
    assert project.names(watcher.settle()) == {".env": "changed"}
    project.sh(f"ln -f .env {tmp_path}/other; echo 5 > {tmp_path}/other; rm vendor.env")
    assert project.names(watcher.settle()) == {".env": "changed", "vendor.env": "deleted"}
    assert project.names(watcher.settle()) == {}
    project.sh("cp .env same; mv same .env")  # another file with the same content
    assert project.names(watcher.settle()) == {}
    assert project.names(watcher.settle()) == {}
    project.sh(f"ln -f .env {tmp_path}/other; echo 6 > {tmp_path}/other")
    assert project.names(watcher.settle()) == {".env": "changed"}


@pytest.mark.skipif(sys.platform != "linux", reason="only there is a limit")
def test_more_denied_files_than_may_be_watched(project: Project, tmp_path: Path) -> None:
    write(project.root, {"a.env": "1", "b.env": "1"})
    watcher = ProjectWatcher(
        str(project.root), project.private, is_denied=lambda path: path.endswith(".env"), limits=WatchLimits(watches=2)
    )
    watcher.arm()
    assert watcher.watches
    for name in ("a.env", "b.env"):
        project.sh(f"ln -f {name} {tmp_path}/other; echo 2 > {tmp_path}/other")
        assert project.names(watcher.settle()) == {name: "changed"}
    watcher.close()


def test_what_a_denied_link_leads_to_is_denied(project: Project, watching: Watching) -> None:
    write(project.root, {".gitignore": "real/\n", "real/env": "1", "real/other": "2", "dir/a": "3"})
    (project.root / ".env").symlink_to("real/env")
    (project.root / "kept.d").symlink_to("dir")
    (project.root / "outside.env").symlink_to("/etc/hostname")
    watcher = watching(is_denied=lambda path: path.endswith((".env", "kept.d")))
    project.sh("echo x > .env; echo x > real/other; echo x > kept.d/b; echo x > dir/a")
    found = watcher.settle()
    assert project.names(found) == {"dir/a": "changed", "dir/b": "created", "real/env": "changed"}
    assert found.violations == found.changes


def test_what_the_agent_writes_itself_is_left_out(project: Project, watching: Watching) -> None:
    write(project.root, {"sessions/old": "1"})
    watcher = watching(own=[str(project.root / "sessions")])
    project.sh("echo > sessions/new; echo > a")
    assert project.names(watcher.settle()) == {"a": "created"}


def test_a_path_that_cannot_be_judged_is_denied(project: Project, watching: Watching) -> None:
    def broken(path: str) -> bool:
        raise ValueError(path)

    watcher = watching(is_denied=broken)
    project.sh("echo > a")
    assert [change.denied for change in watcher.settle().changes] == [True]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
def test_a_closed_directory_is_named_and_its_changes_show_when_it_is_open(project: Project, watching: Watching) -> None:
    write(project.root, {"vendor/a/b": "1"})
    watcher = watching(is_denied=lambda path: "/vendor/" in path)
    project.sh("echo x > vendor/a/b; chmod 000 vendor; mkdir n; echo > n/f; chmod 000 n")
    found = watcher.settle()
    assert found.changes == ()
    assert any(path.startswith(str(project.root / "vendor")) for path in found.unseen)
    project.sh("chmod 755 vendor n")
    found = watcher.settle()
    assert project.names(found) == {"n/f": "created", "vendor/a/b": "changed"}
    assert found.unseen == ()


# ------------------------------------------------------------------------------------------------------ former contents


def former(found: FoundChanges) -> list[bytes]:
    return [change.before.content.read() for change in found.changes if change.before is not None]


def test_the_former_content_of_a_tracked_file_comes_from_git(project: Project, watching: Watching) -> None:
    write(project.root, {"clean": "1", "modified": "2", "exec/deep": "3", ".gitignore": "x\n"})
    (project.root / "link").symlink_to("clean")
    project.commit()
    write(project.root, {"modified": "22"})
    watcher = watching(limits=NO_COPIES)
    project.sh("echo x > clean; touch exec/deep; echo x > modified; ln -sfn other link; git add -A; git gc -q")
    found = watcher.settle()
    assert project.names(found) == {"clean": "changed", "link": "changed", "modified": "changed"}
    clean, link, modified = found.changes
    assert clean.before is not None
    assert link.before is not None
    assert modified.before is not None
    assert (clean.before.content.read(), link.before.content.read()) == (b"1", b"clean")
    with pytest.raises(NotKeptError, match="was not kept"):
        modified.before.content.read()


@pytest.mark.parametrize("version", ["2", "4"])
def test_every_version_of_the_index_is_read(version: str, project: Project, watching: Watching) -> None:
    files = {f"dir/file-{number}": str(number) for number in range(30)}
    write(project.root, {**files, "link/index": "x"})
    project.commit()
    project.git("update-index", "--index-version", version)
    watcher = watching(limits=NO_COPIES)
    project.sh("for file in dir/*; do echo x > $file; done")
    assert sorted(former(watcher.settle())) == sorted(content.encode() for content in files.values())


def test_content_that_git_stores_differently_is_not_restored_from_there(project: Project, watching: Watching) -> None:
    write(project.root, {".gitattributes": "a text eol=crlf\n", "a": "one\r\ntwo\r\n"})
    project.commit()
    watcher = watching(limits=NO_COPIES)
    project.sh("echo x > a")
    with pytest.raises(NotKeptError, match="stored differently"):
        former(watcher.settle())


def test_git_is_not_used_where_a_filter_could_change_contents(project: Project, watching: Watching) -> None:
    write(project.root, {"deep/.gitattributes": "* filter=rot13\n", "deep/a": "uryyb\n"})
    project.sh("git init -q .; git config filter.rot13.clean 'tr a-z n-za-m'; touch -d 2020-01-01 deep/*; git add -A")
    assert project.git("show", ":deep/a") == "hello\n"
    watcher = watching()
    project.sh("echo x > deep/a")
    assert former(watcher.settle()) == [b"uryyb\n"]  # the copy


def test_reading_from_git_runs_nothing_of_the_repository(project: Project, watching: Watching) -> None:
    write(project.root, {"a": "1"})
    project.commit()
    canary = project.root.parent / "canary"
    for name in ("core.fsmonitor", "core.sshCommand", "core.pager", "filter.x.smudge", "diff.x.textconv"):
        project.git("config", name, f"touch {canary}; true")
    watcher = watching(limits=NO_COPIES)
    project.sh(
        "echo x > a; echo '* diff=x' > .gitattributes; git replace -f HEAD:a $(echo 9 | git hash-object -w --stdin)"
    )
    assert former(watcher.settle()) == [b"1"]
    assert not canary.exists()


def test_the_next_change_has_the_last_one_as_its_former_content(project: Project, watching: Watching) -> None:
    write(project.root, {"a": "0"})
    watcher = watching()
    for number in range(5):  # within one tick of the clock, with the same size
        (project.root / "a").write_text(str(number + 1))
        assert former(watcher.settle()) == [str(number).encode()]


def test_contents_beyond_the_limits_are_not_kept(project: Project, watching: Watching) -> None:
    write(project.root, {"large": "x" * 11, "small": "x", "kept/a": "1" * 20, "kept/b": "2" * 20, "kept/c": "3" * 31})
    watcher = watching(is_denied=lambda path: "/kept/" in path, limits=WatchLimits(largest=10, copied=10, denied=30))
    names = {os.path.basename(path): why for path, why in watcher.unkept.items()}
    assert names == {
        "b": "was not kept: the files that rules protect are too large together",
        "c": "was not kept: it is larger than 30 bytes",
    }
    project.sh("echo y > large; echo y > small; echo y > kept/a")
    kept, large, small = watcher.settle().changes
    assert kept.before is not None
    assert large.before is not None
    assert small.before is not None
    assert (kept.before.content.read(), small.before.content.read()) == (b"1" * 20, b"x")
    with pytest.raises(NotKeptError):
        large.before.content.read()


def test_nothing_is_left_in_the_private_directory(project: Project, watching: Watching) -> None:
    write(project.root, {"a": "1"})
    watching()
    assert list(project.private.iterdir()) == []
    assert project.private.stat().st_mode & 0o777 == 0o700


# ------------------------------------------------------------------------------------------------------------- the rest


def test_too_many_files_are_not_watched(project: Project) -> None:
    write(project.root, {f"f{number}": "1" for number in range(12)})
    watcher = ProjectWatcher(str(project.root), project.private, limits=WatchLimits(files=10))
    watcher.arm()
    assert watcher.off == "it has too many files"
    assert watcher.settle() == FoundChanges(unseen=(str(project.root),))


def test_arming_in_a_thread_and_looking_from_another(project: Project) -> None:
    write(project.root, {f"d{number}/f": "1" for number in range(300)})
    watcher = ProjectWatcher(str(project.root), project.private)
    thread = threading.Thread(target=watcher.arm)
    thread.start()
    assert watcher.settle() == FoundChanges()  # waits until it is armed
    project.sh("echo 2 > d7/f")
    assert project.names(watcher.settle()) == {"d7/f": "changed"}
    thread.join()
    watcher.close()


def test_a_project_that_is_replaced_as_a_whole(project: Project, watching: Watching) -> None:
    write(project.root, {"a": "1", "b/c": "2"})
    watcher = watching()
    project.sh("cp -r . ../copy; mv ../project ../old; mv ../copy ../project; echo 3 > ../project/b/d")
    assert project.names(watcher.settle()) == {"b/d": "created"}
    project.sh("echo 4 > b/c; rm ../old/a")
    assert project.names(watcher.settle()) == {"b/c": "changed"}
    project.sh("rm -r ../project")
    assert project.names(watcher.settle()) == {"a": "deleted", "b/c": "deleted", "b/d": "deleted"}
    write(project.root, {"a": "1"})
    assert project.names(watcher.settle()) == {"a": "created"}


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel reports nothing elsewhere")
def test_it_is_quiet_until_something_happens(project: Project) -> None:
    write(project.root, {"a": "1"})
    watcher = ProjectWatcher(str(project.root), project.private, environment=project.environment)
    assert not watcher.is_quiet()  # not armed
    watcher.arm()
    assert watcher.is_quiet()
    project.sh("echo 2 > a")
    assert not watcher.is_quiet()
    assert project.names(watcher.settle()) == {"a": "changed"}
    assert watcher.is_quiet()
    project.root.rename(project.root.with_name("other"))
    project.root.mkdir()
    assert not watcher.is_quiet()  # another directory is in its place
    watcher.close()
    assert watcher.is_quiet()


def test_it_is_never_quiet_if_all_files_are_compared(project: Project) -> None:
    watcher = ProjectWatcher(str(project.root), project.private, watch=False)
    watcher.arm()
    assert not watcher.is_quiet()
    watcher.close()
