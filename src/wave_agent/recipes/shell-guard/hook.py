#!/usr/bin/env -S python3 -I
"""Blocks commands that cannot be taken back. It sees text, not what a shell makes of it: a net, not a wall.

A guard: what it cannot judge it blocks (exit 2). Exit 1, as after an exception, would let the call through.
"""

import json
import re
import sys

START = r"(?:^|[;&|(\n]|sudo|xargs)\s*"  # where a command can begin
DANGERS = {
    START + r"rm(?:\s+-\S+)*\s+(?:-\S+\s+)*(?:/|~/?|\$\{?HOME\}?/?|\.{1,2}/?|/?\*)(?:\s|$)": (
        "rm would delete far too much: name the directory that should go."
    ),
    r"(?:curl|wget)[^;&]*\|\s*(?:sudo\s+)?(?:ba|z|da)?sh(?:\s|$)": (
        "This runs what comes from the network, unseen: download it, read it, then run it."
    ),
    START
    + r"(?:mkfs|fdisk|wipefs)|(?:of=|>\s*)/dev/(?:sd|nvme|vd|disk)": "This writes to a disk past its file system.",
    r"\(\)\s*\{.*\|.*&.*\}": "This looks like a fork bomb.",
    START + r"chmod\s.*(?<![0-7])0?777": "With 777 everybody on this machine can write: 755 or 644 will do.",
}


def block(reason: str) -> None:
    print(reason, file=sys.stderr)
    sys.exit(2)


try:
    line = json.load(sys.stdin)["tool_input"].get("command") or ""
except (ValueError, KeyError, TypeError, AttributeError):
    block("shell-guard cannot read the event.")

for pattern, reason in DANGERS.items():
    if re.search(pattern, re.sub(r"[\"']", "", line)):  # quotes do not make it better
        block(reason)
