"""The agents that can host our guards, one row of facts each.

Everything that differs between hosts is a column here: names of events and tools, fields and their units, and which
verdicts a host enforces. Instead of writing `if host == …`, add a column. Pure.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct

from wave_agent.hooks.events import HookEvent


class Verb(StrEnum):
    """What a guard can want from a host."""

    DENY = "deny"
    ASK = "ask"
    REWRITE = "rewrite"
    ALLOW = "allow"
    CONTEXT = "add context"
    REPLACE = "replace a result"
    END = "end the turn"
    TELL = "tell the user"


class Form(StrEnum):
    """How a host reads an answer."""

    EXIT_TWO = "exit 2 with the reason on stderr; everything else as JSON like Claude Code's"
    GEMINI = "exit 2 with the reason on stderr; everything else as JSON with `decision`"
    SNAKE = "JSON with `decision` and `hook_specific_output`"
    CURSOR = "JSON with `permission`"
    COPILOT = "JSON with `permissionDecision`"
    PLUGIN = "JSON for our own plugin"


class ToolRow(Struct, frozen=True, kw_only=True):
    """A tool of a host that does what one of ours does."""

    name: str
    """Our name for it."""
    fields: Mapping[str, str] = MappingProxyType({})
    """The host's name of a field → ours. Other fields keep their names."""
    factors: Mapping[str, float] = MappingProxyType({})
    """Our name of a field → what the host's number is multiplied by, if its unit is another one."""
    edits: str = ""
    """The field that holds an edit or a list of edits. Each becomes a call with `old_string` and `new_string`."""
    edit_keys: tuple[str, str] = ("old_string", "new_string")
    directory: str = ""
    """The field with the directory in which the call runs, if it can name one."""
    is_patch: bool = False
    """Its input is the text of a patch."""
    keeps_input: bool = False
    """The agent can type into the command while it runs, and no event shows what."""


class HostRow(Struct, frozen=True, kw_only=True):
    """Everything specific to one host."""

    name: str
    title: str
    form: Form
    events: Mapping[str, HookEvent]
    """The host's name of an event → ours."""
    installed: tuple[str, ...]
    """The host's events for which a guard is installed."""
    enforces: Mapping[HookEvent, frozenset[Verb]]
    """What the host does as told, by event. Events that are missing: nothing."""
    tools: Mapping[str, ToolRow] = MappingProxyType({})
    """The host's tools that have a counterpart here."""
    event_tools: Mapping[str, str] = MappingProxyType({})
    """Events that are about one tool → the host's name for it; the input is the event itself."""
    keys: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """Our name of a payload field → where this host puts it. Default: the same name."""
    project_variable: str = ""
    """The variable with the directory the host was started in: `cwd` may follow the commands it runs."""
    prompt_mark: str = ""
    """A field that only prompts of a person have: an empty prompt without it goes on with a turn."""
    modes_that_skip_questions: frozenset[str] = frozenset()
    """Permission modes of the host in which it may run a call although a hook asks."""
    reason_replaces: bool = False
    """After a tool, the reason of a deny is what the model gets in place of the result."""
    has_known_transcript: bool = False
    """Its transcript has the format that existing hooks parse."""
    factor: float = 1
    """What a timeout in seconds is multiplied by in this host's settings."""
    experimental: bool = False
    limits: tuple[str, ...] = ()
    """What this host cannot do, or does badly, for `wave guard status`."""

    def event_named(self, name: str) -> HookEvent | None:
        return self.events.get(name)

    def tool_named(self, name: str) -> ToolRow | None:
        """The last part of a name counts, as in `file_system.bash`: hosts sort their tools into groups."""
        return self.tools.get(name) or self.tools.get(name.rpartition(".")[2])


_ALL = frozenset(Verb)
_SAY = frozenset({Verb.CONTEXT, Verb.TELL})
_BLOCK = frozenset({Verb.DENY, Verb.CONTEXT, Verb.TELL})
E_ = HookEvent

BASH = ToolRow(name="Bash")
READ = ToolRow(name="Read")
WRITE = ToolRow(name="Write")
EDIT = ToolRow(name="Edit")

