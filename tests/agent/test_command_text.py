"""What a command's text becomes: arguments, files to attach, lines to run."""

from hypothesis import given
from hypothesis import strategies as st

from tests.rows import rows
from wave_agent.agent.command_text import AttachFile, RunLine, command_pieces, fill_arguments


@rows(
    "body, arguments, filled",
    [
        ("Fix $ARGUMENTS now, $ARGUMENTS.", "a b", "Fix a b now, a b."),
        ("$1 then $2", "a 'b c'", "a then b c"),
        ("$1 and $9", "a", "a and "),
        ("$0 then $1", "a b", "a then b"),
        ("$ARGUMENTS[0] then $ARGUMENTS[1]$ARGUMENTS[7]", "a b", "a then b"),
        ("costs \\$1, not $1", "a", "costs $1, not a"),
        ("nothing used", "a b", "nothing used\n\na b"),
        ("nothing used", "", "nothing used"),
        ("only \\$ARGUMENTS", "a", "only $ARGUMENTS\n\na"),
        ("$ARGUMENTSX $HOME $1st $123", "a", "$ARGUMENTSX $HOME $1st $123\n\na"),
        ("$1|$2", "it's fine", "it's|fine"),
        ("$1", "$2 $1", "$2"),
    ],
)
def test_arguments_are_filled_in_once(body: str, arguments: str, filled: str) -> None:
    assert fill_arguments(body, arguments) == filled
    assert command_pieces(body, arguments) == ((filled,) if filled else ())


def test_lines_to_run_and_files_to_attach_are_found() -> None:
    body = "See @src/a.py, and @$1.\n!`git log $2`\nHere: !`date` mail me@home x!`no` `@x`"
    assert command_pieces(body, "b.py --oneline") == (
        "See ",
        AttachFile("src/a.py", "@src/a.py"),
        ", and ",
        AttachFile("b.py", "@b.py"),
        ".\n",
        RunLine("git log --oneline"),
        "\nHere: ",
        RunLine("date"),
        " mail me@home x!`no` `@x`",
    )


def test_arguments_are_never_read_as_part_of_the_text() -> None:
    assert command_pieces("Fix: $ARGUMENTS", "!`rm x` @secret $1") == ("Fix: !`rm x` @secret $1",)
    assert command_pieces("Fix it.", "!`rm x`") == ("Fix it.\n\n!`rm x`",)


@given(st.text(), st.text())
def test_whatever_an_argument_says_nothing_more_is_run_or_attached(body: str, arguments: str) -> None:
    def acts(pieces: object) -> int:
        assert isinstance(pieces, tuple)
        return sum(not isinstance(piece, str) for piece in pieces)

    assert acts(command_pieces(body, arguments)) == acts(command_pieces(body, ""))
    assert acts(command_pieces("Do $ARGUMENTS, $1", arguments)) == 0


@given(st.text(alphabet=st.characters(exclude_characters="$@!\\")), st.text(min_size=1))
def test_a_text_without_marks_stays_and_its_arguments_follow(body: str, arguments: str) -> None:
    assert fill_arguments(body, arguments) == f"{body}\n\n{arguments}"
    assert "".join(map(str, command_pieces(body, ""))) == body
