"""What a command's text becomes: arguments, files to attach, lines to run."""

import os
import re
import shlex
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rows import rows
from wave_agent.agent.command_text import AttachFile, RunLine, command_pieces, fill_arguments, unfilled_pieces
from wave_agent.agent.line_arguments import UnsafeArgumentError, fill_line


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
    # arithmetic, subscripts and names
    *(
        "((x=$1)); echo $x",
        "a[$1]=1",
        "x=$1; a[x]=1",
        "echo $[ $1 ]",
        "let x=$1",
        "[[ $1 -eq 1 ]]",
        "x=$1; [[ x -gt 1 ]]",
    ),
    *("printf -v $1 x", "declare $1", "export $1", "unset $1", "read $1 <<< x", "test -v $1", "[ -v $1 ]"),
    *("mapfile $1 <<< x", "[ ! -v $1 ]", "test ! -v $1", '[ -n x -a -v "$1" ]', 'printf "-v" "$1" x', "[ $1 -v $1 ]"),
    *(
        "[[ -v $1 ]]",
        "[[ ! -R $1 ]]",
        "[[ $1 $1 ]]",
        "[[ x && -v $1 ]]",
        "[[ ( -v $1 ) ]]",
        "printf $1 x",
        "printf -- $1",
    ),
    *(
        "SECONDS=$1",
        "x=$1; declare -i y=x",
        "x=$1; [ -v $x ]",
        'x=$1; [ -v "$x" ]',
        "PS4=$1; set -x; true",
        "wait -p $1",
    ),
    *(
        "for i in $1; do let $i; done",
        "for OPTIND in $1; do true; done",
        "for i; do echo $1; done",
        "for OPTIND in x; do echo $1; done",
        "case $1 of x) ;; esac",
        "cat <;$1",
        "case $1 in a;b) ;; esac",
        "[[ a -eq b -eq $1 ]]",
        "set -- $1; eval $1",
        'x=y; y="$1" bash',
        "x+=$1; (($x))",
    ),
    *("case $1 in *) eval $_;; esac", "echo $1; eval $_", "x=($1); $x", "for i in $1; do git grep $i; done"),
    # quotes inside of quotes, comments, functions
    *(
        "echo a # $1",
        "#$1",
        "true;# $1",
        "echo $'$1'",
        'echo $"$1"',
        "echo $$1",
        'echo "$$1"',
        "f() { eval $1; }; f",
        "f() (eval $1)",
    ),
    *(
        "echo() { eval $*; }; echo $1",
        "function f { eval $1; }",
        "coproc $1",
        "{eval,$1}",
        "echo {a,$1}",
        "echo `$1",
        "echo '$1",
    ),
    *(
        'echo "$1',
        'echo "`$1`"',
        "diff <(cat $1) x",
        "tee >(sh) <<< $1",
        "x=(echo $1); true",
        "case $1 in",
        "[[ $1",
    ),
    # lines evaluated again
    *(
        "eval echo $1",
        "sh -c 'echo $1'",
        'bash -ec "echo $1"',
        "/bin/sh -c 'echo $1'",
        "echo $1 | sh",
        "echo $1 | bash -s",
    ),
    *(
        "echo $1 | sudo sh",
        "bash <<< $1",
        "trap '$1' EXIT",
        ". /dev/stdin <<< $1",
        "echo $1 | bash -",
        "echo $1 | bash /dev/stdin",
    ),
    *("echo $1 | bash -o pipefail", "echo $1 | rbash", "echo $1 |& bash", "{ echo $1; } | bash", "(echo $1) | bash"),
    *(
        "echo $1 | { bash; }",
        "echo $1 | (bash)",
        "echo $1 | while read x; do $x; done",
        "if true; then echo $1; fi | bash",
    ),
    *(
        "for i in $1; do echo $i; done | bash",
        "{ bash; } <<< $1",
        "echo $1 | cat | bash",
        "echo $1 | xargs -I{} sh -c {}",
    ),
    *('compgen -W "$1"', 'flock f -c "echo $1"', 'history -s "$1"; fc -s', 'tmux new -d "$1"', 'strace -o "$1" true'),
    *(
        "alias x=$1",
        "env -S '$1'",
        'env "$1"',
        "command $1",
        "exec $1",
        "sudo $1",
        "watch $1",
        "timeout 5 sh -c $1",
        "nice $1",
    ),
    *(
        "echo $1 > f; bash f",
        "echo $1 | tee f; ./f",
        "echo $1 >> f && . ./f",
        "cp $1 f.sh && bash f.sh",
        "cd $1 && ./run.sh",
    ),
    *(
        "echo $1 > Makefile; make",
        "cat <<< $1 &> f; sh f",
        "echo $1 >| .git/config; git status",
        "{ echo $1; } > f; make",
    ),
    *(
        "make X=$1",
        "ssh host $1",
        "parallel $1",
        "at now <<< $1",
        "su -c $1",
        "script -c $1",
        "npm test -- $1",
        "npx x $1",
    ),
    *(
        "GIT_PAGER=$1 git log",
        "x=$1 ./run.sh",
        "x=$1; ./run.sh",
        "$1 x",
        "./$1 x",
        '"$1"',
        "xargs -a $1 sh",
        "! $1",
        "time $1",
    ),
    *(
        "echo x > $1",
        "echo x >& $1",
        "cat <> $1",
        "> f cat $1",
        "(>f) ; cat $1 <",
        "echo $1 | bash - | cat",
        "fmt<$1|dash",
    ),
    # programs with a language of their own
    *(
        "awk 'BEGIN{print \"$1\"}'",
        "awk -f x $1",
        "echo $1 | awk '{print | \"sh\"}'",
        "echo $1 | awk '{system(\\$0)}'",
        "awk -F $1 x",
    ),
    *(
        "python3 -c 'print(\"$1\")'",
        'echo "$1" | python3',
        "perl -e 'print \"$1\"'",
        'echo "$1" | perl',
        'echo "$1" | node -',
    ),
    *(
        'echo "$1" | ruby',
        'echo "$1" | sqlite3',
        'tclsh <<< "$1"',
        'ed -s f <<< "$1"',
        'node --eval "x($1)"',
        'node --print "$1"',
    ),
    *(
        "node -p $1",
        "perl x.pl $1",
        "ruby -e $1",
        "php -r $1",
        "python3 $1",
        "python3 - $1",
        "bash $1",
        "bash /dev/stdin <<< $1",
    ),
    *(
        'gdb -ex "$1"',
        'vim "+$1"',
        'sqlite3 :memory: "$1"',
        "psql -c $1",
        "jshell <<< $1",
        "bc <<< $1",
        "dc -e $1",
        "m4 <<< $1",
    ),
    *(
        'sed -n "/$1/p" f',
        "sed -n $1 f",
        "sed -e $1 f",
        "sed -ne $1 f",
        "sed --expression=$1 f",
        "sed -f $1 f",
        "sed x -f $1",
        "sed s/x/y/e $1",
    ),
    *("echo $1 | sed s/x/y/e", "echo $1 | sed 1e", "sed -$1 p", "sed --foo $1 f", "sed p w$1 -f x"),
    *(
        "find . -exec $1 \\;",
        "find . -exec echo $1 {} +",
        "find . -name $1 -exec sh {} +",
        "find . -fprintf $1",
        "find . -o $1",
    ),
    *(
        "git -c $1 log",
        "git $1",
        "git -C $1 status",
        "git grep -O$1 x",
        "git grep --open-files-in-pager=$1 x",
        "git rebase -x $1",
    ),
    *(
        "git bisect run $1",
        "git log --foo $1",
        "git log --$1",
        "git log --foo=$1",
        "git config alias.x $1",
        "git log -n$1 -y$1",
    ),
    *(
        "gh alias set x $1",
        "gh $1",
        "gh issue $1",
        "gh extension exec $1",
        "gh issue list --foo $1",
        "rg --pre $1 x",
        "rg --pre=$1 x",
    ),
    *(
        "sort --compress-program $1",
        "sort --compress-program=$1",
        "curl -K $1",
        "curl -K - <<< $1",
        "tar --to-command=$1",
        "wget -e $1",
    ),
    *(
        "pytest -p $1",
        "pytest --foo=$1",
        "less $1",
        "man $1",
        "grep x f | less +$1",
        "cat x | ./x.sh <<< $1",
        "echo $1 | ./x.sh",
    ),
    *(
        "[ $ARGUMENTS = x y ]",
        "set $1",
        "shopt -s $1",
        "enable -f $1 x",
        "bash -x x.sh $1",
        "bash ../x.sh $1",
        "echo $1 | git apply",
    ),
]


