#!/usr/bin/env -S python3 -I
"""Keeps the history safe: no push to main or by force, no skipped checks, no work thrown away.

A guard: what it cannot judge it blocks (exit 2). Words are looked at, not text: a commit message may say `--force`.
"""

import json
import re
import shlex
import sys

PROTECTED = ("main", "master")


def block(reason: str) -> None:
    print(reason, file=sys.stderr)
    sys.exit(2)


def commands(line: str) -> list[list[str]]:
    """The simple commands of a line, as lists of words."""
    lexer = shlex.shlex(line.replace("\n", ";"), posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split, lexer.commenters = True, ""
    found: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set(";&|()"):
            found.append([])
        else:
            found[-1].append(word)
    return found


def judge(command: str, options: list[str]) -> None:
    short = {letter for option in options if re.fullmatch(r"-[A-Za-z]+", option) for letter in option[1:]}
    if "--no-verify" in options or (command == "commit" and "n" in short):
        block("--no-verify skips the project's checks. Let them run, and repair what they find.")
    if command == "push" and ("--force" in options or "f" in short or any(o.startswith("+") for o in options)):
        block("A forced push can lose the work of others: use --force-with-lease, or ask the user.")
    if command == "push" and any(
        option.rsplit(":", 1)[-1].removeprefix("refs/heads/") in PROTECTED for option in options
    ):
        block("Nobody pushes to main from here: push a branch, and open a pull request.")
    if command == "reset" and "--hard" in options:
        block("git reset --hard throws away what is not committed: git stash keeps it.")


try:
    line = json.load(sys.stdin)["tool_input"].get("command") or ""
    found = commands(line)
except (ValueError, KeyError, TypeError, AttributeError) as error:
    block(f"git-guard cannot read this command: {error}")

for words in found:
    if "git" in words:
        rest = words[words.index("git") + 1 :]
        while rest and rest[0].startswith("-"):  # options of git itself; -C and -c take a value
            rest = rest[2:] if rest[0] in ("-C", "-c") else rest[1:]
        if rest:
            judge(rest[0], rest[1:])
