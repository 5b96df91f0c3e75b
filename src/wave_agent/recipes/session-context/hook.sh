#!/usr/bin/env -S bash -p
# Gives the model an overview before the first prompt: what a new colleague would want to know.
# All output becomes context, so it is kept short. It never fails: a session can start without git or notes.
cat >/dev/null # the event is not used, but its writer should not hit a closed pipe
cd "${WAVE_PROJECT_DIR:-${CLAUDE_PROJECT_DIR:-.}}" || exit 0

# Ignore programs configured by the repository, and variables set for another one.
unset ${!GIT_@}
git() { command git -c core.fsmonitor=false -c core.hooksPath=/dev/null "$@"; }

echo "Today is $(date '+%A, %Y-%m-%d')."

if branch=$(git symbolic-ref --short -q HEAD 2>/dev/null); then
  echo "The branch is $branch."
  changed=$(git status --short 2>/dev/null | head -n 20)
  [ -z "$changed" ] || printf 'Not committed yet (at most 20 files):\n%s\n' "$changed"
  commits=$(git log --oneline -n 5 2>/dev/null)
  [ -z "$commits" ] || printf 'The last commits:\n%s\n' "$commits"
fi

# Notes people keep for the agent. Truncated, so that a long file does not crowd out the conversation.
[ ! -f .wave/context.md ] || head -c 8000 .wave/context.md
exit 0
