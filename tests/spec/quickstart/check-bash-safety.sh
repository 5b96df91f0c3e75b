#!/bin/bash  
# .wave/settings.json: PreToolUse event with tool matcher

TOOL_NAME="$1"
TOOL_INPUT="$2"

# Check if dangerous operation
if [[ "$TOOL_INPUT" == *"rm -rf"* ]]; then
  echo "Blocked dangerous operation: $TOOL_INPUT" >&2
  exit 2  # Block tool execution
fi

# Log tool usage
echo "Tool $TOOL_NAME validated successfully"
exit 0  # Continue with tool execution
