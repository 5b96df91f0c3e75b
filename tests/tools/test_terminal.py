"""Lines as a terminal shows them: the last state of each, however the text comes."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rows import rows
from wave_agent.tools.terminal import ROW, TerminalLines


def shown(*pieces: str) -> str:
    lines = TerminalLines()
    return "".join([*map(lines.feed, pieces), lines.finish()])


@rows(
    ("printed", "seen"),
    [
        ("one\ntwo\n", "one\ntwo\n"),
        ("no end", "no end"),
        ("10%\r50%\r100%\n", "100%\n"),
        ("10%\r50%", "50%"),
        ("50%\r", "50%"),
        ("windows\r\nlines\r\n", "windows\nlines\n"),
        ("doubled\r\r\n", "doubled\n"),
        ("long line\rshort\n", "shortline\n"),
        ("long line\r\x1b[Kshort\n", "short\n"),
        ("long line\r\x1b[2Kshort\n", "short\n"),
        ("long line\x1b[4D\x1b[1Kok\n", "     okne\n"),
        ("abc\x1b[2D\x1b[Jx\n", "ax\n"),
        ("working\r       \rdone\n", "done\n"),
        ("working\r       \r\n", "\n"),
        ("-\b\\\b|\b/\bok\n", "ok\n"),
        ("abc\b\b\b\b\bx\n", "xbc\n"),
        ("abc\x1b[1Gx\x1b[3Gz\n", "xbz\n"),
        ("a\r\x1b[3Cd\n", "a  d\n"),
        ("\x1b[31mred\x1b[0m\n", "\x1b[31mred\x1b[0m\n"),
        ("\x1b[31m10%\x1b[0m\r\x1b[32m100%\x1b[0m\n", "100%\n"),
        ("\x1b[31mdos\x1b[0m\r\n", "\x1b[31mdos\x1b[0m\n"),
        ("above\n\x1b[1Abelow\rB\n", "above\nBelow\n"),
        ("cut \x1b[3", "cut \x1b[3"),
        ("far\x1b[9999C.\n", f"far{' ' * 197}.\n"),
        ("\x9b3Dx\n", "x\n"),
    ],
)
def test_what_is_seen(printed: str, seen: str) -> None:
    assert shown(printed) == seen
    assert shown(*printed) == seen, "character by character"


def test_the_line_that_is_not_complete_can_be_seen() -> None:
    lines = TerminalLines()
    assert (lines.feed("done\n10%"), lines.pending) == ("done\n", "10%")
    assert (lines.feed("\r50% "), lines.pending) == ("", "50%")
    assert (lines.feed("\n"), lines.pending) == ("50%\n", "")


def test_a_bar_that_never_ends_its_line_takes_little_memory() -> None:
    lines = TerminalLines()
    for number in range(100_000):
        assert lines.feed(f"\r{number} of 100000") == ""
    assert len(lines.pending) < 20
    assert len(lines._cells or ()) < 20


def test_a_line_without_end_is_handed_on_row_by_row() -> None:
    lines = TerminalLines()
    assert len(lines.feed("x" * (10 * ROW))) == 9 * ROW
    assert lines.feed("\ry" * 3) == ""
    assert lines.finish() == "y" + "x" * (ROW - 1)
    assert shown("a\r", "z" * (ROW + 5)) == "z" * (ROW + 5)


PRINTED = st.text(alphabet="ab \n\r\b\x1b[0123;KGCDJmA\x9b", max_size=60) | st.lists(
    st.sampled_from(["word", "\r", "\r\n", "\n", "\b", "\x1b[K", "\x1b[2K", "\x1b[1m", "\x1b[3D", "\x1b[2C", "x" * ROW])
).map("".join)


@settings(deadline=None)
@given(PRINTED, st.lists(st.integers(0, 60)))
def test_pieces_make_no_difference(printed: str, cuts: list[int]) -> None:
    at = sorted({0, len(printed), *(cut for cut in cuts if cut < len(printed))})
    pieces = [printed[start:end] for start, end in pairwise(at)]
    assert shown(*pieces) == shown(printed)


@settings(deadline=None)
@given(st.text(alphabet="ab \n\r\b", max_size=60))
def test_it_is_what_a_terminal_does_character_by_character(printed: str) -> None:
    lines: list[list[str]] = [[]]
    column = 0
    for one in printed:
        if one == "\n":
            lines.append([])
            column = 0
        elif one == "\r":
            column = 0
        elif one == "\b":
            column = max(0, column - 1)
        else:
            lines[-1][column : column + 1] = [one]
            column += 1
    seen = shown(printed).split("\n")
    assert [line.rstrip() for line in seen] == ["".join(line).rstrip() for line in lines]
