"""What a front end sees while the agent works. Plain frozen values; a front end may store them."""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

StatusName: TypeAlias = Literal[
    "completed", "blocked", "stopped", "stop_limit", "max_turns", "max_cost", "error", "interrupted"
]
"""How a turn ended."""
LevelName: TypeAlias = Literal["info", "warning"]


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
    """`timeout`, `signal`, `spawn`, `exit` or `json`."""
    mode: str
    look: int
    rewrote: bool
    let_through: bool
    duration_ms: float
    reason: str = ""
    """The reason the hook returned, or why it failed."""
    is_async: bool = False
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


class ReasoningDelta(Struct, frozen=True, kw_only=True, tag="reasoning_delta"):
    text: str


class ToolStarted(Struct, frozen=True, kw_only=True, tag="tool_started"):
    id: str
    name: str
    parameters: Mapping[str, Any]


class ToolOutput(Struct, frozen=True, kw_only=True, tag="tool_output"):
    """A piece of a running tool's output, unprocessed: progress bars include their `\\r`, and colours are kept."""

    id: str
    text: str


class ToolFinished(Struct, frozen=True, kw_only=True, tag="tool_finished"):
    """A call has its result, as the model will see it: after every hook has run."""

    id: str
    success: bool
    result: str


class HookStarted(Struct, frozen=True, kw_only=True, tag="hook_started"):
    event: str
    name: str
    tool_use_id: str | None
    status_message: str = ""


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


class Notice(Struct, frozen=True, kw_only=True, tag="notice"):
    """Shown to the user only."""

    content: str
    level: str = "warning"


class Error(Struct, frozen=True, kw_only=True, tag="error"):
    """Something went wrong. Shown to the user only."""

    content: str


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
    | TurnEnded
)


def event_to_dict(event: Event) -> dict[str, Any]:
    """One line of `stream-json`."""
    if isinstance(event, HookFinished):
        return {"type": "hook_finished", **event.run.to_dict()}
    return msgspec.to_builtins(event)
