"""The calls of one answer after another: in which order they run, and what follows from all of them together."""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.consequences import Operation, consequences, perform
from wave_agent.agent.repeated_calls import GIVEN_UP, HINTED, NOT_RUN, Repeats, hint, refusal
from wave_agent.agent.tool_calls import CallRunner
from wave_agent.errors import ModelError
from wave_agent.hooks.events import Flow, HookEvent
from wave_agent.hooks.manager import HookManager
from wave_agent.messages import MessageManager
from wave_agent.models.conversion import result_for_model
from wave_agent.system.waiting import together_or_none

if TYPE_CHECKING:
    from wave_agent.agent.call_results import CallEnd, RequestedCall


class BatchEnd(Struct, frozen=True):
    """What the calls of one answer mean for the turn."""

    ends_turn: bool = False
    deferred: "RequestedCall | None" = None
    """The call that is left without a result, because a hook deferred it."""


class CallBatches:
    """Runs the calls of a turn."""

    def __init__(self, messages: MessageManager, hooks: HookManager, runner: CallRunner) -> None:
        self._messages = messages
        self._hooks = hooks
        self._runner = runner
        self._repeats = Repeats()
        self._not_run: set[str] = set()
        """Calls that were not run because they were repetitions."""

    async def run(self, calls: "Sequence[RequestedCall]") -> BatchEnd:
        """All calls of one answer: read-only ones in parallel, the others one by one."""
        ends: list[CallEnd] = []
        has_ended = False

        def acts(call: "RequestedCall") -> bool:
            return len(calls) > 1 and not self._runner.reads_only(call)

        for _, group in groupby(enumerate(calls), key=lambda pair: pair[0] if acts(pair[1]) else "reads"):
            together = [call for _, call in group]
            if has_ended:
                for call in together:
                    self._runner.skip(call)
                continue
            may_wait = len(calls) == 1 and self._hooks.agent is None
            new = await together_or_none([self._run(replace(call, may_wait=may_wait)) for call in together])
            ends += new
            has_ended = any(end.ends_turn for end in new)
        perform(self._later(calls, ends), self._messages)
        deferred = calls[0] if any(end.is_deferred for end in ends) else None
        if has_ended or await self._ends_after(calls, ends):
            return BatchEnd(ends_turn=True, deferred=deferred)
        self._note_repeats(calls)
        return BatchEnd(deferred=deferred)

    def _later(self, calls: "Sequence[RequestedCall]", ends: "Sequence[CallEnd]") -> list[Operation]:
        later: list[Operation] = [operation for end in ends for operation in end.later]
        if not later or len(calls) == 1:
            return later
        from wave_agent.agent.call_names import naming_calls  # lazy: few answers have several calls and such hooks

        return naming_calls(calls, ends, self._hooks.directory)

    async def _ends_after(self, calls: "Sequence[RequestedCall]", ends: "Sequence[CallEnd]") -> bool:
        """Whether hooks that see all calls of an answer end the turn."""
        if not self._hooks.hears(HookEvent.POST_TOOL_BATCH):
            return False
        described = [self._described(call, end) for call, end in zip(calls, ends, strict=True)]
        outcome = await self._hooks.run(
            HookEvent.POST_TOOL_BATCH, {"tool_calls": described}, permission_mode=self._runner.mode.value
        )
        perform(consequences(outcome), self._messages)
        return outcome.flow is Flow.END_TURN

    def _described(self, call: "RequestedCall", end: "CallEnd") -> dict[str, Any]:
        """A call and its result as the model gets it, for hooks."""
        block = self._messages.call(call.id)
        result = result_for_model(block)
        made = call.parameters or {}
        return {
            "tool_name": call.name,
            "tool_use_id": call.id,
            "tool_input": made if end.tool_input is None else end.tool_input,
            "success": bool(block.success),
            "tool_response": result,
            **({} if block.success else {"error": result}),
        }

    async def _run(self, call: "RequestedCall") -> "CallEnd":
        if call.parameters is None:
            return self._runner.refuse(call, call.problem)
        times = 0 if self._runner.polls(call) else self._repeats.before(call.name, call.parameters)
        if times < NOT_RUN - 1:
            return await self._runner.run(call)
        self._not_run.add(call.id)
        return self._runner.refuse(call, refusal(times))

    def _note_repeats(self, calls: "Sequence[RequestedCall]") -> None:
        """Warns the model when it goes round in circles. Raises `ModelError` when that does not help."""
        again = ""
        for call in calls:
            if call.parameters is None:  # each was invalid in its own way
                continue
            if call.id in self._not_run:
                self._repeats.note_refused(call.name, call.parameters)
            elif not self._runner.polls(call):
                reads, result = self._runner.reads_only(call), self._messages.result_of(call.id)
                if self._repeats.note(call.name, call.parameters, result, reads=reads):
                    again = call.name
        times = self._repeats.times()
        if times >= GIVEN_UP:
            raise ModelError(f"The model made the same call {times} times in a row, with the same result each time.")
        if HINTED <= times < NOT_RUN:
            self._messages.tell_model(hint(times, calls[-1].name))
        elif again and times < NOT_RUN:
            self._messages.tell_model(hint(HINTED, again))
