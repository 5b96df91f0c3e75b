"""Write's promises, and what Edit shares with it."""

import asyncio
import os
import stat
from pathlib import Path

import pytest

from tests.tools.session import Session
from wave_agent.tools.base import ToolInputError

# What each tool needs to change a file that holds "old\n".
CHANGES = {"Write": {"content": "new\n"}, "Edit": {"old_string": "old", "new_string": "new"}}

each_tool = pytest.mark.parametrize("tool", CHANGES)


async def change(session: Session, tool: str, path: str = "a.txt", *, read: bool = True):
    if read:
        await session.call("Read", file_path=path)
    return await session.call(tool, file_path=path, **CHANGES[tool])


class TestWrite:
    async def test_a_new_file_is_made_with_its_directories(self, session: Session) -> None:
        result = await session.call("Write", file_path="a/b/c.txt", content="é\nb\n")
        path = session.project / "a/b/c.txt"
        assert path.read_bytes() == "é\nb\n".encode()
        assert result.content == f"Created {path} (2 lines)."
        assert result.response["filePath"] == str(path)
        assert result.response["success"] is True
        assert result.response["type"] == "create"

    async def test_content_is_written_as_it_is(self, session: Session) -> None:
        await session.call("Write", file_path="a", content="a\r\nb\rc\n\n")
        assert (session.project / "a").read_bytes() == b"a\r\nb\rc\n\n"

    async def test_a_new_file_has_the_mode_that_the_umask_leaves(self, session: Session) -> None:
        before = os.umask(0o027)
        try:
            await session.call("Write", file_path="a", content="")
        finally:
            os.umask(before)
        assert stat.S_IMODE((session.project / "a").stat().st_mode) == 0o640

    async def test_what_was_replaced_is_shown_as_a_diff(self, session: Session) -> None:
        session.file("a.txt", "old\n")
        result = await change(session, "Write")
        assert result.content == f"Replaced {session.project}/a.txt (1 line).\n@@ -1 +1 @@\n-old\n+new"
        assert result.response["type"] == "update"

    async def test_what_was_written_need_not_be_read_to_be_changed(self, session: Session) -> None:
        await session.call("Write", file_path="a.txt", content="old\n")
        assert (await session.call("Edit", file_path="a.txt", old_string="old", new_string="new")).success
        assert (await session.call("Write", file_path="a.txt", content="newer\n")).success

    async def test_a_file_that_could_not_be_shown_may_not_be_replaced(self, session: Session) -> None:
        path = session.file("a.txt", b"\0\1\2")
        result = await change(session, "Write")
        assert not result.ran
        assert "has not been read" in result.content
        assert path.read_bytes() == b"\0\1\2"

    @pytest.mark.parametrize(
        ("before", "content", "after"),
        [
            (b"a\r\nb\r\n", "c\nd\n", b"c\r\nd\r\n"),
            (b"a\r\nb\r\n", "c\r\nd\n", b"c\r\nd\n"),  # it says itself which it wants
            (b"a\nb\nc\r\n", "c\nd\n", b"c\nd\n"),
            (b"a", "c\nd\n", b"c\nd\n"),
        ],
        ids=["CRLF", "CRLF, and some in the content", "mostly LF", "one line"],
    )
    async def test_a_file_keeps_its_line_ends(
        self, session: Session, before: bytes, content: str, after: bytes
    ) -> None:
        path = session.file("a.txt", before)
        await session.call("Read", file_path="a.txt")
        await session.call("Write", file_path="a.txt", content=content)
        assert path.read_bytes() == after
        await session.call("Edit", file_path="a.txt", old_string="d", new_string="e")
        assert path.read_bytes() == after.replace(b"d", b"e")

    async def test_a_dangling_link_gets_its_target(self, session: Session, tmp_path: Path) -> None:
        (session.project / "link").symlink_to(tmp_path / "there")
        await session.call("Write", file_path="link", content="x")
        assert (tmp_path / "there").read_text() == "x"
        assert (session.project / "link").is_symlink()

    async def test_half_a_surrogate_pair_is_wrong_input(self, session: Session) -> None:
        with pytest.raises(ToolInputError, match="surrogate"):
            await session.call("Write", file_path="a", content="\ud800")
        assert not (session.project / "a").exists()

    async def test_a_file_among_the_directories_is_told(self, session: Session) -> None:
        session.file("a.txt", "x")
        result = await session.call("Write", file_path="a.txt/b/c", content="x")
        assert not result.ran
        assert "not a directory" in result.content

    @pytest.mark.parametrize(
        ("tool_input", "named"),
        [
            ({"content": ""}, "file_path"),
            ({"file_path": "a"}, "content"),
            ({"file_path": "", "content": ""}, "file_path"),
        ],
    )
    async def test_input_that_does_not_fit_is_named(
        self, session: Session, tool_input: dict[str, object], named: str
    ) -> None:
        with pytest.raises(ToolInputError, match=named):
            await session.call("Write", **tool_input)


