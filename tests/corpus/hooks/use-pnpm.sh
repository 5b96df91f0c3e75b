#!/bin/bash
# Changes one field of the input and says nothing about the others.
jq -c 'if .tool_input.command | startswith("echo npm") then
  {hookSpecificOutput: {hookEventName: "PreToolUse", permissionDecision: "allow",
    updatedInput: {command: (.tool_input.command | sub("npm"; "pnpm"))}}}
  else empty end'
