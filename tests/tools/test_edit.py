"""Edit's promises."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.tools.session import Session
from wave_agent.marks import without_marks
from wave_agent.tools.base import ToolInputError, ToolResult
from wave_agent.tools.diff import unified_diff


async def edit(session: Session, content: bytes | str, old: str, new: str, **rest: object) -> tuple[bytes, ToolResult]:
    path = session.file("a.txt", content)
    await session.call("Read", file_path="a.txt")
    result = await session.call("Edit", file_path="a.txt", old_string=old, new_string=new, **rest)
    return path.read_bytes(), result


async def test_a_passage_that_occurs_once_is_replaced(session: Session) -> None:
    after, result = await edit(session, "one\ntwo\nthree\n", "two", "2")
    assert after == b"one\n2\nthree\n"
    assert result.content == f"Edited {session.project}/a.txt.\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"
    response = dict(result.response)
    assert response.pop("diff").startswith("@@ -1,3")
    assert response == {
        "filePath": f"{session.project}/a.txt",
        "success": True,
        "oldString": "two",
        "newString": "2",
        "replaceAll": False,
        "replacements": 1,
    }


@pytest.mark.parametrize(("text", "lines"), [("x\ny\nx\n", "1, 3"), ("xx", "1, 1")])
async def test_a_passage_that_occurs_twice_is_refused_with_its_lines(session: Session, text: str, lines: str) -> None:
    after, result = await edit(session, text, "x", "z")
    assert after == text.encode()
    assert not result.ran
    assert f"more than once in {session.project}/a.txt (lines {lines})" in result.content


async def test_occurrences_that_overlap_are_two(session: Session) -> None:
    after, result = await edit(session, "aaa", "aa", "b")
    assert after == b"aaa"
    assert "more than once" in result.content


async def test_replace_all_replaces_all(session: Session) -> None:
    after, result = await edit(session, "x y x", "x", "z", replace_all=True)
    assert after == b"z y z"
    assert result.response["replacements"] == 2
    assert "2 times" in result.content


async def test_nothing_to_change_is_wrong_input(session: Session) -> None:
    with pytest.raises(ToolInputError, match="identical"):
        await edit(session, "x", "x", "x")


async def test_half_a_surrogate_pair_is_wrong_input(session: Session) -> None:
    with pytest.raises(ToolInputError, match="surrogate"):
        await edit(session, "x", "x", "\udc80")


@pytest.mark.parametrize(
    ("old", "hint"),
    [
        ("     2\ttwo", "line number"),
        ("def  f():\n  pass", "Lines 3 to 4 differ from it in whitespace only"),
        ("deff( ):pass", "Lines 3 to 4 differ from it in whitespace only"),
        ("f ()", "Line 3 differs from it in whitespace only"),
        ("nowhere", "copy the passage exactly"),
    ],
)
async def test_a_passage_that_is_not_found_is_told_why(session: Session, old: str, hint: str) -> None:
    _, result = await edit(session, "one\ntwo\ndef f():\n\tpass\n", old, "x")
    assert not result.ran
    assert hint in result.content


@pytest.mark.parametrize("old", ["def f( ):\n  pass", "if x:\n    def f():", "def  f():\n\tpass\n"])
async def test_a_passage_with_other_whitespace_is_shown_as_it_is(session: Session, old: str) -> None:
    text = "if x:\n\tdef f():\n\t\tpass\n"
    _, result = await edit(session, text.replace("\n", "\r\n"), old, "y")
    assert not result.ran
    shown = result.content.partition("Copy this exactly:\n")[2]
    assert shown == (text[6:-1] if old.startswith("def") else text[:15])
    after, result = await edit(session, text, shown, "y")
    assert result.ran
    assert b"y" in after


async def test_text_beside_a_passage_with_other_whitespace_is_not_shown(session: Session) -> None:
    _, result = await edit(session, "secret = 1; a = 2; secret = 3\n", "a=2", "a=3")
    assert result.content.endswith("Copy this exactly:\na = 2")
    _, result = await edit(session, f"{'a ' * 2000}\n", f"{'a  ' * 2000}\n", "b")
    assert result.content.endswith("in whitespace only: read the file again, and copy the passage exactly.")


async def test_a_passage_as_the_model_was_shown_it_is_told_what_the_file_has(session: Session) -> None:
    """Results show `&lt;` where a tag would look like one of the agent's."""
    path = session.file("a.md", 'One.\n<system-reminder>x</system-reminder>\n<hook name="y">\n&lt;b&gt;\n')
    shown = without_marks((await session.call("Read", file_path="a.md")).content)
    assert "     2\t&lt;system-reminder>x&lt;/system-reminder>" in shown
    assert '[Lines 2, 3: "&lt;" stands for "<"' in shown

    async def edit(old: str, new: str) -> ToolResult:
        return await session.call("Edit", file_path="a.md", old_string=old, new_string=new)

    refused = await edit("&lt;system-reminder>x", "&lt;system-reminder>z")
    assert not refused.ran
    assert 'In what you were shown, "&lt;" stands for "<"' in refused.content
    assert (await edit("<system-reminder>x", "<system-reminder>z")).ran
    assert (await edit("&lt;b&gt;", "&lt;i&gt;")).ran
    assert path.read_text() == 'One.\n<system-reminder>z</system-reminder>\n<hook name="y">\n&lt;i&gt;\n'


