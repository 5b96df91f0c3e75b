#!/bin/bash
# Under set -e the failing grep ends the script with 1, which lets everything through.
set -euo pipefail
command=$(jq -r '.tool_input.command')
echo "$command" | grep -q 'format-disk'
echo "refused" >&2
exit 2
