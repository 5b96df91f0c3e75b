#!/bin/bash
# .wave/settings.json: PostToolUse event

TOOL_NAME="$1" 
TOOL_RESULT="$2"

# Analyze tool result
if [[ "$TOOL_RESULT" == *"Error"* ]]; then
  echo "Tool execution completed with errors. Manual review recommended." >&2
  exit 2  # Alert agent to errors (tool already ran)
fi

echo "Tool execution logged successfully"
exit 0  # Normal completion
