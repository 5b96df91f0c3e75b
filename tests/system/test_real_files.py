"""What was judged is what is opened, and no other file."""

import errno
import os
from pathlib import Path

import pytest

from wave_agent.system.real_files import (
    ReplacedError,
    look,
    open_file,
    opened_directory,
    read_at_most,
    resolve,
    resolve_or_keep,
)


def content(real: str) -> bytes:
    descriptor = open_file(real)
    try:
        return read_at_most(descriptor, 100)[0]
    finally:
        os.close(descriptor)


def test_a_file_is_opened_by_its_real_path_and_through_no_link(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "x"
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "a" / "b" / "to").symlink_to("x")
    assert content(str(file)) == b"mine"
    for path in (tmp_path / "link" / "b" / "x", tmp_path / "a" / "b" / "to"):
        assert resolve(str(path)) == str(file)
        with pytest.raises(OSError, match=r"replaced|Not a directory"):
            open_file(str(path))


def test_directories_are_made_in_the_one_that_was_resolved(tmp_path: Path) -> None:
    with opened_directory(str(tmp_path / "new" / "inner"), make=True) as directory:
        os.close(os.open("x", os.O_WRONLY | os.O_CREAT, dir_fd=directory))
    assert (tmp_path / "new" / "inner" / "x").exists()
    (tmp_path / "link").symlink_to("new")
    with pytest.raises(OSError, match=r"replaced|Not a directory"), opened_directory(str(tmp_path / "link"), make=True):
        pass
    with pytest.raises(FileNotFoundError), opened_directory(str(tmp_path / "none" / "x")):
        pass


def test_what_a_look_saw_is_told_from_what_is_there_now(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("old")
    seen = look(str(file))
    seen.check_file(file.stat())
    seen.check_parent(tmp_path.stat())
    (tmp_path / "new").write_text("new")
    os.replace(tmp_path / "new", file)
    with pytest.raises(ReplacedError, match="try again"):
        seen.check_file(file.stat())
    (tmp_path / "other").mkdir()
    with pytest.raises(ReplacedError):
        seen.check_parent((tmp_path / "other").stat())


def test_one_that_was_not_there_must_not_have_appeared(tmp_path: Path) -> None:
    seen = look(str(tmp_path / "no" / "x"))
    assert (seen.parent, seen.file) == (None, None)
    (tmp_path / "no").mkdir()
    (tmp_path / "no" / "x").touch()
    seen.check_parent((tmp_path / "no").stat())
    with pytest.raises(ReplacedError):
        seen.check_file((tmp_path / "no" / "x").stat())


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("/a\0b", errno.EINVAL),
        ("/\ud800", errno.EILSEQ),
        ("/" + "x" * 300, errno.ENAMETOOLONG),
        ("/" + "x/" * 3000, errno.ENAMETOOLONG),
    ],
)
def test_what_cannot_be_a_path_is_an_error_of_the_system(path: str, number: int) -> None:
    with pytest.raises(OSError) as raised:  # noqa: PT011  # its number is looked at
        look(path)
    assert raised.value.errno == number
    assert raised.value.strerror


def test_a_link_to_itself_is_told(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="points back to itself"):
        look(str(tmp_path / "loop"))
    with pytest.raises(OSError, match="symbolic links"):
        look(str(tmp_path / "loop" / "x"))


def test_two_leading_slashes_are_one(tmp_path: Path) -> None:
    assert resolve(f"/{tmp_path}") == str(tmp_path)
    assert resolve_or_keep("a\0b") == "a\0b"


def test_no_more_is_read_than_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"x" * 300_000)
    descriptor = open_file(str(file))
    assert read_at_most(descriptor, 1000) == (b"x" * 1000, False)
    os.lseek(descriptor, 0, os.SEEK_SET)
    assert read_at_most(descriptor, 300_000) == (b"x" * 300_000, True)
    os.close(descriptor)


def test_a_pipe_is_opened_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    os.close(open_file(str(tmp_path / "pipe")))
