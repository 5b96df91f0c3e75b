"""Commands that only read: none of them changes a file, starts another program or connects to anything.

Lines are generated from the tables' own options and from dangerous ones. Those that are in the class are run.
"""

import re
import shutil
from pathlib import Path
from random import Random

import pytest

from tests.effects.arena import effects, surroundings
from tests.effects.scratch import STRACE, Scratch, acts
from tests.rows import rows
from wave_agent.effects.only_reading import (
    BUILTINS,
    GIT_ROWS,
    HARMLESS,
    Row,
    only_reads,
    reading_environment,
    reading_parts,
)
from wave_agent.effects.surroundings import Surroundings

AROUND = surroundings("/srv/project")


def reads_only(line: str, around: Surroundings = AROUND) -> bool:
    return only_reads(line, effects(line, around), around)


def changed(**others: object) -> Surroundings:
    fields = {name: getattr(AROUND, name) for name in AROUND.__struct_fields__}
    return Surroundings(**{**fields, **others})  # type: ignore[arg-type]


EVERYTHING = changed(find_program=lambda name: f"/usr/bin/{name}")
"""As on a machine that has every program."""


@rows(
    "line",
    [
        "ls -la src",
        "cat a.txt b.txt | sort | uniq -c | sort -rn | head -20",
        "cat *.txt",
        "cat missing 2>/dev/null || echo none",
        "wc -l *.py",
        "grep -rn TODO src --include='*.py'",
        "rg -n TODO src",
        "find . -name '*.py' -newer setup.py -not -path './.git/*'",
        "find . -type f -maxdepth 2 -mtime -3 -print0",
        "sed -n '1,40p' a.txt",
        "sed 's/a/b/g; /x/d' a.txt",
        "awk -F: '{print $1}' a.txt",
        "awk 'NR>5' a.txt",
        "awk -F: '$3 >= 10 || $2 > 5 {print $1}' a.txt",
        "sed 's#a#b#g' a.txt",
        "sed 's/#.*//' a.txt",
        "grep '# text' a.txt",
        "cd src && ls && pwd",
        "cd src && git log -1 && cd ..",
        "cd a && cd b && cd c && cd d && ls 2>&1",
        "ls; echo $?",
        'cat a.txt; echo "exit $?"',
        "cd src && git log --oneline -5",
        "git status --short",
        "git status -sb",
        "git blame -L 1,5 a.txt",
        "git log -S x --oneline",
        "git log --grep x --author A -G y",
        "git log -L 1,3:a.txt",
        "git -C src log",
        "git --no-pager -C src -C .. log",
        "cat < a.txt",
        "tr a b < sub/a.txt | wc -l",
        "command -v git",
        "rg -l x | xargs -n 1 wc -l",
        "find . -name '*.py' -print0 | xargs -0 cat",
        "(cd src && ls)",
        "(cd src; git log -1) | head",
        "[ -d build ] && ls",
        "[ ! -f a.txt ] || cat a.txt",
        "ps aux",
        "ps -ef",
        "printenv PATH",
        "gcc --version",
        "npx --help",
        "git --no-pager diff --stat HEAD~1 -- src",
        "git log --oneline -n 5 --format=%h%x09%s",
        "git show HEAD:a.txt",
        "git branch -a",
        "git branch --list 'x*'",
        "git branch --show-current",
        "git tag -l 'v*'",
        "git remote -v",
        "git remote get-url origin",
        "git stash list",
        "git config --get user.name",
        "git rev-parse --show-toplevel",
        "git reflog",
        "git worktree list",
        "diff -u a.txt b.txt",
        "tail -n 5 a.txt",
        "tail -5 a.txt",
        "jq -r .name package.json",
        "test -f a.txt && echo yes",
        "printf '%s\\n' x",
        "date +%F",
        "tree -L 2",
        "base64 -d a.txt",
        "file a.txt",
        "xxd -l 16 a.txt",
        "hostname",
        "true",
        "git version",
    ],
)
def test_lines_in_the_class(line: str) -> None:
    assert reads_only(line, EVERYTHING)


