#!/bin/bash
if grep -q 'deploy' <<< "$(cat)"; then
cat <<'JSON'
{
  "hookSpecificOutput": {
    "hookEventName": "PreToolUse",
    "permissionDecision": "ask",
    "permissionDecisionReason": "A deployment wants a human."
  }
}
JSON
fi
