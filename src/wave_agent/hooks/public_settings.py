"""What settings for other agents use in public repositories, and what Wave makes of it. For the documentation."""

from msgspec import Struct


class PublicUse(Struct, frozen=True):
    """Something that settings in public repositories use."""

    what: str
    repositories: str
    """How many of 116 with settings of this kind; of scripts, how many of 141."""
    here: str
    """What Wave makes of it."""


_RUNS = "runs; see [the events](hooks/events.md)"
PUBLIC_SETTINGS = (
    PublicUse("PreToolUse, PostToolUse, Stop, UserPromptSubmit", "83, 76, 59, 48", _RUNS),
    PublicUse("SessionStart", "57", f"{_RUNS}; `additionalContext`, `initialUserMessage`, `CLAUDE_ENV_FILE`"),
    PublicUse("PreCompact, PostCompact", "25, 4", _RUNS),
    PublicUse("Notification", "24", "runs; `permission_prompt`, and what a front end passes, such as `idle_prompt`"),
    PublicUse("SubagentStart, SubagentStop", "11, 22", f"{_RUNS}; the matcher is the type of the subagent"),
    PublicUse("SessionEnd", "20", "runs; all hooks share 1.5 seconds"),
    PublicUse("PermissionRequest", "10", "runs if there is a user to ask"),
    PublicUse("PostToolUseFailure", "9", _RUNS),
    PublicUse("ConfigChange", "6", "runs; nothing can be blocked, because a session does not reload settings"),
    PublicUse("WorktreeCreate, WorktreeRemove", "4, 3", "accepted and reported; Wave makes no worktrees"),
    PublicUse("StopFailure", "2", _RUNS),
    PublicUse("CwdChanged", "1", "runs; may set variables through `CLAUDE_ENV_FILE`"),
    PublicUse(
        "FileChanged, InstructionsLoaded, PermissionDenied, PostToolBatch, TaskCreated, TaskCompleted", "0", _RUNS
    ),
    PublicUse("`async`", "54 entries", "started and not waited for; context arrives with the next request or prompt"),
    PublicUse("`asyncRewake`", "0", "the same, and a block reaches the model as context"),
    PublicUse("`if`, `statusMessage`, `timeout`, `args`", "–", "honoured"),
    PublicUse("no `type`, no inner `hooks`, a bare string, keys starting with `//`", "–", "accepted"),
    PublicUse("`disableAllHooks`", "–", "disables the hooks of the same file, never anyone else's"),
    PublicUse('`permissionDecision: "defer"`', "0", "an unattended run ends and can be resumed; otherwise an ask"),
    PublicUse("`CLAUDE_PROJECT_DIR`, `CLAUDE_PLUGIN_ROOT`", "28, 30", "set, and filled in where no shell does it"),
    PublicUse("`CLAUDE_ENV_FILE`", "5", "set on SessionStart, CwdChanged and FileChanged"),
    PublicUse("`CLAUDE_SESSION_ID`", "3", "set"),
    PublicUse(
        "`CLAUDE_TOOL_INPUT`, `CLAUDE_FILE_PATHS` and the like", "15", "not set by any agent; the linter reports them"
    ),
    PublicUse("`tool_input`, `tool_name`, `session_id`, `cwd`, `transcript_path`", "82, 69, 51, 38, 37", "on stdin"),
    PublicUse("`message`, `prompt`, `stop_hook_active`, `tool_response`", "38, 35, 18, 18", "on stdin"),
    PublicUse("`tool_result`, `tool_output`", "15, 7", "on stdin, as copies of `tool_response`"),
    PublicUse(
        "`subagent_type`, `agent_type`",
        "13, 10",
        "on stdin: the first in the input of Task, on SubagentStart and SubagentStop, the second in all of a subagent",
    ),
    PublicUse(
        "matchers and rules for Task, Agent, Skill, WebFetch, MultiEdit, NotebookEdit",
        "–",
        "Wave has these tools; Agent is another name for Task",
    ),
    PublicUse(
        "`type`: `prompt`, `agent`",
        "–",
        "runs and asks a model, which may object but never allows; see [hooks that ask a model](thinking-hooks.md)",
    ),
    PublicUse(
        "`.claude/agents`, `.claude/skills`, `.claude/commands`",
        "–",
        "used; a project's need trust. See [subagents](subagents.md) and [skills and commands](skills.md)",
    ),
    PublicUse("scripts that read the transcript", "61 scripts", "lines in the same form, as compact JSON"),
)
"""From a survey of public repositories."""
