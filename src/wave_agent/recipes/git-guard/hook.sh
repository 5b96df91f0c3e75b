#!/usr/bin/env -S bash -p
# Protects the history: no push to main, no forced push, no skipped checks, no discarded work.
# A guard: it blocks what it cannot parse (exit 2). No `set -e`, which would exit with 1, and 1 lets the call through.
# Use system programs only: none that the project could provide, and jq without ~/.jq.
project=${WAVE_PROJECT_DIR:-${CLAUDE_PROJECT_DIR:-$PWD}} own=""
IFS=: read -ra places <<<"$PATH"
for place in "${places[@]}"; do [[ $place != /* || $place/ == "$project"/* ]] || own+=:$place; done
export PATH=${own#:} HOME=/dev/null
event=$(cat)
block() {
  echo "$1" >&2
  exit 2
}
command -v jq >/dev/null || block "git-guard needs jq and blocks everything until it is installed."
# An MCP server that runs commands may call it otherwise.
line=$(jq -nr 'input.tool_input | if type == "object"
  then .command // .cmd // .script // "" | if type == "array" then join(" ") else . end else error("no input") end' \
  <<<"$event" 2>/dev/null) ||
  block "git-guard cannot read the event."

# Quoted text is data: a commit message may say --force. Then split into one command per line.
plain=$(sed -E "s/'[^']*'|\"[^\"]*\"/_/g" <<<"$line" | tr ';&|()' '\n')

while read -r words; do
  [[ " $words " == *" git "* ]] || continue
  rest=" ${words#*git } "
  while [[ $rest =~ ^\ *(-[Cc]\ +[^ ]+|-[^ ]+)\ +(.*)$ ]]; do rest=" ${BASH_REMATCH[2]}"; done # git's global options
  case $rest in
    *" --no-verify "*) block "--no-verify skips the project's checks. Let them run, and fix what they find." ;;
    " reset "*"--hard "*) block "git reset --hard discards uncommitted changes: use git stash to keep them." ;;
    " commit "*)
      [[ ! $rest =~ \ -[A-Za-z]*n[A-Za-z]*\  ]] ||
        block "-n skips the project's checks. Let them run, and fix what they find."
      ;;
    " push "*)
      [[ ! $rest =~ \ (--force|-[A-Za-z]*f[A-Za-z]*|\+[^ ]+)\  ]] ||
        block "A forced push can lose other people's work: use --force-with-lease, or ask the user."
      [[ ! $rest =~ [\ :/](main|master)\  ]] ||
        block "Pushing to main is not allowed: push a branch and open a pull request."
      ;;
  esac
done <<<"$plain"
exit 0
