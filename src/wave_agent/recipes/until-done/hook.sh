#!/usr/bin/env -S bash -p
# Keeps the agent working while .wave/todo.md has open boxes (- [ ]), up to five times per prompt.
# A loop needs a limit: stop_block_count says how often the stop was blocked, and stop_hook_active whether it was, for
# agents that do not count. Unreadable input ends the turn: better to end too early than never.
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
  echo "Do it, tick its box, and continue. If it cannot be done, write why next to it and tick it."
} >&2
exit 2
