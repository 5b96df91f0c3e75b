#!/usr/bin/env -S bash -p
# Keeps the agent at work while .wave/todo.md has open boxes (- [ ]), up to five times a prompt.
# A loop needs an end of its own: stop_block_count says how often the agent was kept, and stop_hook_active whether, for
# agents that do not count. What cannot be read ends the turn: better too early than never.
event=$(cat)
cd "${WAVE_PROJECT_DIR:-${CLAUDE_PROJECT_DIR:-.}}" || exit 1
most=5
rounds=0
[[ ! $event =~ \"stop_hook_active\"[[:space:]]*:[[:space:]]*true ]] || rounds=$most
[[ ! $event =~ \"stop_block_count\"[[:space:]]*:[[:space:]]*([0-9]+) ]] || rounds=${BASH_REMATCH[1]}
((rounds < most)) || exit 0

left=$(grep -sE '^[[:space:]]*[-*] \[ \] ' .wave/todo.md) || exit 0
{
  echo "$(wc -l <<<"$left" | tr -d ' ') left in .wave/todo.md. Next: $(head -n 1 <<<"$left" | sed -E 's/^[^]]*\] //')"
  echo "Do it, tick its box, and go on. If it cannot be done, write why beside it and tick it."
} >&2
exit 2
