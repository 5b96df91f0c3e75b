#!/usr/bin/env python3
import json, sys

prompt = json.load(sys.stdin)["prompt"]
if "test" in prompt.lower():
    print(
        json.dumps(
            {
                "hookSpecificOutput": {
                    "hookEventName": "UserPromptSubmit",
                    "additionalContext": "Tests are run with make test.",
                }
            }
        )
    )
