#!/usr/bin/env -S bash -p
# Adds to each prompt what the model cannot know: the hour, the branch, and the team's notes on what the prompt is about.
# A note is a file .wave/notes/WORD.md and comes along when the prompt has that word. Plain stdout becomes context.
event=$(cat)
cd "${WAVE_PROJECT_DIR:-${CLAUDE_PROJECT_DIR:-.}}" || exit 0

# Whatever the repository configures to run, and variables of another one, stay out of it.
unset ${!GIT_@}
git() { command git -c core.fsmonitor=false -c core.hooksPath=/dev/null "$@"; }
printf 'It is %s.' "$(date '+%Y-%m-%d %H:%M')"
if branch=$(git symbolic-ref --short -q HEAD 2>/dev/null); then printf ' The branch is %s.' "$branch"; fi
echo

command -v jq >/dev/null || exit 0 # only the notes need the prompt itself
prompt=$(jq -r '.prompt // ""' <<<"$event") || exit 0
for note in .wave/notes/*.md; do
  word=$(basename "$note" .md)
  if [ -f "$note" ] && grep -qiwF -- "$word" <<<"$prompt"; then
    echo "From $note:"
    head -c 4000 "$note" # cut: a note is a note
  fi
done
exit 0
