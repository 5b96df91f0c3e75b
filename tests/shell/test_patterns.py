"""Wildcards as Bash reads them: whatever Bash matches, the pattern matches."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.rows import rows
from wave_agent.rules.path_patterns import path_glob
from wave_agent.shell.patterns import as_written, glob_pattern
from wave_agent.shell.reader import read_line
from wave_agent.shell.values import Word


@rows(
    ("text", "pattern"),
    [
        ("a*b?", "a*b?"),
        ("[abc]", "[abc]"),
        ("[a-c0-9]", "[a-c0-9]"),
        ("[!a]", "[!a]"),
        ("[^a]", "[^a]"),
        ("[[:alpha:]]", "?"),
        ("[![:digit:]x]", "?"),
        ("[[=e=]]", "?"),
        ("[[.e.]]", "?"),
        ("[]a]", "?"),
        ("[a-]", "?"),
        ("[A-z]", "?"),
        ("[abc", "[[]abc"),
        ("[]", "[[]]"),
        ("[!]", "[[]!]"),
        ("a[b/c]d", "a[[]b/c]d"),
        ("a]b[c", "a]b[[]c"),
        ("\\.en*", ".en*"),
        ("\\*x?", "[*]x?"),
        ("[e\\]]nv", "?nv"),
    ],
)
def test_unquoted_text(text: str, pattern: str) -> None:
    assert glob_pattern([(text, False, True)]) == pattern


def test_quoted_and_unknown_parts() -> None:
    assert glob_pattern([("[", True, True), ("a]*", False, True)]) == "[[]a]*"
    assert glob_pattern([("[e", False, True), ("]", True, True), ("]nv", False, True)]) == "?nv"
    assert glob_pattern([("[e", False, True), ("-", True, True), ("z]", False, True)]) == "?"
    assert glob_pattern([("a*?", True, True)]) == "a[*][?]"
    assert glob_pattern([("a[", False, True), ("x*", False, False), ("]b", False, True)]) == "ax**b"


def test_a_pattern_that_no_file_matches_stays_as_it_is() -> None:
    assert as_written(Word("x[ab]", glob="x[ab]")) == Word("x[ab]")
    assert as_written(Word(".[[:alpha:]]nv", glob=".?nv")) == Word(".[[:alpha:]]nv")
    assert as_written(Word("*.txt", glob="*.txt")) is None
    assert as_written(Word("x[ab]")) is None
    assert as_written(Word("$X[ab]", static=False, glob="*[ab]")) is None


NAMES = ["a", "b", "z", "A", "1", "-", "]", "[", "!", "a]", "a[b", ".env", "xe", "x]", "e]nv"]
WORDS = [
    *("[ab]", "[a-z]", "[!a]", "[^a]", "[]a]", "[[:alpha:]]", "[[:alpha:]1]", "[![:digit:]]", "[[=a=]]", "[[.a.]]"),
    *("[a\\]]", "[a-]", "[!]a]", "['a'b]", '["]"z]', "x[e\\]]", ".[[:lower:]]nv", ".[e]nv", "[[]", "a[[]b", "[a\\-z]"),
    *("a[\\]]", "?", "*", ".*v", "[[:punct:]]", "[[:nonsense:]]", "[\\!a]", "[z-a]", "[a-cz-z]"),
]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs Bash")
def test_whatever_bash_matches_is_matched(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).touch()
    script = "\n".join(f"printf '%s\\0' {word}; printf '\\n\\0'" for word in WORDS)
    ran = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True)
    assert ran.stderr == ""
    matched = [one.split("\0")[:-1] for one in ran.stdout.split("\n\0")][:-1]
    assert len(matched) == len(WORDS)
    for word, names in zip(WORDS, matched, strict=True):
        line = read_line(f"cat {word}")
        if not line.understood:
            continue  # the grammar does not know it
        known = line.commands[0].words[1]
        expressions = [path_glob(f"/{known.pattern}", ends=r"\Z", dots=False)]
        for name in set(names) & set(NAMES):
            assert any(re.fullmatch(one, f"/{name}", re.DOTALL) for one in expressions), (word, name, known)
