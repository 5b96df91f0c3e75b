"""Runs one hook at a time: whether it runs, its job, the meaning of its output, its journal entry."""

import asyncio
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from wave_agent.events import Event, HookFinished, HookRun, HookStarted
from wave_agent.hooks.definitions import HookDefinition, with_project
from wave_agent.hooks.environment import HookEnvironment
from wave_agent.hooks.execution import HookExecutionResult, HookJob, HookKind, HookRunner, HookTrace
from wave_agent.hooks.journal import HookJournal
from wave_agent.hooks.journal_entries import journal_entry
from wave_agent.hooks.kinds import why_absent
from wave_agent.hooks.runners.function import call_function
from wave_agent.hooks.semantics import read
from wave_agent.hooks.stage import Stage
from wave_agent.hooks.verdicts import Failure, FailureKind, TellUser, Verdict
from wave_agent.rules.rule import Places
from wave_agent.system.reentrancy import Door, no_door
from wave_agent.system.timestamps import stamp, utc_now

_CANCELLED = Verdict((Failure(FailureKind.SIGNAL, "cancelled", blocks=True),))
RunListener = Callable[[HookRun, HookExecutionResult, Verdict], None]
BeginTrace = Callable[[HookStarted], HookTrace]
"""Tells telemetry that a run begins."""
TRACE_VARIABLE = "TRACEPARENT"


class HookExecutor:
    """Executes the hooks of a session and journals each run."""

    def __init__(
        self,
        *,
        runner: HookRunner,
        environment: HookEnvironment,
        journal: HookJournal,
        places: Places,
        why_refused: Callable[[HookDefinition], str | None],
        door: Door,
        emit: Callable[[Event], None],
        on_run: RunListener | None,
        begin_trace: BeginTrace | None,
    ) -> None:
        self._runner = runner
        self._environment = environment
        self._journal = journal
        self._places = places
        self._why_refused = why_refused
        self._door = door
        self._emit = emit
        self._on_run = on_run
        self._begin_trace = begin_trace

    def claims(self, hook: HookDefinition, stage: Stage) -> bool:
        """Whether this hook runs now. If it does, a `once` hook is used up."""
        if hook.why_not(stage.payload, self._places, stage.effects) is not None:
            return False
        return self._journal.claim(hook, stage.occurrence.number)

    def can_allow(self, hook: HookDefinition, stage: Stage) -> bool:
        """Whether an allow of this hook means this call."""
        return hook.names_call(stage.payload, self._places)

    async def execute(self, hook: HookDefinition, stage: Stage, look: int) -> Verdict:
        """Run one hook and journal it. A cancelled run is journaled too."""
        begun = HookStarted(
            event=hook.event.value,
            name=hook.name,
            tool_use_id=stage.payload.get("tool_use_id"),
            status_message=hook.status_message,
            agent_id=stage.payload.get("agent_id"),
        )
        self._emit(begun)
        trace = None if self._begin_trace is None else self._begin_trace(begun)
        refused = self._why_refused(hook)
        entry = partial(journal_entry, hook, stage, look, started=stamp(utc_now()))
        try:
            result = await self._run(hook, stage, refused, trace)
        except asyncio.CancelledError:
            result = HookExecutionResult(cancelled=True)
            self._record(entry(result=result, verdict=_CANCELLED, is_cancelled=True), result, _CANCELLED, trace)
            raise
        if hook.gets_arguments and stage.has_cut_arguments:
            result = replace(result, has_cut_arguments=True)
        verdict = read(
            hook.event,
            result,
            name=hook.name,
            on_failure=hook.on_failure,
            dialect=hook.dialect,
            continue_on_block=hook.continue_on_block,
        )
        if verdict.answer is not None:
            from wave_agent.hooks.elicited import checked  # lazy: few servers ask

            verdict = checked(verdict, stage.payload, name=hook.name, on_failure=hook.on_failure)
        if verdict.rewrite is not None and (problem := stage.rewritten(hook, verdict.rewrite)[1]):
            verdict = replace(verdict, effects=(*verdict.effects, TellUser(f"hook {hook.name}: {problem}")))
        self._record(entry(result=result, verdict=verdict), result, verdict, trace)
        return verdict

    async def _run(
        self, hook: HookDefinition, stage: Stage, refused: str | None, trace: HookTrace | None
    ) -> HookExecutionResult:
        """The result of the hook, or why it did not run."""
        here = stage.occurrence
        if refused is not None:
            return HookExecutionResult(error=refused, is_refused=True)
        if here.seconds(hook.timeout) == 0:  # earlier hooks used up the event's deadline
            return HookExecutionResult(timed_out=True)
        if hook.kind is HookKind.ABSENT:  # must not reach a runner, which might treat it as a command
            return HookExecutionResult(error=why_absent(hook.command))
        if hook.function is not None:
            door = self._door if here.waits_for(hook) else no_door
            return await call_function(hook.function, stage.stdin(hook.dialect), here.seconds(hook.timeout), door)
        job = self._job(hook, stage)
        if trace is not None and (place := trace.traceparent):
            job = replace(job, traceparent=place, env={**job.env, TRACE_VARIABLE: place})
        return await self._runner.run(job)

    def _job(self, hook: HookDefinition, stage: Stage) -> HookJob:
        here, project, columns = stage.occurrence, self._environment.project, hook.columns
        command, args = hook.command, hook.args
        if args is not None:
            command, args = with_project(command, project), tuple(with_project(one, project) for one in args)
        return HookJob(
            kind=hook.kind,
            command=command,
            args=args,
            arguments=stage.arguments if hook.gets_arguments else (),
            stdin=stage.stdin(hook.dialect),
            env=self._environment.variables(hook, stage),
            cwd=self._environment.directory(hook, here.aside),
            timeout=here.seconds(hook.timeout),
            is_waited_for=here.waits_for(hook),
            look_again=partial(self._why_refused, hook),
            headers=hook.headers,
            header_env=hook.header_env if columns.names_its_services else (),
            names_its_services=columns.names_its_services,
            body_format=hook.body_format,
            call=hook.call,
            layer=hook.layer.value,
            model=hook.model,
            task=here.aside.task,
        )

    def _record(self, run: HookRun, result: HookExecutionResult, verdict: Verdict, trace: HookTrace | None) -> None:
        if trace is not None:
            trace.end(run)
        self._journal.add(run)
        if self._on_run is not None:
            self._on_run(run, result, verdict)
        self._emit(HookFinished(run=run))
