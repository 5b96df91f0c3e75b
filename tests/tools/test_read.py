"""Read's promises."""

import json
import os
import shutil
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.tools.session import Session
from wave_agent.tools.base import ToolInputError


async def test_lines_are_numbered(session: Session) -> None:
    path = session.file("a.txt", "one\ntwo\n")
    result = await session.call("Read", file_path="a.txt")
    assert result.content == "     1\tone\n     2\ttwo"
    assert result.response["file"] == {
        "content": "one\ntwo",
        "filePath": str(path),
        "numLines": 2,
        "startLine": 1,
        "totalLines": 2,
    }


async def test_only_newlines_end_lines(session: Session) -> None:
    session.file("a.txt", "one\x0bstill\u2028one\x0c\r\ntwo")
    assert (await session.call("Read", file_path="a.txt")).content == "     1\tone\x0bstill\u2028one\x0c\n     2\ttwo"


async def test_offset_and_limit_choose_lines_counted_from_one(session: Session) -> None:
    session.file("a.txt", "".join(f"line {number}\n" for number in range(1, 11)))
    result = await session.call("Read", file_path="a.txt", offset=3, limit=2)
    assert result.content == "     3\tline 3\n     4\tline 4\n[Lines 3 to 4 of 10. Continue with offset 5]"
    assert result.response["file"]["numLines"] == 2
    assert (await session.call("Read", file_path="a.txt", offset=10)).content == "    10\tline 10"


async def test_lines_that_are_shown_with_an_escape_are_named(session: Session) -> None:
    session.file("a.txt", "plain\n" + "<hook>\n" * 12 + "&lt;hook>\n")
    content = (await session.call("Read", file_path="a.txt", offset=2)).content
    assert content.endswith(" Edit and Write need the file's own characters]")
    assert "[Lines 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 …: " in content
    session.file("b.txt", "&lt;hook>\n<HookForm>\n")
    assert "stands for" not in (await session.call("Read", file_path="b.txt")).content


async def test_offset_zero_is_the_beginning(session: Session) -> None:
    session.file("a.txt", "one")
    assert (await session.call("Read", file_path="a.txt", offset=0)).content == "     1\tone"


async def test_an_offset_behind_the_end_is_told_where_that_is(session: Session) -> None:
    session.file("a.txt", "one\n")
    result = await session.call("Read", file_path="a.txt", offset=2)
    assert not result.ran
    assert "only 1 lines" in result.content


async def test_two_thousand_lines_come_unasked(session: Session) -> None:
    session.file("a.txt", "x\n" * 2001)
    lines = (await session.call("Read", file_path="a.txt")).content.split("\n")
    assert lines[1999:] == ["  2000\tx", "[Lines 1 to 2000 of 2,001. Continue with offset 2001]"]


async def test_long_lines_are_cut_with_a_note(session: Session) -> None:
    session.file("a.txt", "x" * 2001 + "\n" + "y" * 2000)
    first, second = (await session.call("Read", file_path="a.txt")).content.split("\n")
    assert first == f"     1\t{'x' * 2000} [… 1 more characters in this line]"
    assert second == f"     2\t{'y' * 2000}"


async def test_all_lines_together_are_bounded(session: Session) -> None:
    session.file("a.txt", ("x" * 1500 + "\n") * 500)
    content = (await session.call("Read", file_path="a.txt")).content
    assert len(content) <= 30_000
    assert content.endswith("[Lines 1 to 19 of 500, the most one result can hold. Continue with offset 20]")


async def test_an_empty_file_is_said_to_be_empty(session: Session) -> None:
    session.file("a.txt")
    result = await session.call("Read", file_path="a.txt")
    assert (result.content, result.success) == ("[The file is empty]", True)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n....", "a PNG image"),  # cut off, as are the next two
        (b"\xff\xd8\xff\xe0", "a JPEG image"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "a WebP image"),
        (b"PK\x03\x04....", "a ZIP archive"),
        (b"text\0text", "a binary file"),
        (bytes(range(1, 32)), "a binary file"),
        (b"\xff\xfe\x00", "a binary file"),
    ],
    ids=["png", "jpeg", "webp", "zip", "nul", "controls", "broken utf-16"],
)
async def test_what_is_no_text_is_said_and_not_dumped(session: Session, data: bytes, kind: str) -> None:
    path = session.file("a.bin", data)
    result = await session.call("Read", file_path="a.bin")
    assert result.content == f"{path} is {kind} ({len(data):,} bytes): it cannot be shown as text."
    assert (result.success, result.ran) == (False, False)


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("é".encode(), "é"),
        (b"\xef\xbb\xbfx", "x"),
        ("é".encode("utf-16"), "é"),
        (b"\xfe\xff" + "é".encode("utf-16-be"), "é"),
        ("é".encode("utf-32"), "é"),
        (b"\xe9", "é"),  # Latin-1
        ("é".encode() + b"\xe9", "é\ufffd"),  # UTF-8 with a stray byte
    ],
    ids=["utf-8", "utf-8 bom", "utf-16", "utf-16-be", "utf-32", "latin-1", "broken utf-8"],
)
async def test_encodings_are_understood(session: Session, data: bytes, shown: str) -> None:
    session.file("a.txt", data)
    assert (await session.call("Read", file_path="a.txt")).content == f"     1\t{shown}"


