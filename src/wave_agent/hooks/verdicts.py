"""The values `semantics` works with: the verdict of one run, and the outcome of all runs of an event."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.hooks.events import EVENTS, FAILURE_WORD, Audience, Decision, EventRow, Flow, HookEvent


class FailureKind(StrEnum):
    TIMEOUT = "timeout"
    SIGNAL = "signal"
    SPAWN = "spawn"
    EXIT = "exit"
    JSON = "json"
    MCP = "mcp"
    ANSWER = "answer"
    HTTP = "http"


# `gc=False`: no cycle leads through these, so the garbage collector need not look at them.


class Block(Struct, frozen=True, gc=False):
    reason: str


class Ask(Struct, frozen=True, gc=False):
    reason: str


class Defer(Struct, frozen=True, gc=False):
    """The decision about this call comes later."""

    reason: str


class Approve(Struct, frozen=True, gc=False):
    reason: str = ""


class EndTurn(Struct, frozen=True, gc=False):
    reason: str


class Rewrite(Struct, frozen=True, gc=False):
    """Top-level fields to set in the tool's input; None removes one."""

    fields: Mapping[str, Any]


class ReplaceOutput(Struct, frozen=True, gc=False):
    text: str


class Withhold(Struct, frozen=True, gc=False):
    """The tool's result must not be used, because its replacement cannot be read."""

    why: str


class AnswerServer(Struct, frozen=True, gc=False):
    """The answer to what an MCP server asks the user: an action, and with an accept the values of the form."""

    action: str
    content: Mapping[str, Any] = {}


class AddContext(Struct, frozen=True, gc=False):
    text: str


class InitialPrompt(Struct, frozen=True, gc=False):
    """A prompt to begin the session with."""

    text: str


class TellRefused(Struct, frozen=True, gc=False):
    """The message for the model about a refused call, on events where the block's reason is for the user only."""

    text: str


class TellUser(Struct, frozen=True, gc=False):
    """For the user only: a hook's message, or a problem with its output."""

    text: str


class Failure(Struct, frozen=True, gc=False):
    """The hook failed. `blocks` is the hook's policy; the event decides whether a failure can block at all."""

    kind: FailureKind
    message: str
    blocks: bool
    code: int | None = None
    """The exit code, if that is the failure."""

    @property
    def is_broken(self) -> bool:
        """The hook itself is broken, rather than having found a problem."""
        return self.kind is not FailureKind.EXIT or self.code in _SHELL_COULD_NOT

    @property
    def how(self) -> str:
        """How it failed, in our words only: nothing the hook printed is quoted."""
        return f"with exit code {self.code}" if self.code is not None else _HOW[self.kind]


_SHELL_COULD_NOT = (126, 127)
"""Exit codes of the shell: the command is not executable, or not found."""
_HOW: Mapping[FailureKind, str] = {
    FailureKind.TIMEOUT: "(it timed out)",
    FailureKind.SIGNAL: "(ended by a signal)",
    FailureKind.SPAWN: "(it could not be started)",
    FailureKind.EXIT: "(by its exit code)",
    FailureKind.JSON: "(its output cannot be read)",
    FailureKind.MCP: "(its MCP server gave no answer)",
    FailureKind.ANSWER: "(its model gave no answer)",
    FailureKind.HTTP: "(its service gave no answer)",
}

Effect = (
    Block | Ask | Defer | Approve | EndTurn | Rewrite | ReplaceOutput | Withhold | AnswerServer | AddContext
    | InitialPrompt | TellRefused | TellUser | Failure
)  # fmt: skip

DECISION_OF: Mapping[type, Decision] = {
    EndTurn: Decision.STOP, Block: Decision.BLOCK, Defer: Decision.DEFER, Ask: Decision.ASK,
    Approve: Decision.ALLOW,
}  # fmt: skip
MAKE: Mapping[Decision, Callable[[str], Effect]] = {made: kind for kind, made in DECISION_OF.items()}


class Verdict(Struct, frozen=True, gc=False):
    """What one hook run means."""

    effects: tuple[Effect, ...] = ()
    malformed: bool = False
    """stdout looked like JSON but was not, so the exit code decided."""

    @property
    def decision(self) -> Decision:
        """The strictest decision the run stated. A failure is not a decision."""
        return max((DECISION_OF.get(type(effect), Decision.NONE) for effect in self.effects), default=Decision.NONE)

    @property
    def failure(self) -> Failure | None:
        return next((effect for effect in self.effects if isinstance(effect, Failure)), None)

    @property
    def failure_kind(self) -> FailureKind | None:
        """For the journal. Includes malformed JSON that was only reported."""
        if self.failure:
            return self.failure.kind
        return FailureKind.JSON if self.malformed and self.decision is Decision.NONE else None

    @property
    def rewrite(self) -> Mapping[str, Any] | None:
        return next((effect.fields for effect in self.effects if isinstance(effect, Rewrite)), None)

    @property
    def replacement(self) -> str | None:
        return next((effect.text for effect in self.effects if isinstance(effect, ReplaceOutput)), None)

    @property
    def answer(self) -> AnswerServer | None:
        return next((effect for effect in self.effects if isinstance(effect, AnswerServer)), None)

    def word(self, row: EventRow) -> str:
        """The word for this run in the journal."""
        if self.failure:
            return FAILURE_WORD
        if self.decision is Decision.NONE:
            return "context" if any(isinstance(effect, AddContext) for effect in self.effects) else "none"
        return row.block_word if self.decision is Decision.BLOCK else self.decision.name.lower()


