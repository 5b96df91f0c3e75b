"""Every finding that `wave hooks lint` knows. A code never changes its meaning, and is never used again."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct


class Level(StrEnum):
    ERROR = "error"
    """The hook does not do what it is there for."""
    WARNING = "warning"
    """It will not, on another machine or another day."""
    ADVICE = "advice"
    """It could be safer. Alone, it does not fail a check."""


class LintCode(Struct, frozen=True):
    id: str
    level: Level
    title: str
    why: str
    fix: str
    fixable: bool = False
    """`--fix` repairs it."""


_E, _W, _A = Level.ERROR, Level.WARNING, Level.ADVICE
_CODES = (
    LintCode("W100", _E, "settings that cannot be read",
         "No hook of the file runs.", "Correct the place that is named."),
    LintCode("W101", _W, "a variable with a path, not quoted",
         "In a directory with a blank in its name the command falls apart.",
         'Write "$CLAUDE_PROJECT_DIR"/…, in double quotes.', fixable=True),
    LintCode("W102", _W, "a path relative to the current directory",
         "Agents that read this file run hooks wherever they happen to be, and a plugin or a user's settings are not "
         "in the project at all.",
         'Begin it with "$CLAUDE_PROJECT_DIR"/ (in a plugin: "$CLAUDE_PLUGIN_ROOT"/).'),
    LintCode("W103", _W, "a timeout in milliseconds",
         "Timeouts are seconds; another agent waits a thousand times as long.", "Write seconds.", fixable=True),
    LintCode("W104", _E, "somebody's home directory in shared settings",
         "The path exists on one machine only.", 'Begin it with "$CLAUDE_PROJECT_DIR"/ or "$HOME"/.'),
    LintCode("W105", _E, "a script without the run bit",
         "The shell refuses to run it (exit 126), which blocks nothing unless onFailure is block.",
         "Run chmod +x on it.",
         fixable=True),
    LintCode("W106", _E, "a matcher that can never match",
         "Only the name is compared: the hook never runs.", 'Name tools; a condition on the input goes into "if".'),
    LintCode("W107", _E, "an entry that cannot be used", "It is left out.", "Correct the place that is named."),
    LintCode("W108", _E, "an event that is not known", "Its hooks never run.", "Correct the name."),
    LintCode("W109", _W, "a key that is not known", "It has no effect.", "Correct the name, or remove it."),
    LintCode("W110", _E, "a script that is not there",
         "The hook fails each time; through an interpreter it even exits with 2, and blocks everything.",
         "Correct the path, or add the script."),
    LintCode("W111", _E, "a guard that is not waited for",
         '"async" hooks are not waited for, so what they block has happened already.', 'Remove "async".'),
    LintCode("W112", _A, "a guard that fails open",
         "When it crashes, hangs or is missing, what it guards passes.", 'Add "onFailure": "block".'),
    LintCode("W113", _W, "something else that the settings loader reports",
         "The entry works, but not as it is written.", "Correct the place that is named."),
    LintCode("W114", _E, "a function that cannot be called",
         "The hook fails each time.", "Correct the file, or the name of the function."),
    LintCode("W115", _E, "an interpreter that is missing or unknown",
         "The hook cannot start: it fails each time, and what it guards passes unless onFailure is block.",
         "Install the program, correct its name, or give the script a first line such as #!/usr/bin/env bash."),
    LintCode("W116", _E, "Windows line endings in a script",
         "The first line then names a program that does not exist (bash\\r), and Bash stumbles over the rest.",
         "Save it with LF line endings.", fixable=True),
    LintCode("W117", _A, "a hook that is not trusted",
         "It does not run, and an agent does not start until somebody decides.",
         "Review it, then run: wave hooks trust"),
    LintCode("W201", _W, "jq is needed and never looked for",
         "Where it is not installed the script reads nothing, and a guard lets everything through.",
         "Begin with: command -v jq >/dev/null || { echo 'jq is needed' >&2; exit 2; }"),
    LintCode("W202", _W, "a word that `decision` has no longer, or never had",
         "What the agent makes of it is not what the script means.",
         'Before a tool: "permissionDecision" with allow, deny or ask. Elsewhere: "block", or nothing.'),
    LintCode("W203", _W, "JSON from stdin, read without a handler",
         "An exception exits with 1, and 1 blocks nothing: a guard that cannot read lets the call through.",
         "Catch ValueError around it, and exit with 2."),
    LintCode("W204", _W, "`set -e` in a guard",
         "A jq or grep that fails ends the script with its status, and only 2 blocks.",
         "Remove it and test what matters, or add: trap 'exit 2' ERR"),
    LintCode("W205", _W, "a guard that never reads stdin",
         "The event is on stdin, and nowhere else.", "Read it, such as: event=$(cat)"),
    LintCode("W206", _W, "every exception swallowed, then exit 0",
         "Whatever goes wrong in the guard lets the call through, unseen.",
         "Catch what you expect; exit with 2 for the rest."),
    LintCode("W207", _E, "an environment variable that nobody sets",
         "It is always empty.", "Read the event from stdin."),
    LintCode("W208", _W, "the network before each call",
         "The agent waits for it, and when it is down the guard fails or hangs.",
         'Give it a short time limit, or make the hook "async" if it only reports.'),
    LintCode("W209", _W, "a Stop hook that can block for ever",
         "It never looks at stop_hook_active, so it can keep the agent working until the limit.",
         "Exit with 0 when stop_hook_active is true."),
    LintCode("W210", _E, "exit 1 after saying that something is blocked",
         "1 is a failure, which blocks nothing; only 2 does.", "Write exit 2."),
    LintCode("W211", _W, "another name for tool_response",
         "tool_output and tool_result are at best copies that some agents make.", "Read tool_response."),
    LintCode("W212", _W, "the reason on stdout, with exit 2",
         "Other agents read it from stderr alone; here the end of stdout stands in only if stderr is empty.",
         "Print it to stderr: echo … >&2"),
    LintCode("W213", _E, "Bash under sh",
         "A plain sh (dash) stops with a syntax error, which is exit 2: it blocks everything.",
         "Begin with #!/usr/bin/env bash, and run it with bash."),
    LintCode("W214", _E, "a syntax error", "The script does not run; Bash even exits with 2.", "Correct it."),
    LintCode("W215", _A, "a Python guard that is not isolated",
         "Python takes modules from the script's directory first: a json.py that appears there replaces the guard.",
         "Begin with #!/usr/bin/env -S python3 -I, or run it with python3 -I."),
    LintCode("W216", _W, "a guard that judges by an argument",
         "The arguments are cut at 100 KiB: what stands further back is not seen.",
         "Read the event from stdin, such as: command=$(jq -r .tool_input.command)"),
)  # fmt: skip

CODES: Mapping[str, LintCode] = MappingProxyType({code.id: code for code in _CODES})
