#!/bin/bash
# The old form of an approval.
read -r -d '' input
if [[ "$input" == *'"command":"ls'* ]]; then
  echo '{"decision": "approve", "reason": "listing is harmless"}'
fi
exit 0
