"""The values that semantics works with: what one run means, and what all runs of an event mean together."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from wave_agent.hooks.events import EVENTS, Audience, Decision, EventRow, Flow, HookEvent


class FailureKind(StrEnum):
    TIMEOUT = "timeout"
    SIGNAL = "signal"
    SPAWN = "spawn"
    EXIT = "exit"
    JSON = "json"


class Block(Struct, frozen=True):
    reason: str


class Ask(Struct, frozen=True):
    reason: str


class Approve(Struct, frozen=True):
    reason: str = ""


class EndTurn(Struct, frozen=True):
    reason: str


class Rewrite(Struct, frozen=True):
    """Top-level fields to set in the tool's input; None removes one."""

    fields: Mapping[str, Any]


class ReplaceOutput(Struct, frozen=True):
    text: str


class Withhold(Struct, frozen=True):
    """The tool's result must not be used: what should replace it cannot be read."""

    why: str


class AddContext(Struct, frozen=True):
    text: str


class TellRefused(Struct, frozen=True):
    """What the model is told of a call that is refused, where the reason of a block is not for it."""

    text: str


class TellUser(Struct, frozen=True):
    """For the user alone: what a hook wants to say, or what is wrong with what it said."""

    text: str


class Failure(Struct, frozen=True):
    """The hook did not do its work. `blocks` is its policy; whether it can block here is the event's."""

    kind: FailureKind
    message: str
    blocks: bool
    code: int | None = None
    """The exit code, where that is what failed."""

    @property
    def is_broken(self) -> bool:
        """The hook itself is out of order: it did not find that something else is."""
        return self.kind is not FailureKind.EXIT or self.code in _SHELL_COULD_NOT

    @property
    def how(self) -> str:
        """In a few words of ours; none of them the hook's."""
        return f"with exit code {self.code}" if self.code is not None else _HOW[self.kind]


_SHELL_COULD_NOT = (126, 127)
"""By these the shell says that the command cannot be run, or is not there."""
_HOW: Mapping[FailureKind, str] = {
    FailureKind.TIMEOUT: "(it timed out)",
    FailureKind.SIGNAL: "(a signal ended it)",
    FailureKind.SPAWN: "(it could not be started)",
    FailureKind.EXIT: "(by its exit code)",
    FailureKind.JSON: "(its output cannot be read)",
}

Effect = (
    Block | Ask | Approve | EndTurn | Rewrite | ReplaceOutput | Withhold | AddContext | TellRefused | TellUser | Failure
)

DECISION_OF: Mapping[type, Decision] = {
    EndTurn: Decision.STOP, Block: Decision.BLOCK, Ask: Decision.ASK, Approve: Decision.ALLOW,
}  # fmt: skip
MAKE: Mapping[Decision, Callable[[str], Effect]] = {made: kind for kind, made in DECISION_OF.items()}


class Verdict(Struct, frozen=True):
    """What one run means."""

    effects: tuple[Effect, ...] = ()
    malformed: bool = False
    """stdout looked like JSON and was not, and the exit code ruled."""
    hide_stdout: bool = False

    @property
    def decision(self) -> Decision:
        """The strictest thing the run itself said. A failure is not a decision."""
        return max((DECISION_OF.get(type(effect), Decision.NONE) for effect in self.effects), default=Decision.NONE)

    @property
    def failure(self) -> Failure | None:
        return next((effect for effect in self.effects if isinstance(effect, Failure)), None)

    @property
    def failure_kind(self) -> FailureKind | None:
        """For the journal: also JSON that was told as malformed although the run had no other fault."""
        if self.failure:
            return self.failure.kind
        return FailureKind.JSON if self.malformed and self.decision is Decision.NONE else None

    @property
    def rewrite(self) -> Mapping[str, Any] | None:
        return next((effect.fields for effect in self.effects if isinstance(effect, Rewrite)), None)

    @property
    def replacement(self) -> str | None:
        return next((effect.text for effect in self.effects if isinstance(effect, ReplaceOutput)), None)

    def word(self, row: EventRow) -> str:
        """The journal's word for this run."""
        if self.failure:
            return "failure"
        if self.decision is Decision.NONE:
            return "context" if any(isinstance(effect, AddContext) for effect in self.effects) else "none"
        return row.block_word if self.decision is Decision.BLOCK else self.decision.name.lower()


