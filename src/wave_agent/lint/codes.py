"""All findings of `wave hooks lint`. A code never changes its meaning and is never reused."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct


class Level(StrEnum):
    ERROR = "error"
    """The hook does not do its job."""
    WARNING = "warning"
    """It will fail on another machine or another day."""
    ADVICE = "advice"
    """It could be safer. Advice alone does not fail a check."""


class LintCode(Struct, frozen=True):
    id: str
    level: Level
    title: str
    why: str
    fix: str
    fixable: bool = False
    """`--fix` can fix it."""


_E, _W, _A = Level.ERROR, Level.WARNING, Level.ADVICE
_CODES = (
    LintCode("W100", _E, "unreadable settings",
         "None of the file's hooks run.", "Fix it at the reported location."),
    LintCode("W101", _W, "an unquoted path variable",
         "The command breaks if the directory has a space in its name.",
         'Write "$CLAUDE_PROJECT_DIR"/…, in double quotes.', fixable=True),
    LintCode("W102", _W, "a path relative to the current directory",
         "Other agents run hooks in whatever directory they are in, and a plugin or a user's settings are not in the "
         "project at all.",
         'Start it with "$CLAUDE_PROJECT_DIR"/ (in a plugin: "$CLAUDE_PLUGIN_ROOT"/).'),
    LintCode("W103", _W, "a timeout in milliseconds",
         "Timeouts are in seconds; another agent would wait a thousand times as long.", "Write seconds.", fixable=True),
    LintCode("W104", _E, "a home directory in shared settings",
         "The path exists on one machine only.", 'Start it with "$CLAUDE_PROJECT_DIR"/ or "$HOME"/.'),
    LintCode("W105", _E, "a script that is not executable",
         "The shell refuses to run it (exit 126), which blocks nothing unless onFailure is block.",
         "Run chmod +x on it.",
         fixable=True),
    LintCode("W106", _E, "a matcher that can never match",
         "Only the name is compared, so the hook never runs.", 'Name tools; put conditions on the input into "if".'),
    LintCode("W107", _E, "an invalid entry", "It is ignored.", "Fix it at the reported location."),
    LintCode("W108", _E, "an unknown event", "Its hooks never run.", "Fix the name."),
    LintCode("W109", _W, "an unknown key", "It has no effect.", "Fix the name, or remove it."),
    LintCode("W110", _E, "a missing script",
         "The hook fails every time; through an interpreter it even exits with 2 and blocks everything.",
         "Fix the path, or add the script."),
    LintCode("W111", _E, "an async guard",
         'The agent does not wait for "async" hooks: by the time they block, it is too late.', 'Remove "async".'),
    LintCode("W112", _A, "a guard that fails open",
         "When it crashes, hangs or is missing, calls pass unchecked.", 'Add "onFailure": "block".'),
    LintCode("W113", _W, "another warning from the settings loader",
         "The entry works, but not as written.", "Fix it at the reported location."),
    LintCode("W114", _E, "a function that cannot be called",
         "The hook fails every time.", "Fix the file, or the name of the function."),
    LintCode("W115", _E, "a missing or unknown interpreter",
         "The hook cannot start: it fails every time, and calls pass unchecked unless onFailure is block.",
         "Install the program, fix its name, or start the script with a line such as #!/usr/bin/env bash."),
    LintCode("W116", _E, "Windows line endings in a script",
         "The first line names a program that does not exist (bash\\r), and Bash fails on the rest.",
         "Save it with LF line endings.", fixable=True),
    LintCode("W117", _A, "an untrusted hook",
         "It does not run, and an agent does not start until you decide.",
         "Review it, then run: wave hooks trust"),
    LintCode("W118", _A, "a rule for one command that means a file or a host",
         "Other commands have the same effect, and the rule does not cover them.",
         "Write a Read, Edit or Net rule: it covers every tool and command."),
    LintCode("W119", _A, "a guard of files that does not see commands",
         "It runs for the tools it names, and Bash can read and write the same files.",
         'Match "*", and compare the paths in effects.reads, effects.writes and effects.deletes.'),
    LintCode("W120", _W, "a placeholder in a prompt that nothing fills in",
         "The model reads it as it is written.",
         "Refer to fields by name: the model gets the whole event. Only $ARGUMENTS stands for it."),
    LintCode("W121", _A, "a model is asked on every call",
         "Each question takes seconds and tokens, also for calls that only read.",
         'Add a matcher, or a condition such as "if": "Bash(git push:*)".'),
    LintCode("W201", _W, "jq is used without a check",
         "If it is not installed, the script reads nothing, and a guard lets everything through.",
         "Begin with: command -v jq >/dev/null || { echo 'jq is needed' >&2; exit 2; }"),
    LintCode("W202", _W, "a deprecated or unknown value of `decision`",
         "The agent does not read it the way the script means it.",
         'Before a tool: "permissionDecision" with allow, deny or ask. Elsewhere: "block", or nothing.'),
    LintCode("W203", _W, "JSON from stdin, read without error handling",
         "An exception exits with 1, and 1 blocks nothing: a guard that cannot read its input lets the call through.",
         "Catch ValueError and exit with 2."),
    LintCode("W204", _W, "`set -e` in a guard",
         "If jq or grep fails, the script exits with its status, and only 2 blocks.",
         "Remove it and check the commands that matter, or add: trap 'exit 2' ERR"),
    LintCode("W205", _W, "a guard that never reads stdin",
         "The event is only on stdin.", "Read it, for example: event=$(cat)"),
    LintCode("W206", _W, "every exception swallowed, then exit 0",
         "Any error in the guard silently lets the call through.",
         "Catch the errors you expect; exit with 2 for the rest."),
    LintCode("W207", _E, "an environment variable that is never set",
         "It is always empty.", "Read the event from stdin."),
    LintCode("W208", _W, "network access before every call",
         "The agent waits for it, and if the network is down, the guard fails or hangs.",
         'Set a short timeout, or make the hook "async" if it only reports.'),
    LintCode("W209", _W, "a Stop hook that can block forever",
         "It never checks stop_hook_active, so it can keep the agent working until the limit.",
         "Exit with 0 when stop_hook_active is true."),
    LintCode("W210", _E, "exit 1 where something is blocked",
         "1 is a failure, which blocks nothing; only 2 blocks.", "Write exit 2."),
    LintCode("W211", _W, "a non-standard name for tool_response",
         "tool_output and tool_result are at best copies that some agents provide.", "Read tool_response."),
    LintCode("W212", _W, "the reason on stdout, with exit 2",
         "Other agents read only stderr; Wave uses the end of stdout only if stderr is empty.",
         "Print it to stderr: echo … >&2"),
    LintCode("W213", _E, "Bash syntax under sh",
         "A plain sh (dash) fails with a syntax error, which is exit 2: it blocks everything.",
         "Start with #!/usr/bin/env bash, and run it with bash."),
    LintCode("W214", _E, "a syntax error", "The script does not run; Bash even exits with 2.", "Fix it."),
    LintCode("W215", _A, "a Python guard that is not isolated",
         "Python imports modules from the script's directory first: a json.py placed there takes over the guard.",
         "Start with #!/usr/bin/env -S python3 -I, or run it with python3 -I."),
    LintCode("W216", _W, "a guard that decides by an argument",
         "Arguments are truncated to 100 KiB: the guard does not see the rest.",
         "Read the event from stdin, for example: command=$(jq -r .tool_input.command)"),
    LintCode("W217", _E, "a misspelt key in the output",
         "Unknown keys are ignored, so the hook decides nothing.", "Fix the key."),
)  # fmt: skip

CODES: Mapping[str, LintCode] = MappingProxyType({code.id: code for code in _CODES})
