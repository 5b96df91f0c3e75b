"""One tool call: PreToolUse hooks, permission, the tool itself, the hooks after it."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from wave_agent.agent.asking import PermissionAsker
from wave_agent.agent.authority import Authority
from wave_agent.agent.call_facts import CallExaminer
from wave_agent.agent.call_judge import CallJudge, CallReview, DeniedCall, InvalidCall, PermittedCall, unjudged
from wave_agent.agent.call_results import CallEnd, CallResults, RequestedCall
from wave_agent.agent.consequences import Operation
from wave_agent.agent.result import Violation
from wave_agent.agent.result_hooks import ResultHooks
from wave_agent.agent.tool_use import INTERRUPTED, ToolUse
from wave_agent.errors import SessionError
from wave_agent.events import Event, ToolStarted
from wave_agent.hooks.manager import HookManager
from wave_agent.messages import NOT_RUN, STOPPED, MessageManager
from wave_agent.permissions.decision import INSTEAD, Approver, PermissionMode, Rules, ToolKind
from wave_agent.rules.rule import Rule
from wave_agent.text import strip_controls
from wave_agent.tools.base import Tool, ToolContext, ToolInputError, ToolResult
from wave_agent.tools.changes import FileChanges
from wave_agent.tools.registry import find_tool

if TYPE_CHECKING:  # loaded with the first call that acts
    from wave_agent.agent.file_watch import FileWatch

NOT_BEGUN = f"{NOT_RUN}the turn was interrupted before this call began."


class CallRunner:
    """Runs single calls. Every call gets exactly one result."""

    def __init__(
        self,
        *,
        messages: MessageManager,
        hooks: HookManager,
        tools: Mapping[str, Tool],
        context: ToolContext,
        authority: Authority,
        approver: Approver | None,
        emit: Callable[[Event], None],
        sync: Callable[[], None] = lambda: None,
        changes: FileChanges | None = None,
        start_watch: "Callable[[], FileWatch] | None" = None,
    ) -> None:
        """`sync` is called before a tool that changes something. `changes` are those of the tools. `start_watch`: see
        `ToolUse`."""
        self._messages, self._tools, self._authority, self._emit = messages, tools, authority, emit
        self._results = results = CallResults(messages, context)
        self._examiner = CallExaminer(authority, context, hooks.search_path)
        self._judge = CallJudge(
            review=CallReview(hooks, authority, self._examiner, str(context.cwd)),
            authority=authority,
            asker=PermissionAsker(
                hooks=hooks, authority=authority, messages=messages, context=context, approver=approver, emit=emit
            ),
            results=results,
            start=str(context.cwd),
            notify=messages.add_notice_block,
        )
        self._changes = changes or FileChanges()
        self._use = ToolUse(
            hooks=hooks,
            authority=authority,
            context=context,
            results=results,
            emit=emit,
            sync=sync,
            changes=self._changes,
            start_watch=start_watch,
        )
        self._after = ResultHooks(hooks, authority, results, self._changes)

    @property
    def mode(self) -> PermissionMode:
        """May change at any time; a change applies from the next call."""
        return self._authority.mode

    @mode.setter
    def mode(self, mode: PermissionMode) -> None:
        self._authority.mode = mode

    @property
    def rules(self) -> Rules:
        return self._authority.rules

    def allow(self, rule: Rule) -> None:
        """From now on, calls that match the rule run without the question the mode would ask."""
        self._authority.allow(rule)

    def reads_only(self, call: RequestedCall) -> bool:
        """It may run in parallel with other read-only calls."""
        tool = self._tools.get(call.name)
        if tool is None or call.parameters is None:
            return False
        return tool.kind is ToolKind.READS or self._examiner.may_run_beside(tool, call.parameters)

    def polls(self, call: RequestedCall) -> bool:
        """It only checks the progress of something else."""
        tool = self._tools.get(call.name)
        return tool is not None and tool.polls

    @property
    def changes(self) -> FileChanges:
        """What the tools and commands of this session did to files."""
        return self._changes

    @property
    def watch(self) -> "FileWatch | None":
        """What notices changes by commands, once a call has acted."""
        return self._use.watch

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Every change in this session that a rule denies."""
        return () if self.watch is None else tuple(self.watch.violations)

    async def settle(self) -> None:
        """Notices what background commands have changed by now."""
        if self.watch is not None:
            await self.watch.settle()

    def news(self) -> list[str]:
        """For the model's next request: what `settle` has found."""
        return [] if self.watch is None else self.watch.take_news()

    def refuse(self, call: RequestedCall, problem: str) -> CallEnd:
        """Refuses a call without judging it: no hook sees it."""
        self._emit(ToolStarted(id=call.id, name=call.name, parameters=call.parameters or {}))
        return self._results.refuse(call, problem)

    def skip(self, call: RequestedCall) -> None:
        """A call of a batch that a hook ended."""
        self._results.refuse(call, STOPPED)

    def interrupted(self, call_id: str) -> str:
        """The result of a call that an interrupt left without one."""
        return INTERRUPTED if self._use.has_begun(call_id) else NOT_BEGUN

    async def run(self, call: RequestedCall) -> CallEnd:
        self._emit(ToolStarted(id=call.id, name=call.name, parameters=call.parameters or {}))
        try:
            tool = find_tool(call.name, self._tools.values())
        except ToolInputError as error:
            return self._results.refuse(call, str(error))
        parameters = call.parameters
        if parameters is None:
            return self._results.refuse(call, call.problem)
        call = replace(call, effects=self._examiner.effects_here(tool))
        try:
            if not self.reads_only(call):
                self._use.expect(tool)
            permitted, later = await self._permit(call, tool, parameters)
        except SessionError:
            raise
        except Exception as error:  # a call that cannot be judged does not run
            return self._unjudged(call, error)
        end = permitted if isinstance(permitted, CallEnd) else await self._run(call, tool, permitted)
        return CallEnd((*later, *end.later), end.ends_turn)

    async def _permit(
        self, call: RequestedCall, tool: Tool, parameters: Mapping[str, Any]
    ) -> tuple[PermittedCall | CallEnd, tuple[Operation, ...]]:
        """What may run, or an end if nothing may: the call then has its result."""
        verdict, later = await self._judge.judge(call, tool, parameters)
        match verdict:
            case DeniedCall(why=why, notes=notes):
                return self._results.deny(call, why, notes), later
            case InvalidCall(tool_input=tool_input, problem=problem, for_model=for_model):
                wrong = ToolResult(content=for_model, success=False, ran=False)
                return await self._after.after_failure(call, call.facts(tool_input), wrong, error=problem), later
            case _:
                return verdict, later

    async def _run(self, call: RequestedCall, tool: Tool, permitted: PermittedCall) -> CallEnd:
        result, ran, changed = await self._use.run(call, tool, permitted)
        facts = call.facts(permitted.tool_input)
        notes = (*permitted.notes, *changed.notes)
        if not result.ran:
            return await self._after.after_failure(call, facts, result, notes, ran=ran)
        return await self._after.after_run(call, facts, result, ran, notes, changed=changed.paths)

    def _unjudged(self, call: RequestedCall, error: Exception) -> CallEnd:
        """An error while judging a call is a deny: a guard or a rule might have denied it."""
        why = unjudged(error)
        if not isinstance(error, OSError):  # a bug, which must be reported; anything else is caused by the path
            self._messages.add_error_block(strip_controls(f"{call.name} was not run: {why}"))
        return self._results.deny(call, f"{why}. {INSTEAD}", ())
