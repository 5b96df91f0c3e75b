"""How long a result may be."""

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.session import Session
from wave_agent.tools.base import ToolContext, ToolResult
from wave_agent.tools.output import fitted
from wave_agent.tools.room import Room, room_in


@pytest.mark.parametrize(
    ("window", "asked", "length"),
    [
        (None, False, 30_000),
        (None, True, 30_000),
        (8_000, False, 6_000),
        (8_000, True, 6_000),
        (200_000, False, 30_000),
        (100_000, True, 75_000),
        (1_000_000, True, 100_000),
    ],
)
def test_a_result_has_a_quarter_of_the_window_and_more_than_usual_only_on_request(
    window: int | None, asked: bool, length: int
) -> None:
    assert room_in(window, asked=asked).length == length


@given(st.text(max_size=2000), st.integers(250, 1000), st.integers(250, 1000))
def test_what_is_cut_fits_and_keeps_both_ends(text: str, characters: int, size: int) -> None:
    room = Room(characters, size)
    cut = room.cut(text, "/some/where.txt")
    if room.holds(text):
        assert cut == text
        return
    assert room.holds(cut)
    head, note, tail = cut.partition("\n[… ")
    assert note
    assert text.startswith(head)
    assert text.endswith(tail.partition(" …]\n")[2])
    assert "the whole is in /some/where.txt" in tail


def test_other_scripts_take_more_of_the_window() -> None:
    room = room_in(8_000)
    assert room.holds("x" * 6000)
    assert not room.holds("木" * 2001)
    assert room.holds("木" * 2000)


async def test_the_whole_of_a_cut_result_is_in_a_private_file(tmp_path: Path) -> None:
    context = ToolContext(project_dir=tmp_path, environment={}, outputs=tmp_path / "outputs")
    whole = "\n".join(map(str, range(20_000)))
    cut = fitted(ToolResult(content=whole), context)
    (file,) = context.outputs.iterdir()
    assert file.read_text() == whole
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert f"the whole is in {file}: Grep it, or Read it" in cut
    assert len(cut) <= 30_000


async def test_without_a_disk_the_result_is_cut_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "outputs").touch()
    context = ToolContext(project_dir=tmp_path, environment={}, outputs=tmp_path / "outputs")
    cut = fitted(ToolResult(content="x" * 40_000), context)
    assert len(cut) <= 30_000
    assert "characters omitted here …]" in cut


async def test_a_command_may_print_a_quarter_of_the_window(session: Session) -> None:
    session.window = 8_000
    result = await session.bash("seq 1 20000")
    assert 5_000 < len(result.content) <= 6_000
    assert "characters omitted here; the whole is in " in result.content


async def test_lines_are_read_up_to_a_quarter_of_the_window(session: Session) -> None:
    session.file("log", "".join(f"{number} {'x' * 50}\n" for number in range(5000)))
    session.window = 8_000
    for more in ({}, {"limit": 4000}):
        result = await session.call("Read", file_path="log", **more)
        assert 5_000 < len(result.content) <= 6_000
        assert "the most one result can hold. Continue with offset " in result.content


async def test_a_large_window_gives_the_lines_that_were_asked_for(session: Session) -> None:
    session.file("log", "".join(f"{number} {'x' * 50}\n" for number in range(5000)))
    session.window = 200_000
    result = await session.call("Read", file_path="log", limit=1500)
    assert result.content.endswith("[Lines 1 to 1500 of 5,000. Continue with offset 1501]")
    assert fitted(result, session.context) == result.content
    assert len((await session.call("Read", file_path="log")).content) <= 30_000


def test_a_text_in_another_script_is_cut_by_its_bytes() -> None:
    text = "".join(chr(0x4E00 + number % 5000) for number in range(9000))
    cut = room_in(8_000).cut(text)
    assert 5_500 < len(cut.encode()) <= 6_000
    head, _, tail = cut.partition("\n[… ")
    assert text.startswith(head)
    assert text.endswith(tail.partition(" …]\n")[2])
