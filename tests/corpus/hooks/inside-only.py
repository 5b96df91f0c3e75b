#!/usr/bin/env python3
import json, os, sys

data = json.load(sys.stdin)
path = os.path.realpath(data["tool_input"].get("file_path", data["cwd"]))
if os.path.commonpath([path, os.path.realpath(data["cwd"])]) != os.path.realpath(data["cwd"]):
    print("outside of the project: " + path, file=sys.stderr)
    sys.exit(2)
