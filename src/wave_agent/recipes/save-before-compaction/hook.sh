#!/usr/bin/env -S bash -p
# Copies the transcript before older turns are summarised, so that people can still read everything. A failed copy is
# reported (exit 1) and does not stop the compaction: without it the session could not continue.
event=$(cat)
cd "${WAVE_PROJECT_DIR:-${CLAUDE_PROJECT_DIR:-.}}" || exit 1
# Plain stdout is added to the instructions for the summary.
echo "Keep the goal, decisions and their reasons, the names of changed files, and what is left to do."

if ! command -v jq >/dev/null; then
  echo "save-before-compaction needs jq: the transcript was not copied." >&2
  exit 0
fi
transcript=$(jq -r '.transcript_path // empty' <<<"$event") || exit 0
[ -f "$transcript" ] || exit 0
umask 077 # a transcript can contain anything
mkdir -p .wave/transcripts &&
  cp -- "$transcript" ".wave/transcripts/$(date '+%Y%m%d-%H%M%S')-$$.jsonl"
