#!/usr/bin/env -S python3 -I
"""Adds what the model cannot know to each prompt: the time, the branch, and the team's notes on its topic.

A note is a file .wave/notes/WORD.md, added if the prompt contains that word. Plain stdout becomes context.
"""

import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(os.environ.get("WAVE_PROJECT_DIR") or os.environ.get("CLAUDE_PROJECT_DIR") or ".")


def branch() -> str:
    command = ["git", "symbolic-ref", "--short", "-q", "HEAD"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        return subprocess.run(
            command, cwd=PROJECT, env=clean, capture_output=True, text=True, timeout=5, check=False
        ).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


try:
    prompt = str(json.load(sys.stdin).get("prompt") or "")
except (ValueError, AttributeError):
    prompt = ""  # time and branch are still useful

name = branch()
print(f"It is {datetime.datetime.now():%Y-%m-%d %H:%M}." + (f" The branch is {name}." if name else ""))
for note in sorted(PROJECT.glob(".wave/notes/*.md")):
    if re.search(rf"\b{re.escape(note.stem)}\b", prompt, re.IGNORECASE):
        print(f"From {note.relative_to(PROJECT)}:", note.read_text(errors="replace")[:4000], sep="\n")
