#!/usr/bin/env -S python3 -I
"""Scans text that is about to be written, and blocks keys, tokens and passwords.

Only new text is scanned, so removing a secret stays possible. A guard: it blocks what it cannot parse (exit 2).
The secret itself is not repeated in the reason, which goes into transcripts.
"""

import json
import re
import sys

SECRETS = {
    "an AWS key": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})\b",
    "a Slack token": r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    "a key of an API": r"\bsk-[A-Za-z0-9_-]{32,}",
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----",
    # Quoted, eight characters or more, and not a placeholder such as <…>, ${…}, or xxxx.
    "a password": (
        r"(?i)(?:password|passwd|secret|api_?key|token)[\"']?\s*[:=]\s*"
        r"[\"'](?![<$%{]|x{4}|your)[^\s\"']{8,}[\"']"
    ),
}
# What \b stands for above. A letter such as é is no part of a key, nor is the n of an escaped newline, the D of %3D, or
# the m that ends an escape for colours.
START = (
    r"(?:(?<![A-Za-z0-9_])|(?<=\\[abefnrtv0])|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\0[0-7]{2})|(?<=\\u[0-9A-Fa-f]{4})"
    r"|(?<=[%=][0-9A-Fa-f]{2})|(?<=\[[mK])|(?<=\[\dm)|(?<=\[\d\dm)|(?<=\[\d;\d\dm)|(?<=\[\d\d;\d\dm))"
)
END = r"(?![A-Za-z0-9_])"


def expression(pattern: str) -> str:
    return re.sub(r"\\b\Z", lambda _: END, re.sub(r"\A\\b", lambda _: START, pattern))


def strings(value: object) -> list[str]:
    """All texts in the input of an MCP tool: any argument can be written somewhere."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value] if isinstance(value, str) else [one for part in inside for one in strings(part)]


def block(reason: str) -> None:
    print(reason, file=sys.stderr)
    sys.exit(2)


try:
    event = json.load(sys.stdin)
    tool_input = event["tool_input"]
    edits = [tool_input, *(tool_input.get("edits") or [])]
    texts = [str(edit.get(key) or "") for edit in edits for key in ("content", "new_string", "new_source")]
    texts += strings(tool_input) if str(event.get("tool_name")).startswith("mcp__") else []
except (ValueError, KeyError, TypeError, AttributeError):
    block("secret-scan cannot read the event.")

for what, pattern in SECRETS.items():
    if any(re.search(expression(pattern), text) for text in texts):
        block(f"This would write {what} into a file, or pass it on. Read it from the environment instead.")
