#!/bin/bash
T=$(jq -r .transcript_path)
jq -s -r 'map(select(.type == "user" and (.message.content | type) == "string")) | first | .message.content' "$T" > "$CLAUDE_PROJECT_DIR/first-prompt.txt"
jq -s -r 'map(select(.sessionId and .timestamp and .cwd)) | length > 1' "$T" > "$CLAUDE_PROJECT_DIR/framed.txt"