_CLAUDE_EVENTS = {
    event.value: event
    for event in (
        E_.PRE_TOOL_USE, E_.PERMISSION_REQUEST, E_.POST_TOOL_USE, E_.POST_TOOL_USE_FAILURE, E_.USER_PROMPT_SUBMIT,
        E_.STOP, E_.SESSION_START, E_.SESSION_END, E_.PRE_COMPACT, E_.NOTIFICATION,
    )
}  # fmt: skip


def _some(*events: HookEvent) -> dict[str, HookEvent]:
    return {event.value: event for event in events}


_CLAUDE = HostRow(
    name="claude",
    title="Claude Code",
    form=Form.EXIT_TWO,
    events=_CLAUDE_EVENTS,
    installed=tuple(_CLAUDE_EVENTS),
    project_variable="CLAUDE_PROJECT_DIR",
    has_known_transcript=True,
    modes_that_skip_questions=frozenset(
        {"bypassPermissions"}
    ),  # for paths like .claude, where it has a question itself
    enforces={
        E_.PRE_TOOL_USE: _ALL - {Verb.END, Verb.REPLACE},
        E_.PERMISSION_REQUEST: frozenset({Verb.DENY, Verb.ALLOW, Verb.TELL}),
        E_.POST_TOOL_USE: _BLOCK | {Verb.END, Verb.REPLACE},
        E_.POST_TOOL_USE_FAILURE: _SAY,
        E_.USER_PROMPT_SUBMIT: _BLOCK | {Verb.END},
        E_.STOP: _BLOCK | {Verb.END},
        E_.SESSION_START: _SAY,
        E_.PRE_COMPACT: frozenset({Verb.TELL}),
    },
    tools={
        "Bash": BASH,
        "Read": READ,
        "Write": WRITE,
        "Edit": EDIT,
        "Glob": ToolRow(name="Glob"),
        "Grep": ToolRow(name="Grep"),
        "MultiEdit": ToolRow(name="Edit", edits="edits"),
        "NotebookEdit": ToolRow(name="Edit", fields={"notebook_path": "file_path", "new_source": "new_string"}),
    },
    limits=(
        "a hook that crashes or times out passes; the installed line turns a missing `wave` into a deny",
        "skips some questions in the mode bypassPermissions: there, a question is a deny with instructions",
    ),
)

_CODEX = HostRow(
    name="codex",
    title="Codex",
    form=Form.EXIT_TWO,
    events=_some(
        E_.PRE_TOOL_USE, E_.PERMISSION_REQUEST, E_.POST_TOOL_USE, E_.USER_PROMPT_SUBMIT, E_.STOP, E_.SESSION_START
    ),
    installed=("PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SessionStart"),
    enforces={
        E_.PRE_TOOL_USE: frozenset({Verb.DENY, Verb.ALLOW, Verb.CONTEXT}),
        E_.POST_TOOL_USE: frozenset({Verb.DENY, Verb.CONTEXT, Verb.REPLACE}),
        E_.USER_PROMPT_SUBMIT: frozenset({Verb.DENY, Verb.CONTEXT}),
        E_.STOP: frozenset({Verb.DENY}),
        E_.SESSION_START: frozenset({Verb.CONTEXT}),
    },
    reason_replaces=True,
    tools={
        "Bash": ToolRow(name="Bash", directory="workdir", keeps_input=True),
        "shell": ToolRow(name="Bash", directory="workdir"),
        "local_shell": ToolRow(name="Bash", directory="workdir"),
        "exec_command": ToolRow(name="Bash", fields={"cmd": "command"}, directory="workdir", keeps_input=True),
        "apply_patch": ToolRow(name="Edit", is_patch=True),
        "Write": ToolRow(name="Write", is_patch=True),
        "Edit": ToolRow(name="Edit", is_patch=True),
    },
    limits=(
        "cannot ask: a question is a deny with instructions",
        "rewrites only what it also allows: a call that must be rewritten is denied with the rewritten form as advice",
        "runs hooks only once you trust them there",
        "shows no event for what is typed into a running command: a shell that would read it is judged as unknown",
    ),
)

