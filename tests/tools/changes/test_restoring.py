"""Changes that rules deny are undone; whatever is in the way, nothing else is touched."""

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.changes.snapshots import snapshot
from tests.tools.trees import write
from wave_agent.tools.changes.restoring import CHANGED_SINCE, RestoredFile, restore
from wave_agent.tools.changes.watcher import ProjectWatcher, WatchLimits


class Guarded:
    """A project in which rules deny changes to `vendor` and to every `.env`."""

    def __init__(self, top: Path, displaced: Path) -> None:
        self.root = top / "project"
        self.displaced = displaced
        write(self.root, {"vendor/lib/a": "a", "vendor/b": "b", ".env": "secret", "free": "1"})
        (self.root / ".env").chmod(0o600)
        (self.root / "vendor" / "link").symlink_to("b")
        self.watcher = ProjectWatcher(
            str(self.root), top / "contents", is_denied=self.is_denied, limits=WatchLimits(denied=1000)
        )
        self.watcher.arm()
        self.before = snapshot(self.root)

    def is_denied(self, path: str) -> bool:
        below = os.path.relpath(path, self.root)
        return below == "vendor" or below.startswith("vendor/") or path.endswith("/.env")

    def sh(self, line: str) -> None:
        subprocess.run(["bash", "-c", line], cwd=self.root, check=True, timeout=30)

    def restored(self) -> dict[str, RestoredFile]:
        done = restore(self.watcher.settle().violations, str(self.root), self.displaced)
        return {os.path.relpath(file.path, self.root): file for file in done}


@pytest.fixture(params=["same file system", "another one"])
def guarded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Guarded]:
    top = tmp_path.resolve()
    memory = Path("/dev/shm")
    if request.param == "same file system":
        yield Guarded(top, top / "displaced")
    elif memory.is_dir() and memory.stat().st_dev != top.stat().st_dev:
        displaced = memory / f"wave-test-{os.urandom(6).hex()}"
        yield Guarded(top, displaced)
        subprocess.run(["rm", "-rf", str(displaced)], check=True)
    else:
        pytest.skip("there is no other file system")


def test_what_was_changed_deleted_created_or_replaced_is_as_before(guarded: Guarded) -> None:
    guarded.sh("echo x > .env; chmod 644 .env; rm -r vendor/lib; echo new > vendor/new; ln -sfn free vendor/link")
    guarded.sh("chmod 755 vendor/b; echo 2 > free")
    done = guarded.restored()
    now = snapshot(guarded.root)
    assert now.pop(str(guarded.root / "free"))[1] == b"2\n"
    guarded.before.pop(str(guarded.root / "free"))
    assert now == guarded.before
    outcomes = {name: file.outcome for name, file in done.items()}
    restored = dict.fromkeys([".env", "vendor/b", "vendor/lib/a", "vendor/link"], "restored")
    assert outcomes == {**restored, "vendor/new": "removed"}
    displaced = {name: file.displaced for name, file in done.items()}
    assert displaced.pop("vendor/lib/a") is None
    assert Path(displaced.pop("vendor/link") or "").readlink() == Path("free")
    contents = {name: Path(path or "").read_text() for name, path in displaced.items()}
    assert contents == {".env": "x\n", "vendor/b": "b", "vendor/new": "new\n"}
    assert stat.S_IMODE(guarded.displaced.stat().st_mode) == 0o700


def test_a_directory_with_the_name_of_a_file(guarded: Guarded) -> None:
    guarded.sh(
        "rm vendor/b .env; mkdir vendor/b; mkdir -p .env/deep; echo 1 > .env/deep/x; rm vendor/link; mkfifo vendor/link"
    )
    done = guarded.restored()
    assert done["vendor/b"] == RestoredFile(path=str(guarded.root / "vendor/b"), outcome="restored")
    for name in (".env", "vendor/link"):
        if done[name].outcome == "refused":  # only a file can be moved to another file system
            assert done[name].why == "its name is now that of something that is not a file"
            guarded.sh(f"rm -r {name}")
            guarded.before.pop(str(guarded.root / name))
        else:
            assert os.path.lexists(done[name].displaced or "")
    assert snapshot(guarded.root) == guarded.before


def test_a_link_instead_of_a_directory_leads_nowhere(guarded: Guarded, tmp_path: Path) -> None:
    write(tmp_path, {"outside/lib/a": "theirs", "outside/b": "theirs"})
    elsewhere = snapshot(tmp_path / "outside")
    guarded.sh("rm -r vendor; ln -s ../outside vendor")
    done = guarded.restored()
    assert done["vendor"].outcome == "removed"
    assert snapshot(tmp_path / "outside") == elsewhere
    assert snapshot(guarded.root) == guarded.before


