#!/bin/bash
input=$(cat)
[ "$(jq -r '.stop_hook_active' <<< "$input")" = "true" ] && exit 0
if [ ! -f "$CLAUDE_PROJECT_DIR/tests-passed" ]; then
  echo "The tests have not been run. Run them before you stop." >&2
  exit 2
fi
