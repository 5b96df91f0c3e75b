#!/usr/bin/env -S bash -p
# Copies the transcript before older turns become a summary, so that nothing is lost for people. A copy that cannot be
# made is told (exit 1) and does not stop the compaction: without it the session could not go on.
event=$(cat)
cd "${WAVE_PROJECT_DIR:-${CLAUDE_PROJECT_DIR:-.}}" || exit 1
# Plain stdout is added to the instructions for the summary.
echo "Keep the goal, decisions with their reasons, names of files that were changed, and what is still to be done."

if ! command -v jq >/dev/null; then
  echo "save-before-compaction needs jq: the transcript was not copied." >&2
  exit 0
fi
transcript=$(jq -r '.transcript_path // empty' <<<"$event") || exit 0
[ -f "$transcript" ] || exit 0
umask 077 # a transcript can hold anything
mkdir -p .wave/transcripts &&
  cp -- "$transcript" ".wave/transcripts/$(date '+%Y%m%d-%H%M%S')-$$.jsonl"
