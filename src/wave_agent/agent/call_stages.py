"""The stages of a tool call: PreToolUse hooks, permission, the tool itself, the hooks after it.

Loaded with the first call, or while the model works on its first answer.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from wave_agent.agent.asking import PermissionAsker
from wave_agent.agent.authority import Authority
from wave_agent.agent.call_facts import CallExaminer
from wave_agent.agent.call_judge import (
    HOOK,
    CallJudge,
    CallReview,
    DeferredCall,
    DeniedCall,
    InvalidCall,
    PermittedCall,
    unjudged,
)
from wave_agent.agent.call_results import CallEnd, CallResults, RequestedCall
from wave_agent.agent.call_side_effects import CallSideEffects
from wave_agent.agent.consequences import Operation
from wave_agent.agent.result_hooks import ResultHooks
from wave_agent.agent.tool_use import INTERRUPTED, ToolUse
from wave_agent.errors import SessionError
from wave_agent.events import Event
from wave_agent.hooks.events import Flow, HookEvent
from wave_agent.hooks.manager import HookManager
from wave_agent.messages import NOT_RUN, MessageManager
from wave_agent.permissions.decision import INSTEAD, Approver
from wave_agent.system.waiting import SideBySide
from wave_agent.text import one_line, strip_controls
from wave_agent.tools.base import Tool, ToolContext, ToolResult
from wave_agent.tools.changes import FileChanges

if TYPE_CHECKING:  # loaded with the first call that acts
    from wave_agent.agent.file_watch import FileWatch
    from wave_agent.telemetry.agent_trace import AgentTrace

DEFERRED = "{call} waits for a decision. After it: wave -p -r {session}. {why}"
_SHOWN = 200
"""Characters of a call in a notice."""
NOT_BEGUN = f"{NOT_RUN}the turn was interrupted before this call began."


class CallStages:
    """Judges and runs single calls of tools that were found. Every call gets exactly one result."""

    def __init__(
        self,
        *,
        messages: MessageManager,
        hooks: HookManager,
        context: ToolContext,
        authority: Authority,
        approver: Approver | None,
        emit: Callable[[Event], None],
        sync: Callable[[], Awaitable[None]],
        changes: FileChanges,
        start_watch: "Callable[[], FileWatch | None] | None",
        side_by_side: SideBySide,
        trace: "AgentTrace | None" = None,
    ) -> None:
        """`sync` is called before a tool that changes something. `start_watch`: see `ToolUse`."""
        self._trace = trace
        self._messages = messages
        self._hooks = hooks
        self._authority = authority
        self.results = results = CallResults(messages, context)
        self.examiner = CallExaminer(authority, context, hooks.search_path)
        self._judge = CallJudge(
            review=CallReview(hooks, authority, self.examiner, str(context.cwd)),
            authority=authority,
            asker=PermissionAsker(
                hooks=hooks, authority=authority, messages=messages, context=context, approver=approver, emit=emit
            ),
            results=results,
            context=context,
            notify=messages.add_notice_block,
            on_refusal=lambda call: self._report(call, "deny", HOOK),
        )
        self._use = ToolUse(
            hooks=hooks,
            authority=authority,
            context=context,
            results=results,
            emit=emit,
            sync=sync,
            changes=changes,
            start_watch=start_watch,
            side_by_side=side_by_side,
            trace=trace,
        )
        self._after = ResultHooks(hooks, authority, results, changes)
        self.side_effects = CallSideEffects(hooks, authority, changes, messages)

    @property
    def watch(self) -> "FileWatch | None":
        """What notices changes by commands, once a call has acted."""
        return self._use.watch

    def begin_watch(self) -> "FileWatch | None":
        """Begins to notice what commands change, unless that has begun."""
        return self._use.begin_watch()

    def interrupted(self, call_id: str) -> str:
        """The result of a call that an interrupt left without one."""
        return INTERRUPTED if self._use.has_begun(call_id) else NOT_BEGUN

    async def run(
        self, call: RequestedCall, tool: Tool, parameters: Mapping[str, Any], *, reads_only: Callable[[], bool]
    ) -> CallEnd:
        call = replace(call, effects=self.examiner.effects_here(tool), about=tool.hook_facts())
        try:
            if not reads_only():
                self._use.expect(tool)
            permitted, later = await self._permit(call, tool, parameters)
        except SessionError:
            raise
        except Exception as error:  # a call that cannot be judged does not run
            return self._unjudged(call, error)
        end = permitted if isinstance(permitted, CallEnd) else await self._run(call, tool, permitted)
        return replace(end, later=(*later, *end.later))

    async def _permit(
        self, call: RequestedCall, tool: Tool, parameters: Mapping[str, Any]
    ) -> tuple[PermittedCall | CallEnd, tuple[Operation, ...]]:
        """What may run, or an end if nothing may: the call then has its result."""
        verdict, later = await self._judge.judge(call, tool, parameters)
        if not isinstance(verdict, CallEnd):
            self._report(call, *_decision(verdict))
        match verdict:
            case DeniedCall():
                return await self._deny(call, verdict), later
            case DeferredCall(why=why):
                session, shown = self._hooks.session.session_id, _shown(call.name, parameters)
                self._messages.add_notice_block(DEFERRED.format(call=shown, session=session, why=why), "info")
                return CallEnd(ends_turn=True, is_deferred=True), later
            case InvalidCall(tool_input=tool_input, problem=problem, for_model=for_model):
                wrong = ToolResult(content=for_model, success=False, ran=False)
                end = await self._after.after_failure(call, call.facts(tool_input), wrong, error=problem)
                return replace(end, tool_input=tool_input), later
            case _:
                return verdict, later

    def _report(self, call: RequestedCall, decision: str, by: str) -> None:
        """Tells telemetry whether a call runs, and who decided that, before the call has its result."""
        if self._trace is not None:
            self._trace.decided(call.id, call.name, decision, by)

    async def _deny(self, call: RequestedCall, denied: DeniedCall) -> CallEnd:
        """Gives the call its result, and tells hooks about it. They cannot change it."""
        end = self.results.deny(call, denied.why, denied.notes)
        facts = {**call.facts(denied.tool_input), "reason": self._messages.result_of(call.id), "denied_by": denied.by}
        mode = self._authority.mode.value
        heard = await self._hooks.run(HookEvent.PERMISSION_DENIED, facts, permission_mode=mode)
        later = self.results.apply(heard, call)
        return CallEnd((*end.later, *later), heard.flow is Flow.END_TURN, denied.tool_input)

    async def _run(self, call: RequestedCall, tool: Tool, permitted: PermittedCall) -> CallEnd:
        reviewed, later = await self._review_tasks(call, tool, permitted)
        if isinstance(reviewed, CallEnd):
            return reviewed
        end = await self._run_tool(call, tool, reviewed)
        await self.side_effects.tell()
        return replace(end, later=(*later, *end.later), tool_input=permitted.tool_input)

    async def _review_tasks(
        self, call: RequestedCall, tool: Tool, permitted: PermittedCall
    ) -> tuple[PermittedCall | CallEnd, tuple[Operation, ...]]:
        """What hooks leave of the changes that the call makes to the todo list."""
        changes = tool.task_changes(permitted.arguments)
        if not changes or not any(map(self._hooks.hears, (HookEvent.TASK_CREATED, HookEvent.TASK_COMPLETED))):
            return permitted, ()
        from wave_agent.agent.task_hooks import TaskHooks  # lazy: few sessions have such hooks

        return await TaskHooks(self._hooks, self._authority, self.results).review(call, tool, permitted, changes)

    async def _run_tool(self, call: RequestedCall, tool: Tool, permitted: PermittedCall) -> CallEnd:
        result, ran, changed = await self._use.run(call, tool, permitted)
        self._authority.grant(result.permits)
        if result.notice:
            self._messages.add_notice_block(result.notice)
        facts = call.facts(permitted.tool_input)
        notes = (*permitted.notes, *changed.notes)
        if result.ran:
            end = await self._after.after_run(call, facts, result, ran, notes, changed=changed.paths)
        else:
            end = await self._after.after_failure(call, facts, result, notes, ran=ran)
        return replace(end, ends_turn=True) if result.ends_turn else end

    def _unjudged(self, call: RequestedCall, error: Exception) -> CallEnd:
        """An error while judging a call is a deny: a guard or a rule might have denied it."""
        why = unjudged(error)
        self._report(call, "deny", "error")
        if not isinstance(error, OSError):  # a bug, which must be reported; anything else is caused by the path
            self._messages.add_error_block(strip_controls(f"{call.name} was not run: {why}"))
        return self.results.deny(call, f"{why}. {INSTEAD}", ())


def _decision(verdict: PermittedCall | DeniedCall | DeferredCall | InvalidCall) -> tuple[str, str]:
    """What was decided about a call, and by whom, in one word each."""
    match verdict:
        case PermittedCall(by=by):
            return "allow", by
        case DeniedCall(by=by):
            return "deny", by
        case DeferredCall():
            return "defer", HOOK
        case InvalidCall():
            return "invalid", "input"


def _shown(tool: str, parameters: Mapping[str, Any]) -> str:
    """A call in a line for the user."""
    value = next((value for value in parameters.values() if isinstance(value, str)), "")
    return f"{tool} ({one_line(strip_controls(value), _SHOWN)})" if value else tool