async def test_a_missing_file_is_told_the_nearest_name(session: Session) -> None:
    path = session.file("src/settings.py")
    result = await session.call("Read", file_path="src/setings.py")
    assert (result.success, result.ran) == (False, False)
    assert result.content.endswith(f"/src/setings.py does not exist. Did you mean {path}?")


async def test_a_missing_directory_is_told_the_nearest_name(session: Session) -> None:
    session.file("source/a.py")
    result = await session.call("Read", file_path="sourc/a.py")
    project = session.project
    expected = f"{project}/sourc/a.py does not exist: there is no sourc in {project}. Did you mean {project}/source?"
    assert result.content == expected


async def test_a_path_through_a_file_does_not_exist(session: Session) -> None:
    session.file("a.txt", "x")
    result = await session.call("Read", file_path="a.txt/b")
    assert not result.ran
    assert "does not exist" in result.content


async def test_a_directory_is_said_to_be_one(session: Session) -> None:
    result = await session.call("Read", file_path=".")
    assert not result.ran
    assert "is a directory. List" in result.content


async def test_a_pipe_does_not_hold_us(session: Session) -> None:
    os.mkfifo(session.project / "pipe")
    result = await session.call("Read", file_path="pipe")
    assert not result.ran
    assert "not a regular file" in result.content


async def test_an_endless_device_is_refused(session: Session) -> None:
    assert not (await session.call("Read", file_path="/dev/zero")).ran


async def test_a_huge_file_is_refused_with_what_to_do(session: Session) -> None:
    with session.file("big").open("wb") as file:
        file.truncate((64 << 20) + 1)
    result = await session.call("Read", file_path="big")
    assert not result.ran
    assert "Grep" in result.content


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
async def test_a_file_without_permission_is_told(session: Session) -> None:
    session.file("a.txt", "x").chmod(0)
    assert "Permission denied" in (await session.call("Read", file_path="a.txt")).content


async def test_a_name_that_cannot_be_one_is_told(session: Session) -> None:
    assert not (await session.call("Read", file_path="x" * 5000)).ran


@pytest.mark.parametrize(
    ("tool_input", "named"),
    [
        ({}, "file_path"),
        ({"file_path": ""}, "file_path"),
        ({"file_path": "a\0b"}, "file_path"),
        ({"file_path": "a", "offset": -1}, "offset"),
        ({"file_path": "a", "limit": 0}, "limit"),
        ({"file_path": "a", "line": 3}, "line"),
    ],
)
async def test_input_that_does_not_fit_is_named(session: Session, tool_input: dict[str, object], named: str) -> None:
    with pytest.raises(ToolInputError, match=named):
        await session.call("Read", **tool_input)


async def test_numbers_may_come_as_text(session: Session) -> None:
    session.file("a.txt", "one\ntwo\n")
    assert (await session.call("Read", file_path="a.txt", offset="2")).content == "     2\ttwo"


async def test_a_link_is_read_through(session: Session, tmp_path: Path) -> None:
    (tmp_path / "target").write_text("x")
    (session.project / "link").symlink_to(tmp_path / "target")
    assert (await session.call("Read", file_path="link")).content == "     1\tx"


class TestUnlocking:
    @pytest.mark.parametrize(
        ("content", "tool_input"),
        [(b"a\0b", {}), ("one\n", {"offset": 5}), (b"%PDF-1.7", {})],
        ids=["binary", "", "pdf"],
    )
    async def test_a_read_that_failed_unlocks_no_write(
        self, session: Session, content: bytes | str, tool_input: dict[str, Any]
    ) -> None:
        path = session.file("a", content)
        session.environment = {"PATH": "/nowhere"}
        before = path.read_bytes()
        assert not (await session.call("Read", file_path="a", **tool_input)).ran
        written = await session.call("Write", file_path="a", content="x")
        assert "has not been read" in written.content
        assert path.read_bytes() == before


