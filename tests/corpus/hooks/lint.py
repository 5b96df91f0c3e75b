#!/usr/bin/env python3
import ast, json, sys

data = json.load(sys.stdin)
path = data["tool_input"]["file_path"]
if path.endswith(".py"):
    try:
        ast.parse(open(path).read(), path)
    except SyntaxError as error:
        print(f"{path}:{error.lineno}: {error.msg}", file=sys.stderr)
        sys.exit(2)
