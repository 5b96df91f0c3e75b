#!/usr/bin/env python3
import json, os, sys
from datetime import datetime, timezone

entry = json.load(sys.stdin)
entry["at"] = datetime.now(timezone.utc).isoformat()
with open(os.path.join(os.environ["CLAUDE_PROJECT_DIR"], "audit.log"), "a") as log:
    log.write(json.dumps({key: entry[key] for key in ("hook_event_name", "tool_name", "at")}) + "\n")
