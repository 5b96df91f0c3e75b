#!/bin/bash
jq -r '"\(.tool_response.file.filePath | split("/") | last) \(.tool_response.file.numLines)"' >> "$CLAUDE_PROJECT_DIR/reads.log"
