"""Subagents: each is a turn of its own, with the hooks, rules, sandbox and limits of the agent that started it.

Loaded with the first Task call.
"""

import asyncio
import os
from collections import ChainMap
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any, cast

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from wave_agent.agent.authority import Authority, SubagentAuthority
from wave_agent.agent.consequences import TellError, TellNotice, consequences, perform
from wave_agent.agent.current_work import CurrentWork
from wave_agent.agent.ground import Above, Ground
from wave_agent.agent.model_choice import model_name_for
from wave_agent.agent.spending import requests_in_words
from wave_agent.agent.subagent_ground import SubagentGround, lay_subagent_ground
from wave_agent.agent.tool_calls import CallRunner
from wave_agent.agent.tool_use import INTERRUPTED
from wave_agent.agent.turn import Parts, Turn, TurnStatus
from wave_agent.errors import SessionError, SettingsError
from wave_agent.events import SubagentFinished, SubagentStarted
from wave_agent.hooks.events import Flow, HookEvent, changed_files
from wave_agent.hooks.manager import HookManager
from wave_agent.hooks.semantics import ends_turn
from wave_agent.hooks.verdicts import Blocks
from wave_agent.messages import NOT_RUN, STOPPED
from wave_agent.settings.agent_definitions import USUAL_MODEL, AgentDefinition
from wave_agent.settings.built_in_agents import built_in_agents
from wave_agent.system.real_files import is_below
from wave_agent.text import one_line, strip_controls
from wave_agent.tools.base import ToolContext, ToolInputError, ToolInterrupted, ToolResult
from wave_agent.tools.task import TaskInput, unreplaced

AT_ONCE = 4
"""Subagents that work at the same time; others wait their turn."""
TIME_LIMIT = 30 * 60.0
"""Seconds for one subagent, from its start."""
_NO_REPORT = "The subagent ended without a report."
_MOST_FILES = 50
"""Files that a result names."""
_LONGEST_NAME = 200


