#!/bin/bash
transcript=$(jq -r '.transcript_path')
last=$(grep '"role":"assistant"' "$transcript" | tail -1 | jq -r '.message.content | map(select(.type == "text")) | map(.text) | join("\n")')
printf '%s\n' "$last" > "$CLAUDE_PROJECT_DIR/last-answer.txt"