_GEMINI = HostRow(
    name="gemini",
    title="Gemini CLI",
    form=Form.GEMINI,
    events={
        "BeforeTool": E_.PRE_TOOL_USE,
        "AfterTool": E_.POST_TOOL_USE,
        "BeforeAgent": E_.USER_PROMPT_SUBMIT,
        "AfterAgent": E_.STOP,
        "SessionStart": E_.SESSION_START,
        "SessionEnd": E_.SESSION_END,
        "PreCompress": E_.PRE_COMPACT,
        "Notification": E_.NOTIFICATION,
    },
    installed=(
        "BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent", "SessionStart", "SessionEnd", "PreCompress",
        "Notification",
    ),
    enforces={
        E_.PRE_TOOL_USE: frozenset({Verb.DENY, Verb.REWRITE, Verb.ALLOW, Verb.TELL}),
        E_.POST_TOOL_USE: _BLOCK | {Verb.END, Verb.REPLACE},
        E_.USER_PROMPT_SUBMIT: _BLOCK | {Verb.END},
        E_.STOP: frozenset({Verb.DENY, Verb.END, Verb.TELL}),
        E_.SESSION_START: _SAY,
    },
    reason_replaces=True,
    tools={
        "run_shell_command": ToolRow(name="Bash", directory="dir_path"),
        "read_file": READ,
        "write_file": WRITE,
        "replace": ToolRow(name="Edit", fields={"allow_multiple": "replace_all"}),
        "glob": ToolRow(name="Glob", fields={"dir_path": "path"}),
        "grep_search": ToolRow(name="Grep", fields={"dir_path": "path"}),
        "search_file_content": ToolRow(name="Grep", fields={"dir_path": "path"}),
    },
    keys={"last_assistant_message": ("prompt_response",)},
    project_variable="GEMINI_PROJECT_DIR",
    factor=1000,
    limits=(
        "waits forever for the answer to a hook's question if no one is there: a question is a deny with instructions",
        "does not end a hook that times out: the guard answers before that",
    ),
)  # fmt: skip

_QWEN = HostRow(
    name="qwen",
    title="Qwen Code",
    form=Form.EXIT_TWO,
    events=_some(
        E_.PRE_TOOL_USE, E_.PERMISSION_REQUEST, E_.POST_TOOL_USE, E_.POST_TOOL_USE_FAILURE, E_.USER_PROMPT_SUBMIT,
        E_.STOP, E_.SESSION_START, E_.SESSION_END, E_.PRE_COMPACT, E_.NOTIFICATION,
    ),
    installed=(
        "PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop", "SessionStart", "SessionEnd",
        "PreCompact", "Notification",
    ),
    enforces={
        E_.PRE_TOOL_USE: frozenset({Verb.DENY, Verb.ALLOW, Verb.TELL}),
        E_.POST_TOOL_USE: _SAY,
        E_.POST_TOOL_USE_FAILURE: _SAY,
        E_.USER_PROMPT_SUBMIT: _BLOCK,
        E_.STOP: frozenset({Verb.DENY, Verb.TELL}),
        E_.SESSION_START: _SAY,
    },
    tools={
        "run_shell_command": ToolRow(name="Bash", fields={"is_background": "run_in_background"}, directory="directory"),
        "read_file": ToolRow(name="Read", fields={"absolute_path": "file_path"}),
        "write_file": WRITE,
        "edit": EDIT,
        "glob": ToolRow(name="Glob"),
        "grep_search": ToolRow(name="Grep"),
    },
    prompt_mark="submitted_prompt",
    factor=1000,
    limits=(
        "a later hook's JSON allow beats another's deny: keep the guard the only hook on a tool, or the last",
        "cannot ask from a hook without a person: a question is a deny with instructions",
        "does not rewrite a call before it runs: the call is denied with the rewritten form as advice",
        "drops context before a tool, and what a hook objects to after it: the objection is given as context",
        "does not end a hook that times out: the guard answers before that",
    ),
)  # fmt: skip

