#!/usr/bin/env -S python3 -I
"""Formats the file that was just edited.

A formatter that is missing or fails is ignored: the edit is kept, and the next check will report problems. The model is
notified when formatting changed the file, or its next edit would look for text that no longer exists.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

PRETTIER = [["prettier", "--write"]]
FORMATTERS = {
    ".py": [["ruff", "format", "--quiet"], ["black", "--quiet"]],
    ".go": [["gofmt", "-w"]],
    ".rs": [["rustfmt"]],
    ".sh": [["shfmt", "-w"]],
    **dict.fromkeys((".js", ".jsx", ".ts", ".tsx", ".css", ".html", ".json", ".md", ".yml", ".yaml"), PRETTIER),
}
"""Formatters to try per file type; the first one installed is run."""

try:
    file = Path(json.load(sys.stdin)["tool_input"]["file_path"])
    before = file.read_bytes()
except (ValueError, KeyError, TypeError, OSError):
    sys.exit(0)  # nothing to format

for formatter in FORMATTERS.get(file.suffix, []):
    if shutil.which(formatter[0]):
        subprocess.run([*formatter, str(file)], capture_output=True, check=False)
        break
if file.read_bytes() != before:
    message = f"{file} was formatted after the edit: read it again before you edit it."
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": message}}))
