#!/usr/bin/env -S python3 -I
"""Approves read-only commands. Anything that is not clearly one of them gets no opinion, and the usual question.

Errs on the side of no opinion: only one simple command, no shell metacharacters, a known program, and no option that
writes or runs something.
"""

import json
import re
import shlex
import sys

LOOKS = ("ls", "pwd", "cat", "head", "tail", "wc", "grep", "which", "file", "stat", "du", "df", "date")
GIT_LOOKS = ("status", "log", "diff", "show", "blame", "shortlog", "rev-parse", "ls-files")
WRITES = re.compile(r"--(?:output|exec|ext-diff|textconv|open-files-in-pager|pre)\b|-[oO]")


def only_looks(command: str) -> bool:
    if not command or re.search(r"[;&|<>$`\\(){}!*?~#\n\r]", command):
        return False
    try:
        program, *arguments = shlex.split(command)
    except ValueError:
        return False
    if any(WRITES.match(argument) for argument in arguments):
        return False
    return program in LOOKS or (program == "git" and bool(arguments) and arguments[0] in GIT_LOOKS)


try:
    command = str(json.load(sys.stdin)["tool_input"].get("command") or "")
except (ValueError, KeyError, TypeError, AttributeError):
    command = ""  # no opinion

if only_looks(command):
    said = {"permissionDecision": "allow", "permissionDecisionReason": "it only reads"}
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", **said}}))
