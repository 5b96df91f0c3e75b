#!/usr/bin/env python3
import json, sys

json.load(sys.stdin)
print(
    json.dumps(
        {"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "Run make check after edits."}}
    )
)
