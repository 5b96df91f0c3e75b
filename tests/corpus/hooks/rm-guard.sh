#!/bin/bash
# Reads the command with jq and refuses recursive removal.
input=$(cat)
command=$(echo "$input" | jq -r '.tool_input.command // ""')
if echo "$command" | grep -qE 'rm +-[a-z]*r[a-z]*f'; then
  echo "BLOCKED: recursive removal: $command" >&2
  exit 2
fi
exit 0
