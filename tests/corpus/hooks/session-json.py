#!/usr/bin/env python3
import json, sys

data = json.load(sys.stdin)
print(
    json.dumps(
        {
            "hookSpecificOutput": {
                "hookEventName": "SessionStart",
                "additionalContext": f"The session began by {data['source']}.",
            }
        }
    )
)
