"""What runs the hooks of a session. Loaded only if there are any."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from msgspec.structs import replace

from wave_agent.events import Event
from wave_agent.hooks.background import BackgroundHooks
from wave_agent.hooks.deferred import DeferredContext
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.dialects import Aside
from wave_agent.hooks.environment import HookEnvironment, SessionFacts
from wave_agent.hooks.event_run import EventRun
from wave_agent.hooks.events import EventRow
from wave_agent.hooks.execution import HookRunner
from wave_agent.hooks.executor import BeginTrace, HookExecutor, RunListener
from wave_agent.hooks.journal import HookJournal
from wave_agent.hooks.long_texts import LongTexts
from wave_agent.hooks.stage import Occurrence, ToolFacts
from wave_agent.hooks.variables import SessionVariables, VariableExports, no_file
from wave_agent.hooks.verdicts import Outcome
from wave_agent.rules.rule import Places
from wave_agent.system.reentrancy import Door


class HookEngine:
    """The parts that run hooks, connected."""

    def __init__(
        self,
        *,
        session: SessionFacts,
        runner: HookRunner,
        environment: Mapping[str, str],
        settings_env: Mapping[str, str],
        own_environment: Callable[[HookDefinition], Mapping[str, str]],
        journal: HookJournal,
        deferred: DeferredContext,
        outputs: Path | None,
        variables: SessionVariables | None,
        exports: Path | None,
        why_refused: Callable[[HookDefinition], str | None],
        door: Door,
        emit: Callable[[Event], None],
        on_run: RunListener | None,
        begin_trace: BeginTrace | None,
        async_grace: float,
    ) -> None:
        """The same as for `HookManager`."""
        self.texts = LongTexts(outputs)
        self.background = BackgroundHooks(deferred, self.texts, emit, async_grace)
        hook_environment = HookEnvironment(session, environment, settings_env, own_environment)
        self._exports = VariableExports(variables, exports, hook_environment.shared)
        self._executor = HookExecutor(
            runner=runner,
            environment=hook_environment,
            journal=journal,
            places=Places(session.project_dir, session.home, session.start),
            why_refused=why_refused,
            door=door,
            emit=emit,
            on_run=on_run,
            begin_trace=begin_trace,
        )

    def occurrence(
        self,
        row: EventRow,
        number: int,
        tool: ToolFacts | None,
        aside: Aside,
        *,
        is_waited_for: bool,
        is_late: bool = False,
    ) -> Occurrence:
        """An occurrence of an event that begins now."""
        return Occurrence(
            row=row,
            number=number,
            tool=tool or ToolFacts(),
            aside=aside,
            is_waited_for=is_waited_for,
            is_late=is_late,
            ends=None if row.deadline is None else monotonic() + row.deadline,
        )

    async def run(
        self,
        occurrence: Occurrence,
        hooks: Sequence[HookDefinition],
        payload: Mapping[str, Any],
        spent: Collection[int],
    ) -> Outcome:
        async def run(export_file: Callable[[str], str]) -> Outcome:
            here = replace(occurrence, export_file=export_file)
            return await EventRun(here, self._executor, self.background, spent=spent).run(hooks, payload)

        return await (self._exports.around(run) if occurrence.row.has_variables else run(no_file))
