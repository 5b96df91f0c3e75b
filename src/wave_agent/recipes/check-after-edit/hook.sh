#!/usr/bin/env -S bash -p
# Checks the file that was just edited and reports problems to the model right away (exit 2).
# The edit is kept either way. If a checker is missing, nothing is reported.
event=$(cat)
command -v jq >/dev/null || exit 0
file=$(jq -r '.tool_input.file_path // empty' <<<"$event") || exit 0
[ -f "$file" ] || exit 0

has() { command -v "$1" >/dev/null; }
case $file in
  *.py)
    if has ruff; then found=$(ruff check --quiet --output-format concise -- "$file" 2>&1)
    elif has python3; then found=$(python3 -I -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$file" 2>&1)
    fi
    ;;
  *.sh | *.bash)
    if has shellcheck; then found=$(shellcheck --severity=warning --format=gcc -- "$file" 2>&1)
    else found=$(bash -n -- "$file" 2>&1)
    fi
    ;;
  *.js | *.mjs | *.cjs) if has node; then found=$(node --check "$file" 2>&1); fi ;;
  *.json) found=$(jq empty "$file" 2>&1) ;;
  *) exit 0 ;;
esac || { # the status of the checker that ran
  printf '%s has problems:\n%s\n' "$file" "$(head -c 4000 <<<"$found")" >&2
  exit 2
}
exit 0