@rows("line", EVALUATED)
def test_where_a_word_may_be_evaluated_again_only_plain_words_are_accepted(line: str) -> None:
    if "sed" not in line:  # its scripts are judged with the words in them
        command_pieces(f"!`{line.replace('`', '')}`", "v1.0-rc_2")
    with pytest.raises(UnsafeArgumentError, match="mean something to the shell"):
        fill_line(line, re.compile(r"\$ARGUMENTS|\$1"), lambda _: ["a b;"])


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
    *("grep -rn $1 src | head -n 5", "echo a#$1", "echo '# $1'", "echo $ARGUMENTS[0]", "git show $1:a.sh"),
    *(
        'grep -rn "$1" .',
        "gh issue view $1",
        "gh issue view $1 --comments",
        "gh pr diff '$1' | head -n 100",
        "cat notes/$1.md",
    ),
    *(
        "rg -n --glob '*.py' $1 src",
        'find . -name "*$1*" -type f',
        "find $1 -maxdepth 1",
        "ls -la $1 2>/dev/null || true",
        "wc -l < $1",
    ),
    *(
        "git log -n 5 -S $1 -- src",
        'git log --author="$1" --oneline',
        "git --no-pager diff $1",
        "git -C sub blame -L 1,5 $1",
        "git log -- $1",
    ),
    *(
        "git commit -m $1",
        "git log -S$1",
        "git grep -n -e $1",
        "git diff --stat $1",
        "gh api repos/x/issues/$1",
        "gh pr list --search $1 --json x",
    ),
    *(
        "sed -n 1,20p $1",
        "cat $1 | sed 's/a/b/g' | sort -u | uniq -c",
        "sed -ne p -e 5q -- $1",
        "sed --expression=p -i $1",
    ),
    *(
        "echo $1 | awk '{print NF}'",
        "awk -F, '{print NR}' f; echo $1",
        "awk -F , p f; echo $1",
        "printf '%s\\n' \"$1\"",
        "printf -- '<%s>' $1",
    ),
    *(
        '[ "$1" = x ] || echo n',
        "[ ! -e $1 ]",
        'test "$1" != y',
        "[ $1 ]",
        "[[ $1 == a* && ! -d $1 ]]",
        "[[ $1 =~ ^v ]]",
        "[[ ( $1 < b ) ]]",
    ),
    *(
        "if [ -f $1 ]; then cat $1; else echo n; fi",
        "(cd sub && cat $1)",
        "{ echo a; echo $1; } 2>&1",
        "echo $1 >> notes.md",
        "! grep $1 f",
    ),
    *(
        "npm run build 2>&1 | grep -c $1",
        "make -s x && git log -1 -- $1",
        "set -euo pipefail; grep $1 f",
        'echo $HOME $1 "$HOME" $?',
        "curl -s -d $1 x",
    ),
    *(
        "x=a y=b grep $1 f",
        'x=$1; grep "$x" f',
        'x=$1; cat <<< "$x$" ',
        "echo $1 &>/dev/null",
        "cat $1 2>&1 1>&2 3<&- 4<f",
        "pytest -q -k $1",
    ),
    *(
        "case x in (a|$1) echo $1;; *) echo;; esac",
        "while false; do echo $1; done",
        "./tools/x.py $1",
        "/usr/bin/grep $1 f",
        "time ls $1",
    ),
    *(
        "git diff | ./x.sh | grep $1",
        'echo a\\ b\\" $1',
        'echo "a\\"$1\\b"',
        "echo $ $1",
        "cat f | sort -k $1",
        "find . -type f; echo $1",
        "cat > f <<< $1",
    ),
    *(
        "git; gh issue; find . x $1",
        "git add -p; git status; echo $1",
        "git -P log --grep=$1",
        "rg -e$1 .",
        "rg --regexp=$1 -C 3 .",
        "sort -5 -k2 $1",
        "echo \"$'$1'\"",
        "tac $1 | tee f",
    ),
]


