#!/usr/bin/env -S bash -p
# Keeps the history safe: no push to main or by force, no skipped checks, no work thrown away.
# A guard: what it cannot judge it blocks (exit 2). No `set -e`, which would end it with 1, and 1 lets the call through.
# Programs of the system only: none that the project could put there, and jq without what ~/.jq would add.
project=${WAVE_PROJECT_DIR:-${CLAUDE_PROJECT_DIR:-$PWD}} own=""
IFS=: read -ra places <<<"$PATH"
for place in "${places[@]}"; do [[ $place != /* || $place/ == "$project"/* ]] || own+=:$place; done
export PATH=${own#:} HOME=/dev/null
event=$(cat)
block() {
  echo "$1" >&2
  exit 2
}
command -v jq >/dev/null || block "git-guard needs jq, so nothing passes until it is installed."
line=$(jq -nr 'input.tool_input | if type == "object" then .command // "" else error("no input") end' \
  <<<"$event" 2>/dev/null) ||
  block "git-guard cannot read the event."

# What stands in quotes is data: a commit message may say --force. Then one command a line.
plain=$(sed -E "s/'[^']*'|\"[^\"]*\"/_/g" <<<"$line" | tr ';&|()' '\n')

while read -r words; do
  [[ " $words " == *" git "* ]] || continue
  rest=" ${words#*git } "
  while [[ $rest =~ ^\ *(-[Cc]\ +[^ ]+|-[^ ]+)\ +(.*)$ ]]; do rest=" ${BASH_REMATCH[2]}"; done # options of git itself
  case $rest in
    *" --no-verify "*) block "--no-verify skips the project's checks. Let them run, and repair what they find." ;;
    " reset "*"--hard "*) block "git reset --hard throws away what is not committed: git stash keeps it." ;;
    " commit "*)
      [[ ! $rest =~ \ -[A-Za-z]*n[A-Za-z]*\  ]] ||
        block "-n skips the project's checks. Let them run, and repair what they find."
      ;;
    " push "*)
      [[ ! $rest =~ \ (--force|-[A-Za-z]*f[A-Za-z]*|\+[^ ]+)\  ]] ||
        block "A forced push can lose the work of others: use --force-with-lease, or ask the user."
      [[ ! $rest =~ [\ :/](main|master)\  ]] ||
        block "Nobody pushes to main from here: push a branch, and open a pull request."
      ;;
  esac
done <<<"$plain"
exit 0
