"""Running the tool of a call that is permitted."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from wave_agent.agent.authority import Authority
from wave_agent.agent.call_judge import PermittedCall
from wave_agent.agent.call_results import CallChanges, CallResults, RequestedCall
from wave_agent.errors import SessionError
from wave_agent.events import Event, ToolOutput
from wave_agent.formats.readable import readable, readable_text
from wave_agent.hooks.events import EVENTS, HookEvent, changed_files
from wave_agent.hooks.manager import HookManager
from wave_agent.hooks.stage import ToolFacts
from wave_agent.messages import Ran
from wave_agent.permissions.decision import ToolKind
from wave_agent.rules.rule import path_expression
from wave_agent.system.fairness import fairness
from wave_agent.system.timestamps import stamp, utc_now
from wave_agent.system.waiting import SideBySide
from wave_agent.text import strip_controls
from wave_agent.tools.base import Tool, ToolContext, ToolInputError, ToolInterrupted, ToolResult
from wave_agent.tools.changes import FileChanges

if TYPE_CHECKING:  # loaded with the first call that acts
    from wave_agent.agent.file_watch import FileWatch
    from wave_agent.telemetry.agent_trace import AgentTrace

INTERRUPTED = "Interrupted by the user before it was done."
_SEARCHES = ("grep", "glob")
"""Tools that find files their input does not name."""


class ToolUse:
    """Runs tools. Knows which calls have begun."""

    def __init__(
        self,
        *,
        hooks: HookManager,
        authority: Authority,
        context: ToolContext,
        results: CallResults,
        emit: Callable[[Event], None],
        sync: Callable[[], Awaitable[None]],
        changes: FileChanges,
        start_watch: "Callable[[], FileWatch | None] | None" = None,
        side_by_side: SideBySide,
        trace: "AgentTrace | None" = None,
    ) -> None:
        """`sync` is called before a tool that changes something: the record of the call is on disk before its
        effect. `changes` are noted by tools that know what they change; for the others, `start_watch` is called once,
        before the first of them. Without it, nothing is watched. `side_by_side` is shared with subagents.
        `trace` is telemetry's view of the agent, if telemetry is on."""
        self._trace = trace
        self._hooks = hooks
        self._authority = authority
        self._context = context
        self._results = results
        self._emit = emit
        self._sync = sync
        self._changes = changes
        self._start_watch = start_watch
        self.watch: FileWatch | None = None
        self._begun: set[str] = set()
        # A batch is arranged before its calls are judged, and a hook can turn a command that only reads into another.
        self._side_by_side = side_by_side

    def has_begun(self, call_id: str) -> bool:
        """Whether the tool of this call was started."""
        return call_id in self._begun

    def expect(self, tool: Tool) -> None:
        """A call of this tool may act soon: what is necessary to notice its changes begins now."""
        if not tool.notes_changes:
            self.begin_watch()

    def begin_watch(self) -> "FileWatch | None":
        """Begins to notice what commands change, unless that has begun."""
        if self.watch is None and self._start_watch is not None:
            self.watch = self._start_watch()
        return self.watch

    async def run(
        self, call: RequestedCall, tool: Tool, permitted: PermittedCall
    ) -> tuple[ToolResult, Ran, CallChanges]:
        """The result, even if the tool could not do its work, how long it took, and which files it changed."""
        result, ran, changed = await self._run(call, tool, permitted)
        await fairness().breathe()
        # Hooks, the model and the transcript get the same text of a result, readable for all of them.
        result = replace(result, content=readable_text(result.content), response=readable(result.response))
        return result, replace(ran, changed_files=tuple(changed_files(changed.paths)["changed_files"])), changed

    async def _run(
        self, call: RequestedCall, tool: Tool, permitted: PermittedCall
    ) -> tuple[ToolResult, Ran, CallChanges]:
        # While a hook may still redact the result, none of it is shown.
        after = (HookEvent.POST_TOOL_USE, HookEvent.POST_TOOL_USE_FAILURE)
        facts = call.facts(permitted.tool_input)
        shown_by = tool.shown_by(permitted.arguments)
        hidden = any(self._hooks.watches(event, *EVENTS[event].targets_in(facts), *shown_by) for event in after)
        context = self._context_for(call, tool, permitted, hidden=hidden)
        if not tool.kind.only_looks:
            await self._sync()
        try:
            await asyncio.sleep(0)  # lets an interrupt requested by a callback take effect before anything is done
            await fairness().breathe()
            if tool.delegates:
                result, ran = await self._result(call, tool, permitted, context)
                return result, ran, CallChanges(result.changed)
            async with self._side_by_side.running(reads=permitted.kind.only_looks):
                if permitted.kind.only_looks:
                    return *await self._result(call, tool, permitted, context), CallChanges()
                try:
                    return await self._watched(call, tool, permitted, context)
                finally:
                    self._changes.claim()
        except asyncio.CancelledError as error:
            if isinstance(error, ToolInterrupted) and not hidden:  # output a hook might have redacted is not stored
                with suppress(SessionError):  # noted: see `SessionLog.failure`
                    self._results.finish(call, error.result, error=INTERRUPTED)
            await self._notify_hooks(call, permitted)
            raise asyncio.CancelledError from None  # the plain class: a task group knows no other

    async def _watched(
        self, call: RequestedCall, tool: Tool, permitted: PermittedCall, context: ToolContext
    ) -> tuple[ToolResult, Ran, CallChanges]:
        """Between two looks at the files of the project, unless the tool knows itself what it changes."""
        self.expect(tool)
        watch = None if tool.notes_changes else self.watch
        if watch is None:
            self._changes.begin_call()
            result, ran = await self._result(call, tool, permitted, context)
            return result, ran, CallChanges(self._changes.of_call())
        await watch.before()
        try:
            result, ran = await self._result(call, tool, permitted, context)
        except asyncio.CancelledError as error:
            changed = await watch.after(call.id, tool.name, interrupted=True)
            if isinstance(error, ToolInterrupted) and changed.notes:
                notes = (note.content for note in changed.notes)
                content = "\n\n".join((error.result.content, *notes))
                raise ToolInterrupted(replace(error.result, content=content)) from None
            raise
        return result, ran, await watch.after(call.id, tool.name)

    async def _result(
        self, call: RequestedCall, tool: Tool, permitted: PermittedCall, context: ToolContext
    ) -> tuple[ToolResult, Ran]:
        """Runs the tool itself."""
        self._begun.add(call.id)
        started, clock = stamp(utc_now()), monotonic()
        try:
            with context.door():
                result = await tool.run(permitted.arguments, context)
        except ToolInputError as error:
            result = ToolResult(content=str(error), success=False, ran=False)
        except (Exception, SystemExit) as error:  # a bug in a tool is the call's result, not the end of the agent
            what = strip_controls(f"{tool.name} failed: {type(error).__name__}: {error}")
            result = ToolResult(content=what, success=False, ran=False)
        return result, Ran(started, round((monotonic() - clock) * 1000, 3))

    async def _notify_hooks(self, call: RequestedCall, permitted: PermittedCall) -> None:
        """Notifies hooks of an interrupt. The turn is over, so they are not waited for."""
        await self._hooks.run(
            HookEvent.POST_TOOL_USE_FAILURE,
            {**call.facts(permitted.tool_input), "error": INTERRUPTED, "is_interrupt": True},
            permission_mode=self._authority.mode.value,
            tool=ToolFacts(effects=call.effects),
            waited=False,
        )

    def _context_for(self, call: RequestedCall, tool: Tool, permitted: PermittedCall, *, hidden: bool) -> ToolContext:
        def stream(text: str) -> None:
            self._emit(ToolOutput(id=call.id, text=text))

        unread = self._unread(tool, permitted.tool_input)
        context = replace(self._context, judged=permitted.seen, unread=unread, call_id=call.id)
        if self._trace is not None and (place := self._trace.traceparent(call.id)):
            context = replace(context, traceparent=place, environment={**context.environment, "TRACEPARENT": place})
            if facts := tool.hook_facts().get("mcp"):
                self._trace.called_server(call.id, facts["server"])
        if permitted.kind is ToolKind.READS and tool.kind is not ToolKind.READS:
            # lazy: only for commands that only read
            from wave_agent.effects.only_reading import reading_environment

            context = replace(context, environment={**context.environment, **reading_environment(context.environment)})
        return replace(context, hold=True) if hidden else replace(context, emit=stream)

    def _unread(self, tool: Tool, tool_input: Mapping[str, Any]) -> tuple[str, ...]:
        """What a search must leave out: rules apply to the files it finds, not only to where it starts. An ask rule
        that matched this call has been answered; others keep files from being opened, but not from being listed."""
        name = tool.name.casefold()
        if name not in _SEARCHES:
            return ()
        given, places = self._authority.rules, self._authority.places
        asked = (rule for rule in given.ask if name == "grep" and not rule.matches(name, tool_input, places))
        rules = (rule for rule in (*given.deny, *asked) if rule.tool in ("read", name))
        patterns = (pattern for rule in rules for pattern in (rule.pattern, rule.also) if pattern is not None)
        return tuple(dict.fromkeys(path_expression(pattern, places) for pattern in patterns))
