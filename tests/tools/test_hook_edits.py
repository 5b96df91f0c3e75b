"""What hooks change on disk after a tool: whose change it is, what the model sees of it, and what undo takes back."""

import os
from pathlib import Path

import pytest

from wave_agent.tools import hook_edits
from wave_agent.tools.changes import FileChanges
from wave_agent.tools.files import SIZE_LIMIT, FileRefusedError
from wave_agent.tools.hook_edits import HookEdit, WatchedFile, describe, look, settle


class Disk:
    """One file that a tool has written, and what may happen to it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.file = directory / "a.txt"
        self.changes = FileChanges()

    def write(self, content: bytes, name: str = "a.txt") -> Path:
        """As Write and Edit do it."""
        path = self.directory / name
        before = path.read_bytes() if path.exists() else None
        path.write_bytes(content)
        self.changes.known.note(str(path), content)
        self.changes.note(str(path), before, content)
        return path

    def read(self, content: bytes, name: str) -> Path:
        path = self.directory / name
        path.write_bytes(content)
        self.changes.known.note(str(path), content)
        return path

    def knows(self, path: Path) -> bool:
        try:
            self.changes.known.check(str(path), path.read_bytes())
        except FileRefusedError:
            return False
        return True

    def edits(self, before: dict[str, WatchedFile]) -> str:
        return describe(settle(self.changes, before, seen=True), ["format"])


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path.resolve())


def test_what_a_hook_left_is_known_shown_and_taken_back(disk: Disk) -> None:
    disk.file.write_bytes(b"x\n")
    disk.write(b"x=1\n")
    before = look(disk.changes)
    disk.file.write_bytes(b"x = 1\n")
    assert disk.edits(before) == f"Hook format then changed {disk.file}:\n@@ -1 +1 @@\n-x=1\n+x = 1"
    assert disk.knows(disk.file)
    assert disk.changes.take_back().restored == (str(disk.file),)
    assert disk.file.read_bytes() == b"x\n"


def test_a_change_within_the_clocks_grain_that_keeps_the_size_is_seen(disk: Disk) -> None:
    disk.write(b"'a'")
    facts = os.stat(disk.file)
    before = look(disk.changes)
    disk.file.write_bytes(b'"a"')
    os.utime(disk.file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert len(settle(disk.changes, before, seen=True)) == 1


def test_an_old_file_is_read_again_only_if_it_has_changed(disk: Disk) -> None:
    known = disk.read(b"one\n", "old")
    (fresh,) = look(disk.changes).values()
    assert fresh.signature is None
    facts = os.stat(known)
    signature = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
    seen = {str(known): WatchedFile(b"one\n", signature)}
    assert look(disk.changes, seen) == seen
    assert settle(disk.changes, seen, seen=True) == ()
    known.write_bytes(b"two two\n")
    assert look(disk.changes, seen)[str(known)].data == b"two two\n"
    assert len(settle(disk.changes, seen, seen=True)) == 1


def test_a_file_that_somebody_changed_before_the_hooks_began_stays_protected(disk: Disk) -> None:
    disk.write(b"x=1\n")
    disk.file.write_bytes(b"mine\n")
    before = look(disk.changes)
    disk.file.write_bytes(b"mine, formatted\n")
    assert disk.edits(before) == ""
    assert not disk.knows(disk.file)
    assert disk.changes.take_back().refused == {str(disk.file): "it has changed since"}


def test_a_file_that_somebody_changes_after_the_hooks_have_ended_is_protected(disk: Disk) -> None:
    disk.write(b"x=1\n")
    before = look(disk.changes)
    disk.file.write_bytes(b"x = 1\n")
    settle(disk.changes, before, seen=True)
    disk.file.write_bytes(b"mine\n")
    assert not disk.knows(disk.file)
    assert disk.changes.take_back().refused == {str(disk.file): "it has changed since"}


def test_undo_does_not_destroy_what_somebody_changed_between_two_edits(disk: Disk) -> None:
    disk.file.write_bytes(b"one\n")
    disk.write(b"two\n")
    disk.file.write_bytes(b"mine\n")
    disk.changes.note(str(disk.file), b"mine\n", b"mine and three\n")
    disk.file.write_bytes(b"mine and three\n")
    why = "it was changed from outside between two changes of this turn"
    assert disk.changes.take_back().refused == {str(disk.file): why}
    assert disk.file.read_bytes() == b"mine and three\n"


def test_a_file_that_a_hook_deleted_comes_back(disk: Disk) -> None:
    disk.file.write_bytes(b"old\n")
    disk.write(b"new\n")
    before = look(disk.changes)
    disk.file.unlink()
    assert disk.edits(before) == f"Hook format then deleted {disk.file}."
    assert disk.changes.take_back().restored == (str(disk.file),)
    assert disk.file.read_bytes() == b"old\n"


def test_a_new_file_that_a_hook_deleted_leaves_nothing_to_take_back(disk: Disk) -> None:
    other = disk.write(b"other", "other.txt")
    disk.changes.begin_turn()
    disk.write(b"new\n")
    before = look(disk.changes)
    disk.file.unlink()
    settle(disk.changes, before, seen=True)
    assert disk.changes.take_back().removed == (str(other),)


def test_a_hook_that_renames_a_file_deletes_it_under_the_name_that_is_known(disk: Disk) -> None:
    disk.write(b"new\n")
    before = look(disk.changes)
    disk.file.rename(disk.directory / "b.txt")
    assert disk.edits(before) == f"Hook format then deleted {disk.file}."


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (b"\0\1\2", ": it is a binary file now (3 bytes)."),
        (b"x=1\r\ny\r\n", ", but only its line endings or its encoding."),
        (b"\xef\xbb\xbfx=1\ny\n", ", but only its line endings or its encoding."),
    ],
)
def test_what_is_no_change_of_text_is_said_in_words(disk: Disk, after: bytes, told: str) -> None:
    disk.write(b"x=1\ny\n")
    before = look(disk.changes)
    disk.file.write_bytes(after)
    assert disk.edits(before) == f"Hook format then changed {disk.file}{told}"
    assert disk.knows(disk.file)


def test_binary_content_that_becomes_text_is_shown_as_new(disk: Disk) -> None:
    disk.write(b"\0\0")
    before = look(disk.changes)
    disk.file.write_bytes(b"text\n")
    assert disk.edits(before).endswith("+text")


def test_what_cannot_be_read_any_more_is_named_and_left_alone_by_undo(disk: Disk) -> None:
    disk.write(b"x=1\n")
    before = look(disk.changes)
    with disk.file.open("wb") as file:
        file.truncate(SIZE_LIMIT + 1)
    told = disk.edits(before)
    assert told.startswith(f"Hook format then changed a file: {disk.file} is too large")
    assert "too large" in disk.changes.take_back().refused[str(disk.file)]


def test_a_file_that_a_hook_turned_into_a_link_is_another_file(disk: Disk) -> None:
    disk.write(b"x=1\n")
    before = look(disk.changes)
    (disk.directory / "target").write_bytes(b"secret")
    disk.file.unlink()
    disk.file.symlink_to("target")
    told = disk.edits(before)
    assert told == f"Hook format then changed a file: {disk.file} is a symbolic link now."
    assert not disk.knows(disk.directory / "target")


def test_a_hook_that_was_ended_halfway_can_be_undone_but_nobody_has_seen_what_it_did(disk: Disk) -> None:
    disk.write(b"x=1\n")
    before = look(disk.changes)
    disk.file.write_bytes(b"x =")
    settle(disk.changes, before, seen=False)
    assert not disk.knows(disk.file)
    assert disk.changes.take_back().removed == (str(disk.file),)


def test_files_that_were_only_read_are_watched_within_a_budget(disk: Disk) -> None:
    large = disk.read(b"x" * (hook_edits.MEMORY + 1), "large")
    small = [disk.read(b"x", f"small{number}") for number in range(hook_edits.FILES + 1)]
    disk.read(b"gone", "gone").unlink()
    written = disk.write(b"y" * (hook_edits.MEMORY + 1), "written")
    before = look(disk.changes)
    assert str(written) in before
    assert str(large) not in before
    assert str(small[-1]) in before
    assert str(small[0]) not in before
    assert len(before) <= hook_edits.FILES + 1


def test_two_windows_that_overlap_note_a_change_once(disk: Disk) -> None:
    disk.write(b"x=1\n")
    one, other = look(disk.changes), look(disk.changes)
    disk.file.write_bytes(b"x = 1\n")
    assert len(settle(disk.changes, one, seen=True)) == 1
    assert settle(disk.changes, other, seen=True) == ()
    assert disk.knows(disk.file)


def test_what_the_model_is_given_is_bounded() -> None:
    lines = "\n".join(f"line {number}" for number in range(190)).encode()
    edits = [HookEdit(f"/p/{number}", lines.replace(b"line", b"was" * 20), lines) for number in range(30)]
    told = describe(edits, ["a", "b\x1b[31m"])
    assert told.startswith("One of the hooks a, b then changed /p/0:\n@@ ")
    assert len(told) < 2 * hook_edits.SHOWN
    assert "[the rest of this diff is omitted: Read the file before you change it again]" in told
    assert "One of the hooks a, b then changed /p/19:" in told
    assert told.endswith("One of the hooks a, b then changed 10 more files that you have read.")


def test_nothing_of_the_content_is_shown_where_results_are_replaced() -> None:
    told = describe([HookEdit("/p/a", b"hunter2", b"hunter3")], ["format"], shown=False)
    assert "hunter" not in told
    assert told.startswith("Hook format then changed /p/a. The diff is not shown: ")
