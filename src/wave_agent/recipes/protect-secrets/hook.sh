#!/usr/bin/env -S bash -p
# Keeps the agent away from files that contain secrets, whichever tool opens them.
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
command -v jq >/dev/null || block "protect-secrets needs jq and blocks everything until it is installed."

# Every value that can name a file, including the whole command; any argument of an MCP tool that may be a path or an
# address; and the files that the call would touch: a script or a link names them otherwise.
named=$(jq -nr 'input | if (.tool_input | type) != "object" then error("no input") else . end
  | [(.tool_input | .file_path, .notebook_path, .path, .command | strings),
     (select(.tool_name // "" | tostring | startswith("mcp__")) | .tool_input | .. | strings
       | select(test("^(\\S+|[/~.].*|\\w+:.*)$"))),
     (.effects // {} | .reads, .writes, .deletes | arrays | .[])] | join("\n")' <<<"$event" 2>/dev/null) ||
  block "protect-secrets cannot read the event."

# A file name ends at a space, a quote or the like. Files meant to be shared are removed before searching.
end='($|[^A-Za-z0-9_.-])'
shared="\.env\.(example|sample|template|dist)$end|\.pub$end"
secret="(^|[^A-Za-z0-9_-])(\.env(\.[A-Za-z0-9_-]+)*|\.netrc|\.pgpass|\.git-credentials|id_(rsa|dsa|ecdsa|ed25519))$end"
secret="$secret|\.(pem|p12|pfx|keystore)$end|\.(ssh|aws|gnupg)/|(^|/)credentials(\.json)?$end"

rest=$(sed -E "s#[^[:space:]'\"=]*($shared)# #g" <<<"$named")
if found=$(grep -Eo -m 1 "$secret" <<<"$rest"); then
  block "This names a file with secrets (${found//$'\n'/ }). Ask the user for what you need from it."
fi
exit 0
