"""Undo takes back what tools and commands did in a turn, and says what it cannot."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.tools.changes.snapshots import snapshot
from tests.tools.trees import write
from wave_agent.tools.changes import FileChanges, TakenBack
from wave_agent.tools.changes.watcher import ProjectWatcher, WatchLimits
from wave_agent.tools.files import replace


class Session:
    def __init__(self, top: Path, limits: WatchLimits | None = None) -> None:
        self.root = top / "project"
        self.root.mkdir(exist_ok=True)
        self.changes = FileChanges()
        self.watcher = ProjectWatcher(str(self.root), top / "contents", limits=limits)
        self.watcher.arm()

    def bash(self, line: str) -> None:
        """As a call of Bash does."""
        self.watcher.settle()
        subprocess.run(["bash", "-c", line], cwd=self.root, check=True, timeout=30)
        self.changes.note_command(self.watcher.settle())

    def write(self, name: str, content: str) -> None:
        """As a call of Write does."""
        path = self.root / name
        before = path.read_bytes() if path.exists() else None
        replace(str(path), content.encode())
        self.changes.note(str(path), before, content.encode())

    def undo(self) -> TakenBack:
        return self.changes.take_back()

    def names(self, paths: tuple[str, ...]) -> list[str]:
        return sorted(os.path.relpath(path, self.root) for path in paths)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    write(tmp_path.resolve() / "project", {"a": "1", "b/c": "2", "b/d": "3"})
    return tmp_path.resolve()


def test_everything_a_command_did_is_taken_back(top: Path) -> None:
    session = Session(top)
    before = snapshot(session.root)
    session.bash("rm -r b; echo > b; mkdir -p n/m; echo > n/m/o; chmod 755 a; echo more >> a; ln -s a l")
    taken = session.undo()
    assert taken.refused == {}
    assert session.names(taken.removed) == ["b", "l", "n/m/o"]
    assert session.names(taken.restored) == ["a", "b/c", "b/d"]
    assert snapshot(session.root) == before
    assert not (session.root / "n").exists()


def test_tools_and_commands_of_a_turn_are_taken_back_together(top: Path) -> None:
    session = Session(top)
    before = snapshot(session.root)
    session.write("a", "by Write")
    session.bash("echo by Bash >> a; mv a e; echo 9 > new")
    session.write("new", "by Write")
    assert session.names(session.changes.changed()) == ["a", "e", "new"]
    assert session.names(session.changes.written()) == ["a", "new"]
    assert session.undo().refused == {}
    assert snapshot(session.root) == before


def test_a_turn_at_a_time(top: Path) -> None:
    session = Session(top)
    session.bash("echo first > a")
    session.changes.begin_turn()
    session.bash("echo second > a; rm b/c")
    session.undo()
    assert ((session.root / "a").read_text(), (session.root / "b/c").read_text()) == ("first\n", "2")
    session.undo()
    assert (session.root / "a").read_text() == "1"
    assert session.undo() == TakenBack()


def test_what_was_changed_since_or_in_between_is_left_alone(top: Path) -> None:
    session = Session(top)
    session.bash("echo x > a; echo x > b/c; rm b/d")
    write(session.root, {"a": "by the user"})
    session.bash("echo y > a")
    write(session.root, {"b/c": "by the user"})
    taken = session.undo()
    assert {os.path.relpath(path, session.root): why for path, why in taken.refused.items()} == {
        "a": "it was changed from outside between two changes of this turn",
        "b/c": "it has changed since",
    }
    assert session.names(taken.restored) == ["b/d"]


def test_a_content_that_was_not_kept_is_told(top: Path) -> None:
    write(top / "project", {"large": "x" * 100})
    session = Session(top, WatchLimits(copied=50))
    session.bash("echo y > large; rm a")
    taken = session.undo()
    (why,) = taken.refused.values()
    assert why.startswith("its former content was not kept")
    assert session.names(taken.restored) == ["a"]


def test_a_large_file_that_was_created_is_removed(top: Path) -> None:
    session = Session(top, WatchLimits(largest=50))
    session.bash("head -c 100 /dev/zero > large")
    assert session.names(session.undo().removed) == ["large"]


def test_tracked_files_come_back_from_git(top: Path) -> None:
    root = top / "project"
    write(root, {f"many/{number}": f"{number}" for number in range(450)})
    git = (
        "git init -q . && git add -A && touch -d 2020-01-01 a b/* many/* && git add -A && git update-index -q --refresh"
    )
    subprocess.run(["bash", "-c", git], cwd=root, check=True)
    session = Session(top, WatchLimits(copied_files=0))
    before = {path: found for path, found in snapshot(root).items() if "/.git/" not in path}
    session.bash("rm -r b many; echo x > a")
    assert session.undo().refused == {}
    assert {path: found for path, found in snapshot(root).items() if "/.git/" not in path} == before


def test_a_change_that_was_restored_already_is_not_part_of_the_turn(top: Path) -> None:
    session = Session(top)
    session.watcher.settle()
    write(session.root, {"a": "x", "b/c": "y"})
    session.changes.note_command(session.watcher.settle(), restored=[str(session.root / "a")])
    assert session.names(session.undo().restored) == ["b/c"]


def test_a_change_by_a_tool_that_the_watch_saw_too_is_one_change(top: Path) -> None:
    session = Session(top)
    session.watcher.settle()
    session.write("a", "by Write")
    session.changes.note_command(session.watcher.settle())
    assert session.names(session.undo().restored) == ["a"]
    assert (session.root / "a").read_text() == "1"


def test_a_read_only_file_stays(top: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anything")
    session = Session(top)
    session.write("a", "x")
    (session.root / "a").chmod(0o444)
    assert list(session.undo().refused.values()) == ["it is read-only"]


def test_what_happened_to_a_file_is_news_once_and_only_in_the_end(tmp_path: Path) -> None:
    changes = FileChanges()
    added, changed, gone, back = (str(tmp_path / name) for name in ("added", "changed", "gone", "restored"))
    changes.note(added, None, b"1")
    changes.note(added, b"1", b"2")
    changes.note(changed, b"1", b"2")
    changes.note(gone, b"1", None)
    changes.note(back, b"1", b"2")
    changes.note(back, b"2", b"1")
    assert changes.take_news() == [(added, "add"), (changed, "change"), (gone, "unlink")]
    assert changes.take_news() == []
    changes.note(changed, b"2", b"3")
    assert changes.take_news() == [(changed, "change")]
    changes.note(changed, b"3", b"4")
    changes.begin_turn()
    assert changes.take_news() == []
