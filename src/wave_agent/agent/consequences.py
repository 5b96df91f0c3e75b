"""Turns the outcome of hooks into changes of the conversation. The only bridge between the two."""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import assert_never

from msgspec import Struct

from wave_agent.hooks.events import ContextPlace, Decision, Flow
from wave_agent.hooks.verdicts import Outcome, Said
from wave_agent.messages import BLOCKED, DENIED, NOT_RUN, STOPPED, MessageManager, Origin, TextBlock


class When(Enum):
    """A user-role message must not come between a call and its result."""

    NOW = "now"
    AFTER_RESULTS = "after the results of the batch"


class ErasePrompt(Struct, frozen=True):
    reason: str
    when: When = When.NOW


class TellError(Struct, frozen=True):
    content: str
    when: When = When.NOW


class TellNotice(Struct, frozen=True):
    content: str
    level: str
    when: When = When.NOW


class GiveResult(Struct, frozen=True):
    """The result of a call that does not run."""

    tool_id: str
    result: str
    error: str
    origin: Origin | None
    when: When = When.NOW


class TellModel(Struct, frozen=True):
    """A message in the user's role."""

    texts: tuple[TextBlock, ...]
    when: When = When.NOW


Operation = ErasePrompt | TellError | TellNotice | GiveResult | TellModel


def consequences(outcome: Outcome, *, tool_id: str = "", waiting: tuple[TextBlock, ...] = ()) -> tuple[Operation, ...]:
    """The changes to the conversation that this outcome requires, in order. Pure.

    `waiting` is earlier context, which goes into the same message as the outcome's own.
    """
    return (*_FLOW[outcome.flow](outcome, tool_id), *_context(outcome, waiting), *_for_user(outcome))


def _nothing(_outcome: Outcome, _tool_id: str) -> tuple[Operation, ...]:
    return ()


def _erase(outcome: Outcome, _tool_id: str) -> tuple[Operation, ...]:
    """One error block with all reasons: anyone counting blocks sees one refusal."""
    reason = "\n".join(said.text for said in _refusals(outcome))
    return (ErasePrompt(reason), TellError(reason))


def _refusals(outcome: Outcome) -> tuple[Said, ...]:
    return outcome.reasons.get(Decision.BLOCK) or outcome.reasons.get(outcome.decision, ())


def _end(outcome: Outcome, tool_id: str) -> tuple[Operation, ...]:
    if outcome.prompt_erased:
        return _erase(outcome, tool_id)
    if outcome.row.flow[Decision.BLOCK] in _GIVES_RESULT:
        return (GiveResult(tool_id, outcome.refusal or STOPPED, STOPPED, _refusers(outcome)),)
    return ()


def _skip(outcome: Outcome, tool_id: str) -> tuple[Operation, ...]:
    return (GiveResult(tool_id, outcome.reason, BLOCKED, _origin(outcome)),)


def _refuse(outcome: Outcome, tool_id: str) -> tuple[Operation, ...]:
    """The model reads what the hooks want it to know; their reasons are for the user."""
    names = _named(outcome, _refusals(outcome)).hook
    silent = f"{NOT_RUN}denied by hook {names}. Do without it, or tell the user."
    return (GiveResult(tool_id, outcome.refusal or silent, DENIED, _refusers(outcome)),)


_GIVES_RESULT = frozenset({Flow.SKIP_TOOL, Flow.REFUSE_CALL})
"""What a block means on events before a tool runs: the call gets its result."""


def _feedback(when: When) -> Callable[[Outcome, str], tuple[Operation, ...]]:
    def tell(outcome: Outcome, _tool_id: str) -> tuple[Operation, ...]:
        if outcome.decision < Decision.ASK:  # the model continues with context alone
            return ()
        return (TellModel((TextBlock(outcome.reason, "hook", _origin(outcome)),), when),)

    return tell


_FLOW: Mapping[Flow, Callable[[Outcome, str], tuple[Operation, ...]]] = {
    Flow.PROCEED: _nothing,
    Flow.JUDGE: _nothing,
    Flow.CONFIRM: _nothing,
    Flow.ERASE_PROMPT: _erase,
    Flow.SKIP_TOOL: _skip,
    Flow.REFUSE_CALL: _refuse,
    Flow.FEEDBACK: _feedback(When.AFTER_RESULTS),
    Flow.KEEP_WORKING: _feedback(When.NOW),
    Flow.SKIP_COMPACTION: _nothing,
    Flow.DECLINE: _nothing,
    Flow.DEFER_CALL: _nothing,
    Flow.REFUSE_TASK: _feedback(When.AFTER_RESULTS),
    Flow.END_TURN: _end,
}

_CONTEXT: Mapping[ContextPlace, When | None] = {
    ContextPlace.AFTER_PROMPT: When.NOW,
    ContextPlace.BEFORE_PROMPT: When.NOW,
    ContextPlace.BEFORE_TASK: When.NOW,
    ContextPlace.AFTER_RESULTS: When.AFTER_RESULTS,
    ContextPlace.KEEP_WORKING: When.NOW,
    ContextPlace.SUMMARY: None,
    ContextPlace.NOWHERE: None,
}
"""None: handled elsewhere, or not at all."""


def _context(outcome: Outcome, waiting: tuple[TextBlock, ...]) -> tuple[Operation, ...]:
    when = _CONTEXT[outcome.row.context]
    texts = (*waiting, *context_blocks(outcome.event, outcome.model_contexts))
    return (TellModel(texts, when),) if when is not None and texts else ()


def context_blocks(event: str, contexts: Iterable[Said]) -> tuple[TextBlock, ...]:
    return tuple(TextBlock(said.text, "hook", Origin(event, said.hook)) for said in contexts)


def _for_user(outcome: Outcome) -> tuple[Operation, ...]:
    """Notes that the block itself does not say and the question does not show.

    A refused prompt is one error; failures of other hooks are notices.
    """
    erased = outcome.prompt_erased
    said = {one.text for one in (_refusals(outcome) if erased else outcome.reasons.get(Decision.ASK, ()))}
    notes = [note for note in outcome.for_user() if note.text not in said]
    return tuple(
        TellError(note.text) if note.level == "error" and not erased else TellNotice(note.text, note.level)
        for note in notes
    )


def _origin(outcome: Outcome) -> Origin:
    return _named(outcome, outcome.reasons.get(outcome.decision, ()))


def _refusers(outcome: Outcome) -> Origin | None:
    return _named(outcome, outcome.refusals) if outcome.refusals else None


def _named(outcome: Outcome, said: Iterable[Said]) -> Origin:
    return Origin(outcome.event, ", ".join(dict.fromkeys(one.hook for one in said)))


def perform(operations: Iterable[Operation], messages: MessageManager) -> None:
    """Applies the operations."""
    for operation in operations:
        match operation:
            case ErasePrompt(reason=reason):
                messages.remove_last_user_message(reason)
            case TellError(content=content):
                messages.add_error_block(content)
            case TellNotice(content=content, level=level):
                messages.add_notice_block(content, "info" if level == "info" else "warning")
            case GiveResult(tool_id=tool_id, result=result, error=error, origin=origin):
                messages.update_tool_block(tool_id, result=result, success=False, error=error, origin=origin)
            case TellModel(texts=texts):
                messages.add_user_message(*texts)
            case _:
                assert_never(operation)
