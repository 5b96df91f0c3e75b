#!/usr/bin/env python3
import json, sys

event = json.load(sys.stdin)
if "production" in event["tool_input"].get("command", ""):
    print(json.dumps({"continue": False, "stopReason": "Production is out of bounds.", "systemMessage": "halted"}))
