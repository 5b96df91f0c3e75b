#!/usr/bin/env -S bash -p
# Tells the model where it is before the first prompt: what a colleague would want to know who has just sat down.
# Whatever this prints becomes context, so it stays short. It never fails: no git or no notes is no reason not to start.
cat >/dev/null # the event; nothing in it is needed, but whoever writes it should not meet a closed pipe
cd "${WAVE_PROJECT_DIR:-${CLAUDE_PROJECT_DIR:-.}}" || exit 0

# Whatever the repository configures to run, and variables of another one, stay out of it.
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

# Notes that people keep for the agent. Cut, so that a long file does not push out the conversation.
[ ! -f .wave/context.md ] || head -c 8000 .wave/context.md
exit 0