@each_tool
class TestBoth:
    async def test_a_file_that_was_not_read_is_refused_with_what_to_do(self, session: Session, tool: str) -> None:
        path = session.file("a.txt", "old\n")
        result = await change(session, tool, read=False)
        assert (result.success, result.ran) == (False, False)
        assert f'Read it first: call Read with {{"file_path": "{path}"}}' in result.content
        assert ("use Edit instead" in result.content) is (tool == "Write")
        assert path.read_text() == "old\n"

    async def test_a_file_that_has_changed_since_is_refused_with_what_to_do(self, session: Session, tool: str) -> None:
        path = session.file("a.txt", "old\n")
        await session.call("Read", file_path="a.txt")
        facts = path.stat()
        path.write_text("OLD\n")
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))  # neither time nor size tells
        result = await change(session, tool, read=False)
        assert not result.ran
        assert "Read it again" in result.content
        assert path.read_text() == "OLD\n"

    async def test_a_file_that_was_only_touched_has_not_changed(self, session: Session, tool: str) -> None:
        path = session.file("a.txt", "old\n")
        await session.call("Read", file_path="a.txt")
        os.utime(path, (1, 1))
        assert (await change(session, tool, read=False)).success

    async def test_reading_a_part_is_enough(self, session: Session, tool: str) -> None:
        session.file("a.txt", "old\n\n\n")
        await session.call("Read", file_path="a.txt", offset=2, limit=1)
        assert (await change(session, tool, read=False)).success

    @pytest.mark.parametrize("mode", [0o755, 0o600, 0o664])
    async def test_the_mode_is_kept(self, session: Session, tool: str, mode: int) -> None:
        path = session.file("a.txt", "old\n")
        path.chmod(mode)
        await change(session, tool)
        assert path.read_text() == "new\n"
        assert stat.S_IMODE(path.stat().st_mode) == mode

    async def test_a_link_stays_one_and_its_target_is_written(
        self, session: Session, tool: str, tmp_path: Path
    ) -> None:
        target = tmp_path / "target"
        target.write_text("old\n")
        (session.project / "a.txt").symlink_to(target)
        await change(session, tool)
        assert target.read_text() == "new\n"
        assert (session.project / "a.txt").is_symlink()

    async def test_reading_the_target_counts_for_the_link(self, session: Session, tool: str, tmp_path: Path) -> None:
        target = tmp_path / "target"
        target.write_text("old\n")
        (session.project / "a.txt").symlink_to(target)
        await session.call("Read", file_path=str(target))
        assert (await change(session, tool, read=False)).success

    async def test_a_link_to_itself_is_refused(self, session: Session, tool: str) -> None:
        (session.project / "a.txt").symlink_to("a.txt")
        result = await change(session, tool, read=False)
        assert not result.ran
        assert "leads back to itself" in result.content

    async def test_a_directory_or_a_device_is_not_replaced(self, session: Session, tool: str) -> None:
        os.mkfifo(session.project / "pipe")
        for path in (".", "pipe", "/dev/null"):
            assert not (await change(session, tool, path, read=False)).ran
        assert stat.S_ISFIFO((session.project / "pipe").stat().st_mode)

    async def test_nobody_sees_half_of_it_and_nothing_else_is_left(self, session: Session, tool: str) -> None:
        path = session.file("a.txt", "old\n")
        with path.open() as opened:
            await change(session, tool)
            assert opened.read() == "old\n"  # the old file is whole for whoever has it open
        assert os.listdir(session.project) == ["a.txt"]

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
    async def test_a_read_only_file_is_refused(self, session: Session, tool: str) -> None:
        session.file("a.txt", "old\n").chmod(0o444)
        assert "read-only" in (await change(session, tool)).content

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
    async def test_a_directory_without_permission_is_told_and_nothing_is_left(
        self, session: Session, tool: str
    ) -> None:
        session.file("a.txt", "old\n")
        session.project.chmod(0o555)
        try:
            assert "cannot be written" in (await change(session, tool)).content
        finally:
            session.project.chmod(0o755)
        assert os.listdir(session.project) == ["a.txt"]

    async def test_what_was_cancelled_is_over(self, session: Session, tool: str) -> None:
        path = session.file("a.txt", "old\n")
        await session.call("Read", file_path="a.txt")
        call = asyncio.create_task(change(session, tool, read=False))
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait([call])
        content = path.read_bytes()
        assert content in (b"old\n", b"new\n")
        await session.bash("true")
        assert path.read_bytes() == content
        assert os.listdir(session.project) == ["a.txt"]


async def test_parallel_edits_of_one_file_do_not_undo_each_other(session: Session) -> None:
    names = [f"<{number}>" for number in range(20)]
    path = session.file("a.txt", "".join(f"{name}\n" for name in names))
    await session.call("Read", file_path="a.txt")
    results = await asyncio.gather(
        *(session.call("Edit", file_path="a.txt", old_string=name, new_string=name.upper() + "!") for name in names)
    )
    assert all(result.success for result in results)
    assert path.read_text() == "".join(f"{name}!\n" for name in names)
