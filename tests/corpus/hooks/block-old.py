#!/usr/bin/env python3
"""The old form of a refusal."""

import json
import sys

data = json.load(sys.stdin)
if "shutdown" in data["tool_input"].get("command", ""):
    print(json.dumps({"decision": "block", "reason": "The machine stays on."}))