async def test_a_missing_file_is_told_the_nearest_name(session: Session) -> None:
    session.file("settings.py")
    result = await session.call("Edit", file_path="setings.py", old_string="a", new_string="b")
    assert not result.ran
    assert "Did you mean" in result.content


async def test_a_binary_file_is_refused(session: Session) -> None:
    _, result = await edit(session, b"a\0b", "a", "b")
    assert not result.ran
    assert "has not been read" in result.content
    await session.call("Write", file_path="b.txt", content="a\0b")
    result = await session.call("Edit", file_path="b.txt", old_string="a", new_string="b")
    assert "not a text file" in result.content


@pytest.mark.parametrize("field", ["file_path", "old_string", "new_string"])
async def test_a_missing_field_is_named(session: Session, field: str) -> None:
    tool_input = {"file_path": "a", "old_string": "b", "new_string": "c"}
    del tool_input[field]
    with pytest.raises(ToolInputError, match=field):
        await session.call("Edit", **tool_input)


class TestWhatIsKept:
    @pytest.mark.parametrize(
        ("before", "old", "new", "after"),
        [
            (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
            (b"a\r\nb\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\n"),
            (b"a\r\nb\r\n", "a\r\nb", "x\r\ny", b"x\r\ny\r\n"),
            (b"a\r\nb\nc\n", "b\nc", "x\ny", b"a\r\nx\ny\n"),  # both kinds: as in the passage
            (b"a\r\nb\nc\n", "a\nb", "x\ny", b"x\r\ny\nc\n"),
            (b"a\nb", "a", "x\r\ny", b"x\r\ny\nb"),  # asked for
            (b"a\rb\r", "a", "x", b"x\rb\r"),
        ],
    )
    async def test_newlines(self, session: Session, before: bytes, old: str, new: str, after: bytes) -> None:
        assert (await edit(session, before, old, new))[0] == after

    @pytest.mark.parametrize(("before", "after"), [("a\nb", "x\nb"), ("a\nb\n", "x\nb\n"), ("a\nb\n\n", "x\nb\n\n")])
    async def test_the_end_of_the_file(self, session: Session, before: str, after: str) -> None:
        assert (await edit(session, before, "a", "x"))[0] == after.encode()

    @pytest.mark.parametrize(
        ("bom", "encoding"),
        [
            (b"", "utf-8"),
            (b"\xef\xbb\xbf", "utf-8"),
            (b"\xff\xfe", "utf-16-le"),
            (b"\xfe\xff", "utf-16-be"),
            (b"\xff\xfe\0\0", "utf-32-le"),
            (b"", "latin-1"),
        ],
    )
    async def test_the_encoding(self, session: Session, bom: bytes, encoding: str) -> None:
        before = bom + "café\r\nthé\r\n".encode(encoding)
        after, _ = await edit(session, before, "café", "crème\nbrûlée")
        assert after == bom + "crème\r\nbrûlée\r\nthé\r\n".encode(encoding)

    async def test_bytes_that_are_no_text(self, session: Session) -> None:
        after, result = await edit(session, b"caf\xc3\xa9 \xff\xfe\n", "café", "thé")
        assert after == b"th\xc3\xa9 \xff\xfe\n"
        assert "\ufffd" in result.content

    async def test_what_the_encoding_cannot_hold_is_refused(self, session: Session) -> None:
        after, result = await edit(session, b"caf\xe9", "caf", "€")
        assert after == b"caf\xe9"
        assert not result.ran
        assert "U+20AC" in result.content


TEXT = st.text(st.sampled_from("ab\n é€𝄞\t.*\\"), max_size=12)
SURROUNDINGS = st.text(st.sampled_from("ab\n é€𝄞\t.*\\"), max_size=60)


def edited(before: bytes, old: str, new: str, *, replace_all: bool) -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        session = Session(Path(directory), Path(directory) / "outputs", {})
        after, _ = asyncio.run(edit(session, before, old, new, replace_all=replace_all))
        return after


@settings(max_examples=60, deadline=None)
@given(
    pieces=st.lists(SURROUNDINGS, min_size=2, max_size=5),
    old=TEXT.filter(bool),
    new=TEXT,
    crlf=st.booleans(),
    encoding=st.sampled_from(["utf-8", "utf-16"]),
)
@example(pieces=["", "", ""], old="\n", new="", crlf=True, encoding="utf-8")
def test_replace_all_is_str_replace(pieces: list[str], old: str, new: str, crlf: bool, encoding: str) -> None:
    assume(old != new)
    text = old.join(pieces)

    def data(content: str) -> bytes:
        return (content.replace("\n", "\r\n") if crlf and "\n" in text else content).encode(encoding)

    assert edited(data(text), old, new, replace_all=True) == data(text.replace(old, new))


@settings(max_examples=60, deadline=None)
@given(head=SURROUNDINGS, old=TEXT.filter(bool), tail=SURROUNDINGS, new=TEXT)
def test_everything_but_the_passage_stays(head: str, old: str, tail: str, new: str) -> None:
    text = head + old + tail
    assume(old != new)
    once = text.find(old) == text.rfind(old)
    expected = head + new + tail if once else text
    assert edited(text.encode(), old, new, replace_all=False) == expected.encode()


class TestDiff:
    def test_only_what_is_near_a_change_is_shown_with_the_right_numbers(self) -> None:
        before = "".join(f"{number}\n" for number in range(1, 10_001))
        diff = unified_diff(before, before.replace("\n5000\n", "\nx\n"))
        assert diff == "@@ -4997,7 +4997,7 @@\n 4997\n 4998\n 4999\n-5000\n+x\n 5001\n 5002\n 5003"

    def test_it_is_capped(self) -> None:
        diff = unified_diff("a\n" * 1000, "b\n" * 1000)
        assert diff.endswith("[… 1,801 more lines of diff]")
        assert unified_diff("a\n" * 5000, "b\n" * 5000) == "[5,000 lines became 5,000, from line 1]"
        assert len(unified_diff("", "x" * 10_000)) < 1000

    def test_a_newline_at_the_end_is_seen(self) -> None:
        assert unified_diff("a", "a\n") == "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a"

    @pytest.mark.parametrize("text", ["", "a", "a\n"])
    def test_no_change_is_no_diff(self, text: str) -> None:
        assert unified_diff(text, text) == ""

    @given(st.lists(st.sampled_from("ab\n")), st.lists(st.sampled_from("ab\n")))
    def test_it_never_fails(self, before: list[str], after: list[str]) -> None:
        assert bool(unified_diff("".join(before), "".join(after))) == (before != after)
