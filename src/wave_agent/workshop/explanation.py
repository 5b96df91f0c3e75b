"""An event's outcome in plain words: what happens, what the model would see, what the user would see.

`consequences` decides what an outcome means for the conversation; this module only describes it.
"""

from collections.abc import Mapping

from msgspec import Struct

from wave_agent.agent.consequences import GiveResult, Operation, TellError, TellModel, TellNotice, consequences
from wave_agent.hooks.events import EVENTS, ContextPlace, Decision, Flow
from wave_agent.hooks.verdicts import Outcome
from wave_agent.permissions.decision import Permission, Ruling

FLOW_WORDS: Mapping[Flow, str] = {
    Flow.PROCEED: "The agent continues.",
    Flow.JUDGE: "The permission rules decide about the call.",
    Flow.CONFIRM: "The user is asked before the tool runs.",
    Flow.ERASE_PROMPT: "The prompt is erased, and the model is not called.",
    Flow.REFUSE_CALL: "The call is denied without asking; the model continues.",
    Flow.SKIP_TOOL: "The tool does not run; the model continues.",
    Flow.FEEDBACK: "The tool has run; the model gets the reason and continues.",
    Flow.KEEP_WORKING: "The turn does not end: the model continues.",
    Flow.SKIP_COMPACTION: "Nothing is summarised.",
    Flow.DEFER_CALL: "The decision comes later: an unattended run ends and can be resumed; else the user is asked.",
    Flow.REFUSE_TASK: "The todo list stays as it is for this item; the model gets the reason.",
    Flow.DECLINE: "The MCP server's question is declined.",
    Flow.END_TURN: "The turn ends.",
}
_PERMISSION_WORDS: Mapping[Ruling, str] = {
    Ruling.ALLOW: "The tool runs",
    Ruling.ASK: "The user is asked before the tool runs",
    Ruling.DENY: "The tool does not run",
}
_LATER = (ContextPlace.SUMMARY, ContextPlace.NOWHERE)
"""Context that `consequences` does not handle."""


class Account(Struct, frozen=True, kw_only=True):
    word: str
    """`block`, `allow`, `ask`, `stop`, `failure`, `context` or `none`."""
    happens: tuple[str, ...]
    model: tuple[str, ...]
    user: tuple[str, ...]


def word_of(outcome: Outcome) -> str:
    """One word for the combined outcome. A guard that only failed has no opinion, even if its failure blocks."""
    blocking = {said.hook for said in outcome.reasons.get(outcome.decision, ())}
    only_failed = outcome.decision is Decision.BLOCK and blocking <= set(outcome.unmet)
    if only_failed or (outcome.failed_open and outcome.decision is Decision.NONE):
        return "failure"
    if outcome.decision is not Decision.NONE:
        return outcome.decision.name.lower()
    return "context" if outcome.contexts else "none"


def account_of(outcome: Outcome, permission: Permission | None = None) -> Account:
    """`permission` is the decision about the call, if there is one. Pure."""
    operations = consequences(outcome)
    asked = permission is not None and permission.answer is not Ruling.ALLOW
    judged = (permission,) if permission is not None and outcome.flow in (Flow.JUDGE, Flow.CONFIRM) else ()
    return Account(
        word=word_of(outcome),
        happens=(*_happens(outcome, permission), *_changes(outcome)),
        model=(
            *(text for operation in operations for text in _to_model(operation)),
            *(one.for_model for one in judged if one.for_model),
            *_replaced(outcome),
        ),
        user=(
            *(text for operation in operations for text in _to_user(operation)),
            *(one.for_user for one in judged if asked and one.for_user),
        ),
    )


def _happens(outcome: Outcome, permission: Permission | None) -> tuple[str, ...]:
    if permission is not None and outcome.flow in (Flow.JUDGE, Flow.CONFIRM):
        return (f"{_PERMISSION_WORDS[permission.answer]} ({permission.by}).",)
    ends = outcome.flow is Flow.PROCEED and EVENTS[outcome.event].flow[Decision.BLOCK] is Flow.KEEP_WORKING
    return ("Nothing keeps the agent from stopping.",) if ends else (FLOW_WORDS[outcome.flow],)


def _changes(outcome: Outcome) -> tuple[str, ...]:
    rewritten = tuple(f"Hook {hook} sets {field}." for field, hook in outcome.rewritten_by.items())
    replaced = (f"The result is replaced by {outcome.replaced_by}.",) if outcome.replacement is not None else ()
    later = (f"Context goes: {outcome.row.context}.",) if outcome.contexts and outcome.row.context in _LATER else ()
    failed = (f"Failures that were let through: {outcome.failed_open}.",) if outcome.failed_open else ()
    return (*rewritten, *replaced, *later, *failed)


def _replaced(outcome: Outcome) -> tuple[str, ...]:
    return () if outcome.replacement is None else (outcome.replacement,)


def _to_model(operation: Operation) -> tuple[str, ...]:
    if isinstance(operation, GiveResult):
        return (operation.result,)
    return tuple(block.content for block in operation.texts) if isinstance(operation, TellModel) else ()


def _to_user(operation: Operation) -> tuple[str, ...]:
    return (operation.content,) if isinstance(operation, TellError | TellNotice) else ()