class Subagents:
    """Runs the subagents of one session."""

    def __init__(
        self,
        ground: Ground,
        hooks: HookManager,
        calls: CallRunner,
        authority: Authority,
        make_parts: Callable[[Ground, Above], Parts],
        *,
        time_limit: float = TIME_LIMIT,
    ) -> None:
        """All but the last are those of the agent above; `make_parts` connects the parts of a subagent."""
        self._ground = ground
        self._hooks = hooks
        self._calls = calls
        self._authority = authority
        self._make_parts = make_parts
        self._time_limit = time_limit
        own, built_in = ground.foundation.agents, built_in_agents()
        kept = unreplaced((*own, *ground.foundation.withheld_agents))
        self._types = {**{name: built_in[name] for name in kept}, **own}
        self._free = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0
        """Calls that have begun and not ended."""
        self._running: set[CurrentWork] = set()
        self._is_stopped = False
        """A hook has ended the turn in one of them, so all others end too."""

    async def run(self, call: TaskInput, context: ToolContext) -> ToolResult:
        """The subagent's report. Raises `ToolInputError`. Cancelling ends the subagent and all it has started."""
        definition = self._types[call.subagent_type]
        model = self._model(call, definition)
        if not self._waiting:
            self._is_stopped = False
        self._waiting += 1
        try:
            async with self._free:
                if self._is_stopped:
                    return ToolResult(content=STOPPED, success=False, ran=False, ends_turn=True)
                return await self._run(call, context, definition, model)
        finally:
            self._waiting -= 1

    def _model(self, call: TaskInput, definition: AgentDefinition) -> str:
        """Raises `ToolInputError` if it must not be used."""
        ground, current = self._ground, self._ground.windows.current.name
        is_named = bool(call.model) and (
            call.model not in USUAL_MODEL or call.model in ground.foundation.settings.models
        )
        wanted = call.model if is_named else definition.model
        if wanted is None or wanted == current:
            return current
        name = model_name_for(wanted, ground.foundation.settings, {})
        try:
            ground.spending.require_prices(name, ground.foundation.home)
        except SettingsError as error:
            raise ToolInputError(f"Task: the model {name} cannot be used here. {error}") from None
        return name

    async def _run(self, call: TaskInput, context: ToolContext, definition: AgentDefinition, model: str) -> ToolResult:
        child, parts = self._child(definition, model, context)
        work = CurrentWork(self._ground.inside)
        self._running.add(work)
        emit, agent_id = self._ground.listeners.emit, child.identity.agent_id
        whose = {"agent_id": agent_id, "agent_type": definition.name, "tool_use_id": context.call_id}
        emit(SubagentStarted(**whose, description=call.description))
        run, status = _Run(child, parts, work, self._time_limit), TurnStatus.INTERRUPTED
        try:
            result, status = await run.run(call.prompt)
        except asyncio.CancelledError:
            raise ToolInterrupted(run.result(_End(TurnStatus.INTERRUPTED, INTERRUPTED), told="")) from None
        finally:
            self._running.discard(work)
            emit(SubagentFinished(**whose, status=status.value))
        if status is TurnStatus.STOPPED:
            self._tell_why(child)
            self._stop()
        return replace(result, success=False, ran=False, ends_turn=True) if self._is_stopped else result

    def _tell_why(self, child: SubagentGround) -> None:
        """Notifies the user who ended the turn: the subagent's own messages are not part of the session's."""
        whose = child.identity
        runs = (run for run in reversed(self._hooks.journal) if run.agent_id == whose.agent_id)
        stops = (run for run in runs if ends_turn(run) and run.mode == "enforce" and not run.is_async)
        if (stop := next(stops, None)) is not None:
            # As `wave -p` words it, which prints it only once.
            why = f'Hook "{stop.name}" ended the turn in the subagent {whose.agent_type}'
            self._ground.messages.add_notice_block(f"{why}: {stop.reason}" if stop.reason else why)

    def _child(self, definition: AgentDefinition, model: str, context: ToolContext) -> "tuple[SubagentGround, Parts]":
        ground = lay_subagent_ground(self._ground, definition, model, context)
        hooks = self._hooks.for_agent(
            ground.identity,
            definition.hooks,
            directory=ground.directory,
            task=lambda: ground.ground.messages.latest_prompt,
        )
        authority = SubagentAuthority(self._authority, definition.permission_mode)

        async def sync() -> None:
            await self._ground.log.require_on_disk()
            await ground.ground.log.require_on_disk()

        above = Above(self._calls, hooks, authority, sync, self._environment(definition))
        return ground, self._make_parts(ground.ground, above)

    def _environment(self, definition: AgentDefinition) -> Mapping[str, str]:
        """A `wave` that a command of the subagent starts would be free of its limits, so it does not start."""
        variables, handed_down = self._ground.variables, self._ground.foundation.handed_down
        if not definition.is_limited or handed_down is None:
            return variables
        hidden = f"limits of the subagent {definition.name}, which hold only in it"
        return ChainMap(replace(handed_down, hidden=hidden).variable(), cast(dict[str, str], variables))

    def _stop(self) -> None:
        self._is_stopped = True
        for work in self._running:
            work.interrupt()


class _End(Struct, frozen=True):
    """How a subagent ended."""

    status: TurnStatus
    note: str = ""
    """For the model above, if it did not end by itself."""


