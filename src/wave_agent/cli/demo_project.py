"""The `wave demo` project: a small program with a bug, five hooks, and the script the model follows."""

import json
import sys
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from wave_agent.models.scripted import Reply, Script, call

GREETING = 'def greet(name):\n    return f"Helo, {name}!"\n'
BROKEN = 'def greet(name)\n    return f"Hello, {name}!"\n'
FIXED = 'def greet(name):\n    return f"Hello, {name}!"\n'
TEST = 'from greeting import greet\n\nassert greet("Ada") == "Hello, Ada!", f"greet says {greet(\'Ada\')!r}"\n'
FAKE_KEY = "sk-demo-0123456789abcdef"

HOOKS = {
    "no-secrets.sh": """\
#!/bin/sh
# UserPromptSubmit: a prompt that contains an API key must not leave this machine.
if grep -q 'sk-[a-z0-9-]\\{16,\\}'; then
  echo "Your prompt contains what looks like an API key, so it was not sent. Remove it and try again." >&2
  exit 2
fi
""",
    "no-rm-rf.sh": """\
#!/bin/sh
# PreToolUse, Bash: the event is on stdin, as JSON.
case "$(cat)" in
  *'rm -rf'*)
    echo "rm -rf is not allowed here. Say what should be deleted, and the user will do it." >&2
    exit 2 ;;
esac
""",
    "only-the-head.sh": """\
#!/bin/sh
# PreToolUse, Bash: the conversation does not need a whole log file.
case "$(cat)" in
  *'cat server.log'*)
    echo '{"hookSpecificOutput": {"updatedInput": {"command": "head -n 2 server.log"}}}' ;;
esac
""",
    "check-syntax.sh": """\
#!/bin/sh
# PostToolUse, Write and Edit: tell the model right away if a file does not parse.
if ! problem=$(PYTHON -c 'compile(open("greeting.py").read(), "greeting.py", "exec")' 2>&1); then
  echo "greeting.py does not parse: $(printf %s "$problem" | tail -n 1)" >&2
  exit 2
fi
""",
    "tests-pass.sh": """\
#!/bin/sh
# Stop: the agent is not done until the tests pass.
if ! problem=$(PYTHON test_greeting.py 2>&1); then
  echo "The tests fail, so you are not done: $(printf %s "$problem" | tail -n 1)" >&2
  exit 2
fi
""",
}

SETTINGS = {
    "hooks": {
        "UserPromptSubmit": [{"hooks": [{"type": "command", "command": ".wave/hooks/no-secrets.sh"}]}],
        "PreToolUse": [
            {
                "matcher": "Bash",
                "phase": "rewrite",
                "hooks": [{"type": "command", "command": ".wave/hooks/only-the-head.sh"}],
            },
            {
                "matcher": "Bash",
                "hooks": [{"type": "command", "command": ".wave/hooks/no-rm-rf.sh", "onFailure": "block"}],
            },
        ],
        "PostToolUse": [
            {"matcher": "Write|Edit", "hooks": [{"type": "command", "command": ".wave/hooks/check-syntax.sh"}]}
        ],
        "Stop": [{"hooks": [{"type": "command", "command": ".wave/hooks/tests-pass.sh"}]}],
    }
}


class Scene(NamedTuple):
    """One prompt of the tour and the model's scripted response."""

    title: str
    prompt: str
    script: tuple[Script, ...]
    proof: str
    """Which state on disk to show afterwards as proof."""


def write_project(project: Path) -> None:
    """Create the project in its initial state."""
    hooks = project / ".wave" / "hooks"
    hooks.mkdir(parents=True)
    for name, text in HOOKS.items():
        (hooks / name).write_text(text.replace("PYTHON", quote(sys.executable)))
        (hooks / name).chmod(0o755)
    (project / ".wave" / "settings.json").write_text(json.dumps(SETTINGS, indent=2) + "\n")
    (project / "greeting.py").write_text(FIXED)
    (project / "test_greeting.py").write_text(TEST)
    (project / "server.log").write_text("".join(f"line {number}\n" for number in range(1, 5001)))
    (project / "build").mkdir()
    (project / "build" / "result.txt").write_text("hours of work\n")


def scenes(project: Path) -> tuple[Scene, ...]:
    greeting = str(project / "greeting.py")
    return (
        Scene("A prompt is blocked", f"Deploy with the key {FAKE_KEY}, please.", (), "transcript"),
        Scene(
            "A dangerous command is blocked",
            "Tidy up the project.",
            (
                Reply(tool_calls=[call("Bash", command="rm -rf build")]),
                "I left build alone: please delete it yourself.",
            ),
            "build",
        ),
        Scene(
            "An input is rewritten",
            "What does the server log say?",
            (Reply(tool_calls=[call("Bash", command="cat server.log")]), "It counts lines."),
            "log",
        ),
        Scene(
            "Feedback after an edit",
            "Rewrite greeting.py.",
            (
                Reply(tool_calls=[call("Read", file_path=greeting)]),
                Reply(tool_calls=[call("Write", file_path=greeting, content=BROKEN)]),
                Reply(tool_calls=[call("Write", file_path=greeting, content=FIXED)]),
                "The colon was missing; it parses now.",
            ),
            "greeting",
        ),
        Scene(
            "A stop is blocked until the tests pass",
            "Make the greeting shorter.",
            (
                Reply(tool_calls=[call("Write", file_path=greeting, content=GREETING)]),
                "Done: one letter fewer.",
                Reply(tool_calls=[call("Write", file_path=greeting, content=FIXED)]),
                "The tests want the whole word, so I put it back.",
            ),
            "tests",
        ),
    )
