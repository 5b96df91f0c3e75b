#!/bin/bash
payload="$(cat)"
content="$(jq -r '[.tool_input.content, .tool_input.new_string] | map(select(. != null)) | join("\n")' <<< "$payload")"
if grep -qE 'ghp_[A-Za-z0-9]{20,}' <<< "$content"; then
  echo "a GitHub token would be written" 1>&2
  exit 2
fi