class _Run:
    """One subagent, from SubagentStart to SubagentStop."""

    def __init__(self, child: SubagentGround, parts: Parts, work: CurrentWork, time_limit: float) -> None:
        self._child = child
        self._parts = parts
        self._work = work
        self._time_limit = time_limit
        self._turn = Turn(parts)
        self._started = monotonic()
        self._ended_commands: tuple[str, ...] = ()

    async def run(self, prompt: str) -> tuple[ToolResult, TurnStatus]:
        child, log = self._child, self._child.ground.log
        end = _End(TurnStatus.ERROR)
        stop_is_waited_for = False
        try:
            async with log.turn():
                log.start(**child.named)
                end = await self._worked(prompt)
                self._close_open_calls()
            if log.failure is not None:
                end = _End(TurnStatus.ERROR, str(log.failure))
            stop_is_waited_for = True
        finally:
            # Whatever happened: a hook that was notified of the start is notified of the end.
            if end.status not in _STOPPED_BY_ITSELF:
                await self._fire_stop(waited=stop_is_waited_for)
            self._close_open_calls()
            self._record_usage()
            self._ended_commands = child.in_background()
            await child.close(self._parts.hooks, end.status.value)
        return self.result(end), end.status

    async def _worked(self, prompt: str) -> _End:
        child, parts = self._child, self._parts
        begun = await parts.hooks.run(HookEvent.SUBAGENT_START, {}, permission_mode=parts.calls.mode.value)
        perform(consequences(begun), parts.messages)
        if begun.flow is Flow.END_TURN or await self._stopped_by_skills():
            return _End(TurnStatus.STOPPED, STOPPED)
        parts.briefing.begin()
        work = asyncio.create_task(self._work_and_report(prompt))
        try:
            async with asyncio.timeout(self._time_limit):
                await self._work.attend(work)
        except TimeoutError:
            minutes = f"{self._time_limit / 60:g} minutes"
            return _End(TurnStatus.INTERRUPTED, f"The subagent was stopped: it took longer than {minutes}.")
        if work.cancelled():
            return _End(TurnStatus.INTERRUPTED, "The subagent was interrupted: a hook ended the turn.")
        status = work.result()
        return _End(status, _why(status, self._turn, child))

    async def _work_and_report(self, prompt: str) -> TurnStatus:
        """At its own limit it may still report."""
        status = await self._turn.run(prompt)
        if status is TurnStatus.MAX_TURNS and self._child.above.count.exhausted is None:
            await self._turn.report()
        return status

    async def _stopped_by_skills(self) -> bool:
        """Adds the skills that it has from the start to its instructions. True: a hook ended the turn."""
        child, parts = self._child, self._parts
        if not child.definition.skills:
            return False
        from wave_agent.agent.subagent_skills import SubagentSkills  # lazy: few subagents have any

        extensions = child.ground.foundation.gathered.extensions
        texts, ends = await SubagentSkills(child.definition, extensions, parts.calls, parts.messages).load()
        assert child.ground.role is not None, "a subagent has a role"
        child.ground.role.extend(texts.values())
        child.ground.loaded_skills.extend(texts)
        perform([operation for end in ends for operation in end.later], parts.messages)
        return any(end.ends_turn for end in ends)

    async def _fire_stop(self, *, waited: bool) -> None:
        """The end of a subagent that did not end by itself. Hooks cannot keep it working."""
        parts, turn = self._parts, self._turn
        with suppress(SessionError):  # noted: see `SessionLog.failure`
            outcome = await parts.hooks.run(
                HookEvent.SUBAGENT_STOP,
                {
                    "stop_hook_active": turn.blocks.total > 0,
                    "stop_block_count": turn.blocks.total,
                    "last_assistant_message": turn.text or "",
                    **changed_files(parts.calls.changes.changed() if parts.hooks.hears(HookEvent.STOP) else ()),
                },
                permission_mode=parts.calls.mode.value,
                blocks=Blocks(),
                waited=waited,
                late=True,
            )
            told = [one for one in consequences(outcome) if isinstance(one, TellError | TellNotice)]
            perform(told, parts.messages)

    def _close_open_calls(self) -> None:
        parts = self._parts
        for block in parts.messages.open_calls():
            with suppress(SessionError):  # noted: see `SessionLog.failure`
                why = parts.calls.interrupted(block.id)
                parts.messages.update_tool_block(block.id, result=why, success=False, error=why)

    def _record_usage(self) -> None:
        spent, count = self._child.ground.spending.turn, self._child.ground.count
        if count.made:
            used = {"model": self._turn.parts.model_name, "requests": count.made, **to_builtins(spent.usage)}
            with suppress(SessionError):
                self._child.ground.log.usage({**used, "cost_usd": spent.dollars, "saved_usd": spent.saved})

    def result(self, end: _End, told: str | None = None) -> ToolResult:
        """What the model above gets. `told`: in place of the subagent's last text."""
        report = strip_controls(self._turn.text or "").strip() if told is None else told
        noted = [end.note or ("" if report else _NO_REPORT), *self._traces(end)]
        content = "\n\n".join([*filter(None, [report]), *(f"[{one}]" if report else one for one in noted if one)])
        return ToolResult(
            content=content,
            success=end.status in _SUCCEEDED and bool(report),
            ran=end.status in _REPORTING and bool(report),
            response=self._response(end),
            changed=self._parts.calls.changes.changed(),
        )

    def _traces(self, end: _End) -> list[str]:
        """What it leaves behind that its report may not mention."""
        changed = self._parts.calls.changes.changed() if end.status is not TurnStatus.COMPLETED else ()
        project = self._child.ground.foundation.project
        files = [os.path.relpath(path, project) if is_below(path, project) else path for path in changed]
        shown = [one_line(strip_controls(file), _LONGEST_NAME) for file in files[:_MOST_FILES]]
        more = [f"and {len(files) - _MOST_FILES} more"] if len(files) > _MOST_FILES else []
        ended = self._ended_commands
        return [
            *([f"It changed these files: {', '.join([*shown, *more])}."] if files else []),
            *([f"Ended with the subagent, as they ran in the background: {', '.join(ended)}."] if ended else []),
        ]

    def _response(self, end: _End) -> dict[str, Any]:
        """What hooks get to know about it."""
        usage = self._child.ground.spending.turn.usage
        return {
            "status": end.status.value,
            "agentId": self._child.identity.agent_id,
            "agentType": self._child.definition.name,
            "resolvedModel": self._turn.parts.model_name,
            "totalTokens": usage.input_tokens + usage.output_tokens,
            "totalDurationMs": round((monotonic() - self._started) * 1000),
            "totalToolUseCount": self._parts.messages.number_of_calls,
            "usage": to_builtins(usage),
        }


