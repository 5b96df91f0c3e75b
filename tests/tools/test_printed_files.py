"""A file that a command printed whole may be changed without Read."""

import pytest

from tests.tools.session import Session

NOT_READ = "has not been read"


async def edited(session: Session, command: str, name: str = "a.txt") -> str:
    await session.bash(command)
    return (await session.call("Edit", file_path=name, old_string="old", new_string="new")).content


@pytest.mark.parametrize(
    "command",
    ["cat a.txt", "cat ./a.txt", "cat -- 'a.txt'", "cat a.txt b.txt", "head -n 100 a.txt", "sed -n '1,$p' a.txt"],
)
async def test_printed_whole(session: Session, command: str) -> None:
    session.file("a.txt", "old\n")
    session.file("b.txt", "more\n")
    assert NOT_READ not in await edited(session, command)


@pytest.mark.parametrize(
    "command",
    [
        "head -n 1 a.txt", "cat -n a.txt", "cat a.txt missing.txt", "cat a.txt; true", "cat *.txt", "cat 'a.txt",
        "catalogue a.txt", "head -n 100 a.txt b.txt", "ls a.txt", "cat", f"cat {'./' * 600}a.txt",
    ],
)  # fmt: skip
async def test_printed_in_part_otherwise_or_perhaps(session: Session, command: str) -> None:
    session.file("a.txt", "old\nold\n")
    session.file("b.txt", "more\n")
    assert NOT_READ in await edited(session, command)


async def test_printed_where_the_last_command_went(session: Session) -> None:
    session.file("a.txt", "other\n")
    session.file("sub/a.txt", "old\n")
    await session.bash("cd sub")
    assert NOT_READ not in await edited(session, "cat a.txt", "sub/a.txt")
    assert NOT_READ in (await session.call("Write", file_path="a.txt", content="x")).content


async def test_changed_since(session: Session) -> None:
    path = session.file("a.txt", "old\n")
    await session.bash("cat a.txt")
    path.write_text("old, changed\n")
    assert "has changed since" in (await session.call("Write", file_path="a.txt", content="x")).content


async def test_bytes_that_are_no_text(session: Session) -> None:
    session.file("a.txt", b"old \xff\n")
    assert NOT_READ in await edited(session, "cat a.txt")


async def test_more_than_is_shown(session: Session) -> None:
    session.file("a.txt", "old\n" + "line\n" * 100_000)
    assert NOT_READ in await edited(session, "cat a.txt")
