"""The calls of a session: which tools there are, what applies to them now, and how each call is run."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from wave_agent.agent.authority import Authority
from wave_agent.agent.result import Violation
from wave_agent.events import Event, ToolStarted
from wave_agent.hooks.manager import HookManager
from wave_agent.messages import STOPPED, MessageManager
from wave_agent.permissions.decision import Approver, PermissionMode, Rules
from wave_agent.rules.rule import Rule
from wave_agent.system.waiting import SideBySide
from wave_agent.tools.base import Tool, ToolContext, ToolInputError
from wave_agent.tools.changes import FileChanges
from wave_agent.tools.registry import find_tool

if TYPE_CHECKING:  # loaded with the first call
    from wave_agent.agent.call_results import CallEnd, RequestedCall
    from wave_agent.agent.call_stages import CallStages
    from wave_agent.agent.file_watch import FileWatch
    from wave_agent.telemetry.agent_trace import AgentTrace


async def _nothing_to_sync() -> None:
    pass


class CallRunner:
    """Runs single calls. Every call gets exactly one result."""

    def __init__(
        self,
        *,
        messages: MessageManager,
        hooks: HookManager,
        tools: Mapping[str, Tool],
        few: Callable[[], bool] = lambda: False,
        on_call: Callable[[str], Tool | None] = lambda _: None,
        ahead: Callable[[], None] | None = None,
        context: ToolContext,
        authority: Authority,
        approver: Approver | None,
        emit: Callable[[Event], None],
        sync: Callable[[], Awaitable[None]] = _nothing_to_sync,
        changes: FileChanges | None = None,
        start_watch: "Callable[[], FileWatch | None] | None" = None,
        above: "CallRunner | None" = None,
        trace: "AgentTrace | None" = None,
    ) -> None:
        """`few`: the model was not offered the dispensable tools. `on_call` finds tools that are loaded when they
        are called. `ahead` starts what calls of MCP servers' tools need, if there are any. `sync` is called before a
        tool that changes something. `changes` are those of the tools. `start_watch`: see `ToolUse`. `above` runs the
        calls of the agent to which a subagent belongs: calls of both that act wait for each other, and are watched by
        the same watch. `trace` is telemetry's view of the agent, if telemetry is on."""
        self._tools, self._few, self._authority, self._emit = tools, few, authority, emit
        self._on_call = on_call
        self._messages, self._hooks, self._context, self._approver = messages, hooks, context, approver
        self._sync, self._start_watch, self._ahead = sync, start_watch, ahead
        self._changes = changes or FileChanges()
        self._above = above
        self._trace = trace
        self._side_by_side: SideBySide = SideBySide() if above is None else above._side_by_side
        self._loaded: CallStages | None = None
        self._has_advised = False
        """The model has called a tool that there is not."""

    @property
    def _stages(self) -> "CallStages":
        if self._loaded is None:
            from wave_agent.agent.call_stages import CallStages  # lazy: no call is made before the first answer

            self._loaded = CallStages(
                messages=self._messages,
                hooks=self._hooks,
                context=self._context,
                authority=self._authority,
                approver=self._approver,
                emit=self._emit,
                sync=self._sync,
                changes=self._changes,
                start_watch=self._start_watch if self._above is None else self._above.begin_watch,
                side_by_side=self._side_by_side,
                trace=self._trace,
            )
        return self._loaded

    def prepare(self) -> None:
        """Does what the first call would have to wait for."""
        if self._ahead is not None:
            self._ahead()
        self._stages.examiner.prepare(self._tools.values())

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

    def grant(self, rules: Sequence[Rule]) -> None:
        """The same for these rules, until the turn ends."""
        self._authority.grant(rules)

    def end_turn(self) -> None:
        """Withdraws what was granted for the turn."""
        self._authority.end_turn()

    def reads_only(self, call: "RequestedCall") -> bool:
        """It may run in parallel with other read-only calls."""
        tool = self._tools.get(call.name)
        if tool is None or call.parameters is None:
            return False
        return tool.kind.only_looks or self._stages.examiner.may_run_beside(tool, call.parameters)

    def polls(self, call: "RequestedCall") -> bool:
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
        return None if self._loaded is None else self._loaded.watch

    def begin_watch(self) -> "FileWatch | None":
        """Begins to notice what commands change, unless that has begun."""
        return self._stages.begin_watch()

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Every change in this session that a rule denies."""
        return () if self.watch is None else tuple(self.watch.violations)

    async def settle(self) -> None:
        """Notices what background commands have changed by now. Not in a subagent: another one may be acting."""
        if self.watch is not None and self._above is None:
            await self.watch.settle()
        if self._loaded is not None:
            self._loaded.side_effects.tell_changes()

    def news(self) -> list[str]:
        """For the model's next request: what `settle` has found."""
        return [] if self.watch is None or self._above is not None else self.watch.take_news()

    def refuse(self, call: "RequestedCall", problem: str) -> "CallEnd":
        """Refuses a call without judging it: no hook sees it."""
        self._emit(ToolStarted(id=call.id, name=call.name, parameters=call.parameters or {}))
        return self._stages.results.refuse(call, problem)

    def skip(self, call: "RequestedCall") -> None:
        """A call of a batch that a hook ended."""
        self._stages.results.refuse(call, STOPPED)

    def interrupted(self, call_id: str) -> str:
        """The result of a call that an interrupt left without one."""
        return self._stages.interrupted(call_id)

    def _at_hand(self) -> list[Tool]:
        """The tools that can be called now."""
        few = self._few()
        return [tool for tool in self._tools.values() if not (few and tool.dispensable) or tool.is_of_use()]

    def _find(self, call: "RequestedCall") -> Tool:
        try:
            return find_tool(
                call.name,
                self._at_hand(),
                call.parameters,
                in_plan_mode=self.mode is PermissionMode.PLAN,
                is_subagent=self._hooks.agent is not None,
                again=self._has_advised,
            )
        except ToolInputError:
            self._has_advised = True
            raise

    async def run(self, call: "RequestedCall") -> "CallEnd":
        self._emit(ToolStarted(id=call.id, name=call.name, parameters=call.parameters or {}))
        try:
            unoffered = None if call.name in self._tools else self._on_call(call.name)
            tool = unoffered or self._find(call)
        except ToolInputError as error:
            return self._stages.results.refuse(call, str(error))
        if call.parameters is None:
            return self._stages.results.refuse(call, call.problem)
        return await self._stages.run(call, tool, call.parameters, reads_only=lambda: self.reads_only(call))

    async def run_unoffered(self, call: "RequestedCall", tool: Tool) -> "CallEnd":
        """Runs a call that the model did not make, of a tool that it need not have."""
        self._emit(ToolStarted(id=call.id, name=call.name, parameters=call.parameters or {}))
        return await self._stages.run(call, tool, call.parameters or {}, reads_only=lambda: tool.kind.only_looks)
