"""A call as the model made it, and how it gets its result."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.consequences import Operation, TellModel, When, consequences, perform
from wave_agent.hooks.events import HookEvent
from wave_agent.hooks.stage import EffectsOf, unknown_effects
from wave_agent.hooks.verdicts import Outcome
from wave_agent.messages import DENIED, NOT_RUN, Kept, MessageManager, Origin, Ran, TextBlock
from wave_agent.tools.base import ToolContext, ToolResult
from wave_agent.tools.output import fitted


class RequestedCall(Struct, frozen=True):
    """A call as the model made it."""

    id: str
    name: str
    parameters: Mapping[str, Any] | None
    """None: what the model wrote is not a JSON object."""
    problem: str = ""
    effects: EffectsOf = unknown_effects
    """What it would do with an input."""
    kept: Kept | None = None
    about: Mapping[str, Any] = {}
    """What else hooks get to know about its tool."""
    may_wait: bool = False
    """It can be left without a result until there is a decision: the only call of an answer, and not a subagent's."""
    question: str = ""
    """How to ask whether it may run, if the user wants it and not the model."""

    def facts(self, tool_input: Mapping[str, Any]) -> dict[str, Any]:
        """The stdin fields of events about this call."""
        return {"tool_name": self.name, "tool_input": tool_input, "tool_use_id": self.id, **self.about}


class CallChanges(Struct, frozen=True):
    """What a call really did to files."""

    paths: tuple[str, ...] = ()
    """Of those that it created, changed or deleted."""
    notes: tuple[TextBlock, ...] = ()
    """For the model."""


class CallEnd(Struct, frozen=True):
    """What a call leaves to do at the end of its batch."""

    later: tuple[Operation, ...] = ()
    ends_turn: bool = False
    tool_input: Mapping[str, Any] | None = None
    """The input that was judged last; None: it was not judged."""
    is_deferred: bool = False
    """It has no result yet: whether it runs is decided later."""


class CallResults:
    """Gives calls their results, and applies the outcomes of hooks to the conversation."""

    def __init__(self, messages: MessageManager, context: ToolContext) -> None:
        self._messages = messages
        self._context = context

    def apply(self, outcome: Outcome, call: RequestedCall) -> tuple[Operation, ...]:
        """Applies what can be applied now; returns what must wait for the end of the batch."""
        operations = consequences(outcome, tool_id=call.id)
        perform([operation for operation in operations if operation.when is When.NOW], self._messages)
        return tuple(operation for operation in operations if operation.when is When.AFTER_RESULTS)

    def refuse(self, call: RequestedCall, problem: str) -> CallEnd:
        self.finish(call, ToolResult(content=problem, success=False), error=problem)
        return CallEnd()

    def deny(self, call: RequestedCall, why: str, notes: Sequence[TextBlock]) -> CallEnd:
        content = why if why.startswith(NOT_RUN) else NOT_RUN + why
        return CallEnd(self.conclude(call, ToolResult(content=content, success=False), notes, error=DENIED))

    def finish(
        self,
        call: RequestedCall,
        result: ToolResult,
        *,
        error: str | None = None,
        origin: Origin | None = None,
        ran: Ran | None = None,
    ) -> None:
        self._messages.update_tool_block(
            call.id,
            result=fitted(result, self._context),
            success=result.success,
            error=error,
            origin=origin,
            ran=ran,
            images=result.images,
        )

    def conclude(
        self,
        call: RequestedCall,
        result: ToolResult,
        notes: Sequence[TextBlock],
        *,
        replaced: bool = False,
        error: str | None = None,
        origin: Origin | None = None,
        ran: Ran | None = None,
    ) -> tuple[Operation, ...]:
        """Finishes the call with a result that includes the notes for the model.

        A replaced result is left as it is: the notes then follow the results of the batch, and name the call.
        """
        if notes and not replaced:
            ran = None if ran is None else replace(ran, own_length=len(result.content))
            result = replace(result, content="\n\n".join([result.content, *(note.content for note in notes)]))
            notes = ()
        self.finish(call, result, error=error, origin=origin, ran=ran)
        apart = tuple(replace(note, content=f"{call.name} ({call.id}): {note.content}") for note in notes)
        return (TellModel(apart, When.AFTER_RESULTS),) if notes else ()


def hook_note(event: HookEvent, hook: str, text: str) -> TextBlock:
    """A note for the model about what a hook did to a call."""
    return TextBlock(text, "hook", Origin(event, hook))