_KIMI = HostRow(
    name="kimi",
    title="kimi-cli",
    form=Form.EXIT_TWO,
    events=_some(
        E_.PRE_TOOL_USE, E_.POST_TOOL_USE, E_.POST_TOOL_USE_FAILURE, E_.USER_PROMPT_SUBMIT, E_.STOP, E_.STOP_FAILURE,
        E_.SESSION_START, E_.SESSION_END, E_.PRE_COMPACT, E_.POST_COMPACT, E_.NOTIFICATION,
    ),
    installed=(
        "PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop", "StopFailure", "SessionStart",
        "SessionEnd", "PreCompact", "PostCompact", "Notification",
    ),
    enforces={
        E_.PRE_TOOL_USE: frozenset({Verb.DENY}),
        E_.USER_PROMPT_SUBMIT: frozenset({Verb.DENY}),
        E_.STOP: frozenset({Verb.DENY}),
    },
    tools={
        "Shell": ToolRow(name="Bash", factors={"timeout": 1000}),
        "ReadFile": ToolRow(name="Read", fields={"path": "file_path", "line_offset": "offset", "n_lines": "limit"}),
        "ReadMediaFile": ToolRow(name="Read", fields={"path": "file_path"}),
        "WriteFile": ToolRow(name="Write", fields={"path": "file_path"}),
        "StrReplaceFile": ToolRow(
            name="Edit", fields={"path": "file_path"}, edits="edit", edit_keys=("old", "new")
        ),
        "Glob": ToolRow(name="Glob", fields={"directory": "path"}),
        "Grep": ToolRow(name="Grep"),
        "FetchURL": ToolRow(name="WebFetch"),
    },
    keys={
        "tool_use_id": ("tool_call_id",),
        "tool_response": ("tool_output",),
        "message": ("body",),
        "error": ("error", "error_type"),
        "error_details": ("error_message",),
    },
    limits=(
        "cannot ask or rewrite: both are a deny with instructions",
        "adds no context for the model, and no feedback after a tool",
        "one odd JSON answer of another hook cancels all verdicts: the guard answers by exit code",
    ),
)  # fmt: skip

_VIBE = HostRow(
    name="vibe",
    title="mistral-vibe",
    form=Form.SNAKE,
    events={
        "pre_tool": E_.PRE_TOOL_USE,
        "post_tool": E_.POST_TOOL_USE,
        "post_agent": E_.STOP,
        "before_tool": E_.PRE_TOOL_USE,
        "after_tool": E_.POST_TOOL_USE,
        "post_agent_turn": E_.STOP,
    },
    installed=("pre_tool", "post_tool", "post_agent"),
    enforces={
        E_.PRE_TOOL_USE: frozenset({Verb.DENY, Verb.REWRITE, Verb.TELL}),
        E_.POST_TOOL_USE: frozenset({Verb.REPLACE, Verb.CONTEXT, Verb.TELL}),
        E_.STOP: frozenset({Verb.DENY, Verb.TELL}),
    },
    reason_replaces=True,
    tools={
        "bash": ToolRow(name="Bash", factors={"timeout": 1000}),
        "read_file": ToolRow(name="Read", fields={"path": "file_path"}),
        "write_file": ToolRow(name="Write", fields={"path": "file_path"}),
        "edit": EDIT,
        "search_replace": ToolRow(name="Edit", fields={"content": "new_string"}),
        "grep": ToolRow(name="Grep"),
        "web_fetch": ToolRow(name="WebFetch"),
        "process.start": ToolRow(name="Bash", directory="cwd", keeps_input=True),
        "process.write": ToolRow(name="Bash", fields={"text": "command"}),  # into a process that may be a shell
    },
    keys={"tool_use_id": ("tool_call_id",), "tool_response": ("tool_output_text", "tool_output")},
    limits=(
        "cannot ask: a question is a deny with instructions",
        "has no events for prompts and sessions",
        "loads a project's hooks only in a trusted folder",
    ),
)

