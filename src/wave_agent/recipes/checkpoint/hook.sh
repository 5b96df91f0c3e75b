#!/usr/bin/env -S bash -p
# Keeps the state of all files as a commit under refs/wave/checkpoints, each with the one before as its parent.
# Branch, index and hooks of the repository are not touched: the commit is made from an index of its own.
#   git log refs/wave/checkpoints                         what there is
#   git restore --source refs/wave/checkpoints~2 -- .     go back to one
cat >/dev/null # the event; nothing in it is needed
cd "${WAVE_PROJECT_DIR:-${CLAUDE_PROJECT_DIR:-.}}" || exit 1
# Whatever the repository configures to run, and variables of another one, stay out of it.
unset ${!GIT_@}
git() { command git -c core.fsmonitor=false -c core.hooksPath=/dev/null "$@"; }
git rev-parse --git-dir >/dev/null 2>&1 || exit 0 # no repository, nothing to keep

ref=refs/wave/checkpoints
own=$(mktemp -d) || exit 1
trap 'rm -rf "$own"' EXIT
export GIT_INDEX_FILE=$own/index
# Whoever has told git no name gets one: a checkpoint is not a contribution.
export GIT_AUTHOR_NAME=wave GIT_AUTHOR_EMAIL=wave@localhost GIT_COMMITTER_NAME=wave GIT_COMMITTER_EMAIL=wave@localhost

git add --all . && tree=$(git write-tree) || exit 1
parent=$(git rev-parse --verify --quiet "$ref" || git rev-parse --verify --quiet HEAD)
if [ -n "$parent" ] && [ "$(git rev-parse "$parent^{tree}")" = "$tree" ]; then
  exit 0 # nothing has changed since
fi
commit=$(git commit-tree "$tree" ${parent:+-p "$parent"} -m "Checkpoint $(date '+%Y-%m-%d %H:%M:%S')") || exit 1
git update-ref "$ref" "$commit"
