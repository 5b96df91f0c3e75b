"""Names of files that a program prints and another one reads as words: `find … | xargs cat`, `echo * | xargs cat`."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.effects.arena import effects, surroundings
from tests.effects.matching import any_names
from tests.rows import rows
from wave_agent.effects.surroundings import Surroundings
from wave_agent.permissions.command_surroundings import splits
from wave_agent.shell.reader import read_writes

SECRET = ".env"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in (SECRET, "key", "note.txt", "x.log", "sub/key"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("hi\n")
    return tmp_path


def around(project: Path) -> Surroundings:
    return replace(surroundings(str(project)), splits=splits)


NAMES = {
    "find . -name key | xargs cat": "a /tmp/outside/key",
    "find . -name key | sudo xargs cat": "a 'b/key",
    "find . -type f | sort | head -n 3 | xargs grep -n x": "q\t.env",
    "find sub -name key | grep -v x | xargs -n1 cat": "sub/it's/key",
    "find . -name '*.txt' | xargs -I{} cat {}": "q\\.env.txt",
    "find . -name '*.txt' | xargs -d '\\n' cat": "q\n.env\nx.txt",
    "grep -rl hi --include='*.txt' . | xargs cat": "q .env x.txt",
    "grep -rlZ hi . | xargs -0 cat": "-r",
    "git ls-files | xargs cat": "q .env x.py",
    "git diff --name-only | xargs cat": '"q.py',
    "rg -l hi | xargs wc -l": "q .env x.py",
    "rg -l -0 hi | xargs -0 wc -l": "-r.txt",
    "fd txt | xargs cat": "q .env x.txt",
    "echo *.log | xargs grep hi": "w -r . x.log",
    "printf '%s\\n' *.log | xargs grep hi": "w -r . x.log",
    "printf '%s\\0' * | xargs -0 cat": "-r",
}


@rows(("line", "name"), NAMES.items())
def test_an_existing_name_that_becomes_other_words_is_not_complete(line: str, name: str, project: Path) -> None:
    file = project / name
    assert effects(line, around(project)).complete, "without such a name it is"
    created = [one for one in reversed(file.parents) if not one.exists()]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("hi\n")
    assert not effects(line, around(project)).complete
    file.unlink()
    for one in reversed(created):
        one.rmdir()


@rows(
    "line",
    [
        "find . -name key -print0 | xargs -0 cat",
        "find . -name key -print0 | xargs -0 -n 1 cat",
        "find . -name key -print0 | sort -z | xargs -0 cat",
        "find . -name key | xargs -d '\\n' cat",
        "find . -name '*.md' | xargs cat",
        "grep -rlZ hi . | xargs -0 cat",
        "git ls-files -z | xargs -0 wc -l",
        "git ls-files -z '*.py' | xargs -0 grep -n x",
        "echo *.log | xargs cat",
        "echo a b | xargs cat",
        "find . -name key | xargs",
    ],
)
def test_other_lines_are_complete_although_there_is_such_a_name(line: str, project: Path) -> None:
    (project / "a /tmp/outside").mkdir(parents=True, exist_ok=True)
    (project / "a /tmp/outside/key").touch()
    assert effects(line, around(project)).complete


@rows(
    "line",
    [
        "find . -name x -printf '.env\\n' | xargs cat",
        "find . -name x -exec echo ../.env \\; | xargs cat",
        "find . -ls | xargs cat",
        "find -L . -name x | xargs cat",
        "find -files0-from list -name x | xargs cat",
        'find "$D" -name x | xargs cat',
        'find . -name "$x" | xargs cat',
        "find . | head -c 6 | xargs cat",
        "find . | tail -c 6 | xargs cat",
        "find . | grep -o '.env' | xargs cat",
        "find . | sort list.txt | xargs cat",
        "find . | grep x list.txt | xargs cat",
        "find . | head list.txt | xargs cat",
        "find . | cat -A | xargs cat",
        "find . | xargs -d / cat",
        "find . | xargs -0 -d / cat",
        "find . | xargs -a list cat",
        "find . | xargs -I{} cat {}/../.env",
        "find . | xargs -I{} sh -c 'cat {}'",
        "find 'a b' -name x | xargs cat",
        "echo x | grep -l --label=.env x | xargs cat",
        "grep -c -l x . | xargs cat",
        "git log --name-only | xargs cat",
        "git diff --name-status | xargs cat",
        "git diff --name-only --line-prefix=../ | xargs cat",
        "git ls-files -s | xargs cat",
        "fd --format .env | xargs cat",
        "fd --base-directory .. x | xargs cat",
        "rg -l --path-separator x y | xargs cat",
        "ls -A sub/** | xargs cat",
        "ls sub/* | xargs cat",
        "echo -e *.log | xargs cat",
        "printf '../%s\\n' * | xargs cat",
        "printf %s * | xargs cat",
        "mktemp -u | xargs cat",
        "find . -name '*.txt' | parallel cat",
        "cat list | parallel cat {}",
        "parallel cat :::: list",
        "touch 'q .env x.txt'; grep -rl hi . | xargs cat",
        "cp note.txt 'sub/q .env x.txt' && grep -rl hi . | xargs cat",
    ],
)
def test_what_prints_something_else_than_names_is_not_complete(line: str, project: Path) -> None:
    assert not effects(line, around(project)).complete


@rows(
    "line",
    [
        "echo .e* | xargs cat",
        "printf '%s\\n' .* | xargs cat",
        "printf 'sub/../%s' .e* | xargs cat",
        'echo .e* | while read f; do cat "$f"; done',
        'cat "$(echo .e*)"',
        "for f in $(echo .e*); do cat $f; done",
        "x=$(printf %s .e*); cat $x",
        "grep -rl hi --include=a --include=.env . | xargs cat",
        "grep -rl hi --exclude=b --include=a . | xargs cat",
        "find . -name '.en\\v' | xargs cat",
        "find . -name '.e[[:lower:]]v' | xargs cat",
        "find . -type f | xargs -I{} sh -c 'cat {}'",
        "find . -type f | parallel cat {}",
        "grep -r hi --exclude=note.txt",
        "egrep -r hi --exclude=x",
        "fgrep -r hi --exclude=note.txt .",
        "rgrep hi --exclude=note.txt",
        "grep -rn hi --exclude note.txt",
        "grep -r hi --exclude='.x'",
        "grep -r hi --exclude='!x'",
        "find . -name x -execdir cat .env \\;",
        "find sub -maxdepth 0 -execdir cat .env \\;",
        "find sub -type f -execdir cat ../.env \\;",
        "find . -okdir cat {} +",
        "find . -name '*nv' -execdir cat {} +",
        "find sub -name key -execdir sh -c 'cat ../.env' \\;",
    ],
)
def test_a_hidden_file_is_read_through_a_pattern(line: str, project: Path) -> None:
    found = effects(line, around(project))
    assert any_names(found.reads, f"{project}/{SECRET}"), found


def test_of_find_the_names_in_each_directory_are_complete(project: Path) -> None:
    found = effects("find . -name '*.md' -execdir wc -l {} +", around(project))
    assert found.complete
    assert not any_names(found.reads, f"{project}/{SECRET}")


def test_too_many_files_are_not_searched(project: Path) -> None:
    nobody = replace(around(project), splits=lambda _patterns, _expression: None)
    assert not effects("find . -name key | xargs cat", nobody).complete
    assert not effects("find . -name key | xargs cat", Surroundings(directory="/p", project="/p")).complete


@rows(
    ("line", "path"),
    [
        ('touch "it\'s"; find . -type f | xargs rm', "/"),
        ("touch 'q .env'; find . -type f | xargs rm", "/p/.env"),
        ("mkdir 'a .env'; rm $(find . -type f)", "/p/.env"),
        ("touch 'q .env'; rm x", None),
        ("touch q; find . -type f | xargs rm", None),
    ],
)
def test_what_a_name_that_the_line_makes_becomes_is_written(line: str, path: str | None) -> None:
    patterns = {write.pattern for write in read_writes(line, {}, "/p") if write.splits is None}
    assert patterns & {"/", "/p/.env"} == ({path} if path else set())
