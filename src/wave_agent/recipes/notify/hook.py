#!/usr/bin/env -S python3 -I
"""Shows a notification when the agent has finished. It is `async` in the settings, so the agent does not wait for it.

The model's text is passed to the notifier in one argument, never through a shell: it may contain quotes, or worse.
"""

import json
import os
import shutil
import subprocess
import sys

SCRIPT = ["on run {text, project}", "display notification text with title project", "end run"]

try:
    said = str(json.load(sys.stdin).get("last_assistant_message") or "")
except (ValueError, AttributeError):
    said = ""

text = said.strip().split("\n")[0][:120] or "The agent has finished."
project = os.path.basename(os.environ.get("WAVE_PROJECT_DIR") or os.getcwd())
command: list[str] = []
if shutil.which("notify-send"):
    command = ["notify-send", "--", project, text]
elif shutil.which("osascript"):
    command = ["osascript", *(part for line in SCRIPT for part in ("-e", line)), "--", text, project]
if command:  # no desktop, for example over ssh, is not a failure
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