HOSTILE = (
    "$(touch ran)",
    "`touch ran`",
    "';touch ran;'",
    "a[$(touch ran)]",
    "x\ntouch ran\n",
    "'\"'$(touch ran)'\"'",
    "x/p;1e touch ran\n#",
    "x|touch ran;",
    "touch ran|",
    'x" & touch ran & "',
)


def line_with(line: str, words: str) -> str:
    (piece,) = command_pieces(f"!`{line}`", shlex.quote(words))
    assert isinstance(piece, RunLine)
    return piece.line


@rows("line", ORDINARY)
def test_in_ordinary_lines_arguments_may_be_prose(line: str) -> None:
    for words in HOSTILE:
        assert line_with(line, words)


@rows("line", ORDINARY)
def test_nothing_in_the_arguments_of_ordinary_lines_runs(line: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x\n")
    if line.startswith(("npm", "pytest", "curl")):  # they take seconds
        return
    run_in(tmp_path, "\n".join(f"({line_with(line, words)}\n)" for words in HOSTILE))
    assert not (tmp_path / "ran").exists()


def run_in(directory: Path, line: str) -> None:
    environment = {**os.environ, "GIT_DIR": str(directory / "none"), "GH_TOKEN": "", "GH_CONFIG_DIR": str(directory)}
    subprocess.run(
        ["bash", "-c", line],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )


@rows(
    ("line", "arguments"),
    [
        ("git grep $1", "'-Otouch ran'"),
        ("git log $ARGUMENTS", "x '-y z'"),
        ("find $ARGUMENTS", ". -exec 'touch ran' ';'"),
        ("find . -name $ARGUMENTS", "x 'y z'"),
        ("sed -n p $1", "'-e1e touch ran'"),
        ("rg $1 $2", "--pre 'touch ran'"),
        ("for i in $1; do git grep $i; done", "'x -Otouch'"),
        ("[ $ARGUMENTS ]", "-v 'a[$(touch ran)]'"),
        ("[ -n $ARGUMENTS ]", "x -a -v 'a[$(touch ran)]'"),
        ("[[ $ARGUMENTS ]]", "-v 'a[$(touch ran)]'"),
        ("printf $ARGUMENTS", "-v 'a[$(touch ran)]'"),
        ("printf '%s' $1 > f; sh f", "'touch ran'"),
    ],
)
def test_an_argument_that_may_be_an_option_or_several_words_is_no_operand(line: str, arguments: str) -> None:
    with pytest.raises(UnsafeArgumentError, match="mean something to the shell"):
        command_pieces(f"!`{line}`", arguments)


@rows(
    ("line", "arguments", "run"),
    [
        ("git log -- $1", "'-a b'", "git log -- '-a b'"),
        ('git log --grep="$1"', "'-a b'", 'git log --grep="-a b"'),
        ("grep -n $1 f", "'-a b'", "grep -n '-a b' f"),
        ("x=$ARGUMENTS; echo $x", "a touch", "x='a touch'; echo $x"),
        ("cat < $ARGUMENTS", "a b", "cat < 'a b'"),
        ("make X=$ARGUMENTS", "a b", "make X='a b'"),
        ("npm test -- $ARGUMENTS", "a b", "npm test -- a b"),
        ('sh -c "echo $ARGUMENTS"', "a b", 'sh -c "echo a b"'),
        ("sed -n '$1'p f", "5", "sed -n '5'p f"),
        ("sed -n '$1,$2'p f", "5 9", "sed -n '5,9'p f"),
        ('sed -n "/$1/p" f', "main.py", 'sed -n "/main.py/p" f'),
        ("sed -n $1 f", "5p", "sed -n 5p f"),
        ("cat f | sed p $1", "-n", "cat f | sed p -n"),
        ("sed s/x/y/e $1", "f", "sed s/x/y/e f"),
        ("cat $(sed -n '$1'p f)", "5", "cat $(sed -n '5'p f)"),
        ("sed p < f | grep $(cat $1)", "a/b", "sed p < f | grep $(cat a/b)"),
    ],
)
def test_these_are_still_accepted(line: str, arguments: str, run: str) -> None:
    assert command_pieces(f"!`{line}`", arguments) == (RunLine(run),)


@rows(
    ("line", "arguments"),
    [
        ('sed -n "/$1/p" f', "x/e./ran"),
        ('sed -n "/$1/p" f', "x/w"),
        ('sed -n "/$1/p" f', "x/r/etc/"),
        ("cat f | sed -n '$1'p", "1e./ran"),
        ("sed $1 f", "1ereboot"),
        ("xargs sed -e $1 < f", "1ereboot"),
        ("sed p $1", "--expression=1e./ran"),
        ("sed p $1", "--file=./ran"),
        ("sed -n p $ARGUMENTS", "-e 1ereboot"),
        ('x=$(sed -n "/$1/p" f)', "x/e./ran"),
    ],
)
def test_plain_words_that_make_a_script_for_sed_run_something_are_refused(line: str, arguments: str) -> None:
    with pytest.raises(UnsafeArgumentError, match="sed may run it"):
        command_pieces(f"!`{line}`", arguments)


def test_a_line_with_characters_that_mark_arguments_here_is_not_run() -> None:
    for character in "\0\1\2\3":
        with pytest.raises(UnsafeArgumentError):
            command_pieces(f"!`echo $1 {character}`", "'a b'")


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
