#!/bin/sh
# Never looks at its input.
date -u +%s > "$CLAUDE_PROJECT_DIR/last-run"
