#!/usr/bin/env -S python3 -I
"""Keeps the agent working while .wave/todo.md has open boxes (`- [ ]`), up to five times per prompt.

A loop needs a limit: `stop_block_count` says how often the stop was blocked, and `stop_hook_active` whether it was,
for agents that do not count.
"""

import json
import os
import re
import sys
from pathlib import Path

ROUNDS = 5
PROJECT = Path(os.environ.get("WAVE_PROJECT_DIR") or os.environ.get("CLAUDE_PROJECT_DIR") or ".")

try:
    event = json.load(sys.stdin)
    rounds = int(event.get("stop_block_count", ROUNDS if event.get("stop_hook_active") else 0))
except (ValueError, TypeError, AttributeError):
    rounds = ROUNDS  # better to end too early than never

todo = PROJECT / ".wave" / "todo.md"
text = todo.read_text(errors="replace") if todo.is_file() else ""
left = re.findall(r"^\s*[-*] \[ \] (.+)$", text, re.MULTILINE)
if left and rounds < ROUNDS:
    print(f"{len(left)} left in .wave/todo.md. Next: {left[0]}", file=sys.stderr)
    print("Do it, tick its box, and continue. If it cannot be done, write why next to it and tick it.", file=sys.stderr)
    sys.exit(2)
