#!/bin/bash
cd "$CLAUDE_PROJECT_DIR" || exit 0
branch=$(git symbolic-ref --short HEAD 2>/dev/null)
if [ "$branch" = "main" ]; then
  echo "Edits on main are not allowed: make a branch." >&2
  exit 2
fi
