#!/bin/bash
cd "$CLAUDE_PROJECT_DIR"
echo "## Project notes"
cat NOTES.md 2>/dev/null || true
