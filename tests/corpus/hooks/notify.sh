#!/bin/sh
# Would ring a bell; never reads its input.
echo "done" >> "$CLAUDE_PROJECT_DIR/bell"