class Role(StrEnum):
    """How much of a hook's verdict counts."""

    ENFORCE = "enforce"
    SHADOW = "shadow"
    ASYNC = "async"


class RankedVerdict(Struct, frozen=True, kw_only=True):
    """A verdict and where it stands among the others."""

    position: int
    """Place in the configuration."""
    name: str
    verdict: Verdict
    look: int = 1
    role: Role = Role.ENFORCE
    strand: int | None = None
    """Hooks of one sequential group share one: there the later ones saw what the earlier ones changed."""
    allow_counts: bool = True
    """False: its allow was for an input that will not be used."""


class Blocks(Struct, frozen=True, kw_only=True):
    """How often hooks have blocked the same thing for one prompt."""

    total: int = 0
    in_a_row: int = 0
    """Without a tool call between."""
    spent: frozenset[int] = frozenset()
    """Positions of broken hooks that have had their one block."""


class Said(Struct, frozen=True):
    hook: str
    text: str


class ToUser(Struct, frozen=True):
    hook: str
    text: str
    level: str = "warning"
    """`info`, `warning` or `error`; an error is a hook that failed."""


class Outcome(Struct, frozen=True, kw_only=True):
    """What all hooks of one event mean together."""

    event: HookEvent
    decision: Decision = Decision.NONE
    flow: Flow = Flow.PROCEED
    blocked: bool = False
    """Some hook blocked, also where a stop beats it."""
    reasons: Mapping[Decision, tuple[Said, ...]] = {}
    contexts: tuple[Said, ...] = ()
    refusals: tuple[Said, ...] = ()
    """What the model is told of a call that is refused."""
    to_user: tuple[ToUser, ...] = ()
    replacement: str | None = None
    """What takes the place of the tool's result."""
    replaced_by: str = ""
    """The hooks that say so."""
    withheld: bool = False
    """The replacement only says that there is none: its text is ours, not a hook's."""
    failed_open: int = 0
    broken: frozenset[int] = frozenset()
    """Positions of broken hooks that block by their failure."""
    only_broken_block: bool = False
    """The block comes from broken hooks alone. It is bounded by itself, so it is not counted."""
    unmet: tuple[str, ...] = ()
    """Hooks that failed and whose failure blocks, as long as it can."""
    limit_reached: bool = False
    """The hooks have blocked as often as they may: the turn ends although they blocked."""
    error: str = ""
    """What is wrong with a turn that ends like this."""
    tool_input: Mapping[str, Any] | None = None
    """The input as hooks left it, where they can change it."""
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
        """A prompt that is erased takes all context with it."""
        return () if self.prompt_erased else self.contexts

    def for_model(self) -> tuple[str, ...]:
        """Every text that reaches the model because of this event, verbatim."""
        told = self.decision is Decision.BLOCK and self.row.reason_reader is Audience.MODEL
        reasons = (self.reason,) if told else (self.refusal,) if self.refusal else ()
        return (*reasons, *(said.text for said in self.model_contexts))

    @property
    def refusal(self) -> str:
        return "\n".join(said.text for said in self.refusals)

    def for_user(self) -> tuple[ToUser, ...]:
        """Every text for the user alone."""
        shown: list[Decision] = []
        if self.decision is not Decision.BLOCK or self.row.reason_reader is Audience.USER:
            shown.append(self.decision)
        if self.decision is Decision.STOP:
            shown.append(Decision.BLOCK)  # what a stop has beaten is not lost
        if self.row.reason_reader is Audience.NOBODY:
            shown.clear()
        told = {(note.hook, note.text) for note in self.to_user}
        reasons = [ToUser(said.hook, said.text) for decision in shown for said in self.reasons.get(decision, ())]
        return (*(note for note in reasons if note.text and (note.hook, note.text) not in told), *self.to_user)