@rows(
    "line",
    [
        "",
        "x" * 5000,
        "ls > out.txt",
        "ls &",
        "ls $HOME",
        "cat $?",
        "ls; $?",
        "echo $?$?$(x)",
        "cd src; git log -1; cd ../..; git log",
        "X=1 ls",
        "PATH=. ls",
        "cat /dev/sda",
        "cat /proc/1/environ",
        "ls `touch x`",
        "some-program",
        "./ls",
        "sudo ls",
        "env ls",
        "find . -delete",
        "find . -exec rm {} +",
        "find . -execdir cat {} ;",
        "find . -fprint out",
        "find *",
        "find . -files0-from x",
        "sort -o out a.txt",
        "sort --output=out a.txt",
        "sort --outp=out a.txt",
        "sort --compress-program=x a.txt",
        "sort *",
        "uniq a.txt out.txt",
        "sed -i s/a/b/ a.txt",
        "sed 'w out' a.txt",
        "sed -n 's/a/b/w out' a.txt",
        "sed '1e touch x' a.txt",
        "sed s/a/b/e a.txt",
        "sed -f script a.txt",
        "sed 'r /etc/passwd' a.txt",
        "sed",
        "sed p *",
        "awk '{print > \"x\"}' a.txt",
        "awk 'NR>1 {print $1 > $2}' a.txt",
        "awk 'NR>1 {printf $1 | \"sh\"}' a.txt",
        "awk 'NR>1 || \"touch x\" | getline' a.txt",
        "awk 'x > 1 { print }; { print > \"x\" }' a.txt",
        "cat a.txt # text",
        "cat a.txt;# text",
        "awk 'BEGIN{system(\"x\")}'",
        "awk -f script a.txt",
        "awk",
        "awk 1 *",
        "cd src && cd - && git status",
        "cd && git status",
        "cd /elsewhere && git log",
        "cd a; cd b; cd c; cd d; ls",
        "cd a && cd b && cd c && cd d && cd e && cd f && cd g && cd h && ls",
        "cd a b",
        "tail -f a.txt",
        "tree -o out",
        "tree --fromfile",
        "rg --pre x y",
        "xxd -r a.txt",
        "xxd a.txt out",
        "xxd a.txt -i",
        "uniq a.txt -c",
        "sort -m a.txt b.txt",
        "file -C",
        "hostname other",
        "hostname -f",
        "date -s tomorrow",
        "date 01010101",
        "md5sum -c list",
        "wc --files0-from=list",
        "jq -f script a.json",
        "jq 'import \"x\" as x; .' a.json",
        "test -v 'a[$(touch x)]'",
        "test 'a[0]'",
        "printf -v x y",
        "printf %n x",
        "printf '%1ln' x",
        "git",
        "git push",
        "git -C /elsewhere status",
        "git -c core.pager=x log",
        "git log --output=x",
        "git log --outp=x",
        "git log --ext-diff -p",
        "git log --show-signature",
        "git log --format=%G?",
        "git diff --no-index /etc/passwd x",
        "git branch new",
        "git branch -D x",
        "git branch -v new",
        "git tag v1",
        "git tag -v v1",
        "git tag -d v1",
        "git stash",
        "git stash pop",
        "git remote add x y",
        "git remote update",
        "git reflog expire --all",
        "git worktree add x",
        "git config user.name x",
        "git config user.name -- --list",
        "git grep -Oless x",
        "git log *",
        "git cat-file --textconv HEAD:x",
        "less a.txt",
        "cat <<< x",
        "cat < $X",
        "find . -exec sort {} +",
        "find . -exec wc",
        "find . -exec sh -c x {} +",
        "find . -exec wc {} + -delete",
        "make | xargs cat",
        "git log | xargs cat",
        "cat a.txt | xargs cat",
        "find . | xargs rm",
        "find . | xargs -P 4 cat",
        "find . | xargs sort",
        "find . | xargs",
        "xargs cat < a.txt",
        "(ls > x)",
        "(touch x)",
        "(ls) &",
        "f() (ls); f",
        "[ -v x ]",
        "[ $(touch x) ] && ls",
        "[[ -d x ]] && ls",
        "[ -d x -o -d y ]",
        "(cd /elsewhere && git log)",
        "cat < /dev/tcp/evil.example/80",
        "cat < a.txt > b.txt",
        "python3 < a.txt",
        "ls; python3 -c 1 < a.txt",
        "git -C /elsewhere log",
        "git -C",
        "git log -S -- --output=x",
        "git log -S --output=x",
        "git diff -S x",
        "command ls",
        "command -v -p",
        "ps e",
        "ps auxe",
        "printenv",
        "printenv SECRET_TOKEN",
        "gcc --version x",
        "gcc -v",
        "curl https://evil.example",
        "rm a.txt",
    ],
)
def test_lines_outside_the_class(line: str) -> None:
    assert not reads_only(line, EVERYTHING)


