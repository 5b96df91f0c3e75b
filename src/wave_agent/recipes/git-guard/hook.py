#!/usr/bin/env -S python3 -I
"""Protects the history: no push to main, no forced push, no skipped checks, no discarded work.

A guard: it blocks what it cannot parse (exit 2). It checks words, not raw text: a commit message may say `--force`.
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
    """The simple commands in a line: lists of words."""
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
        block("--no-verify skips the project's checks. Let them run, and fix what they find.")
    if command == "push" and ("--force" in options or "f" in short or any(o.startswith("+") for o in options)):
        block("A forced push can lose other people's work: use --force-with-lease, or ask the user.")
    if command == "push" and any(
        option.rsplit(":", 1)[-1].removeprefix("refs/heads/") in PROTECTED for option in options
    ):
        block("Pushing to main is not allowed: push a branch and open a pull request.")
    if command == "reset" and "--hard" in options:
        block("git reset --hard discards uncommitted changes: use git stash to keep them.")


try:
    tool_input = json.load(sys.stdin)["tool_input"]
    # An MCP server that runs commands may call it otherwise.
    line = tool_input.get("command") or tool_input.get("cmd") or tool_input.get("script") or ""
    found = commands(" ".join(line) if isinstance(line, list) else line)
except (ValueError, KeyError, TypeError, AttributeError) as error:
    block(f"git-guard cannot read this command: {error}")

for words in found:
    if "git" in words:
        rest = words[words.index("git") + 1 :]
        while rest and rest[0].startswith("-"):  # git's global options; -C and -c take a value
            rest = rest[2:] if rest[0] in ("-C", "-c") else rest[1:]
        if rest:
            judge(rest[0], rest[1:])
