"""The lines that hooks write to CLAUDE_ENV_FILE are read as data."""

import os
import subprocess
from pathlib import Path
from time import monotonic

import pytest

from tests.rows import rows
from wave_agent.hooks.export_lines import LONGEST_VALUE, read_exports

BEFORE = {"PATH": "/usr/bin:/bin", "HOME": "/home/me", "EMPTY": "", "A": "old", "LC_ALL": "C.UTF-8"}

AS_BASH_DOES = [
    "export NODE_ENV=production",
    'export A="a b"; export B="$A and new"',
    'export PATH="$HOME/.x/bin:$PATH"',
    "export PATH=~/bin:~/.local/bin:$PATH B=~ C=a~ D=~else",
    "export A='it is $A' B=$'tab\\there \\x41\\101\\u00e9\\'' C=\\$A",
    "export A=$'\\303\\251 \\xc3\\xa9 \\q \\cA'",
    'export LIB="/x${LIB:+:$LIB}" P="/x${PATH:+:$PATH}" D="${NONE:-de fault}" E=${EMPTY-x}${EMPTY:-y}${EMPTY+z}',
    "export D=${NONE-\"$A\"'b'}",
    'declare -x A="two\nlines \\"and\\" \\$more"\ndeclare -x B=\'c\'',
    'export A=1 && export B="$A" # a comment\n\n  # another\nexport C=a#b',
    "A=1; export A B=2",
    "export B=1 && export C=$B",
    "export A=1 \\\n B=2",
    "export B=1 # last",
    "export A=1 B=$A",
    "C=3\nexport C",
    "export A+=er B+=x",
    "export A=one\\\n\\two\\ words",
    'export A="back\\slash \\" \\` \\$x"',
    "unset A\nexport B=[$A]",
    "export -- A=2\ndeclare -r -x B=3; readonly C=4",
    'export A=$"plain" B=a$ C="$ x"',
    "export é",
    "export A=",
    "\ttypeset -x B=1\r\nexport C=2",
]
"""Bash and the reader agree on these."""


@rows("lines", AS_BASH_DOES)
def test_assignments_mean_what_they_mean_in_bash(lines: str) -> None:
    program = f". /dev/stdin 2>/dev/null; exec {os.path.realpath('/usr/bin/env')} -0"
    lines = lines.replace("\r", "")
    run = subprocess.run(
        ["bash", "--norc", "-c", program], input=lines.encode(), env=BEFORE, stdout=subprocess.PIPE, check=True
    )
    pairs = (entry.partition("=") for entry in run.stdout.decode(errors="replace").split("\0") if entry)
    expected = {name: value for name, _, value in pairs if name not in ("_", "SHLVL", "PWD", "OLDPWD")}
    found = {**BEFORE, **read_exports(lines, BEFORE).variables}
    # A variable that is only set is exported as well: in Claude Code, commands see it too.
    assert {name: value for name, value in found.items() if value is not None} == expected


