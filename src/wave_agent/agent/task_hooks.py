"""Hooks on the todo list: whether an item may be added, or marked as completed."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from wave_agent.agent.authority import Authority
from wave_agent.agent.call_judge import PermittedCall
from wave_agent.agent.call_results import CallEnd, CallResults, RequestedCall, hook_note
from wave_agent.agent.consequences import Operation
from wave_agent.hooks.events import Flow, HookEvent
from wave_agent.hooks.manager import HookManager
from wave_agent.hooks.verdicts import Outcome
from wave_agent.messages import STOPPED
from wave_agent.tools.base import TaskChange, TaskChangeKind, Tool, ToolResult

MOST = 50
"""Changes of one call that hooks are asked about. A call with more is refused: hooks may have had to see them all."""
_EVENTS: Mapping[TaskChangeKind, HookEvent] = {
    TaskChangeKind.CREATED: HookEvent.TASK_CREATED,
    TaskChangeKind.COMPLETED: HookEvent.TASK_COMPLETED,
}
_REFUSED: Mapping[TaskChangeKind, str] = {
    TaskChangeKind.CREATED: "Not added",
    TaskChangeKind.COMPLETED: "Not completed",
}
_TOO_MANY = "Not run: at most {most} items can be added or completed at once, as hooks check each of them. Write fewer."


class TaskHooks:
    """Asks hooks about each change, one after another: completing an item often runs a test suite."""

    def __init__(self, hooks: HookManager, authority: Authority, results: CallResults) -> None:
        self._hooks = hooks
        self._authority = authority
        self._results = results

    async def review(
        self, call: RequestedCall, tool: Tool, permitted: PermittedCall, changes: Sequence[TaskChange]
    ) -> tuple[PermittedCall | CallEnd, tuple[Operation, ...]]:
        """The call without the changes that hooks refuse, and the operations that wait for the end of the batch."""
        if len(changes) > MOST:
            return self._results.refuse(call, _TOO_MANY.format(most=MOST)), ()
        refused: dict[TaskChange, Outcome] = {}
        later: list[Operation] = []
        for change in changes:
            if any(one.id == change.id and one.kind is TaskChangeKind.CREATED for one in refused):
                continue  # an item that does not exist cannot be completed
            outcome = await self._ask(change)
            later += self._results.apply(outcome, call)
            if outcome.flow is Flow.END_TURN:
                self._results.finish(call, ToolResult(content=STOPPED, success=False), error=STOPPED)
                return CallEnd(tuple(later), ends_turn=True), ()
            if outcome.flow is Flow.REFUSE_TASK:
                refused[change] = outcome
        notes = tuple(
            hook_note(outcome.event, names, f"[{_REFUSED[change.kind]}, refused by hook {names}: {change.subject}]")
            for change, outcome in refused.items()
            for names in (_names(outcome),)
        )
        arguments = tool.without_task_changes(permitted.arguments, tuple(refused))
        return replace(permitted, arguments=arguments, notes=(*permitted.notes, *notes)), tuple(later)

    async def _ask(self, change: TaskChange) -> Outcome:
        described = {"task_description": change.description} if change.description else {}
        facts = {"task_id": change.id, "task_subject": change.subject, **described}
        return await self._hooks.run(_EVENTS[change.kind], facts, permission_mode=self._authority.mode.value)


def _names(outcome: Outcome) -> str:
    return ", ".join(dict.fromkeys(said.hook for said in outcome.reasons.get(outcome.decision, ())))
