"""The events on which hooks run, with one row of facts per event.

Everything that differs between events is a column here. Instead of writing `if event == …`, add a column.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, cast

from msgspec import Struct

from wave_agent.errors import FAILURE_KINDS
from wave_agent.formats.readable import readable_text
from wave_agent.lazy_regex import lazy_regex
from wave_agent.text import NAME_LIMIT

HookEventName: TypeAlias = Literal[
    "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionStart", "PreCompact", "PostCompact",
    "PermissionRequest", "PostToolUseFailure", "Notification", "StopFailure", "ConfigChange", "SessionEnd",
    "Elicitation", "ElicitationResult", "SubagentStart", "SubagentStop", "UserPromptExpansion",
    "PermissionDenied", "PostToolBatch", "TaskCreated", "TaskCompleted", "InstructionsLoaded", "FileChanged",
    "CwdChanged",
]  # fmt: skip
"""The name of a `HookEvent`."""


class HookEvent(StrEnum):
    """When a hook runs."""

    USER_PROMPT_SUBMIT = "UserPromptSubmit"
    PRE_TOOL_USE = "PreToolUse"
    POST_TOOL_USE = "PostToolUse"
    STOP = "Stop"
    SESSION_START = "SessionStart"
    PRE_COMPACT = "PreCompact"
    POST_COMPACT = "PostCompact"
    PERMISSION_REQUEST = "PermissionRequest"
    POST_TOOL_USE_FAILURE = "PostToolUseFailure"
    NOTIFICATION = "Notification"
    STOP_FAILURE = "StopFailure"
    CONFIG_CHANGE = "ConfigChange"
    SESSION_END = "SessionEnd"
    ELICITATION = "Elicitation"
    ELICITATION_RESULT = "ElicitationResult"
    SUBAGENT_START = "SubagentStart"
    SUBAGENT_STOP = "SubagentStop"
    USER_PROMPT_EXPANSION = "UserPromptExpansion"
    PERMISSION_DENIED = "PermissionDenied"
    POST_TOOL_BATCH = "PostToolBatch"
    TASK_CREATED = "TaskCreated"
    TASK_COMPLETED = "TaskCompleted"
    INSTRUCTIONS_LOADED = "InstructionsLoaded"
    FILE_CHANGED = "FileChanged"
    CWD_CHANGED = "CwdChanged"


NEVER_HERE: Mapping[str, str] = MappingProxyType({
    "WorktreeCreate": "this agent makes no worktrees",
    "WorktreeRemove": "this agent makes no worktrees",
    **dict.fromkeys(("DirectoryAdded", "MessageDisplay", "Setup", "TeammateIdle"), "this agent has no such event"),
})  # fmt: skip
"""Events of other agents that never occur in this one. Settings may name them, but their hooks never run."""


_ODD = lazy_regex(r"[^A-Za-z0-9_-]")
"""Characters that names of tools do not have."""


class Decision(IntEnum):
    """What hooks can decide. A higher value overrides a lower one."""

    NONE = 0
    ALLOW = 1
    ASK = 2
    DEFER = 3
    """The decision about the call comes later. Where that is not possible, an ask."""
    BLOCK = 4
    STOP = 5


class Flow(StrEnum):
    """What the agent does next."""

    PROCEED = "proceed"
    JUDGE = "judge"
    CONFIRM = "confirm"
    DEFER_CALL = "defer_call"
    ERASE_PROMPT = "erase_prompt"
    SKIP_TOOL = "skip_tool"
    REFUSE_CALL = "refuse_call"
    FEEDBACK = "feedback"
    KEEP_WORKING = "keep_working"
    SKIP_COMPACTION = "skip_compaction"
    DECLINE = "decline"
    REFUSE_TASK = "refuse_task"
    END_TURN = "end_turn"


class Audience(StrEnum):
    MODEL = "model"
    USER = "user"
    NOBODY = "nobody"


class ContextPlace(StrEnum):
    """Where a hook's context enters the conversation."""

    AFTER_PROMPT = "in one user message after the prompt"
    AFTER_RESULTS = "in a user message after the tool results"
    KEEP_WORKING = "to the model, which keeps working"
    BEFORE_PROMPT = "before the first prompt"
    BEFORE_TASK = "before the task of the subagent"
    SUMMARY = "into the instructions for the summary"
    NOWHERE = "nowhere"


