"""What a front end sees while the agent works. Plain frozen values; a front end may store them."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

StatusName: TypeAlias = Literal[
    "completed", "blocked", "stopped", "stop_limit", "max_turns", "max_cost", "error", "interrupted"
]
"""How a turn ended."""


class InnerCall(Struct, frozen=True):
    """A call that the model of an `agent` hook made."""

    tool: str
    input: str
    """As JSON, on one line; a long one is cut."""
    decision: str
    """`ran`, `denied`, `failed` or `unfinished`."""


class HookRun(Struct, frozen=True, kw_only=True):
    """The journal entry of one hook run."""

    event: str
    name: str
    command: str
    layer: str
    tool_use_id: str | None
    exit_code: int | None
    outcome: str
    """`none`, `context`, `allow`, `ask`, `defer`, `deny`, `block`, `stop` or `failure`."""
    failure: str | None
    """`timeout`, `signal`, `spawn`, `exit`, `json`, `http`, `mcp` or `answer`."""
    mode: str
    look: int
    rewrote: bool
    let_through: bool
    agent_id: str | None = None
    """The subagent in which it ran."""
    agent_type: str | None = None
    duration_ms: float
    reason: str = ""
    """The reason the hook returned, or why it failed."""
    is_async: bool = False
    is_late: bool = False
    """Whatever it decided, what the event is about was over."""
    before: Mapping[str, Any] | None = None
    """The tool's input before this hook rewrote it."""
    after: Mapping[str, Any] | None = None
    original_sha256: str | None = None
    """Hash of the tool result that this hook replaced: proof of what it was, without storing it."""
    deferred: tuple[str, ...] = ()
    """Context from this run that waits for the next prompt."""
    occasion: int = 0
    """Shared by all runs for the same occurrence of an event."""
    position: int = 0
    """The hook's position in the configuration."""
    started: str = ""
    """Start time, formatted as in records. Empty in journals of older versions."""
    model: str = ""
    """The model that the hook asked."""
    tokens: int = 0
    """The tokens of its requests to that model."""
    answer: Mapping[str, Any] | None = None
    """What that model answered: `ok`, `reason` and `impossible`."""
    calls: tuple[InnerCall, ...] = ()
    """What that model read before it answered."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON shape of the command line's `hooks`."""
        return {name: getattr(self, name) for name in _PUBLIC}


_PUBLIC = HookRun.__struct_fields__[: HookRun.__struct_fields__.index("duration_ms") + 1]


class SessionStarted(Struct, frozen=True, kw_only=True, tag="session_started"):
    session_id: str
    transcript_path: str
    resumed: bool = False


class TurnStarted(Struct, frozen=True, kw_only=True, tag="turn_started"):
    prompt: str


class TextDelta(Struct, frozen=True, kw_only=True, tag="text_delta"):
    text: str
    agent_id: str | None = None
    """The subagent it comes from; None: the agent itself. The same in other events."""


class ReasoningDelta(Struct, frozen=True, kw_only=True, tag="reasoning_delta"):
    text: str
    agent_id: str | None = None


class ToolStarted(Struct, frozen=True, kw_only=True, tag="tool_started"):
    id: str
    name: str
    parameters: Mapping[str, Any]
    agent_id: str | None = None


class ToolOutput(Struct, frozen=True, kw_only=True, tag="tool_output"):
    """A piece of a running tool's output, unprocessed: progress bars include their `\\r`, and colours are kept."""

    id: str
    text: str
    agent_id: str | None = None


class ToolFinished(Struct, frozen=True, kw_only=True, tag="tool_finished"):
    """A call has its result, as the model will see it: after every hook has run."""

    id: str
    success: bool
    result: str
    agent_id: str | None = None


class HookStarted(Struct, frozen=True, kw_only=True, tag="hook_started"):
    event: str
    name: str
    tool_use_id: str | None
    status_message: str = ""
    agent_id: str | None = None


class HookFinished(Struct, frozen=True, kw_only=True, tag="hook_finished"):
    run: HookRun


class ModelWoken(Struct, frozen=True, kw_only=True, tag="model_woken"):
    """A background hook has something for the model. A running turn sends it with its next request; otherwise a front
    end can start one: `Agent.continue_turn`."""

    event: str
    hook: str


class PermissionRequested(Struct, frozen=True, kw_only=True, tag="permission_requested"):
    id: str
    tool_name: str
    tool_input: Mapping[str, Any]
    reason: str
    does: str = ""
    """What the call would do, on one line: `reads .env, writes 2 files, reaches api.example.com`."""
    effects: Mapping[str, Any] | None = None
    """The same as hooks get it."""
    agent_id: str | None = None


class Notice(Struct, frozen=True, kw_only=True, tag="notice"):
    """Shown to the user only."""

    content: str
    level: str = "warning"
    agent_id: str | None = None


class Error(Struct, frozen=True, kw_only=True, tag="error"):
    """Something went wrong. Shown to the user only."""

    content: str
    agent_id: str | None = None


class SubagentStarted(Struct, frozen=True, kw_only=True, tag="subagent_started"):
    """A Task call has started its subagent. Later events of the subagent have its id; the call's result ends it."""

    agent_id: str
    agent_type: str
    description: str
    tool_use_id: str


class SubagentFinished(Struct, frozen=True, kw_only=True, tag="subagent_finished"):
    """A subagent has ended. The call that started it gets its result, once hooks have seen it."""

    agent_id: str
    agent_type: str
    tool_use_id: str
    status: StatusName


class TurnEnded(Struct, frozen=True, kw_only=True, tag="turn_ended"):
    status: StatusName


Event = (
    SessionStarted
    | TurnStarted
    | TextDelta
    | ReasoningDelta
    | ToolStarted
    | ToolOutput
    | ToolFinished
    | HookStarted
    | HookFinished
    | ModelWoken
    | PermissionRequested
    | Notice
    | Error
    | SubagentStarted
    | SubagentFinished
    | TurnEnded
)


def event_to_dict(event: Event) -> dict[str, Any]:
    """One line of `stream-json`."""
    if isinstance(event, HookFinished):
        return {"type": "hook_finished", **event.run.to_dict()}
    fields: dict[str, Any] = msgspec.to_builtins(event)
    return fields if fields.get("agent_id") else {key: value for key, value in fields.items() if key != "agent_id"}


def of_subagent(event: Event, agent_id: str) -> Event:
    """An event as those see it who follow the agent above."""
    if isinstance(event, HookFinished | SessionStarted | TurnStarted | TurnEnded):
        return event
    return msgspec.structs.replace(event, agent_id=agent_id)