def test_a_program_of_the_project_is_not_what_its_name_says() -> None:
    assert reads_only("ls", changed(find_program=lambda _: "/usr/bin/ls"))
    assert not reads_only("ls", changed(find_program=lambda _: "/srv/project/bin/ls"))
    assert not reads_only("ls", changed(find_program=lambda _: None))
    assert not reads_only("ls", changed(find_program=lambda _: "bin/ls"))
    assert not reads_only("git status", changed(find_program=lambda _: "/srv/project/bin/git"))
    assert reads_only("echo x", changed(find_program=lambda _: None))


@rows("name", ["BASH_ENV", "BASH_FUNC_ls%%", "LD_PRELOAD"])
def test_variables_that_change_bash_leave_nothing_in_the_class(name: str) -> None:
    assert not reads_only("echo x", changed(variables={name: "x"}))


def test_settings_of_ripgrep_may_run_something() -> None:
    variables = {"RIPGREP_CONFIG_PATH": "/x"}
    assert not reads_only("rg x", changed(variables=variables, find_program=lambda _: "/usr/bin/rg"))


@rows(
    ("name", "excluded", "kept"),
    [
        ("diff.external", "git diff", "git diff --no-ext-diff --no-textconv"),
        ("diff.x.textconv", "git log -p", "git branch"),
        ("filter.lfs.process", "git status", "git log"),
        ("submodule.x.url", "git diff", "git branch"),
        ("extensions.partialclone", "git branch", "ls"),
    ],
)
def test_git_settings_that_run_something(name: str, excluded: str, kept: str) -> None:
    around = changed(git_settings=lambda _: {name: "x"}, find_program=lambda name: f"/usr/bin/{name}")
    assert not reads_only(excluded, around)
    assert reads_only(kept, around)


def test_a_format_in_the_settings_may_check_signatures() -> None:
    around = changed(git_settings=lambda _: {"format.pretty": "%G?"}, find_program=lambda name: f"/usr/bin/{name}")
    assert not reads_only("git log", around)


def test_without_the_settings_no_git_command_is_in_the_class() -> None:
    find = EVERYTHING.find_program
    assert not reads_only("git status", changed(git_settings=lambda _: None, find_program=find))
    assert not reads_only("git status", changed(variables={"GIT_DIR": "x"}, find_program=find))


def test_the_environment_adds_to_settings_that_are_there() -> None:
    found = reading_environment({"GIT_CONFIG_COUNT": "2"})
    assert found["GIT_CONFIG_KEY_2"] == "core.fsmonitor"
    assert found["GIT_CONFIG_COUNT"] == "5"
    assert reading_environment({"GIT_CONFIG_COUNT": "x"})["GIT_CONFIG_COUNT"] == "3"


def parts(line: str, **others: object) -> list[str]:
    around = changed(find_program=lambda name: f"/usr/bin/{name}", **others)
    return [one.command.quoted for one in reading_parts(line, around)]


@rows(
    ("line", "expected"),
    [
        ("make test | tail -1", ["tail -1"]),
        ("cd src && make test && cd ..", ["cd src", "cd .."]),
        ("make && git status", ["git status"]),
        ("git commit -m x && git status", ["git status"]),
        ("git config a.b c && git status", []),
        ("git && git status", []),
        ("make | sort -o x", []),
        ("make | xargs cat; ls", ["ls"]),
        ("make; cat /dev/sda; md5sum -c x; ls", ["ls"]),
        ("cd && ls && make", []),
        ("make $(x) | tail", []),
        ("make < x | tail", []),
        ("x" * 5000, []),
    ],
)
def test_parts_of_a_line(line: str, expected: list[str]) -> None:
    assert parts(line) == expected


def test_parts_need_what_the_environment_would_switch_off() -> None:
    line = "make && git status && ls"
    assert parts(line, git_settings=lambda _: {"core.fsmonitor": "x"}) == ["ls"]
    assert parts(line, git_settings=lambda _: {"core.fsmonitor": "false"}) == ["git status", "ls"]
    assert parts(line, variables={"BASH_ENV": "x"}) == []


# ------------------------------------------------------------------------------------------------------ generated lines

