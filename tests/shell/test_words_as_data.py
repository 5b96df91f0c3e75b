"""Words reach a command not only as arguments: as input, from files, by variables of Bash, as data of code."""

from pathlib import Path

import pytest

from tests.attacks.attack_classes import load_classes
from tests.rows import rows
from tests.rules.test_slow_lines import Judge
from wave_agent.permissions.decision import Ruling
from wave_agent.rules.rule import Places, parse_rule
from wave_agent.shell.pieces import pieces
from wave_agent.shell.reader import read_line, read_placed, read_writes

CLASSES = (
    *("data_for_code", "input_of_functions", "more_programs_that_carry", "names_that_bash_sets"),
    *("protected_by_data", "protected_directories", "written_scripts"),
)
PUSHES = [
    attempt.line
    for attacks in load_classes()
    if attacks.name in CLASSES and not attacks.name.startswith("protected")
    for attempt in attacks.attempts
    if attempt.line is not None
]
WRITES = [
    attempt.line
    for attacks in load_classes()
    if attacks.name in CLASSES and attacks.name.startswith("protected")
    for attempt in attacks.attempts
    if attempt.line is not None
]
INNOCENT = [
    "f() { grep x; }; echo 'git push' | f",
    "f() { f; }; echo x | f",
    "echo 'git push' > notes.txt; cat notes.txt",
    "echo 'git push' > notes.txt; cp notes.txt copy.txt; grep push < copy.txt",
    "cp a b; mv c d",
    "tee log.txt < notes.txt",
    "echo x | tee log.txt; ls",
    "echo 'print(1)' > x.py; python3 x.py",
    '[[ $x =~ ^v([0-9]+) ]] && echo "${BASH_REMATCH[1]}"',
    "[[ push =~ . ]]",
    "env -S 'git status' x",
    "exec -a git ls",
    "compgen -W 'git push' x",
    "PS1='git push> '; export PS1",
    "echo git push | sed s/x/y/",
    "echo git push | awk '{print $2}'",
    "python3 -c 'import sys; print(sys.argv)' git push",
    "python3 -m json.tool - < a.json",
    "git commit -m 'push' && python3 -c 'import os; print(os.getcwd())'",
    "capsh --print",
    "run-parts /etc/cron.daily",
    "echo '.B x' | groff -man",
    "scalar list",
    "git maintenance run",
    "cmake -S . -B build",
    'echo "${HOME:?}"',
    "cat notes.txt | xargs echo",
    'echo "$0"',
]
HARMLESS = [
    "cd src* && echo x > a.txt",
    'cd "$UNKNOWN" && echo x > a.txt && make lint && npm test',
    "cd src && cd - && touch a.txt",
    "pushd src && popd && touch a.txt",
    "pushd -n src",
    "cd; ls",
    "CDPATH=src; cd lib && touch a.txt",
    "shopt -s cdable_vars; d=/srv; cd d && touch a.txt",
    "env -C src* touch a.txt",
    "d=$(mktemp -d); cd $d && tar xf a.tar && rm -rf *",
    "strace -o trace.txt ls .wave",
    "strace -f cat .wave/settings.json",
    "timeout -k 5 9 cat .wave/settings.json",
    "perf stat -d ls .wave",
    "hyperfine --warmup 3 ls",
    "valgrind -q cat .wave/settings.json",
    "cp -rT a b",
    "cp -T a b",
    "rsync -a src/ build/",
    "git diff --name-only -- src | xargs touch",
    "git diff --stat",
    "git ls-files '*.py' | xargs touch",
    'a=(b c); IFS=/; echo x > "${a[*]}"',
    "sed -f script.sed note.txt",
    "echo .wave/settings.json | awk '{print $1}'",
    "scalar list",
    "git maintenance run --task=gc",
    "mktemp -d -p src",
]


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    directory = tmp_path_factory.mktemp("judge")
    judge = Judge(directory)
    for name in ("src/a.py", "src/lib/b.py", ".wave/settings.json", "note.txt", ".git/config"):
        (directory / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / "project" / name).write_text("x\n")
    return judge


@rows("line", PUSHES)
def test_a_rule_sees_its_words_wherever_they_come_from(line: str) -> None:
    assert parse_rule("Bash(git push:*)").matches("Bash", {"command": line}, Places("/p", "/h"))


@rows("line", INNOCENT)
def test_what_only_has_the_words_is_let_pass(line: str) -> None:
    assert not parse_rule("Bash(git push:*)").matches("Bash", {"command": line}, Places("/p", "/h"))


@pytest.mark.parametrize("line", WRITES)
def test_a_guard_is_seen_wherever_its_name_comes_from(line: str, judge: Judge) -> None:
    assert judge.judge(line, ()).answer is Ruling.ASK


@pytest.mark.parametrize("line", HARMLESS)
def test_what_writes_elsewhere_is_let_pass(line: str, judge: Judge) -> None:
    assert judge.judge(line, ()).answer is Ruling.ALLOW


def test_a_function_of_a_long_line_may_read_what_it_runs() -> None:
    filler = "true; " * 100 + "# " + "x" * 20_000
    for line, anything in (
        ("f() { bash; }; echo x | f; ", True),
        ("f() { bash -c x; }; f; ", False),
        ("bash a; ", False),
    ):
        assert read_line(line + filler).anything is anything


def test_a_line_that_enters_more_directories_than_are_kept_may_be_anywhere() -> None:
    line = "; ".join(f"cd d{at}" for at in range(30)) + "; echo x > a"
    assert "/**/a" in [write.pattern for write in read_writes(line, {}, "/srv")]


def test_words_in_front_of_a_command_are_looked_behind_up_to_a_depth() -> None:
    assert "x" in pieces("sudo " * 9 + "x")
    assert "x" not in pieces("sudo " * 40 + "x")


def test_git_is_asked_about_directories_that_are_known(tmp_path: Path) -> None:
    line = read_placed("cd src && cd $UNKNOWN && git status", {}, str(tmp_path))
    assert line.git[0].directories == (str(tmp_path), f"{tmp_path}/src")
