#!/usr/bin/env python3
import json, os, sys

data = json.loads(sys.stdin.read() or "{}")
used, ids, parents = [], [], []
for line in open(os.path.expanduser(data["transcript_path"]), encoding="utf-8"):
    try:
        entry = json.loads(line)
    except json.JSONDecodeError:
        continue
    ids.append(entry.get("uuid"))
    parents.append(entry.get("parentUuid"))
    content = entry.get("message", {}).get("content")
    if isinstance(content, list):
        used += [block["name"] for block in content if block.get("type") == "tool_use"]
chained = all(parent in ids for parent in parents if parent)
with open(os.path.join(data["cwd"], "tools.txt"), "w") as report:
    report.write(f"{' '.join(used)} {chained}")
