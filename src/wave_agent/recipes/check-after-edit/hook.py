#!/usr/bin/env -S python3 -I
"""Checks the file that was just edited and reports problems to the model right away (exit 2).

The edit is kept either way. If a checker is missing, nothing is reported.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

PARSE = "import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])"
CHECKERS = {
    ".py": [["ruff", "check", "--quiet", "--output-format", "concise", "--"], [sys.executable, "-I", "-c", PARSE]],
    ".sh": [["shellcheck", "--severity=warning", "--format=gcc", "--"], ["bash", "-n", "--"]],
    ".js": [["node", "--check"]],
    ".mjs": [["node", "--check"]],
    ".json": [[sys.executable, "-I", "-m", "json.tool"]],
}
"""Checkers to try per file type; the first one installed is run."""

try:
    file = Path(json.load(sys.stdin)["tool_input"]["file_path"])
except (ValueError, KeyError, TypeError):
    sys.exit(0)  # nothing to check

if not file.is_file():
    sys.exit(0)
for checker in CHECKERS.get(file.suffix, []):
    if shutil.which(checker[0]):
        ran = subprocess.run([*checker, str(file)], capture_output=True, text=True, check=False)
        if ran.returncode:
            found = (ran.stderr + ran.stdout)[:4000]
            print(f"{file} has problems:\n{found}", file=sys.stderr)
            sys.exit(2)
        break