_STOPPED_BY_ITSELF = frozenset({TurnStatus.COMPLETED, TurnStatus.STOP_LIMIT})
"""SubagentStop hooks have already run."""
_REPORTING = frozenset({*_STOPPED_BY_ITSELF, TurnStatus.MAX_TURNS})
_SUCCEEDED = _REPORTING - {TurnStatus.STOP_LIMIT}
"""If it has reported. What a gate never accepted is no success."""


def _why(status: TurnStatus, turn: Turn, child: SubagentGround) -> str:
    """Why it ended, if the model above should know."""
    match status:
        case TurnStatus.MAX_TURNS:
            return _why_no_more_requests(child)
        case TurnStatus.MAX_COST:
            return child.ground.spending.why_used_up
        case TurnStatus.ERROR:
            begins = "The subagent" if _has_acted(turn, child) else f"{NOT_RUN}the subagent"
            return f"{begins} failed: {strip_controls(turn.error or 'unknown')}"
        case TurnStatus.STOPPED:
            return "A hook ended the subagent and the turn." if _has_acted(turn, child) else STOPPED
        case TurnStatus.STOP_LIMIT:
            unmet = strip_controls("\n".join(turn.unmet))
            return f"Hooks kept it from ending until their limit was reached, and still object:\n{unmet}"
        case _:
            return ""


def _has_acted(turn: Turn, child: SubagentGround) -> bool:
    return bool(turn.text or child.ground.messages.number_of_calls)


def _why_no_more_requests(child: SubagentGround) -> str:
    """Whose limit was reached, and how many requests it made itself."""
    own, above = child.ground.count, child.above.count
    so_far = "this is what it has so far"
    if own.limit is None or own.made < own.limit:
        words = f"The session's limit of {requests_in_words(above.limit or 0)} is reached"
        return f"{words}, {own.made} of them by this subagent; {so_far}."
    then = "one more was only for its report" if own.made > own.limit else so_far
    return f"The subagent reached its limit of {requests_in_words(own.limit)}; {then}."
