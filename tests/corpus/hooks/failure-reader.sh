#!/bin/bash
input=$(cat)
if [ "$(jq -r '.tool_response.success' <<< "$input")" = "false" ]; then
  jq -c '{systemMessage: ("failed: " + (.tool_response.error | split("\n")[0]))}' <<< "$input"
fi