def test_a_link_that_no_rule_denies_is_moved_out_of_the_way_and_not_followed(guarded: Guarded, tmp_path: Path) -> None:
    write(tmp_path, {"outside/x": "theirs"})
    guarded.sh("rm -r vendor/lib; ln -s ../../outside vendor/lib")
    changes = [change for change in guarded.watcher.settle().violations if change.path.endswith("/lib/a")]
    (done,) = restore(changes, str(guarded.root), guarded.displaced)
    assert done.outcome == "restored"
    assert Path(done.displaced or "").readlink() == Path("../../outside")
    assert snapshot(guarded.root) == guarded.before
    assert sorted(os.listdir(tmp_path / "outside")) == ["x"]


def test_a_file_in_the_place_of_a_directory_is_moved_out_of_the_way(guarded: Guarded) -> None:
    guarded.sh("mv vendor moved; echo x > vendor")
    changes = [change for change in guarded.watcher.settle().violations if change.path.endswith("/lib/a")]
    (done,) = restore(changes, str(guarded.root), guarded.displaced)
    assert (done.outcome, Path(done.displaced or "").read_text()) == ("restored", "x\n")
    assert (guarded.root / "vendor" / "lib" / "a").read_text() == "a"


def test_pipes_and_sockets_are_removed(guarded: Guarded) -> None:
    guarded.sh("mkfifo vendor/pipe free.pipe; python3 -c \"import socket; socket.socket(1).bind('vendor/socket')\"")
    done = guarded.restored()
    assert {name: (file.outcome, file.displaced) for name, file in done.items()} == {
        "vendor/pipe": ("removed", None),
        "vendor/socket": ("removed", None),
    }
    assert sorted(os.listdir(guarded.root / "vendor")) == ["b", "lib", "link"]
    assert (guarded.root / "free.pipe").exists()


def test_a_link_put_there_after_the_look_is_not_followed(guarded: Guarded, tmp_path: Path) -> None:
    write(tmp_path, {"outside": "theirs"})
    guarded.sh("echo x > .env")
    changes = guarded.watcher.settle().violations
    guarded.sh("ln -sf ../outside .env")
    (done,) = restore(changes, str(guarded.root), guarded.displaced)
    assert (done.outcome, done.why) == ("refused", CHANGED_SINCE)
    assert (tmp_path / "outside").read_text() == "theirs"
    assert (guarded.root / ".env").is_symlink()


def test_a_file_that_changed_again_is_left_alone(guarded: Guarded) -> None:
    guarded.sh("echo x > .env; rm vendor/b")
    changes = guarded.watcher.settle().violations
    guarded.sh("echo y > .env; echo z > vendor/b")
    done = restore(changes, str(guarded.root), guarded.displaced)
    assert [(file.outcome, file.why) for file in done] == [("refused", CHANGED_SINCE)] * 2
    assert ((guarded.root / ".env").read_text(), (guarded.root / "vendor/b").read_text()) == ("y\n", "z\n")


def test_a_file_outside_the_project_is_refused(guarded: Guarded, tmp_path: Path) -> None:
    guarded.sh("echo x > .env")
    changes = guarded.watcher.settle().violations
    (done,) = restore(changes, str(tmp_path / "project" / "vendor"), guarded.displaced)
    assert (done.outcome, done.why) == ("refused", "it is outside the project")
    assert (guarded.root / ".env").read_text() == "x\n"


def test_a_file_that_was_too_large_to_keep_is_refused_and_says_so(tmp_path: Path) -> None:
    root = tmp_path.resolve() / "project"
    write(root, {".env": "x" * 2000})
    watcher = ProjectWatcher(
        str(root), tmp_path / "contents", is_denied=lambda path: path.endswith(".env"), limits=WatchLimits(denied=1000)
    )
    watcher.arm()
    assert list(watcher.unkept) == [str(root / ".env")]
    (root / ".env").write_text("y")
    (done,) = restore(watcher.settle().violations, str(root), tmp_path / "displaced")
    assert (done.outcome, done.why) == (
        "refused",
        "its former content was not kept: it is larger than 1,000 bytes",
    )
    assert (root / ".env").read_text() == "y"


def test_after_restoring_the_next_violation_is_restored_too(guarded: Guarded) -> None:
    for content in ("x", "y"):
        guarded.watcher.settle()
        guarded.sh(f"echo {content} > .env")
        assert guarded.restored()[".env"].outcome == "restored"
        assert (guarded.root / ".env").read_text() == "secret"
        assert stat.S_IMODE((guarded.root / ".env").stat().st_mode) == 0o600
