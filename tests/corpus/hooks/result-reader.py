#!/usr/bin/env python3
import json, sys

data = json.load(sys.stdin)
result = data.get("tool_result", {})
if result.get("exit_code") not in (0, None):
    print(
        json.dumps({"decision": "block", "reason": f"It failed with {result['exit_code']}: {result['stderr'].strip()}"})
    )
