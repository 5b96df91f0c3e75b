"""Lines that nobody would write, run by a real Bash: whenever that runs `git push`, a rule has seen it.

A grammar for Bash is written by hand, and parts some words elsewhere than Bash does. Those that were found this way are
among the spellings of `test_shell.py`.
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from wave_agent.rules import Places, parse_rule

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")

RULE = parse_rule("Bash(git push*)")
PLACES = Places("/srv/project", "/home/me")

WORDS = [
    "git",
    "git ",
    "git push",
    "\\git",
    "g",
    "it",
    "push",
    " push",
    "ls",
    "ls ",
    "true",
    "true;",
    "x",
    "y",
    "f",
    "é",
]
BLANKS = [" ", " ", " ", "\n", "\n", "\t", "\r", "\\\n", "\n\\", "\n ", ";\n", "\n\n", "\n#", "$IFS", "${IFS}"]
SIGNS = [
    "\\",
    "'",
    '"',
    ";",
    "&",
    "|",
    "&&",
    "||",
    "(",
    ")",
    "{",
    "}",
    " { ",
    "; }",
    "#",
    "!",
    "! ",
    "=",
    "<",
    ":",
    "*",
    "?",
]
SIGNS += [
    "~",
    "\x01",
    "-",
    "@",
    ",",
    "..",
    "%",
    "^",
    "/",
    "$",
    "`",
    "[ ",
    "] ",
    "[[",
    "]]",
    "((",
    "))",
    "true&&",
    "false||",
]
EXPANSIONS = [
    "$x",
    "${x}",
    "x=git",
    "x=git;",
    "$y",
    "y=push;",
    "$(",
    "$'",
    '$"',
    "\\x67",
    "\\147",
    "$((",
    "${",
    "#}",
    ":-git}",
]
EXPANSIONS += ["{git,", "push}", "{a,", "<(", ">(", "+(", "!("]
REDIRECTIONS = ["<<E", "<<'E'", "<<-E", "E\n", "\nE\n", "> f", " >f", "1>&2", ">&", "<<<"]
KEYWORDS = [
    "if ",
    "then ",
    "fi",
    "else ",
    "elif ",
    "do ",
    "done",
    "while ",
    "until ",
    "case x in",
    "esac",
    "in ",
    "f()",
]
KEYWORDS += ["function f", "time ", "eval ", "for x in git;", "select ", "exec ", "command ", "builtin ", "env "]
PIECES = [*WORDS, *BLANKS, *SIGNS, *EXPANSIONS, *REDIRECTIONS, *KEYWORDS]
SPELLINGS = ["git push", "\\git push", "'git' push", "git \\push", "$x push", "g\\\nit push"]


def lines(seed: int, number: int) -> Iterator[str]:
    random = Random(seed)
    for _ in range(number):
        line = "".join(random.choices(PIECES, k=random.randint(2, 12)))
        at = random.randint(0, len(line))
        yield f"{line[:at]}{random.choice(SPELLINGS)}{line[at:]}"


def unseen(stage: Path, seed: int, number: int) -> list[str]:
    """Those that run it, and that the rule does not see."""
    (stage / "bin").mkdir()
    (stage / "work").mkdir()
    for name, text in {"git": 'printf "%s|" "$@" >> "$LOG"; echo >> "$LOG"', "ls": ":"}.items():
        (stage / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (stage / "bin" / name).chmod(0o755)
    missed: list[str] = []
    for at, line in enumerate(lines(seed, number)):
        log = stage / f"log{at}"  # of its own: what a line has left in the background must not count for the next
        environment = {"PATH": str(stage / "bin"), "HOME": str(stage / "work"), "LOG": str(log)}
        try:
            subprocess.run(
                [shutil.which("bash") or "bash", "-c", line],
                cwd=stage / "work",
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                timeout=5,
                check=False,
            )
        except subprocess.TimeoutExpired:
            continue
        called = log.read_text(errors="replace").split("\n") if log.exists() else []
        ran = any(arguments.startswith("push") for arguments in called)
        if ran and not RULE.matches("Bash", {"command": line}, PLACES):
            missed.append(line)
    return missed


def test_a_rule_sees_whatever_bash_runs(tmp_path: Path) -> None:
    assert unseen(tmp_path, seed=7, number=1500) == []


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(4))
def test_a_rule_sees_whatever_bash_runs_in_many_lines(tmp_path: Path, seed: int) -> None:
    assert unseen(tmp_path, seed=seed, number=20_000) == []
