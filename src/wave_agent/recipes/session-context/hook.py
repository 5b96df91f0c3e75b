#!/usr/bin/env -S python3 -I
"""Tells the model where it is before the first prompt: what a colleague would want to know who has just sat down.

Whatever this prints becomes context, so it stays short. It never fails: no git or no notes is no reason not to start.
"""

import datetime
import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(os.environ.get("WAVE_PROJECT_DIR") or os.environ.get("CLAUDE_PROJECT_DIR") or ".")
# Whatever the repository configures to run, and variables of another one, stay out of it.
GIT = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def git(*arguments: str) -> str:
    command = [*GIT, *arguments]
    try:
        ran = subprocess.run(command, cwd=PROJECT, env=CLEAN, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.rstrip() if ran.returncode == 0 else ""


sys.stdin.read()  # the event; nothing in it is needed, but whoever writes it should not meet a closed pipe
print(f"Today is {datetime.date.today():%A, %Y-%m-%d}.")
if branch := git("symbolic-ref", "--short", "-q", "HEAD"):
    print(f"The branch is {branch}.")
    if changed := git("status", "--short").splitlines()[:20]:
        print("Not committed yet (at most 20 files):", *changed, sep="\n")
    if commits := git("log", "--oneline", "-n", "5"):
        print("The last commits:", commits, sep="\n")
notes = PROJECT / ".wave" / "context.md"
if notes.is_file():
    print(notes.read_text(errors="replace")[:8000])  # cut, so that a long file does not push out the conversation
