#!/bin/bash
# Has two forms of output, and takes the plugin's when it runs as one.
cat > /dev/null
reason="checked by $(basename "${CLAUDE_PLUGIN_ROOT:-nobody}")"
if [ -n "$CLAUDE_PLUGIN_ROOT" ]; then
  printf '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"%s"}}\n' "$reason"
else
  echo "$reason" >&2
  exit 2
fi