class FailureBlock(StrEnum):
    """How often a failure of a hook with `onFailure: block` blocks."""

    ALWAYS = "always"
    BROKEN_ONCE = "always; a broken hook once per prompt"
    """The model may fix what a hook checks, but hardly the hook itself."""
    NEVER = "never"


class OnFailure(StrEnum):
    CONTINUE = "continue"
    BLOCK = "block"


class StdinField(Struct, frozen=True):
    name: str
    type: str
    """A JSON Schema type."""
    meaning: str
    optional: bool = False
    """Not always present."""
    computed: bool = False
    """Filled in for each hook, from the input that it sees. Who fires the event does not give it."""


EFFECTS = StdinField(
    "effects",
    "object",
    "what the call would do: `reads`, `writes`, `deletes`, `runs`, `hosts`, and whether that is all (`complete`)",
    computed=True,
)


CHANGED_FILES = 1_000
"""Maximum number of paths in `changed_files`."""


DENIED_BY = ("rule", "mode", "protected_path", "path", "sandbox", "user", "nobody_to_ask")
"""What can deny a call, apart from hooks."""


def _changed_files(what: str) -> tuple[StdinField, StdinField]:
    return (
        StdinField(
            "changed_files",
            "array",
            f"absolute paths of the files that {what} created, changed or deleted; not in other agents (`host`)",
            optional=True,
        ),
        StdinField(
            "changed_files_left_out",
            "integer",
            f"only if there are more than {CHANGED_FILES:,}: how many more",
            optional=True,
        ),
    )


def changed_files(paths: Sequence[str]) -> dict[str, Any]:
    """The stdin fields for files that were changed, on events that have them."""
    left_out = len(paths) - CHANGED_FILES
    more = {"changed_files_left_out": left_out} if left_out > 0 else {}
    return {"changed_files": [readable_text(path) for path in paths[:CHANGED_FILES]], **more}


_NAME = frozenset({"hookEventName"})
_BLOCK_WORDS: Mapping[str, Decision] = MappingProxyType({
    "block": Decision.BLOCK, "deny": Decision.BLOCK, "approve": Decision.NONE, "allow": Decision.NONE,
})  # fmt: skip
_MISPLACED_PERMISSION: Mapping[str, Decision] = MappingProxyType({"deny": Decision.BLOCK, "allow": Decision.NONE})