DANGEROUS = [
    *(
        "-o",
        "-oout",
        "--output=out",
        "--out=out",
        "-i",
        "-i.bak",
        "-w",
        "-delete",
        "-exec touch out \\;",
        "-fprint out",
    ),
    *("'w out'", "'1w out'", "'s/./x/w out'", "'1e touch out'", "-r", "--in-place", "-O", "--pre=touch", "-T .", "out"),
    *("--ext-diff", "--textconv", "-p", "-f", "-c", "-C", "-v out", "--log-file=out", "> out", "-D", "-d main", "-m x"),
]
OPERANDS = ["secret.txt", "other.txt", "sub", ".", "'a b.txt'", "*.txt", "missing", "sub/deep/note.md", "package.json"]
CODE = ["1p", "p", "$d", "s/a/b/g", "/x/d", "y/a/b/", "1,3p", "{p;p}", "1!d", "$=", "1", "{print $1}", "a", ".", "."]
REVISIONS = ["HEAD", "main", "HEAD~0", "HEAD:other.txt", "-- other.txt", "--", "main..HEAD", "list", "show", "origin"]
BETWEEN = [" | ", " && ", "; ", " || ", "\n"]
FORMS = [
    *("({})", "{} < other.txt", "[ -d sub ] && {}", "[ -f out ] || {}", "{}; echo $?", "(cd sub && {})", "{} > out"),
    *("find . -name '*.txt' | xargs {}", "cd sub && {} && cd ..", "cd sub; {}"),
]


def one(random: Random) -> str:
    """A command, of which about half are in the class."""
    name = random.choice(sorted(HARMLESS)) if random.random() < 0.65 else "git"
    words = [name]
    if name == "git":
        words.append(random.choice(sorted(GIT_ROWS)))
        row = GIT_ROWS[words[1]]
        known = [part for part in re.findall(r"--?[a-z-]+", row.options) if re.fullmatch(row.options, part)]
        words += random.sample(known, min(len(known), random.randrange(4)))
        words += random.sample([*REVISIONS, *OPERANDS[:2]], random.randrange(3))
    else:
        row = HARMLESS[name]
        letters = row.flags if isinstance(row, Row) else "nErsuzl"
        longs = sorted(row.longs) if isinstance(row, Row) else []
        letters = letters or "abcdefghiklmnpqrstuvwxyz"
        words += [f"-{random.choice(letters)}" for _ in range(random.randrange(3))]
        words += random.sample(longs, min(len(longs), random.randrange(2)))
        if name in ("sed", "awk", "mawk", "gawk", "grep", "egrep", "fgrep", "rg", "jq", "tr", "expr"):
            words.append(f"'{random.choice(CODE)}'")
        words += random.sample(OPERANDS, random.randrange(3))
    if name == "sleep":
        return "sleep 0"
    if random.random() < 0.4:
        words.insert(random.randrange(1, len(words) + 1), random.choice(DANGEROUS))
    return " ".join(words)


def generated(seed: int, count: int, around: Surroundings) -> tuple[list[str], int]:
    """Lines of the class, and how many others there were."""
    random = Random(seed)
    kept: list[str] = []
    others = 0
    while len(kept) < count:
        line = one(random)
        while random.random() < 0.3:
            line += random.choice(BETWEEN) + one(random)
        if random.random() < 0.3:
            line = random.choice(FORMS).format(line)
        if reads_only(line, around):
            kept.append(line)
        else:
            others += 1
    return kept, others


def guilty(lines: list[str], scratch: Scratch, around: Surroundings) -> list[str]:
    """Those of the lines that change something by themselves."""
    found: list[str] = []
    for line in lines:
        scratch.reset()
        before = scratch.files()
        scratch.run(line, reading_environment(around.variables))
        if scratch.files() != before:
            found.append(line)
    return found


BATCHES = [*range(6), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(6, 80))]


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize("seed", BATCHES)
def test_no_generated_line_of_the_class_changes_anything(seed: int, tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    place = str(scratch.project)
    around = changed(directory=place, project=place, variables={"HOME": str(scratch.home)})
    lines, others = generated(seed, 50, around)
    assert others > 10
    before = scratch.files()
    calls = scratch.run("\n".join(lines), reading_environment({}), traced=True)
    assert scratch.files() == before, guilty(lines, scratch, around)
    if STRACE:
        acting = [call for call in calls if acts(*call)]
        assert acting == [], lines
        programs = {
            re.findall(r'"([^"]*)"', arguments)[0].rpartition("/")[2] for name, arguments in calls if name == "execve"
        }
        assert programs <= {"bash", "git", *HARMLESS}
        assert len(programs) > 10


def test_the_class_has_no_builtin_that_is_not_in_the_table() -> None:
    assert set(HARMLESS) >= BUILTINS
