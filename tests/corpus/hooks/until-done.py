#!/usr/bin/env python3
"""Keeps the agent working until its last message says so, three times at most."""

import json, os, sys

data = json.load(sys.stdin)
state = os.path.join(data["cwd"], ".claude", "rounds")
rounds = int(open(state).read()) if os.path.exists(state) else 0
last = ""
with open(data["transcript_path"]) as transcript:
    for line in transcript:
        entry = json.loads(line)
        if entry.get("type") == "assistant":
            last = (
                "".join(block.get("text", "") for block in entry["message"]["content"] if block["type"] == "text")
                or last
            )
if "ALL DONE" in last or rounds >= 3:
    sys.exit(0)
open(state, "w").write(str(rounds + 1))
print(json.dumps({"decision": "block", "reason": f"Round {rounds + 1}: go on until you can say ALL DONE."}))