class EventRow(Struct, frozen=True, kw_only=True):
    """Everything specific to one event."""

    event: HookEvent
    when: str
    target: str | None
    """The stdin field that matchers are compared with."""
    target_is_file: bool = False
    """The target is a path. Matchers hold file names and are compared with its last part."""
    timeout: float = 60
    """Default timeout of a hook, in seconds."""
    stdin: tuple[StdinField, ...]
    aliases: Mapping[str, str] = {}
    """Stdin fields that repeat another field under a name that existing hooks expect."""
    arguments: tuple[tuple[str, ...], ...] = ()
    """Paths into stdin: the values passed as arguments to a command that is one bare path."""
    text_is_context: bool = False
    """Plain stdout of a successful run is context for the model."""
    context: ContextPlace = ContextPlace.NOWHERE
    specific: frozenset[str] = _NAME
    """Fields of `hookSpecificOutput` that this event accepts."""
    decision_words: Mapping[str, Decision] = _BLOCK_WORDS
    permission_words: Mapping[str, Decision] = _MISPLACED_PERMISSION
    behavior_words: Mapping[str, Decision] = {}
    """Values of `behavior` in a `decision` that is an object."""
    action_words: Mapping[str, Decision] = {}
    """Values of `action`, on events where hooks answer an MCP server for the user."""
    weak_words: Mapping[str, str] = {}
    """Decision words that look like an opinion but are not one, each with a hint for the hook's author."""
    decides_with: str = 'a top-level "decision": did you mean {"decision": "block"}?'
    """The form of a decision on this event, for hooks that use another event's form."""
    unreadable: Decision | None = None
    """The decision that an unreadable one is treated as. None: a failure."""
    block_word: str = "block"
    """The journal's word for a block."""
    block_needs_reason: bool = False
    """A block by JSON without a reason is reported."""
    block_counter: str | None = None
    """The stdin field with the number of blocks so far, if that number is limited."""
    reason_reader: Audience
    """Who gets the reason of a block."""
    flow: Mapping[Decision, Flow]
    failure_block: FailureBlock = FailureBlock.NEVER
    withholds: str = ""
    """First sentence of the text that replaces a withheld result. Empty if the event has no result."""
    function_on_failure: OnFailure = OnFailure.CONTINUE
    """Default for Python functions passed in code."""
    has_variables: bool = False
    """Hooks can set variables for the commands of the session."""
    has_rewrites: bool = False
    """Hooks can rewrite the input: rewrite phase, composition, second look."""
    after_tool: bool = False
    """The event fires after a tool call."""
    asks_models: bool = False
    """Hooks of type `prompt` and `agent` can run."""
    objection_may_end_turn: bool = False
    """A model's objection also ends the turn, for a hook with `continueOnBlock: false`."""
    waited: bool = True
    """False if nothing depends on the hooks: they are started but not awaited."""
    ends_session: bool = False
    """Nothing is added to the session afterwards, unless it is resumed."""
    deadline: float | None = None
    """Seconds for all hooks together, whatever their timeouts."""
    in_subagent: Literal["same", "never", "SubagentStop"] = "same"
    """What happens in a subagent instead: the same event, none, or another one."""

    @property
    def has_tool(self) -> bool:
        return self.target == "tool_name"

    def target_in(self, payload: Mapping[str, Any]) -> str:
        """What matchers are compared with."""
        found = str(payload.get(self.target or "", ""))
        return found.rpartition("/")[2] if self.target_is_file else found

    def targets_in(self, payload: Mapping[str, Any]) -> tuple[str, ...]:
        """The same with the other names that a matcher may use: the name of a server's tool is shortened for models if
        it is too long, and written with other characters if it has odd ones."""
        found, about = self.target_in(payload), payload.get("mcp") if self.has_tool else None
        if not isinstance(about, Mapping):
            return (found,)
        server, tool = (str(cast(Mapping[str, Any], about).get(key, "")) for key in ("server", "tool"))
        whole = f"mcp__{server}__{tool}"
        if len(whole) > NAME_LIMIT:  # every matcher would match it, also that of a hook which allows something else
            return (found,)
        return tuple(dict.fromkeys((found, whole, _ODD.sub("_", whole))))

    @property
    def shows_effects(self) -> bool:
        """Hooks get the effects of the call."""
        return EFFECTS in self.stdin


