#!/usr/bin/env python3
import json, re, sys

data = json.load(sys.stdin)
if re.search(r"(?i)password\s*[:=]", data.get("prompt", "")):
    print(json.dumps({"decision": "block", "reason": "The prompt seems to hold a password."}))
    sys.exit(0)
