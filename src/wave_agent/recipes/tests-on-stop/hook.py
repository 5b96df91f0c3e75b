#!/usr/bin/env -S python3 -I
"""Runs the project's tests when the agent wants to stop. If they fail, it gets their output and goes on (exit 2).

Once: an agent that could not repair them at the second try needs a person, not a third one.
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
"""The first whose file is there and has the pattern. A file .wave/test-command with the command comes before them."""


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
    active = True  # better an end too early than none at all

command = "" if active else test_command()
if command:
    ran = subprocess.run(
        command, shell=True, cwd=PROJECT, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
    )  # fmt: skip
    if ran.returncode:
        end = "\n".join(ran.stdout.splitlines()[-60:])  # it says what failed
        print(f"The tests fail ({command}). Repair them, or say why they have to:\n{end}", file=sys.stderr)
        sys.exit(2)
