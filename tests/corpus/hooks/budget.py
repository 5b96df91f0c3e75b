#!/usr/bin/env python3
"""Counts calls of a session in a file, and refuses the third."""

import json, pathlib, sys

data = json.load(sys.stdin)
file = pathlib.Path(data["cwd"], ".claude", f"calls-{data['session_id']}")
count = int(file.read_text()) + 1 if file.exists() else 1
file.write_text(str(count))
if count > 2:
    print(f"call {count} is over the budget", file=sys.stderr)
    sys.exit(2)
