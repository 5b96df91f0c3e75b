#!/usr/bin/env -S python3 -I
"""Logs each tool run as one line of JSON in .wave/audit.jsonl.

File contents are not logged: many people read a log, and contents may be secret. Each line is a single write, so lines
from hooks running in parallel do not mix. A failure (exit 1) is reported to the user; the call has run anyway.
"""

import datetime
import json
import os
import sys
from pathlib import Path

PROJECT = Path(os.environ.get("WAVE_PROJECT_DIR") or os.environ.get("CLAUDE_PROJECT_DIR") or ".")

try:
    event = json.load(sys.stdin)
    given, response = event.get("tool_input") or {}, event.get("tool_response")
except (ValueError, AttributeError) as error:
    sys.exit(f"audit-log cannot read the event, so this call was not logged: {error}")

named = [given[key] for key in ("command", "file_path", "notebook_path", "path", "url") if given.get(key)]
line = {
    "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    "session": event.get("session_id"),
    "tool": event.get("tool_name"),
    "on": str(named[0])[:500] if named else "",
    "success": response.get("success") if isinstance(response, dict) else None,
}
log = PROJECT / ".wave" / "audit.jsonl"
log.parent.mkdir(exist_ok=True)
with open(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "w") as file:
    file.write(json.dumps(line) + "\n")