_CURSOR = HostRow(
    name="cursor",
    title="Cursor",
    form=Form.CURSOR,
    events={
        "beforeShellExecution": E_.PRE_TOOL_USE,
        "beforeMCPExecution": E_.PRE_TOOL_USE,
        "beforeReadFile": E_.PRE_TOOL_USE,
        "afterFileEdit": E_.POST_TOOL_USE,
        "beforeSubmitPrompt": E_.USER_PROMPT_SUBMIT,
        "stop": E_.STOP,
    },
    installed=(
        "beforeShellExecution", "beforeMCPExecution", "beforeReadFile", "afterFileEdit", "beforeSubmitPrompt", "stop",
    ),
    enforces={
        E_.PRE_TOOL_USE: frozenset({Verb.DENY, Verb.ASK, Verb.ALLOW}),
        E_.USER_PROMPT_SUBMIT: frozenset({Verb.DENY}),
    },
    event_tools={"beforeShellExecution": "shell", "beforeReadFile": "read_file", "afterFileEdit": "edit_file"},
    tools={
        "shell": BASH,
        "read_file": READ,
        "edit_file": ToolRow(name="Edit", edits="edits"),
    },
    keys={"session_id": ("conversation_id",), "tool_use_id": ("generation_id",), "cwd": ("cwd", "workspace_roots")},
    experimental=True,
    limits=(
        "shows edits only after they are made: rules about writing do not stop Cursor's own edits",
        "cannot rewrite: the call is denied with the rewritten form as advice",
    ),
)  # fmt: skip

_COPILOT = HostRow(
    name="copilot",
    title="Copilot CLI",
    form=Form.COPILOT,
    events={
        "preToolUse": E_.PRE_TOOL_USE,
        "postToolUse": E_.POST_TOOL_USE,
        "userPromptSubmitted": E_.USER_PROMPT_SUBMIT,
        "sessionStart": E_.SESSION_START,
        "sessionEnd": E_.SESSION_END,
    },
    installed=("preToolUse", "postToolUse", "userPromptSubmitted", "sessionStart", "sessionEnd"),
    enforces={
        E_.PRE_TOOL_USE: frozenset({Verb.DENY, Verb.ASK, Verb.REWRITE, Verb.ALLOW}),
        E_.SESSION_START: frozenset({Verb.CONTEXT}),
    },
    tools={
        "bash": BASH,
        "view": ToolRow(name="Read", fields={"path": "file_path"}),
        "create": ToolRow(name="Write", fields={"path": "file_path", "file_text": "content"}),
        "edit": ToolRow(name="Edit", fields={"path": "file_path", "old_str": "old_string", "new_str": "new_string"}),
    },
    keys={
        "session_id": ("sessionId", "session_id"),
        "tool_name": ("toolName",),
        "tool_input": ("toolArgs",),
        "tool_response": ("toolResult",),
    },
    experimental=True,
    limits=(
        "a question is a deny in runs that are not interactive",
        "no feedback after a tool or at the end of a turn",
    ),
)

_OPENCODE = HostRow(
    name="opencode",
    title="OpenCode",
    form=Form.PLUGIN,
    events={"tool.execute.before": E_.PRE_TOOL_USE, "tool.execute.after": E_.POST_TOOL_USE},
    installed=("tool.execute.before", "tool.execute.after"),
    enforces={
        E_.PRE_TOOL_USE: frozenset({Verb.DENY, Verb.REWRITE}),
        E_.POST_TOOL_USE: frozenset({Verb.REPLACE}),
    },
    tools={
        "bash": ToolRow(name="Bash", directory="workdir"),
        "read": ToolRow(name="Read", fields={"filePath": "file_path"}),
        "write": ToolRow(name="Write", fields={"filePath": "file_path"}),
        "edit": ToolRow(
            name="Edit",
            fields={
                "filePath": "file_path",
                "oldString": "old_string",
                "newString": "new_string",
                "replaceAll": "replace_all",
            },
        ),
        "patch": ToolRow(name="Edit", is_patch=True),
        "apply_patch": ToolRow(name="Edit", is_patch=True),
        "glob": ToolRow(name="Glob"),
        "grep": ToolRow(name="Grep"),
        "webfetch": ToolRow(name="WebFetch"),
    },
    experimental=True,
    limits=("cannot ask: a question is a deny with instructions", "only sees tools, not prompts"),
)

HOSTS: Mapping[str, HostRow] = MappingProxyType({
    row.name: row for row in (_CLAUDE, _CODEX, _GEMINI, _QWEN, _KIMI, _VIBE, _CURSOR, _COPILOT, _OPENCODE)
})  # fmt: skip
"""The hosts, by the name used on the command line."""
