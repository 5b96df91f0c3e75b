#!/usr/bin/env python3
# No guard around the lookup: a traceback is exit 1.
import json, sys

data = json.load(sys.stdin)
print(data["tool_input"]["no_such_field"])
