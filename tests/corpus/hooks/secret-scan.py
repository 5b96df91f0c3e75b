#!/usr/bin/env python3
import json, re, sys

PATTERNS = {"AWS key": r"AKIA[0-9A-Z]{16}", "private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----"}
data = json.load(sys.stdin)
tool_input = data.get("tool_input", {})
texts = [tool_input.get("content", ""), tool_input.get("new_string", "")]
texts += [edit.get("new_string", "") for edit in tool_input.get("edits", [])]
for name, pattern in PATTERNS.items():
    if any(re.search(pattern, text) for text in texts):
        print(f"{name} in {tool_input['file_path']}", file=sys.stderr)
        sys.exit(2)
