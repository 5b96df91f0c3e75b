#!/usr/bin/env bash
set -uo pipefail
COMMAND=$(jq -r '.tool_input.command' < /dev/stdin)
case "$COMMAND" in
  *"push"*"--force"*) echo "No force pushes." >&2; exit 2 ;;
  *"commit"*"--no-verify"*) echo "Do not skip the commit hooks." >&2; exit 2 ;;
  *"push"*" main"*) echo "Open a pull request instead of pushing to main." >&2; exit 2 ;;
esac
