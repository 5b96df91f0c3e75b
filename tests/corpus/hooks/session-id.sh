#!/bin/bash
id=$(jq -r .session_id)
[ "$id" = "$CLAUDE_SESSION_ID" ] && echo "The ids agree."
