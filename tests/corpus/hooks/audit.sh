#!/bin/bash
jq -c '{tool: .tool_name, input: .tool_input, session: (.session_id | length)}' >> "$CLAUDE_PROJECT_DIR/.claude/audit.jsonl"
exit 0
