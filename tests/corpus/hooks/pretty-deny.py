#!/usr/bin/env python3
import json
import sys

event = json.loads(sys.stdin.read())
answer = {
    "hookSpecificOutput": {
        "hookEventName": event["hook_event_name"],
        "permissionDecision": "deny",
        "permissionDecisionReason": "Migrations are applied by the pipeline.",
    },
    "suppressOutput": True,
}
if "migrate" in json.dumps(event["tool_input"]):
    json.dump(answer, sys.stdout, indent=4)
    print()
