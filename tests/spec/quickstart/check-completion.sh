#!/bin/bash
# .wave/settings.json: Stop event

# Check if work is complete
if [[ ! -f ".wave/session-complete" ]]; then
  echo "Session incomplete. Please save work before stopping." >&2
  exit 2  # Block stop operation
fi

echo "Session completed successfully"  
exit 0  # Allow stop