@rows(
    ("lines", "variables", "ignored"),
    [
        ("A=1", {"A": "1"}, []),
        ("declare -- A=1\nexport B=$A", {"B": "1"}, []),
        ("export -p", {}, []),
        ("touch x", {}, [(1, "touch x", "not an assignment")]),
        ("export A=x;touch y;z", {"A": "x"}, [(1, "touch y;", "not an assignment"), (1, "z", "not an assignment")]),
        ("A=1 touch x\nexport B=2", {"B": "2"}, [(1, "A=1 touch x", "not an assignment")]),
        ("export A=$(touch x) B=1\nexport C=2", {"C": "2"}, [(1, "export A=$(touch x) B=1", "its value is computed")]),
        ('export A="`touch x`"', {}, [(1, 'export A="`touch x`"', "its value is computed")]),
        ("export A=$((1+1))", {}, [(1, "export A=$((1+1))", "its value is computed")]),
        ("export A=${PATH%%:*}", {}, [(1, "export A=${PATH%%:*}", "its value is computed")]),
        ("export A=${PATH:1:2}", {}, [(1, "export A=${PATH:1:2}", "its value is computed")]),
        ("export A=${!PATH}", {}, [(1, "export A=${!PATH}", "its value is computed")]),
        ("export A=$1$?", {}, [(1, "export A=$1$?", "its value is computed")]),
        ("export A=(1 2)\nB=3", {"B": "3"}, [(1, "export A=(1 2)", "an array cannot be exported")]),
        ("[ -s x ] && . x", {}, [(1, "[ -s x ] && . x", "not an assignment")]),
        ("[ -s x ] && export A=1", {}, [(1, "[ -s x ] && export A=1", "not an assignment")]),
        ("false || export A=1", {}, [(1, "false || export A=1", "not an assignment")]),
        ("export A=1 > file", {}, [(1, "export A=1 > file", "not an assignment")]),
        ("export -n PATH", {}, [(1, "export -n PATH", "not an assignment")]),
        ("export 1A=2", {}, [(1, "export 1A=2", "not an assignment")]),
        ("unset -f f", {}, [(1, "unset -f f", "not an assignment")]),
        ("unset A[0]", {}, [(1, "unset A[0]", "not an assignment")]),
    ],
)
def test_whatever_else_is_in_the_file_is_ignored_and_reported(
    lines: str, variables: dict[str, str], ignored: list[tuple[int, str, str]]
) -> None:
    found = read_exports(lines, BEFORE)
    assert found.variables == variables
    assert [(one.number, one.text, one.why) for one in found.ignored] == ignored


@rows(
    ("lines", "why"),
    [
        ("if [ x = y ]; then\nexport A=1\nfi", "not an assignment"),
        ("cat <<E\nexport A=1\nE", "not an assignment"),
        ("f() {\nexport A=1\n}", "not an assignment"),
        ("(\nexport A=1\n)", "not an assignment"),
        ("export B='x\nexport A=1", "a quote or bracket is not closed"),
        ('export B="x\nexport A=1', "a quote or bracket is not closed"),
        ("export B=$'x\nexport A=1", "a quote or bracket is not closed"),
        ("export B=$(x\nexport A=1", "a quote or bracket is not closed"),
        ("export B=${x\nexport A=1", "a quote or bracket is not closed"),
        ("export B=`x\nexport A=1", "a quote or bracket is not closed"),
    ],
)
def test_nothing_is_read_behind_something_that_may_have_no_end(lines: str, why: str) -> None:
    found = read_exports(f"export FIRST=1\n{lines}\nexport LAST=1", {})
    assert found.variables == {"FIRST": "1"}
    assert [(one.number, one.why) for one in found.ignored] == [(2, f"{why}; nothing is read from here on")]


def test_values_do_not_grow_without_end_and_hold_no_nul() -> None:
    doubling = "A=xxxxxxxxxx\n" + "A=$A$A\n" * 15
    added = f"A+=x{'y' * (LONGEST_VALUE - 2)}"
    found = read_exports(f"{doubling}{added}\nexport B=a\0b C=$'a\\0b'", {})
    assert 10 < len(found.variables["A"] or "") <= LONGEST_VALUE
    assert {one.why for one in found.ignored} == {"its value is longer than 100 KiB"}
    assert (found.variables["B"], found.variables["C"]) == ("ab", "ab")


HOSTILE = [
    "export A=B; " * 8_000 + "x",
    "export A=${A:-" * 20_000,
    "A=$A$A\n" * 10_000,
    "$(" * 100_000,
    "x\n" * 8_000,
]


@rows("text", HOSTILE)
def test_a_hostile_file_is_quick(text: str) -> None:
    began = monotonic()
    assert read_exports(text, {"A": "x"}).ignored
    assert monotonic() - began < 5


@pytest.mark.parametrize(
    "quoting", ["printf 'export A=%q\\n' \"$V\"", "A=$V; declare -p A | sed 's/--/-x/'", "A=$V; export A; export -p"]
)
def test_what_a_shell_quotes_is_read_back(quoting: str, tmp_path: Path) -> None:
    value = "x;touch pw 'a' \"b\" $(c) `d` \\ \n\t é ~ ${e} #f &|<>()"
    written = subprocess.run(
        ["bash", "-c", quoting], env={**os.environ, "V": value}, stdout=subprocess.PIPE, check=True
    )
    assert read_exports(written.stdout.decode(), {}).variables["A"] == value
