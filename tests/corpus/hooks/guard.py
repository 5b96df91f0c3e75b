#!/usr/bin/env python3
import json, re, sys

RULES = [
    (r"\bsudo\b", "no sudo"),
    (r"\bchmod\s+777\b", "777 is too much"),
    (r">\s*/dev/sd[a-z]", "not onto a disk"),
    (r":\(\)\s*\{.*\};:", "no fork bombs"),
]


def main() -> int:
    data = json.load(sys.stdin)
    if data.get("tool_name") != "Bash":
        return 0
    problems = [why for pattern, why in RULES if re.search(pattern, data["tool_input"]["command"])]
    for why in problems:
        print(f"• {why}", file=sys.stderr)
    return 2 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
