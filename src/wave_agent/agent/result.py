"""What a program receives from the agent: callbacks during the work, and the result at the end."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, to_builtins

from wave_agent.events import Event, HookRun, StatusName
from wave_agent.messages import Message
from wave_agent.models.base import Usage


class Callbacks(Struct, frozen=True, kw_only=True):
    """Callbacks into the embedding program. Called on the agent's event loop; must not block."""

    on_messages_change: Callable[[list[Message]], object] | None = None
    on_loading_change: Callable[[bool], object] | None = None
    on_event: Callable[[Event], object] | None = None


class Context(Struct, frozen=True, kw_only=True):
    """How much of the model's window is used, if known. In tokens."""

    used: int | None
    window: int | None


class Violation(Struct, frozen=True, kw_only=True):
    """A file that a call changed although a rule denies it, which could not be foreseen."""

    path: str
    tool_use_id: str
    restored: bool
    """It is as it was before."""
    kept_at: str | None
    """Where the changed version is now, if it was moved away."""


TOOL_DEFERRED = "tool_deferred"


class DeferredToolUse(Struct, frozen=True, kw_only=True):
    """A call that has neither run nor been denied. It is judged anew when the session is resumed."""

    id: str
    name: str
    input: Mapping[str, Any]


class Result(Struct, frozen=True, kw_only=True):
    """The result of one prompt."""

    status: StatusName
    text: str | None
    """The model's last text for this prompt."""
    error: str | None
    usage: Usage
    hooks: tuple[HookRun, ...]
    """Every hook run for this prompt."""
    turns: int
    """Model requests."""
    messages: tuple[Message, ...]
    session_id: str
    transcript_path: str
    duration_ms: int
    cost_usd: float | None = None
    """None if the prices of a model are unknown, or if its server did not say how many tokens it used."""
    violations: tuple[Violation, ...] = ()
    """Files that were changed for this prompt although a rule denies it."""
    deferred_tool_use: DeferredToolUse | None = None
    """The call that waits for a decision, because a hook deferred it."""

    @property
    def hooks_failed_open(self) -> int:
        """Hook failures that were let through."""
        return sum(run.let_through for run in self.hooks)

    def to_dict(self) -> dict[str, Any]:
        """The JSON shape of the command line's result."""
        return {
            "type": "result",
            "status": self.status,
            "session_id": self.session_id,
            "transcript_path": self.transcript_path,
            "result": self.text,
            "error": self.error,
            "turns": self.turns,
            "messages": [message.to_dict() for message in self.messages],
            "hooks": [run.to_dict() for run in self.hooks],
            "hooks_failed_open": self.hooks_failed_open,
            "usage": to_builtins(self.usage),
            "cost_usd": None if self.cost_usd is None else round(self.cost_usd, 6),
            "violations": [to_builtins(one) for one in self.violations],
            "duration_ms": self.duration_ms,
            **self._waits(),
        }

    def _waits(self) -> dict[str, Any]:
        """Only if a call waits for a decision."""
        call = self.deferred_tool_use
        return {} if call is None else {"stop_reason": TOOL_DEFERRED, "deferred_tool_use": to_builtins(call)}
