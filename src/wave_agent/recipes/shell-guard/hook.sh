#!/usr/bin/env -S bash -p
# Blocks commands that cannot be undone. It sees text, not what a shell does with it, so it cannot see everything.
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
command -v jq >/dev/null || block "shell-guard needs jq and blocks everything until it is installed."
# An MCP server that runs commands may call it otherwise.
line=$(jq -nr 'input.tool_input | if type == "object"
  then .command // .cmd // .script // "" | if type == "array" then join(" ") else . end else error("no input") end' \
  <<<"$event" 2>/dev/null) ||
  block "shell-guard cannot read the event."
line=${line//[\"\']/} # quotes are no protection

start='(^|[;&|(]|sudo|xargs)[[:space:]]*' # where a command can start
options='([[:space:]]+-[^[:space:]]+)*'
too_much='(/|~/?|[$][{]?HOME[}]?/?|[.]{1,2}/?|/?[*])([[:space:]]|$)'
disk='/dev/(sd|nvme|vd|disk)'
refuse() { [[ ! $line =~ $1 ]] || block "$2"; }

refuse "${start}rm$options[[:space:]]+$too_much" "rm would delete far too much: name the directory to delete."
refuse '(curl|wget)[^;&]*[|][[:space:]]*(sudo[[:space:]]+)?(ba|z|da)?sh([[:space:]]|$)' \
  "This runs code from the network unseen: download it, read it, then run it."
refuse "${start}(mkfs|fdisk|wipefs)|of=$disk|>[[:space:]]*$disk" "This writes directly to a disk."
refuse '[(][)][[:space:]]*[{].*[|].*&.*[}]' "This looks like a fork bomb."
refuse "${start}chmod[[:space:]].*[^0-7]0?777" "777 lets everyone on this machine write: use 755 or 644."
exit 0
