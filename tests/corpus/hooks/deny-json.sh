#!/bin/bash
cmd=$(jq -r .tool_input.command)
if [[ $cmd =~ (curl|wget).*\|.*sh ]]; then
  jq -n --arg r "Piping a download into a shell is not allowed: $cmd" '{
    hookSpecificOutput: {
      hookEventName: "PreToolUse",
      permissionDecision: "deny",
      permissionDecisionReason: $r
    }
  }'
fi
