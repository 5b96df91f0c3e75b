#!/usr/bin/env -S bash -p
# Logs each tool run as one line of JSON in .wave/audit.jsonl. File contents are not logged: many people read a log, and
# contents may be secret. Each line is one short write, so lines from hooks running in parallel do not mix.
event=$(cat)
cd "${WAVE_PROJECT_DIR:-${CLAUDE_PROJECT_DIR:-.}}" || exit 1
if ! command -v jq >/dev/null; then
  echo "audit-log needs jq: this call was not logged." >&2
  exit 1 # a failure, reported to the user; the call has run anyway
fi
mkdir -p .wave && umask 077 &&
  jq -c '{
    time: (now | todate),
    session: .session_id,
    tool: .tool_name,
    on: (.tool_input | .command // .file_path // .notebook_path // .path // .url // "" | tostring | .[:500]),
    success: (.tool_response | if type == "object" then .success else null end)
  }' <<<"$event" >>.wave/audit.jsonl
