#!/bin/bash
if [ -n "$CLAUDE_ENV_FILE" ]; then
  echo 'export PROJECT_MODE="ci and more"' >> "$CLAUDE_ENV_FILE"
  echo "export PATH=\"$CLAUDE_PROJECT_DIR/bin:\$PATH\"" >> "$CLAUDE_ENV_FILE"
fi
