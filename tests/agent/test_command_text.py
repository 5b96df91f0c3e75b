"""What a command's text becomes: arguments, files to attach, lines to run."""

import shlex
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rows import rows
from wave_agent.agent.command_text import AttachFile, RunLine, command_pieces, fill_arguments, unfilled_pieces
from wave_agent.agent.line_arguments import UnsafeArgumentError


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


def test_what_is_to_be_done_is_shown_as_it_is_written() -> None:
    body = "See @src/a.py, \\$1 and @$1.\n!`git log $2`\nHere: $ARGUMENTS x!`no`"
    assert unfilled_pieces(body) == (
        AttachFile("src/a.py", "@src/a.py"),
        AttachFile("$1", "@$1"),
        RunLine("git log $2"),
    )


@rows(
    "line, arguments, run",
    [
        ("git log $1", "--oneline", "git log --oneline"),
        ("git log $1 $ARGUMENTS", "", "git log  "),
        ("git show $ARGUMENTS", "a 'b c'", "git show a 'b c'"),
        ("echo $1; true", "'$(touch x)'", "echo '$(touch x)'; true"),
        ('echo "<$1>"', "'$(touch x)\"\\\\'", 'echo "<\\$(touch x)\\"\\\\\\\\>"'),
        ("echo '$1'", '"it\'s; touch x"', "echo 'it'\\''s; touch x'"),
        ('echo "it\'s $1" $1', "';'", "echo \"it's ;\" ';'"),
        ('echo \\" $1', "';'", "echo \\\" ';'"),
        ("echo \\$HOME $1", "a", "echo $HOME a"),
        ('git log "$(git rev-parse "$1")"', "v1.0", 'git log "$(git rev-parse "v1.0")"'),
    ],
)
def test_an_argument_in_a_line_is_quoted_as_its_place_needs_it(line: str, arguments: str, run: str) -> None:
    assert command_pieces(f"!`{line}`", arguments)[0] == RunLine(run)


@pytest.mark.parametrize(
    "line", ['echo "$(git log "$1")"', "echo ${x:-$1}", "echo $'$1'", "cat <(git log $1)", "cat <<X $1"]
)
def test_where_an_argument_cannot_be_quoted_safely_only_plain_words_are_accepted(line: str) -> None:
    assert command_pieces(f"!`{line}`", "v1.0-rc_2")
    with pytest.raises(UnsafeArgumentError, match="mean something to the shell"):
        command_pieces(f"!`{line}`", "'$(touch x)'")


EVALUATED = [
    *(
        "((x=$1)); echo $x",
        "a[$1]=1",
        "x=$1; a[x]=1",
        "echo $[ $1 ]",
        "let x=$1",
        "[[ $1 -eq 1 ]]",
        "x=$1; [[ x -gt 1 ]]",
    ),
    *(
        "printf -v $1 x",
        "declare $1",
        "export $1",
        "unset $1",
        "read $1 <<< x",
        "test -v $1",
        "[ -v $1 ]",
        "mapfile $1 <<< x",
    ),
    *(
        "echo a # $1",
        "#$1",
        "true;# $1",
        "eval echo $1",
        "sh -c 'echo $1'",
        'bash -ec "echo $1"',
        "/bin/sh -c 'echo $1'",
    ),
    *("echo $1 | sh", "echo $1 | bash -s", "echo $1 | sudo sh", "bash <<< $1", "trap '$1' EXIT", ". /dev/stdin <<< $1"),
    *("awk 'BEGIN{print \"$1\"}'", "python3 -c 'print(\"$1\")'", "perl -e 'print \"$1\"'", "make X=$1", "env -S '$1'"),
]


@rows("line", EVALUATED)
def test_where_a_word_is_evaluated_again_only_plain_words_are_accepted(line: str) -> None:
    assert command_pieces(f"!`{line}`", "v1.0-rc_2")
    with pytest.raises(UnsafeArgumentError, match="mean something to the shell"):
        command_pieces(f"!`{line}`", "'a b'")


ORDINARY = [
    *(
        "git log --grep $1",
        'gh issue list -S "#$1"',
        "[[ -n $1 ]] && echo y",
        "[ -n $1 ] && echo y",
        "bash scripts/run.sh $1",
    ),
    *(
        "python3 tool.py --name $1",
        "x=$1; echo $x",
        "for i in $1; do echo $i; done",
        "cat <<< $1",
        "case $1 in a) ;; esac",
    ),
    *(
        "grep -rn $1 src | head -n 5",
        "echo a#$1",
        "echo '# $1'",
        "echo $ARGUMENTS[0]",
        "git show $1:a.sh",
    ),
]


@rows("line", ORDINARY)
def test_in_ordinary_lines_arguments_may_be_prose_and_nothing_in_them_runs(line: str, tmp_path: Path) -> None:
    for words in (
        "$(touch ran)",
        "`touch ran`",
        "';touch ran;'",
        "a[$(touch ran)]",
        "x\ntouch ran\n",
        "'\"'$(touch ran)'\"'",
    ):
        (piece,) = command_pieces(f"!`{line}`", shlex.quote(words))
        assert isinstance(piece, RunLine)
        subprocess.run(
            ["bash", "-c", piece.line], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        assert not (tmp_path / "ran").exists(), piece.line


@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])))
def test_bash_prints_an_argument_as_it_is_in_every_kind_of_quotes(word: str) -> None:
    (line,) = command_pieces("!`printf '%s|' $1 \"$1\" '$1'`", shlex.quote(word))
    assert isinstance(line, RunLine)
    printed = subprocess.run(["bash", "-c", line.line], capture_output=True, check=True).stdout
    assert printed == (word.encode() + b"|") * 3


def test_arguments_are_never_read_as_part_of_the_text() -> None:
    assert command_pieces("Fix: $ARGUMENTS", "!`rm x` @secret $1") == ("Fix: !`rm x` @secret $1",)
    assert command_pieces("Fix it.", "!`rm x`") == ("Fix it.\n\n!`rm x`",)


@given(st.text(), st.text())
def test_whatever_an_argument_says_nothing_more_is_run_or_attached(body: str, arguments: str) -> None:
    def acts(pieces: object) -> int:
        assert isinstance(pieces, tuple)
        return sum(not isinstance(piece, str) for piece in pieces)

    with suppress(UnsafeArgumentError):  # then nothing is sent at all
        assert acts(command_pieces(body, arguments)) == acts(command_pieces(body, ""))
    assert acts(command_pieces("Do $ARGUMENTS, $1", arguments)) == 0


@given(st.text(alphabet=st.characters(exclude_characters="$@!\\")), st.text(min_size=1))
def test_a_text_without_marks_stays_and_its_arguments_follow(body: str, arguments: str) -> None:
    assert fill_arguments(body, arguments) == f"{body}\n\n{arguments}"
    assert "".join(map(str, command_pieces(body, ""))) == body
