#!/usr/bin/env -S bash -p
# Shows a notification when the agent has finished. It is `async` in the settings, so the agent does not wait for it.
# The model's text is passed to the notifier in one argument, never through a shell: it may contain quotes, or worse.
event=$(cat)
project=$(basename "${WAVE_PROJECT_DIR:-${CLAUDE_PROJECT_DIR:-$PWD}}")
text="The agent has finished."
if command -v jq >/dev/null; then
  said=$(jq -r '.last_assistant_message // "" | split("\n")[0] // "" | .[:120]' <<<"$event") && text=${said:-$text}
fi

if command -v notify-send >/dev/null; then
  notify-send -- "$project" "$text" >/dev/null 2>&1
elif command -v osascript >/dev/null; then
  osascript -e 'on run {text, project}' -e 'display notification text with title project' -e 'end run' \
    -- "$text" "$project" >/dev/null 2>&1
fi
exit 0 # no desktop, for example over ssh, is not a failure
