"""Grep's promises."""

import asyncio
import os
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.tools.session import Session
from tests.tools.trees import write
from tests.waiting import until
from wave_agent.tools.base import ToolInputError


async def grep(searcher: Session, pattern: str, **rest: object) -> list[str]:
    return (await searcher.call("Grep", pattern=pattern, **rest)).content.split("\n")


class TestGrep:
    FILES = MappingProxyType(
        {"a.py": "one\ntwo\nthree\nfour\n", "b/c.py": "two\r\nTwo\r\n", "d.txt": "two"}
        | {f"many/{number}": "zzz\n" for number in range(400)}  # so that rg is worth while
    )

    @pytest.mark.parametrize(
        ("tool_input", "lines"),
        [
            ({}, ["a.py", "b/c.py", "d.txt"]),
            ({"glob": "*.py"}, ["a.py", "b/c.py"]),
            ({"glob": "!*.py"}, ["d.txt"]),
            ({"glob": "b/**"}, ["b/c.py"]),
            ({"path": "b"}, ["b/c.py"]),
            ({"path": "a.py", "output_mode": "count"}, ["a.py:1"]),
            ({"output_mode": "count", "-i": True}, ["a.py:1", "b/c.py:2", "d.txt:1"]),
            ({"output_mode": "content"}, ["a.py:2:two", "b/c.py:1:two", "d.txt:1:two"]),
            ({"output_mode": "content", "-n": False, "path": "d.txt"}, ["d.txt:two"]),
            ({"output_mode": "content", "path": "a.py", "-A": 1}, ["a.py:2:two", "a.py-3-three"]),
            ({"output_mode": "content", "path": "a.py", "-B": 1}, ["a.py-1-one", "a.py:2:two"]),
            (
                {"output_mode": "content", "glob": "*.py", "-C": 1},
                ["a.py-1-one", "a.py:2:two", "a.py-3-three", "--", "b/c.py:1:two", "b/c.py-2-Two"],
            ),
            ({"pattern": "two$", "output_mode": "count"}, ["a.py:1", "b/c.py:1", "d.txt:1"]),
            ({"pattern": "^t.*e$"}, ["a.py"]),
            ({"pattern": "o\nt", "multiline": True, "output_mode": "content"}, ["a.py:2:two", "a.py:3:three"]),
            ({"pattern": "e.*u", "multiline": True, "output_mode": "count"}, ["a.py:4"]),
            ({"pattern": "o\r?\nT", "multiline": True}, ["b/c.py"]),
            ({"pattern": r"o\nt"}, ["No matches found.", "[Set multiline to match across lines]"]),
            ({"path": "d.txt"}, ["d.txt:1:two"]),  # who searches one file knows its name
            ({"path": "d.txt", "output_mode": "files_with_matches"}, ["d.txt"]),
            ({"pattern": r"(?<=t)wo", "glob": "a.py"}, ["a.py"]),  # rg alone would refuse it
            ({"pattern": "[[:alpha:]]{5}"}, ["a.py"]),
            (
                {"pattern": "two", "glob": "*.{py"},
                ["No matches found.", "[The glob *.{py has a { without a }, so it is matched literally]"],
            ),
            ({"pattern": r"(?<first>t)(?P=first)"}, ["No matches found."]),
        ],
    )
    async def test_what_is_found(self, searcher: Session, tool_input: dict[str, Any], lines: list[str]) -> None:
        write(searcher.project, self.FILES)
        assert await grep(searcher, **{"pattern": "two", **tool_input}) == lines

    async def test_hooks_get_the_fields(self, searcher: Session) -> None:
        write(searcher.project, self.FILES)
        result = await searcher.call("Grep", pattern="four", output_mode="content")
        assert result.response == {
            "mode": "content",
            "filenames": [f"{searcher.project}/a.py"],
            "numFiles": 1,
            "numLines": 1,
            "content": "a.py:4:four",
            "truncated": False,
        }

    async def test_output_is_cut_at_the_limit_with_a_note(self, searcher: Session) -> None:
        write(searcher.project, {"a.txt": "x\n" * 300})
        lines = await grep(searcher, "x", output_mode="content")
        assert lines[249].startswith("a.txt:250:")
        more = "Narrow the search with path or glob, or raise head_limit"
        assert lines[250:] == [f"[The first 250 lines are shown, and there are more. {more}]"]
        assert len(await grep(searcher, "x", output_mode="content", head_limit=3)) == 4
        assert len(await grep(searcher, "x", output_mode="content", head_limit=300)) == 300
        assert len(await grep(searcher, "x", output_mode="content", head_limit=0)) == 300

    async def test_output_is_bounded_without_a_limit_too(self, searcher: Session) -> None:
        write(searcher.project, {"a.txt": ("x" * 100 + "\n") * 3000})
        result = await searcher.call("Grep", pattern="x", output_mode="content", head_limit=0)
        assert len(result.content) < 30_500
        assert result.response["truncated"]

    async def test_a_list_is_cut_at_the_limit_and_not_at_it(self, searcher: Session) -> None:
        write(searcher.project, {f"{number:03}.txt": "x\nx\n" for number in range(5)})
        assert (await grep(searcher, "x", head_limit=4))[4].startswith("[The first 4 lines are shown, and there are")
        assert len(await grep(searcher, "x", head_limit=5)) == 5
        assert len(await grep(searcher, "x", head_limit=10, output_mode="content")) == 10
        assert len(await grep(searcher, "x", head_limit=9, output_mode="content")) == 10

    async def test_a_full_answer_is_not_lost_to_a_file_that_takes_for_ever(self, searcher: Session) -> None:
        write(searcher.project, {"a.txt": "ab\nab\n", "b.txt": "a" * 60})
        (line, note) = await grep(searcher, "(?:a|a)*(?=b)", output_mode="content", head_limit=1)
        assert line == "a.txt:1:ab"
        assert "there are more" in note

    async def test_a_result_takes_at_most_a_quarter_of_the_window(self, searcher: Session) -> None:
        write(searcher.project, {"a.txt": ("x" * 100 + "\n") * 3000})
        searcher.window = 8000
        for limit in (0, 2900):
            result = await searcher.call("Grep", pattern="x", output_mode="content", head_limit=limit)
            assert 5000 < len(result.content) <= 6000
            assert "and there are more. Narrow the search with path or glob: one result holds no more" in result.content

    async def test_who_asks_for_more_gets_it_within_the_quarter(self, searcher: Session) -> None:
        write(searcher.project, {"a.txt": ("x" * 100 + "\n") * 3000})
        searcher.window = 100_000
        result = await searcher.call("Grep", pattern="x", path="a.txt", head_limit=2000)
        assert result.long
        assert 70_000 < len(result.content) <= 75_000
        assert len((await searcher.call("Grep", pattern="x", path="a.txt")).content) <= 30_000

    async def test_a_long_line_is_shown_around_the_match(self, searcher: Session) -> None:
        write(searcher.project, {"a.js": "x" * 5000 + "needle" + "y" * 5000})
        (line,) = await grep(searcher, "needle", output_mode="content")
        assert line == f"a.js:1:[…] {'x' * 200}needle{'y' * 794} […]"

    @pytest.mark.parametrize("pattern", ["(", "[z-a]", "*", r"\p{L}", "x{99999999999}"])
    async def test_an_invalid_pattern_is_wrong_input(self, searcher: Session, pattern: str) -> None:
        write(searcher.project, self.FILES)
        with pytest.raises(ToolInputError, match=r"not a valid regular expression.*put a backslash before it"):
            await grep(searcher, pattern)

    async def test_encodings_are_understood_and_binary_files_left_out(self, searcher: Session) -> None:
        write(
            searcher.project,
            {
                "latin": "café".encode("latin-1"),
                "utf-8": "café".encode(),
                "utf-16": "café".encode("utf-16"),
                "bom": b"\xef\xbb\xbf" + "café".encode(),
                "binary": "café".encode() + b"\0",
            },
        )
        assert await grep(searcher, "^café$") == ["bom", "latin", "utf-16", "utf-8"]

    async def test_links_are_not_followed(self, searcher: Session, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("two")
        (searcher.project / "link").symlink_to(tmp_path / "secret")
        assert await grep(searcher, "two") == ["No matches found."]

    async def test_a_missing_path_is_told_the_nearest_name(self, searcher: Session) -> None:
        write(searcher.project, self.FILES)
        result = await searcher.call("Grep", pattern="x", path="a.pi")
        assert not result.ran
        assert "Did you mean" in result.content

    async def test_files_that_cannot_be_searched_are_counted(self, searcher: Session) -> None:
        with (searcher.project / "big").open("wb") as file:
            file.truncate((64 << 20) + 1)
        lines = await grep(searcher, "x")
        assert lines == ["No matches found.", "[1 file was skipped: larger than 64 MiB, or unreadable]"]

    @pytest.mark.parametrize(
        ("tool_input", "named"),
        [({}, "pattern"), ({"pattern": "x", "output_mode": "all"}, "output_mode"), ({"pattern": "x", "-A": -1}, "-A")],
    )
    async def test_input_that_does_not_fit_is_named(
        self, searcher: Session, tool_input: dict[str, object], named: str
    ) -> None:
        with pytest.raises(ToolInputError, match=named):
            await searcher.call("Grep", **tool_input)

    @pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for the process through /proc")
    async def test_a_pattern_that_takes_for_ever_can_be_cancelled(self, searcher: Session) -> None:
        write(searcher.project, {"a.txt": "a" * 60})  # a pattern that rg is not asked about
        call = asyncio.create_task(searcher.call("Grep", pattern="(?:a|a)*(?=b)"))
        project = str(searcher.project).encode()

        def searching() -> bool:
            return any(project in command_line(pid) for pid in os.listdir("/proc") if pid.isdigit())

        await until(searching)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not searching()


def command_line(pid: str) -> bytes:
    """Empty for a zombie."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