COMMON_STDIN = (
    StdinField("session_id", "string", "the session"),
    StdinField("transcript_path", "string", "absolute path of the transcript, which is complete up to this event"),
    StdinField("cwd", "string", "the directory the agent was started in"),
    StdinField("hook_event_name", "string", "the event"),
    StdinField("permission_mode", "string", "the current permission mode"),
    StdinField(
        "host", "string", "the agent that makes the call, if `wave guard` judges for another one", optional=True
    ),
    StdinField("agent_id", "string", "only in a subagent: which one", optional=True),
    StdinField("agent_type", "string", "only in a subagent: its type, such as `explore`", optional=True),
)
OF_SUBAGENTS = ("agent_id", "agent_type")
"""Fields that say in which subagent an event happens."""
_TOOL_STDIN = (
    StdinField("tool_name", "string", "the tool"),
    StdinField("tool_input", "object", "its input; file paths are absolute"),
    StdinField("tool_use_id", "string", "the call's id"),
    StdinField(
        "mcp",
        "object",
        "only for a tool of an MCP server: `server`, `tool` and `annotations` as the server states them; after the "
        "call also `structuredContent` and `isError`",
        optional=True,
    ),
)
OF_THE_RESULT: Mapping[str, str] = MappingProxyType({"mcp": "structuredContent"})
"""Stdin field → the key in it that repeats the tool's result. It disappears when a hook replaces the result."""
_QUESTION_STDIN = (
    StdinField("mcp_server_name", "string", "the MCP server that asks, as it is configured"),
    StdinField("message", "string", "what it asks the user"),
    StdinField("mode", "string", "`form`, or `url` if it wants a page to be opened"),
    StdinField("url", "string", "only with `url`: the page", optional=True),
    StdinField("requested_schema", "object", "only with `form`: a JSON Schema of the fields", optional=True),
)
ACCEPT, DECLINE, CANCEL = "accept", "decline", "cancel"
_ACTIONS: Mapping[str, Decision] = MappingProxyType({
    ACCEPT: Decision.ALLOW, DECLINE: Decision.BLOCK, CANCEL: Decision.BLOCK,
})  # fmt: skip
_ANSWER = _NAME | {"action", "content"}
_ANSWERS_WITH = 'hookSpecificOutput.action, such as {"action": "decline"}'
_STOP_STDIN = (
    StdinField("stop_hook_active", "boolean", "true if a hook on this event has already kept the agent working"),
    StdinField("stop_block_count", "integer", "how many times, for this prompt"),
    StdinField("last_assistant_message", "string", "the model's last text"),
    *_changed_files("this turn"),
)
_TASK_STDIN = (
    StdinField("task_id", "string", "the item; the same for items of the same text"),
    StdinField("task_subject", "string", "its text"),
    StdinField("task_description", "string", "how it is shown while it is in progress", optional=True),
)
_SUBAGENT_STDIN = (
    StdinField("agent_id", "string", "the subagent"),
    StdinField("agent_type", "string", "its type, such as `explore`"),
    StdinField("subagent_type", "string", "the same"),
)
_SUBAGENT_ALIASES = {"subagent_type": "agent_type"}
_COMPACT_STDIN = StdinField("trigger", "string", "`auto` when the window is nearly full, `manual` when the user asked")
_CONTEXT = _NAME | {"additionalContext"}


def _flow(
    block: Flow, proceed: Flow = Flow.PROCEED, ask: Flow | None = None, defer: Flow | None = None
) -> Mapping[Decision, Flow]:
    """The flow for every decision. Without an `ask` flow, an ask is a block: tightening is always safe."""
    return MappingProxyType({
        Decision.NONE: proceed,
        Decision.ALLOW: proceed,
        Decision.ASK: ask or block,
        Decision.DEFER: defer or ask or block,
        Decision.BLOCK: block,
        Decision.STOP: Flow.END_TURN,
    })  # fmt: skip


_IGNORED: Mapping[Decision, Flow] = MappingProxyType(dict.fromkeys(Decision, Flow.PROCEED))
"""For events where hooks cannot decide anything, not even to end the turn."""
_ANSWER_FLOW: Mapping[Decision, Flow] = MappingProxyType({**_flow(Flow.DECLINE), Decision.STOP: Flow.DECLINE})
"""In the middle of a call, a stop can only decline."""


