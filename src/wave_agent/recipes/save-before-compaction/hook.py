#!/usr/bin/env -S python3 -I
"""Copies the transcript before older turns become a summary, so that nothing is lost for people.

A copy that cannot be made is told (exit 1) and does not stop the compaction: without it the session could not go on.
"""

import datetime
import json
import os
import shutil
import sys
from pathlib import Path

PROJECT = Path(os.environ.get("WAVE_PROJECT_DIR") or os.environ.get("CLAUDE_PROJECT_DIR") or ".")

# Plain stdout is added to the instructions for the summary.
print("Keep the goal, decisions with their reasons, names of files that were changed, and what is still to be done.")
try:
    transcript = json.load(sys.stdin).get("transcript_path") or ""
except (ValueError, AttributeError):
    transcript = ""

if os.path.isfile(transcript):
    os.umask(0o077)  # a transcript can hold anything
    kept = PROJECT / ".wave" / "transcripts"
    try:
        kept.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(transcript, kept / f"{datetime.datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}.jsonl")
    except OSError as error:
        sys.exit(f"The transcript was not copied: {error}")
