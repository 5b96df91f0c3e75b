#!/usr/bin/env -S python3 -I
"""Keeps the agent away from files that contain secrets, whichever tool opens them.

A guard: it blocks what it cannot parse (exit 2). Exit 1, the status of an exception, would let the call through.
"""

import json
import re
import sys

END = r"(?![A-Za-z0-9_.-])"
SHARED = re.compile(rf"[^\s'\"=]*(?:\.env\.(?:example|sample|template|dist)|\.pub){END}")
SECRET = re.compile(
    rf"(?<![A-Za-z0-9_-])(?:\.env(?:\.[\w-]+)*|\.netrc|\.pgpass|\.git-credentials|id_(?:rsa|dsa|ecdsa|ed25519)){END}"
    rf"|\.(?:pem|p12|pfx|keystore){END}|\.(?:ssh|aws|gnupg)/|(?:^|/)credentials(?:\.json)?{END}"
)


PATH = re.compile(r"\S+|[/~.].*|\w+:.*")


def paths(value: object) -> list[str]:
    """All texts in the input of an MCP tool that may be a path or an address: any argument can name a file."""
    if isinstance(value, str):
        return [value] if PATH.fullmatch(value) else []
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [one for part in inside for one in paths(part)]


def block(reason: str) -> None:
    print(reason, file=sys.stderr)
    sys.exit(2)


try:
    event = json.load(sys.stdin)
    # Every value that can name a file, including the whole command.
    named = [str(event["tool_input"].get(key) or "") for key in ("file_path", "notebook_path", "path", "command")]
    if str(event.get("tool_name")).startswith("mcp__"):
        named += paths(event["tool_input"])
    # And the files that the call would touch: a script or a link names them otherwise.
    effects = event.get("effects") or {}
    named += [path for kind in ("reads", "writes", "deletes") for path in effects.get(kind) or []]
except (ValueError, KeyError, TypeError, AttributeError):
    block("protect-secrets cannot read the event.")

for text in named:
    # Files meant to be shared are removed before searching.
    if found := SECRET.search(SHARED.sub(" ", text)):
        block(f"This names a file with secrets ({found[0]}). Ask the user for what you need from it.")
