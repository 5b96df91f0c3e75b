#!/usr/bin/env -S bash -p
# Runs the project's tests when the agent wants to stop. If they fail, it gets their output and continues (exit 2).
# Only once: an agent that cannot fix them on the second try needs a person, not a third try.
event=$(cat)
[[ ! $event =~ \"stop_hook_active\"[[:space:]]*:[[:space:]]*true ]] || exit 0
cd "${WAVE_PROJECT_DIR:-${CLAUDE_PROJECT_DIR:-.}}" || exit 1

# The first match is used. A file .wave/test-command with the command takes precedence.
if [ -f .wave/test-command ]; then run=$(cat .wave/test-command)
elif grep -qs '^test:' Makefile; then run="make test"
elif grep -qs '"test":' package.json; then run="npm test --silent"
elif [ -f pyproject.toml ] && [ -d tests ]; then run="python3 -m pytest -q"
elif [ -f Cargo.toml ]; then run="cargo test --quiet"
elif [ -f go.mod ]; then run="go test ./..."
else exit 0
fi

if ! output=$(bash -c "$run" 2>&1 </dev/null); then
  # The end of the output says what failed.
  printf 'The tests fail (%s). Fix them, or say why they must fail:\n%s\n' "$run" "$(tail -n 60 <<<"$output")" >&2
  exit 2
fi
exit 0
