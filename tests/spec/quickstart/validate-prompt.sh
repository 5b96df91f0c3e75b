#!/bin/bash
# .wave/settings.json: UserPromptSubmit event

USER_PROMPT="$1"

# Validate prompt
if [[ -z "$USER_PROMPT" ]]; then
  echo "Error: Empty prompt not allowed" >&2
  exit 2  # Block prompt processing
fi

# Add context for AI
echo "User intent analyzed: $USER_PROMPT"
echo "Confidence: high"
exit 0  # Success - stdout injected into context