class TestNotebooks:
    NOTEBOOK: ClassVar[dict[str, Any]] = {
        "metadata": {"kernelspec": {"language": "python"}},
        "cells": [
            {"cell_type": "markdown", "source": ["# Title\n", "text"]},
            {
                "cell_type": "code",
                "id": "c2",
                "source": "print(1)",
                "outputs": [
                    {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
                    {"output_type": "execute_result", "data": {"text/plain": "<Figure>", "image/png": "aGk="}},
                    {
                        "output_type": "error",
                        "ename": "KeyError",
                        "evalue": "'x'",
                        "traceback": ["\x1b[31mline\x1b[0m"],
                    },
                ],
            },
        ],
    }

    async def read(self, session: Session, notebook: object, **rest: object) -> list[str]:
        session.file("a.ipynb", json.dumps(notebook))
        result = await session.call("Read", file_path="a.ipynb", **rest)
        return [line.partition("\t")[2] or line for line in result.content.split("\n")]

    async def test_a_notebook_is_shown_as_its_cells(self, session: Session) -> None:
        assert await self.read(session, self.NOTEBOOK) == [
            "[Notebook: 2 cells, python. NotebookEdit changes a cell, Edit the underlying JSON]",
            "[Cell 1: markdown, id cell-0]",
            "# Title",
            "text",
            "[Cell 2: code, id c2]",
            "print(1)",
            "[Output, stdout]",
            "1",
            "[Output]",
            "<Figure>",
            "[Output: image/png, 4 characters, not shown]",
            "[Error: KeyError: 'x']",
            "line",
        ]

    async def test_long_outputs_are_shortened_in_the_middle(self, session: Session) -> None:
        output = {"output_type": "stream", "text": "a" * 5000 + "\nlast"}
        lines = await self.read(session, {"cells": [{"cell_type": "code", "source": "x", "outputs": [output]}]})
        assert "[… 3,005 characters of output omitted …]" in lines
        assert lines[-1] == "last"

    async def test_it_is_read_in_parts_like_other_files(self, session: Session) -> None:
        lines = await self.read(session, self.NOTEBOOK, offset=3, limit=1)
        assert lines == ["# Title", "[Lines 3 to 3 of 13. Continue with offset 4]"]

    @pytest.mark.parametrize(
        "content", ["{", '{"cells": 5}', "[1]", "[" * 100_000], ids=["cut", "cells", "list", "deep"]
    )
    async def test_what_is_no_notebook_is_text(self, session: Session, content: str) -> None:
        session.file("a.ipynb", content)
        result = await session.call("Read", file_path="a.ipynb")
        assert result.content.startswith(f"     1\t{content[:100]}")

    @pytest.mark.parametrize(
        "cells",
        [[5], [{}], [{"source": None, "outputs": 5}], [{"source": [1], "outputs": [None, {"output_type": "error"}]}]],
    )
    async def test_odd_cells_do_not_break_it(self, session: Session, cells: object) -> None:
        assert (await self.read(session, {"cells": cells, "metadata": 5}))[1].startswith("[Cell 1: ")


class TestPDF:
    def converter(self, session: Session, script: str) -> None:
        """A `pdftotext` that does this."""
        program = session.file("bin/pdftotext", f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        session.environment = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
        session.file("a.pdf", b"%PDF-1.7\n")

    async def test_its_text_is_shown_page_by_page(self, session: Session) -> None:
        """The program is given what was read, not the path, where another file may be by then."""
        self.converter(session, r'printf "%s %s\n\f%s" "$1 $2 $3 $4 $6" "$(cat "$5")" two')
        result = await session.call("Read", file_path="a.pdf")
        assert [line.partition("\t")[2] for line in result.content.split("\n")] == [
            "[Page 1 of 2]",
            "-q -layout -enc UTF-8 - %PDF-1.7",
            "[Page 2 of 2]",
            "two",
        ]
        assert (await session.call("Read", file_path="a.pdf", offset=4)).content == "     4\ttwo"

    async def test_without_the_program_it_says_what_to_install(self, session: Session) -> None:
        self.converter(session, "exit 0")
        session.environment = {"PATH": "/nowhere"}
        result = await session.call("Read", file_path="a.pdf")
        assert not result.ran
        assert "poppler-utils" in result.content

    @pytest.mark.parametrize(
        ("script", "says"),
        [
            ("echo 'Incorrect password' >&2; exit 1", "cannot read: Incorrect password"),
            ("exit 3", "cannot read: exit code 3"),
            (r'printf "\f\f"', "a PDF of 2 pages without text"),
        ],
        ids=["reason", "no reason", "a scan"],
    )
    async def test_a_pdf_without_text_is_refused_with_the_reason(
        self, session: Session, script: str, says: str
    ) -> None:
        self.converter(session, script)
        result = await session.call("Read", file_path="a.pdf")
        assert not result.ran
        assert says in result.content

    async def test_a_text_without_end_is_cut(self, session: Session) -> None:
        self.converter(session, "yes 'a line of text' | head -c 9000000")
        result = await session.call("Read", file_path="a.pdf", offset=559243)
        assert result.content.endswith("[The rest is omitted: the text is longer than 8 MiB]")

    @pytest.mark.skipif(shutil.which("pdftotext") is None, reason="pdftotext is not installed")
    async def test_the_real_program_reads_a_real_pdf(self, session: Session) -> None:
        session.file("a.pdf", HELLO)
        assert "Hello, page" in (await session.call("Read", file_path="a.pdf")).content


HELLO = b"""%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 100]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj
4 0 obj<</Length 43>>stream
BT /F 24 Tf 20 40 Td (Hello, page) Tj ET
endstream endobj
5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj
trailer<</Root 1 0 R>>
"""
