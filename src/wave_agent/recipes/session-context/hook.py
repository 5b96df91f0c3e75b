#!/usr/bin/env -S python3 -I
"""Gives the model an overview before the first prompt: what a new colleague would want to know.

All output becomes context, so it is kept short. It never fails: a session can start without git or notes.
"""

import datetime
import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(os.environ.get("WAVE_PROJECT_DIR") or os.environ.get("CLAUDE_PROJECT_DIR") or ".")
# Ignore programs configured by the repository, and variables set for another one.
GIT = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def git(*arguments: str) -> str:
    command = [*GIT, *arguments]
    try:
        ran = subprocess.run(command, cwd=PROJECT, env=CLEAN, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.rstrip() if ran.returncode == 0 else ""


sys.stdin.read()  # the event is not used, but its writer should not hit a closed pipe
print(f"Today is {datetime.date.today():%A, %Y-%m-%d}.")
if branch := git("symbolic-ref", "--short", "-q", "HEAD"):
    print(f"The branch is {branch}.")
    if changed := git("status", "--short").splitlines()[:20]:
        print("Not committed yet (at most 20 files):", *changed, sep="\n")
    if commits := git("log", "--oneline", "-n", "5"):
        print("The last commits:", commits, sep="\n")
notes = PROJECT / ".wave" / "context.md"
if notes.is_file():
    print(notes.read_text(errors="replace")[:8000])  # truncated: a long file would crowd out the conversation
