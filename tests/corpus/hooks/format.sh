#!/bin/bash
file=$(jq -r '.tool_input.file_path // empty')
[[ "$file" == *.txt && -f "$file" ]] || exit 0
sed -i.bak -e 's/[[:space:]]*$//' "$file" && rm -f "$file.bak"
