#!/usr/bin/env -S python3 -I
"""Runs the project's tests when the agent wants to stop. If they fail, it gets their output and continues (exit 2).

Only once: an agent that cannot fix them on the second try needs a person, not a third try.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(os.environ.get("WAVE_PROJECT_DIR") or os.environ.get("CLAUDE_PROJECT_DIR") or ".")
GUESSES = {
    "Makefile": (r"^test:", "make test"),
    "package.json": (r'"test":', "npm test --silent"),
    "pyproject.toml": (r"pytest", "python3 -m pytest -q"),
    "Cargo.toml": (r"", "cargo test --quiet"),
    "go.mod": (r"", "go test ./..."),
}
"""The first whose file exists and matches is used. A file .wave/test-command with the command takes precedence."""


def test_command() -> str:
    own = PROJECT / ".wave" / "test-command"
    if own.is_file():
        return own.read_text().strip()
    for name, (pattern, command) in GUESSES.items():
        file = PROJECT / name
        if file.is_file() and re.search(pattern, file.read_text(errors="replace"), re.MULTILINE):
            return command
    return ""


try:
    active = bool(json.load(sys.stdin).get("stop_hook_active"))
except (ValueError, AttributeError):
    active = True  # better to end too early than never

command = "" if active else test_command()
if command:
    ran = subprocess.run(
        command, shell=True, cwd=PROJECT, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
    )  # fmt: skip
    if ran.returncode:
        end = "\n".join(ran.stdout.splitlines()[-60:])  # the end says what failed
        print(f"The tests fail ({command}). Fix them, or say why they must fail:\n{end}", file=sys.stderr)
        sys.exit(2)
