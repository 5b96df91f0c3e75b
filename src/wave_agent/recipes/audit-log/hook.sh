#!/usr/bin/env -S bash -p
# Notes each tool that has run as one line of JSON in .wave/audit.jsonl. Contents of files are left out: a log is read by
# many, and what was written may be secret. One short write a line, so lines of hooks that run side by side do not mix.
event=$(cat)
cd "${WAVE_PROJECT_DIR:-${CLAUDE_PROJECT_DIR:-.}}" || exit 1
if ! command -v jq >/dev/null; then
  echo "audit-log needs jq: this call was not noted." >&2
  exit 1 # a failure that is told to the user; the call has run anyway
fi
mkdir -p .wave && umask 077 &&
  jq -c '{
    time: (now | todate),
    session: .session_id,
    tool: .tool_name,
    on: (.tool_input | .command // .file_path // .notebook_path // .path // .url // "" | tostring | .[:500]),
    success: (.tool_response | if type == "object" then .success else null end)
  }' <<<"$event" >>.wave/audit.jsonl
