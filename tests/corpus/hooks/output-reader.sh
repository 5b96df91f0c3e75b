#!/bin/bash
# Looks for the result under a name that few agents use.
printf '%s' "$(jq -r '.tool_output.stdout')" > "$CLAUDE_PROJECT_DIR/seen.txt"
