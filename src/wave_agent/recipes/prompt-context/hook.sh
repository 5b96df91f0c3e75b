#!/usr/bin/env -S bash -p
# Adds what the model cannot know to each prompt: the time, the branch, and the team's notes on its topic.
# A note is a file .wave/notes/WORD.md, added if the prompt contains that word. Plain stdout becomes context.
event=$(cat)
cd "${WAVE_PROJECT_DIR:-${CLAUDE_PROJECT_DIR:-.}}" || exit 0

# Ignore programs configured by the repository, and variables set for another one.
unset ${!GIT_@}
git() { command git -c core.fsmonitor=false -c core.hooksPath=/dev/null "$@"; }
printf 'It is %s.' "$(date '+%Y-%m-%d %H:%M')"
if branch=$(git symbolic-ref --short -q HEAD 2>/dev/null); then printf ' The branch is %s.' "$branch"; fi
echo

command -v jq >/dev/null || exit 0 # only the notes need the prompt
prompt=$(jq -r '.prompt // ""' <<<"$event") || exit 0
for note in .wave/notes/*.md; do
  word=$(basename "$note" .md)
  if [ -f "$note" ] && grep -qiwF -- "$word" <<<"$prompt"; then
    echo "From $note:"
    head -c 4000 "$note" # truncated: notes should be short
  fi
done
exit 0
