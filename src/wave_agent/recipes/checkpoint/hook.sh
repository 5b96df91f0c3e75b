#!/usr/bin/env -S bash -p
# Saves the state of all files as a commit under refs/wave/checkpoints, with the previous checkpoint as its parent.
# The repository's branch, index and hooks are not touched: the commit is made from a separate index.
#   git log refs/wave/checkpoints                         list checkpoints
#   git restore --source refs/wave/checkpoints~2 -- .     restore one
cat >/dev/null # the event, which is not used
cd "${WAVE_PROJECT_DIR:-${CLAUDE_PROJECT_DIR:-.}}" || exit 1
# Ignore programs configured by the repository, and variables set for another one.
unset ${!GIT_@}
git() { command git -c core.fsmonitor=false -c core.hooksPath=/dev/null "$@"; }
git rev-parse --git-dir >/dev/null 2>&1 || exit 0 # no repository, nothing to save

ref=refs/wave/checkpoints
own=$(mktemp -d) || exit 1
trap 'rm -rf "$own"' EXIT
export GIT_INDEX_FILE=$own/index
# Use a fixed name, so that this works without a configured git identity.
export GIT_AUTHOR_NAME=wave GIT_AUTHOR_EMAIL=wave@localhost GIT_COMMITTER_NAME=wave GIT_COMMITTER_EMAIL=wave@localhost

git add --all . && tree=$(git write-tree) || exit 1
parent=$(git rev-parse --verify --quiet "$ref" || git rev-parse --verify --quiet HEAD)
if [ -n "$parent" ] && [ "$(git rev-parse "$parent^{tree}")" = "$tree" ]; then
  exit 0 # nothing has changed since the last one
fi
commit=$(git commit-tree "$tree" ${parent:+-p "$parent"} -m "Checkpoint $(date '+%Y-%m-%d %H:%M:%S')") || exit 1
git update-ref "$ref" "$commit"
