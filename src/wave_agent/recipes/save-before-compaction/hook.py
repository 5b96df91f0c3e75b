#!/usr/bin/env -S python3 -I
"""Copies the transcript before older turns are summarised, so that people can still read everything.

A failed copy is reported (exit 1) and does not stop the compaction: without it the session could not continue.
"""

import datetime
import json
import os
import shutil
import sys
from pathlib import Path

PROJECT = Path(os.environ.get("WAVE_PROJECT_DIR") or os.environ.get("CLAUDE_PROJECT_DIR") or ".")

# Plain stdout is added to the instructions for the summary.
print("Keep the goal, decisions and their reasons, the names of changed files, and what is left to do.")
try:
    transcript = json.load(sys.stdin).get("transcript_path") or ""
except (ValueError, AttributeError):
    transcript = ""

if os.path.isfile(transcript):
    os.umask(0o077)  # a transcript can contain anything
    kept = PROJECT / ".wave" / "transcripts"
    try:
        kept.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(transcript, kept / f"{datetime.datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}.jsonl")
    except OSError as error:
        sys.exit(f"The transcript was not copied: {error}")
