#!/usr/bin/env -S bash -p
# Blocks commands that cannot be taken back. It sees text, not what a shell makes of it: a net, not a wall.
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
command -v jq >/dev/null || block "shell-guard needs jq, so nothing passes until it is installed."
line=$(jq -nr 'input.tool_input | if type == "object" then .command // "" else error("no input") end' \
  <<<"$event" 2>/dev/null) ||
  block "shell-guard cannot read the event."
line=${line//[\"\']/} # quotes do not make it better

start='(^|[;&|(]|sudo|xargs)[[:space:]]*' # where a command can begin
options='([[:space:]]+-[^[:space:]]+)*'
too_much='(/|~/?|[$][{]?HOME[}]?/?|[.]{1,2}/?|/?[*])([[:space:]]|$)'
disk='/dev/(sd|nvme|vd|disk)'
refuse() { [[ ! $line =~ $1 ]] || block "$2"; }

refuse "${start}rm$options[[:space:]]+$too_much" "rm would delete far too much: name the directory that should go."
refuse '(curl|wget)[^;&]*[|][[:space:]]*(sudo[[:space:]]+)?(ba|z|da)?sh([[:space:]]|$)' \
  "This runs what comes from the network, unseen: download it, read it, then run it."
refuse "${start}(mkfs|fdisk|wipefs)|of=$disk|>[[:space:]]*$disk" "This writes to a disk past its file system."
refuse '[(][)][[:space:]]*[{].*[|].*&.*[}]' "This looks like a fork bomb."
refuse "${start}chmod[[:space:]].*[^0-7]0?777" "With 777 everybody on this machine can write: 755 or 644 will do."
exit 0
