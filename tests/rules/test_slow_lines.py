"""To be slow is an attack too: no line keeps the agent busy for long, and a line that tries is restricted."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.hostile_lines import hostile_line
from tests.rows import rows
from wave_agent.agent.call_facts import subject_of
from wave_agent.hooks.events import HookEvent
from wave_agent.hooks.verdicts import Outcome
from wave_agent.permissions.decision import Permission, PermissionMode, Rules, Ruling, decide
from wave_agent.permissions.protected_paths import protected_paths
from wave_agent.rules.path_patterns import path_glob
from wave_agent.rules.rule import Places, parse_rule
from wave_agent.shell.doubt import InOrder, git_words
from wave_agent.shell.effort import MOST, TooMuchError, limited, spend
from wave_agent.shell.grammar import can_parse, parse
from wave_agent.shell.reader import forget, read_line, read_placed
from wave_agent.shell.values import Reach, WriteTarget
from wave_agent.tools.base import ToolContext
from wave_agent.tools.bash import Bash
from wave_agent.tools.shells import Shells

DENY = ("Bash(git push:*)", "Bash(rm -rf:*)")
SLOWEST = 12
"""How many times as long as an ordinary script a line may take. The worst take three or four times as long; what is not
bounded takes hundreds."""
SCRIPT = "\n".join(f"cp src/file{at}.py build/file{at}.py && echo done {at}" for at in range(60))
HARDER = {
    "pipes": "a|" * 9950,
    "open brackets": "[a]" * 6600,
    "zeros": "\0" * 19_900,
    "digits": "1" * 131_072,
    "open indexes": "a[" * 65_000,
    "commas": "{" + "," * 131_000,
    "choices": "{a,b}" * 26_000,
    "escapes in quotes": "$'a'" * 32_000,
    "directories": "cd a;" * 3980,
    "options of git": "git -" * 26_000,
    "files of the editor": "sed -n '" + "w" * 19_900 + "'",
    "deep patterns": "rm " + "**/" * 6600 + "x",
    "patterns in a word": "rm " + "*a" * 9900,
    "files everywhere": "rm /*/*/*/*/*/*/x-9",
    "wildcards in code": "python3 -c '" + "a b c " * 3300 + "'",
    "comments": "#a\n" * 43_690,
    "assignments": "x=a " * 32_768,
    "arguments doubled": "set -- a b; " + 'set -- "$@" "$@"; ' * 24 + ":",
    "arguments doubled often": "set -- a b; " + 'set -- "$@" "$@"; ' * 100 + ":",
    "a command of a command": "false && " + "xargs -I{} " * 400 + ":",
    "unknown words": "false && " + "$g $p " * 3300,
    "substitutions": "false && : " + "<(:) " * 3000,
    "up and up": "false; " + "cd ..; " * 2500,
}


class Judge:
    """Judges lines as an agent does, without git, and says how long that takes."""

    def __init__(self, directory: Path) -> None:
        project, home = directory / "project", directory / "home"
        (project / ".wave" / "hooks").mkdir(parents=True)
        home.mkdir()
        self._context = ToolContext(project_dir=project, environment={"HOME": str(home)}, outputs=directory / "outputs")
        self._protected = protected_paths(str(project), home / ".wave", [], home)
        self._places = Places(str(project), str(home))
        self.floor = min(self.seconds(SCRIPT) for _ in range(5))

    def judge(self, line: str, deny: tuple[str, ...] = DENY) -> Permission:
        tool, call = Bash(Shells()), {"command": line}
        subject = subject_of(tool, call, self._context, (self._places.project,), self._protected)
        if subject.protected is None:
            tool.git_runs(call, self._context)
        rules = Rules(deny=tuple(map(parse_rule, deny)))
        return decide(subject, PermissionMode.BYPASS, rules, Outcome(event=HookEvent.PRE_TOOL_USE), self._places)

    def seconds(self, line: str, deny: tuple[str, ...] = DENY) -> float:
        forget()
        began = process_time()
        self.judge(line, deny)
        return process_time() - began

    def is_slow(self, line: str, deny: tuple[str, ...] = DENY) -> bool:
        """Twice, as something else may have slowed the first down."""
        return all(self.seconds(line, deny) > SLOWEST * self.floor for _ in range(2))


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    return Judge(tmp_path_factory.mktemp("judge"))


@pytest.mark.parametrize("name", HARDER)
def test_what_was_slow_is_quick(name: str, judge: Judge) -> None:
    assert not judge.is_slow(HARDER[name])


@pytest.mark.parametrize("seed", range(12))
def test_hostile_lines_are_quick(seed: int, judge: Judge) -> None:
    random = Random(seed)
    lines = [hostile_line(random) for _ in range(4)]
    assert [line[:100] for line in lines if judge.is_slow(line)] == []


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_thousands_of_hostile_lines_are_quick(judge: Judge) -> None:
    random = Random(2026)
    slow = [line[:100] for line in (hostile_line(random) for _ in range(6000)) if judge.is_slow(line)]
    assert slow == []


MANY = (*(f"Bash(program{at} do:*)" for at in range(250)), *(f"Bash(a{at} * b * c * d * e)" for at in range(250)))


@pytest.mark.parametrize("line", [SCRIPT, HARDER["wildcards in code"], "(a == b) " + "a1 b c d " * 400])
def test_many_rules_are_quick(line: str, judge: Judge) -> None:
    assert not judge.is_slow(line, MANY)


# --------------------------------------------------------------------------------------------------------- the budget


def test_a_line_that_is_too_much_work_is_denied_by_every_rule_and_asks_about_protected_paths(judge: Judge) -> None:
    line = "true;" * 3500
    read = read_line(line)
    assert read.anything
    assert not read.understood
    assert not read.plain
    assert read_placed(line, {}, "/srv").writes == (WriteTarget("/", Reach.TREE),)
    assert judge.judge(line).answer is Ruling.DENY
    assert judge.judge(line, ("Bash(never heard of:*)",)).answer is Ruling.DENY
    assert judge.judge(line, ()).answer is Ruling.ASK


def test_work_without_a_budget_is_not_counted() -> None:
    spend(10 * MOST)
    with limited(10) as effort:
        spend(10)
        assert effort.spent == 10
        with pytest.raises(TooMuchError):
            spend(1)
    spend(10 * MOST)


def test_ordinary_scripts_are_within_the_budget() -> None:
    assert read_line(SCRIPT).understood
    code = Path(__file__).read_text()
    assert read_line(f"cat > test.py <<'EOF'\n{code[:12_000]}\nEOF\n").understood
    assert read_line("git add " + " ".join(f"src/file{at}.py" for at in range(300))).understood


def test_a_text_that_the_parser_cannot_make_sense_of_ends_for_it() -> None:
    with pytest.raises(TooMuchError):
        parse("a|" * 9950)
    assert parse("echo 'é' \\\n" + "a " * 300).has_error is False
    assert not can_parse("a\0b")
    for front in range(3):  # a character of several bytes wherever the parser is given the next piece
        with pytest.raises(TooMuchError):
            parse("a" * front + "é|" * 3000)


def test_a_word_of_thousands_of_parts_may_be_any() -> None:
    assert read_line("\\a" * 6500 + " b").anything
    assert not read_line("echo " + "\\a" * 6500).understood


# ------------------------------------------------------------------------------------- the same as before, but quicker


PATHS = st.text("ab./", max_size=14)
PATTERNS = st.lists(st.sampled_from(["a", "b", ".", "/", "/", "*", "**", "/**/", "?", "[ab]", "[!a]"]), max_size=9)


@given(PATTERNS.map("".join), PATHS)
@example("/**/", "/a")
def test_a_glob_of_paths_matches_what_it_would_if_it_tried_everything(pattern: str, path: str) -> None:
    below = re.fullmatch(f"(?:{_slowly(pattern)})(?:/.*)?", path) is not None
    found = path_glob(pattern, ends=r"(?=/|\Z)", dots=True)
    assert (re.fullmatch(f"(?:{found})(?:/.*)?", path) is not None) is below
    whole = re.fullmatch(_slowly(pattern), path) is not None
    assert (re.fullmatch(path_glob(pattern, ends=r"\Z", dots=True), path) is not None) is whole


def _slowly(pattern: str) -> str:
    out, at = "", 0
    for token in re.finditer(r"((?:^|(?<=/))\*\*(?:/|$))|(\*+)|(\?)|(\[!?[ab]+\])", pattern):
        out += re.escape(pattern[at : token.start()])
        at = token.end()
        if token[1]:
            out += ".*" if at == len(pattern) else "(?:.*/)?"
        else:
            out += "[^/]*" if token[2] else "[^/]" if token[3] else "(?!/)" + token[4].replace("!", "^")
    return out + re.escape(pattern[at:])


@rows(
    ("pattern", "path", "matches"),
    [("/a/*", "/a/.b", False), ("/a/.*", "/a/.b", True), ("/a/?b", "/a/.b", False), ("/a/[.]b", "/a/.b", False),
     ("/a/**", "/a/.b/c", True), ("/a/**b", "/a/.b", True), ("/**/b", "/.a/b", True), ("/a*", "/a.b", True)],
)  # fmt: skip
def test_a_wildcard_of_the_shell_stands_for_no_dot_in_front(pattern: str, path: str, matches: bool) -> None:
    assert (re.fullmatch(path_glob(pattern, ends=r"\Z", dots=False), path) is not None) is matches


def test_a_rule_with_many_directories_of_any_depth_is_quick() -> None:
    few, many = (parse_rule(f"Read({'**/a/' * times}x)") for times in (1, 40))
    path = "a/" * 2000 + "y"

    def seconds(rule: Callable[..., bool]) -> float:
        began = process_time()
        rule("Read", {"file_path": path}, Places("/p", "/h"))
        return process_time() - began

    floor = min(seconds(few.matches) for _ in range(3))
    assert min(seconds(many.matches) for _ in range(3)) < 0.05 + 200 * floor
    assert many.matches("Read", {"file_path": "b/a/" * 60 + "x/y"}, Places("/p", "/h"))


@given(st.lists(st.sampled_from(["a", "b", "ab", "aa"]), min_size=1, max_size=4), st.text("ab \n", max_size=30))
@example(["a", "b"], "a a      b")
@example(["a", "b"], "a      a b")
def test_pieces_in_order_are_found_where_an_expression_would_find_them(pieces: list[str], text: str) -> None:
    expected = re.search(r"(?<!\S)" + r"[^\n]{0,3}?".join(pieces) + r"(?!\S)", text) is not None
    assert InOrder(r"(?<!\S)", pieces, r"(?!\S)", 3).search(text) is expected


WORDS = st.lists(st.sampled_from(["git", "git ", " push", "\n", ";", " -a", " ", "x", "|", " add "]), max_size=14)


@example("git/git; push")
@example("git git push")
@example("git")
@given(WORDS.map("".join))
def test_words_behind_git_are_found_where_an_expression_would_find_them(text: str) -> None:
    assert list(git_words(text)) == re.findall(r"\bgit\b[^;&|\n]*?\s([a-z][a-z-]+)\b", text)


def test_a_pattern_that_would_have_to_be_compared_with_too_many_files_asks(tmp_path: Path) -> None:
    protected = protected_paths(str(tmp_path), tmp_path / "state", [], tmp_path / "home")
    for first in range(11):
        (tmp_path / f"d{first}").mkdir()
        for second in range(1000):
            os.mkdir(tmp_path / f"d{first}" / str(second))
    pattern = f"{tmp_path}/d*/*/x"
    assert protected.touched(WriteTarget(pattern)) == pattern
    assert protected.touched(WriteTarget(f"{tmp_path}/d1/*/x")) is None
