#!/usr/bin/env -S bash -p
# Formats the file that was just edited. A formatter that is missing or fails is ignored: the edit is kept, and the
# next check will report problems. The model is notified when formatting changed the file, or its next edit would look
# for text that no longer exists.
event=$(cat)
command -v jq >/dev/null || exit 0
file=$(jq -r '.tool_input.file_path // empty' <<<"$event") || exit 0
[ -f "$file" ] || exit 0

format() { command -v "$1" >/dev/null && "$@" "$file" >/dev/null 2>&1; }
before=$(cksum <"$file")
case $file in
  *.py) format ruff format --quiet || format black --quiet ;;
  *.go) format gofmt -w ;;
  *.rs) format rustfmt ;;
  *.sh | *.bash) format shfmt -w ;;
  *.js | *.jsx | *.ts | *.tsx | *.css | *.html | *.json | *.md | *.yml | *.yaml) format prettier --write ;;
esac
if [ "$(cksum <"$file")" != "$before" ]; then
  jq -n --arg file "$file" '{hookSpecificOutput: {hookEventName: "PostToolUse",
    additionalContext: "\($file) was formatted after the edit: read it again before you edit it."}}'
fi
exit 0
