#!/usr/bin/env -S python3 -I
"""Blocks commands that cannot be undone. It sees text, not what a shell does with it, so it cannot see everything.

A guard: it blocks what it cannot parse (exit 2). Exit 1, the status of an exception, would let the call through.
"""

import json
import re
import sys

START = r"(?:^|[;&|(\n]|sudo|xargs)\s*"  # where a command can start
DANGERS = {
    START + r"rm(?:\s+-\S+)*\s+(?:-\S+\s+)*(?:/|~/?|\$\{?HOME\}?/?|\.{1,2}/?|/?\*)(?:\s|$)": (
        "rm would delete far too much: name the directory to delete."
    ),
    r"(?:curl|wget)[^;&]*\|\s*(?:sudo\s+)?(?:ba|z|da)?sh(?:\s|$)": (
        "This runs code from the network unseen: download it, read it, then run it."
    ),
    START + r"(?:mkfs|fdisk|wipefs)|(?:of=|>\s*)/dev/(?:sd|nvme|vd|disk)": "This writes directly to a disk.",
    r"\(\)\s*\{.*\|.*&.*\}": "This looks like a fork bomb.",
    START + r"chmod\s.*(?<![0-7])0?777": "777 lets everyone on this machine write: use 755 or 644.",
}


def block(reason: str) -> None:
    print(reason, file=sys.stderr)
    sys.exit(2)


try:
    tool_input = json.load(sys.stdin)["tool_input"]
    # An MCP server that runs commands may call it otherwise.
    line = tool_input.get("command") or tool_input.get("cmd") or tool_input.get("script") or ""
    line = " ".join(line) if isinstance(line, list) else line
except (ValueError, KeyError, TypeError, AttributeError):
    block("shell-guard cannot read the event.")

for pattern, reason in DANGERS.items():
    if re.search(pattern, re.sub(r"[\"']", "", line)):  # quotes are no protection
        block(reason)