class Role(StrEnum):
    """How much of a hook's verdict applies."""

    ENFORCE = "enforce"
    SHADOW = "shadow"
    ASYNC = "async"
    REWAKE = "rewake"
    """Async, and its block is context for the model."""


class RankedVerdict(Struct, frozen=True, kw_only=True, gc=False):
    """A verdict and its place among the others."""

    position: int
    """Position in the configuration."""
    name: str
    verdict: Verdict
    look: int = 1
    role: Role = Role.ENFORCE
    strand: int | None = None
    """Shared by the hooks of one sequential group, where later hooks saw what earlier ones changed."""
    allow_counts: bool = True
    """False if its allow was for an input that is not the final one."""


class Blocks(Struct, frozen=True, kw_only=True):
    """How often hooks have blocked the same thing for one prompt."""

    total: int = 0
    in_a_row: int = 0
    """Without a tool call in between."""
    spent: frozenset[int] = frozenset()
    """Positions of broken hooks that have used up their one block."""


class Said(Struct, frozen=True, gc=False):
    hook: str
    text: str


class ToUser(Struct, frozen=True, gc=False):
    hook: str
    text: str
    level: str = "warning"
    """`info`, `warning` or `error`; an error means a hook failed."""


class Outcome(Struct, frozen=True, kw_only=True):
    """What all hooks of one event mean together."""

    event: HookEvent
    decision: Decision = Decision.NONE
    flow: Flow = Flow.PROCEED
    blocked: bool = False
    """Some hook blocked, even if a stop overrides it."""
    reasons: Mapping[Decision, tuple[Said, ...]] = {}
    contexts: tuple[Said, ...] = ()
    wakes: bool = False
    """Some of the context is worth a new turn, should the model be done."""
    initial_prompts: tuple[Said, ...] = ()
    refusals: tuple[Said, ...] = ()
    """Messages for the model if the call is refused."""
    to_user: tuple[ToUser, ...] = ()
    replacement: str | None = None
    """The text that replaces the tool's result."""
    replaced_by: str = ""
    """The hooks that replaced it."""
    withheld: bool = False
    """The replacement only says that the result is withheld: the text is ours, not a hook's."""
    answer: AnswerServer | None = None
    """What the hooks answer the MCP server that asks, if anything."""
    failed_open: int = 0
    broken: frozenset[int] = frozenset()
    """Positions of broken hooks whose failure blocks."""
    only_broken_block: bool = False
    """Only broken hooks block. Their blocks are already limited, so this one is not counted."""
    unmet: tuple[str, ...] = ()
    """Hooks with `onFailure: block` that failed."""
    limit_reached: bool = False
    """The hooks reached the limit of blocks: the turn ends although they blocked."""
    error: str = ""
    """Why a turn that ends with this outcome is an error."""
    tool_input: Mapping[str, Any] | None = None
    """The input after all rewrites, on events that allow them."""
    rewritten_by: Mapping[str, str] = {}
    """Which hook set each changed field last."""

    @property
    def row(self) -> EventRow:
        return EVENTS[self.event]

    @property
    def prompt_erased(self) -> bool:
        erases = self.row.flow[Decision.BLOCK] is Flow.ERASE_PROMPT
        return erases and (self.blocked or self.flow is Flow.ERASE_PROMPT)

    @property
    def reason(self) -> str:
        """The reasons for the decision, in configuration order."""
        return "\n".join(said.text for said in self.reasons.get(self.decision, ()))

    @property
    def model_contexts(self) -> tuple[Said, ...]:
        """The context for the model; none if the prompt is erased."""
        return () if self.prompt_erased else self.contexts

    def for_model(self) -> tuple[str, ...]:
        """Every text from this event that reaches the model, verbatim."""
        is_read = self.decision is Decision.BLOCK and self.row.reason_reader is Audience.MODEL
        reasons = (self.reason,) if is_read else (self.refusal,) if self.refusal else ()
        return (*reasons, *(said.text for said in self.model_contexts))

    def as_ask(self) -> "Outcome":
        """The same outcome, with an ask in place of a deferral: the decision is made now."""
        if self.decision is not Decision.DEFER:
            return self
        asked = (*self.reasons[Decision.DEFER], *self.reasons.get(Decision.ASK, ()))
        reasons = {stated: said for stated, said in self.reasons.items() if stated is not Decision.DEFER}
        flow = self.row.flow[Decision.ASK]
        return replace(self, decision=Decision.ASK, flow=flow, reasons={**reasons, Decision.ASK: asked})

    @property
    def refusal(self) -> str:
        return "\n".join(said.text for said in self.refusals)

    def for_user(self) -> tuple[ToUser, ...]:
        """Every text that is for the user only."""
        shown: list[Decision] = []
        if self.decision is not Decision.BLOCK or self.row.reason_reader is Audience.USER:
            shown.append(self.decision)
        if self.decision is Decision.STOP:
            shown.append(Decision.BLOCK)  # overridden by the stop, but still shown
        if self.row.reason_reader is Audience.NOBODY:
            shown.clear()
        known = {(note.hook, note.text) for note in self.to_user}
        reasons = [ToUser(said.hook, said.text) for decision in shown for said in self.reasons.get(decision, ())]
        return (*(note for note in reasons if note.text and (note.hook, note.text) not in known), *self.to_user)


def without_hooks(event: HookEvent, tool_input: Mapping[str, Any] | None) -> Outcome:
    """The outcome of an event that no hook runs on: `merge` of no verdicts, without loading `semantics`."""
    row = EVENTS[event]
    return Outcome(
        event=event, flow=row.flow[Decision.NONE], tool_input=(tool_input or {}) if row.has_rewrites else None
    )
