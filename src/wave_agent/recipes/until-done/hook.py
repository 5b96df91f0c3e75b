#!/usr/bin/env -S python3 -I
"""Keeps the agent at work while .wave/todo.md has open boxes (`- [ ]`), up to five times a prompt.

A loop needs an end of its own: `stop_block_count` says how often the agent was kept, and `stop_hook_active` whether,
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
    rounds = ROUNDS  # better an end too early than none at all

todo = PROJECT / ".wave" / "todo.md"
text = todo.read_text(errors="replace") if todo.is_file() else ""
left = re.findall(r"^\s*[-*] \[ \] (.+)$", text, re.MULTILINE)
if left and rounds < ROUNDS:
    print(f"{len(left)} left in .wave/todo.md. Next: {left[0]}", file=sys.stderr)
    print("Do it, tick its box, and go on. If it cannot be done, write why beside it and tick it.", file=sys.stderr)
    sys.exit(2)