_ROWS = (
    EventRow(
        event=HookEvent.USER_PROMPT_SUBMIT,
        when="the user has submitted a prompt, before the model sees it",
        target=None,
        timeout=30,
        asks_models=True,
        stdin=(
            StdinField("prompt", "string", "what the user wrote"),
            StdinField("user_prompt", "string", "the same"),
        ),
        aliases={"user_prompt": "prompt"},
        arguments=(("prompt",),),
        text_is_context=True,
        context=ContextPlace.AFTER_PROMPT,
        specific=_CONTEXT,
        reason_reader=Audience.USER,
        flow=_flow(Flow.ERASE_PROMPT),
        failure_block=FailureBlock.ALWAYS,
        function_on_failure=OnFailure.BLOCK,
        in_subagent="never",
    ),
    EventRow(
        event=HookEvent.PRE_TOOL_USE,
        when="the model has called a tool, before it runs",
        target="tool_name",
        asks_models=True,
        objection_may_end_turn=True,
        stdin=(
            *_TOOL_STDIN,
            StdinField(
                "original_tool_input",
                "object",
                "only on a second look: the input before hooks rewrote it",
                optional=True,
            ),
            EFFECTS,
        ),
        arguments=(("tool_name",), ("tool_input",)),
        context=ContextPlace.AFTER_RESULTS,
        specific=_CONTEXT | {"permissionDecision", "permissionDecisionReason", "updatedInput"},
        decision_words={**_BLOCK_WORDS, "approve": Decision.ALLOW, "ask": Decision.ASK},
        # Public hooks print it to mean "no objection", so it must not skip the permission question.
        weak_words={"allow": 'to skip the question, print hookSpecificOutput.permissionDecision "allow"'},
        permission_words={
            "allow": Decision.ALLOW,
            "deny": Decision.BLOCK,
            "ask": Decision.ASK,
            "defer": Decision.DEFER,
        },
        unreadable=Decision.ASK,
        block_word="deny",
        reason_reader=Audience.MODEL,
        flow=_flow(Flow.SKIP_TOOL, proceed=Flow.JUDGE, ask=Flow.CONFIRM, defer=Flow.DEFER_CALL),
        failure_block=FailureBlock.ALWAYS,
        function_on_failure=OnFailure.BLOCK,
        has_rewrites=True,
    ),
    EventRow(
        event=HookEvent.POST_TOOL_USE,
        when="a tool has run, before the model sees its result",
        target="tool_name",
        after_tool=True,
        timeout=600,
        asks_models=True,
        objection_may_end_turn=True,
        stdin=(
            *_TOOL_STDIN,
            StdinField(
                "tool_response",
                "object",
                "the result: at least `success` and `content`, and the tool's own fields; of a tool of an MCP server "
                "the content array, with the length and digest of binary data",
            ),
            StdinField("tool_result", "object", "the same"),
            StdinField("tool_output", "object", "the same"),
            *_changed_files("this call"),
        ),
        aliases={"tool_result": "tool_response", "tool_output": "tool_response"},
        arguments=(("tool_name",), ("tool_response", "content")),
        context=ContextPlace.AFTER_RESULTS,
        specific=_CONTEXT | {"updatedToolOutput"},
        reason_reader=Audience.MODEL,
        flow=_flow(Flow.FEEDBACK),
        failure_block=FailureBlock.ALWAYS,
        withholds="The tool has run.",
    ),
    EventRow(
        event=HookEvent.STOP,
        when="the model has finished its answer and the turn is about to end",
        target=None,
        timeout=600,
        asks_models=True,
        stdin=_STOP_STDIN,
        context=ContextPlace.KEEP_WORKING,
        specific=_CONTEXT,
        block_needs_reason=True,
        block_counter="stop_block_count",
        reason_reader=Audience.MODEL,
        flow=_flow(Flow.KEEP_WORKING),
        failure_block=FailureBlock.BROKEN_ONCE,
        in_subagent="SubagentStop",
    ),
    EventRow(
        event=HookEvent.SESSION_START,
        when="a session starts or is resumed, before its first prompt",
        target="source",
        stdin=(
            StdinField("source", "string", "`startup`, `resume`, `clear` or `compact`"),
            StdinField("model", "string", "the model's name"),
        ),
        has_variables=True,
        text_is_context=True,
        context=ContextPlace.BEFORE_PROMPT,
        specific=_CONTEXT | {"initialUserMessage"},
        reason_reader=Audience.USER,
        flow=_flow(Flow.PROCEED),
        in_subagent="never",
    ),
    EventRow(
        event=HookEvent.PRE_COMPACT,
        when="older turns are about to be summarised",
        target="trigger",
        stdin=(
            _COMPACT_STDIN,
            StdinField("custom_instructions", "string", "what the user wants the summary to keep"),
            StdinField("compact_instructions", "string", "the same"),
        ),
        aliases={"compact_instructions": "custom_instructions"},
        text_is_context=True,
        context=ContextPlace.SUMMARY,
        specific=_CONTEXT,
        reason_reader=Audience.USER,
        flow=_flow(Flow.SKIP_COMPACTION),
        failure_block=FailureBlock.ALWAYS,
    ),
    EventRow(
        event=HookEvent.POST_COMPACT,
        when="older turns have been summarised",
        target="trigger",
        stdin=(_COMPACT_STDIN, StdinField("compact_summary", "string", "the summary")),
        reason_reader=Audience.USER,
        flow=_flow(Flow.PROCEED),
    ),
    EventRow(
        event=HookEvent.PERMISSION_REQUEST,
        when="a tool call needs permission, before the user is asked",
        target="tool_name",
        asks_models=True,
        stdin=(
            *_TOOL_STDIN,
            StdinField("permission_suggestions", "array", "rules that would answer the question permanently"),
            StdinField(
                "original_tool_input",
                "object",
                "only on a second look: the input before hooks rewrote it",
                optional=True,
            ),
            EFFECTS,
        ),
        specific=_NAME | {"decision"},
        behavior_words={"allow": Decision.ALLOW, "deny": Decision.BLOCK},
        decides_with='an object hookSpecificOutput.decision, such as {"behavior": "deny"}',
        unreadable=Decision.ASK,
        block_word="deny",
        reason_reader=Audience.USER,
        flow={
            **_flow(Flow.REFUSE_CALL, proceed=Flow.JUDGE, ask=Flow.CONFIRM),
            Decision.NONE: Flow.CONFIRM,  # without an opinion, the question is asked
        },
        failure_block=FailureBlock.ALWAYS,
        has_rewrites=True,
    ),
    EventRow(
        event=HookEvent.POST_TOOL_USE_FAILURE,
        when="a tool could not do its work, before the model sees why",
        target="tool_name",
        after_tool=True,
        timeout=600,
        asks_models=True,
        stdin=(
            *_TOOL_STDIN,
            StdinField("error", "string", "the reason, as the model reads it"),
            StdinField("is_interrupt", "boolean", "the turn was interrupted while the tool ran"),
        ),
        context=ContextPlace.AFTER_RESULTS,
        specific=_CONTEXT | {"updatedToolOutput"},
        reason_reader=Audience.MODEL,
        flow=_flow(Flow.FEEDBACK),
        failure_block=FailureBlock.ALWAYS,
        withholds="The tool could not do its work.",
    ),
    EventRow(
        event=HookEvent.NOTIFICATION,
        when="the agent needs the user's attention",
        target="notification_type",
        stdin=(
            StdinField("message", "string", "the text shown to the user"),
            StdinField("title", "string", "a heading for it"),
            StdinField("notification_type", "string", "`permission_prompt`, `idle_prompt`, or a front end's own type"),
        ),
        reason_reader=Audience.NOBODY,
        flow=_IGNORED,
        waited=False,
    ),
    EventRow(
        event=HookEvent.STOP_FAILURE,
        when="the turn ends because the model did not answer",
        target="error",
        stdin=(
            StdinField("error", "string", "the kind: " + ", ".join(f"`{kind}`" for kind in FAILURE_KINDS)),
            StdinField("error_details", "string", "the text shown to the user"),
        ),
        reason_reader=Audience.NOBODY,
        flow=_IGNORED,
    ),
    EventRow(
        event=HookEvent.CONFIG_CHANGE,
        when="a settings file has changed on disk; this session does not reload it",
        target="source",
        stdin=(
            StdinField(
                "source",
                "string",
                "`policy_settings`, `user_settings`, `project_settings`, `local_settings` or `other_settings`",
            ),
            StdinField("file_path", "string", "the file"),
        ),
        reason_reader=Audience.NOBODY,
        flow=_IGNORED,
        waited=False,
        in_subagent="never",
    ),
    EventRow(
        event=HookEvent.SESSION_END,
        when="the session ends",
        target="reason",
        timeout=1.5,
        stdin=(
            StdinField("reason", "string", "`clear`, `resume`, `logout`, `prompt_input_exit` or `other`"),
            StdinField("end_source", "string", "the same"),
            *_changed_files("this session"),
        ),
        aliases={"end_source": "reason"},
        reason_reader=Audience.USER,
        flow=_IGNORED,
        deadline=1.5,
        ends_session=True,
        in_subagent="never",
    ),
    EventRow(
        event=HookEvent.ELICITATION,
        when="an MCP server asks the user for something during a call, before the user is asked",
        target="mcp_server_name",
        stdin=_QUESTION_STDIN,
        specific=_ANSWER,
        action_words=_ACTIONS,
        decides_with=_ANSWERS_WITH,
        reason_reader=Audience.USER,
        flow=_ANSWER_FLOW,
        failure_block=FailureBlock.ALWAYS,
    ),
    EventRow(
        event=HookEvent.ELICITATION_RESULT,
        when="an MCP server's question has an answer, before the server gets it",
        target="mcp_server_name",
        stdin=(
            *_QUESTION_STDIN,
            StdinField("action", "string", "the answer: `accept`, `decline` or `cancel`"),
            StdinField("content", "object", "the values of the form; empty unless the answer is `accept`"),
        ),
        specific=_ANSWER,
        action_words=_ACTIONS,
        decides_with=_ANSWERS_WITH,
        reason_reader=Audience.USER,
        flow=_ANSWER_FLOW,
        failure_block=FailureBlock.ALWAYS,
    ),
    EventRow(
        event=HookEvent.SUBAGENT_START,
        when="a subagent starts, before its model gets the task",
        target="agent_type",
        stdin=_SUBAGENT_STDIN,
        aliases=_SUBAGENT_ALIASES,
        context=ContextPlace.BEFORE_TASK,
        specific=_CONTEXT,
        reason_reader=Audience.USER,
        flow=_flow(Flow.PROCEED),
    ),
    EventRow(
        event=HookEvent.SUBAGENT_STOP,
        when="a subagent is about to end, or has ended for another reason",
        target="agent_type",
        timeout=600,
        asks_models=True,
        stdin=(
            *_SUBAGENT_STDIN,
            *_STOP_STDIN,
            StdinField("agent_transcript_path", "string", "absolute path of the subagent's own transcript"),
        ),
        aliases=_SUBAGENT_ALIASES,
        context=ContextPlace.KEEP_WORKING,
        specific=_CONTEXT,
        block_needs_reason=True,
        block_counter="stop_block_count",
        reason_reader=Audience.MODEL,
        flow={**_flow(Flow.KEEP_WORKING), Decision.STOP: Flow.PROCEED},  # which ends the subagent, not the turn
        failure_block=FailureBlock.BROKEN_ONCE,
    ),
    EventRow(
        event=HookEvent.USER_PROMPT_EXPANSION,
        in_subagent="never",
        when="the user has typed a command (`/name`), before it becomes a longer prompt",
        target="command_name",
        timeout=30,
        asks_models=True,
        stdin=(
            StdinField(
                "expansion_type", "string", "`slash_command`, `skill`, or `mcp_prompt` for a prompt of an MCP server"
            ),
            StdinField("command_name", "string", "the name, without the slash"),
            StdinField("command_args", "string", "what follows it"),
            StdinField(
                "command_source", "string", "`user` or `project`, where the file is; `built-in`, or `mcp` for a server"
            ),
            StdinField("prompt", "string", "what the user typed"),
        ),
        text_is_context=True,
        context=ContextPlace.AFTER_PROMPT,
        specific=_CONTEXT,
        reason_reader=Audience.USER,
        flow=_flow(Flow.ERASE_PROMPT),
        failure_block=FailureBlock.ALWAYS,
        function_on_failure=OnFailure.BLOCK,
    ),
    EventRow(
        event=HookEvent.PERMISSION_DENIED,
        when="a call was denied by a rule, the mode, a protected path, the user, or because the run is not interactive",
        target="tool_name",
        asks_models=True,
        stdin=(
            *_TOOL_STDIN,
            StdinField("reason", "string", "why, as the model reads it"),
            StdinField("denied_by", "string", ", ".join(f"`{word}`" for word in DENIED_BY)),
        ),
        context=ContextPlace.AFTER_RESULTS,
        specific=_CONTEXT | {"retry"},
        reason_reader=Audience.USER,
        flow=_flow(Flow.PROCEED),
    ),
    EventRow(
        event=HookEvent.POST_TOOL_BATCH,
        when="all calls of one answer have their results, before the next request",
        target=None,
        timeout=600,
        asks_models=True,
        stdin=(
            StdinField(
                "tool_calls",
                "array",
                "the calls in order: `tool_name`, `tool_use_id`, `tool_input`, `success`, and `tool_response`, the "
                "result as the model gets it; if the call failed, `error` repeats it",
            ),
        ),
        context=ContextPlace.AFTER_RESULTS,
        specific=_CONTEXT,
        reason_reader=Audience.USER,
        flow=_flow(Flow.END_TURN),
        failure_block=FailureBlock.ALWAYS,
    ),
    EventRow(
        event=HookEvent.TASK_CREATED,
        when="the model adds an item to its todo list",
        target=None,
        asks_models=True,
        stdin=_TASK_STDIN,
        reason_reader=Audience.MODEL,
        flow=_flow(Flow.REFUSE_TASK),
        failure_block=FailureBlock.ALWAYS,
    ),
    EventRow(
        event=HookEvent.TASK_COMPLETED,
        when="the model marks an item of its todo list as completed",
        target=None,
        timeout=600,
        asks_models=True,
        stdin=_TASK_STDIN,
        reason_reader=Audience.MODEL,
        flow=_flow(Flow.REFUSE_TASK),
        failure_block=FailureBlock.ALWAYS,
    ),
    EventRow(
        event=HookEvent.INSTRUCTIONS_LOADED,
        in_subagent="never",
        when="a session starts, for each AGENTS.md or CLAUDE.md that is passed to the model",
        target="load_reason",
        stdin=(
            StdinField("file_path", "string", "the file"),
            StdinField("memory_type", "string", "`User` or `Project`"),
            StdinField("load_reason", "string", "always `session_start`"),
        ),
        reason_reader=Audience.NOBODY,
        flow=_IGNORED,
        waited=False,
    ),
    EventRow(
        event=HookEvent.FILE_CHANGED,
        when="a call, or a command it left running, has changed a file",
        target="file_path",
        target_is_file=True,
        stdin=(
            StdinField("file_path", "string", "the file"),
            StdinField("event", "string", "`add`, `change` or `unlink`"),
        ),
        has_variables=True,
        reason_reader=Audience.NOBODY,
        flow=_IGNORED,
        waited=False,
    ),
    EventRow(
        event=HookEvent.CWD_CHANGED,
        when="a command has changed the directory in which later commands start",
        target=None,
        stdin=(
            StdinField("old_cwd", "string", "the directory before"),
            StdinField("new_cwd", "string", "the directory now"),
        ),
        has_variables=True,
        reason_reader=Audience.NOBODY,
        flow=_IGNORED,
    ),
)

EVENTS: Mapping[HookEvent, EventRow] = MappingProxyType({row.event: row for row in _ROWS})

BLOCK_WORDS = frozenset(row.block_word for row in _ROWS)
"""The journal's words for a block."""
BLOCKING_WORDS = BLOCK_WORDS | {Decision.STOP.name.lower()}
"""Those of every run that kept something from going on: `continue: false` beats every other decision."""
FAILURE_WORD = "failure"
