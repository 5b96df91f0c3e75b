"""Runs hooks: finds those that apply to an event, runs them, and returns the merged outcome.

`engine` connects what runs them: `event_run` decides the order, `executor` runs each hook and journals the run, and
`semantics` decides what the output means. Each call of `HookManager.run` is one *occasion*; its number links journal
entries and deferred context to the event.
"""

import uuid
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.events import Event, HookRun
from wave_agent.hooks.deferred import Deferred, DeferredContext
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.dialects import ALL, Aside, Dialect
from wave_agent.hooks.environment import SessionFacts
from wave_agent.hooks.events import EVENTS, EventRow, HookEvent
from wave_agent.hooks.execution import HookKind, HookRunner, close_runner
from wave_agent.hooks.journal import HookJournal
from wave_agent.hooks.pinned import search_path
from wave_agent.hooks.variables import SessionVariables
from wave_agent.hooks.verdicts import Blocks, Outcome, Role, without_hooks
from wave_agent.system.fairness import fairness
from wave_agent.system.real_files import is_below, resolve_or_keep
from wave_agent.system.reentrancy import Door, no_door

if TYPE_CHECKING:
    from wave_agent.hooks.engine import HookEngine
    from wave_agent.hooks.executor import BeginTrace, RunListener
    from wave_agent.hooks.stage import ToolFacts

__all__ = ["ASYNC_GRACE", "AgentIdentity", "Deferred", "HookManager", "LiveSession", "SessionFacts"]

ASYNC_GRACE = 5.0
"""Seconds that async hooks get to finish at the end of a session."""


class LiveSession(Struct, frozen=True, kw_only=True):
    """What hooks share with the session they run in. The defaults are for hooks that run outside one."""

    variables: SessionVariables | None = None
    """Receives what hooks export for the commands of the session."""
    exports: Path | None = None
    """The directory for the files to which they write exports."""
    directory: Callable[[], str] = str
    """Returns the session's current directory if it has changed."""
    door: Door = no_door
    """Wraps each call of a function hook that is awaited."""
    attended: bool = True
    """A user can be asked."""
    task: Callable[[], str] = str
    """Returns the latest prompt, or the task of a subagent."""
    journal: Sequence[HookRun] = ()
    """The runs of a resumed session."""
    deferred: Sequence[Deferred] = ()
    """The context that was waiting when a resumed session ended."""
    begin_trace: "BeginTrace | None" = None
    """Tells telemetry that a hook begins to run."""


_NO_SESSION = LiveSession()


class AgentIdentity(Struct, frozen=True, kw_only=True):
    """The subagent in which events happen."""

    agent_id: str
    agent_type: str
    transcript_path: str

    def fields(self, row: EventRow) -> dict[str, str]:
        """The stdin fields that say so."""
        own = {"agent_transcript_path": self.transcript_path}
        wanted = {field.name for field in row.stdin}
        found = {"agent_id": self.agent_id, "agent_type": self.agent_type}
        return {**found, **{name: value for name, value in own.items() if name in wanted}}


class HookManager:
    """Runs the hooks of one session and records every run in its journal.

    `environment` is the agent's own, `settings_env` the variables in settings. `outputs` is the directory for the full
    text of output too long to show. `own_environment` returns variables for one hook, on top of those all hooks get.

    `why_refused` is called before each run and says why this hook must not run now, or None. A refused hook is a
    failure that blocks whatever its `onFailure`: the guard has not had its say.

    `on_run` receives every run with its output, which the journal does not store.

    `reserve` are hooks that belong to kinds of subagents: they run only in managers made by `for_agent`.
    """

    def __init__(
        self,
        hooks: Sequence[HookDefinition],
        *,
        runner: HookRunner,
        session: SessionFacts,
        environment: Mapping[str, str],
        settings_env: Mapping[str, str] | None = None,
        max_stop_blocks: int = 8,
        on_event: Callable[[Event], None] = lambda _: None,
        outputs: Path | None = None,
        why_refused: Callable[[HookDefinition], str | None] = lambda _: None,
        own_environment: Callable[[HookDefinition], Mapping[str, str]] = lambda _: {},
        async_grace: float = ASYNC_GRACE,
        on_run: "RunListener | None" = None,
        live: LiveSession = _NO_SESSION,
        reserve: Sequence[HookDefinition] = (),
    ) -> None:
        self.hooks = tuple(hooks)
        self.agent: AgentIdentity | None = None
        """The subagent whose hooks these are, if any."""
        self.session = session
        self.search_path = search_path(environment)
        """PATH for hooks: the agent's own, whatever settings and hooks set for commands."""
        self._runner = runner
        self._live = live
        self._max_stop_blocks = max_stop_blocks
        self._prompt_id = ""
        self._journal = HookJournal(live.journal)
        self._deferred = DeferredContext(live.deferred)
        self._engine: HookEngine | None = None
        if not (self.hooks or reserve):
            return
        from wave_agent.hooks.engine import HookEngine as Engine  # lazy: most projects have no hooks

        self._engine = Engine(
            session=session,
            runner=runner,
            environment=environment,
            settings_env=settings_env or {},
            own_environment=own_environment,
            journal=self._journal,
            deferred=self._deferred,
            outputs=outputs,
            variables=live.variables,
            exports=live.exports,
            why_refused=why_refused,
            door=live.door,
            emit=on_event,
            on_run=on_run,
            begin_trace=live.begin_trace,
            async_grace=async_grace,
        )

    def for_agent(
        self,
        agent: AgentIdentity,
        own: Sequence[HookDefinition],
        *,
        directory: Callable[[], str],
        task: Callable[[], str],
    ) -> "HookManager":
        """The same hooks, journal and engine for a subagent, and the hooks that its definition adds. `directory`
        returns the subagent's current one, if it has changed, and `task` what it is to do."""
        from copy import copy  # lazy: most sessions have no subagents

        view = copy(self)
        view.agent = agent
        view.hooks = (*self.hooks, *own)
        view._live = replace(self._live, directory=directory, task=task)
        return view

    async def run(
        self,
        event: HookEvent,
        facts: Mapping[str, Any],
        *,
        permission_mode: str = "default",
        tool: "ToolFacts | None" = None,
        blocks: Blocks | None = None,
        waited: bool = True,
        late: bool = False,
        dialects: Collection[Dialect] = ALL,
        aside: Aside | None = None,
        but_not_on: str = "",
    ) -> Outcome:
        """Run every hook that applies to this event and return the combined outcome.

        `facts` are the event's own stdin fields. `blocks` is how often hooks have blocked before; without it, all
        blocks counted in `facts` are taken to be in a row. If `waited` is false, hooks are started but treated like
        async hooks. `late`: no decision has an effect any more, so no model is asked. Only hooks in `dialects` run,
        without those that are for the tool `but_not_on`; `aside` holds facts that only some dialects send. Cancelling
        kills the running hooks and waits for them to end.
        """
        happening = self._here(event)
        if happening is None:
            return without_hooks(event, facts.get("tool_input"))
        event, row = happening, EVENTS[happening]
        counted: int = facts.get(row.block_counter or "", 0)
        before = blocks or Blocks(total=counted, in_a_row=counted)
        number, is_waited_for = self._journal.next_occasion(), row.waited and waited
        hooks = [hook for hook in self.hooks if hook.event is event and hook.dialect in dialects]
        if late:
            hooks = [hook for hook in hooks if hook.kind not in (HookKind.PROMPT, HookKind.AGENT)]
        hooks = [hook for hook in hooks if not (but_not_on and hook.may_apply_to(but_not_on))]
        engine = self._engine
        if self.agent is not None:
            self._deferred.belongs(number, self.agent.agent_id)
        if engine is None or not hooks:
            return without_hooks(event, facts.get("tool_input")) if is_waited_for else Outcome(event=event)
        running = engine.run(
            engine.occurrence(
                row, number, tool, self._aside(aside or Aside()), is_waited_for=is_waited_for, is_late=late
            ),
            hooks,
            {**self._common(row, permission_mode), **facts},
            before.spent,
        )
        if not is_waited_for:
            engine.background.start(running, number)
            return Outcome(event=event)
        outcome = engine.texts.shortened(await running)
        await fairness().breathe()
        if outcome.prompt_erased:  # async hooks saw the prompt too: their context must not reach the model either
            self._deferred.erase(number)
        if row.block_counter is None:
            return outcome
        from wave_agent.hooks.semantics import limited  # lazy: loaded by the engine

        return limited(outcome, before, self._max_stop_blocks)

    def announce(
        self, event: HookEvent, occurrences: Iterable[Mapping[str, Any]], *, permission_mode: str = "default"
    ) -> None:
        """Start the hooks of an event for each of these occurrences, one after another. Nothing waits for them."""
        row, engine = EVENTS[event], self._engine
        hooks = [hook for hook in self.hooks if hook.event is event and hook.enabled]
        if engine is None or not hooks:
            return
        works: list[tuple[Callable[[], Coroutine[Any, Any, Outcome]], int]] = []
        for facts in occurrences:
            if not any(hook.matcher.matches(row.target_in(facts)) for hook in hooks):
                continue
            number = self._journal.next_occasion()
            here = engine.occurrence(row, number, None, self._aside(Aside()), is_waited_for=False)
            payload = {**self._common(row, permission_mode), **facts}
            works.append((partial(engine.run, here, hooks, payload, ()), number))
        if works:
            engine.background.start_in_turn(works)

    def _common(self, row: EventRow, permission_mode: str) -> dict[str, str]:
        """The stdin fields that all events have."""
        return {
            "session_id": self.session.session_id,
            "transcript_path": self.session.transcript_path,
            "cwd": self.session.start or self.session.project_dir,
            "hook_event_name": row.event.value,
            "permission_mode": permission_mode,
            **({"host": self.session.host} if self.session.host else {}),
            **({} if self.agent is None else self.agent.fields(row)),
        }

    def _here(self, event: HookEvent) -> HookEvent | None:
        """What this event is in a subagent; None: it does not happen there."""
        instead = "same" if self.agent is None else EVENTS[event].in_subagent
        return None if instead == "never" else event if instead == "same" else HookEvent(instead)

    def _aside(self, known: Aside) -> Aside:
        session, directory = self.session, self.directory
        # As in the agent the hook was written for: a session stays within its directories.
        if directory != session.project_dir and not is_below(
            resolve_or_keep(directory), resolve_or_keep(session.project_dir)
        ):
            directory = session.start or session.project_dir
        return replace(
            known,
            directory=directory,
            prompt_id=self._prompt_id,
            session_id=session.session_id,
            attended=self._live.attended,
            task=self._live.task,
        )

    @property
    def directory(self) -> str:
        """The session's current directory."""
        return self._live.directory() or self.session.start or self.session.project_dir

    def begin_prompt(self) -> None:
        """Start a new prompt: all later events belong to it. The task of a subagent belongs to the prompt above."""
        if self.agent is None:
            self._prompt_id = str(uuid.uuid4())

    @property
    def journal(self) -> list[HookRun]:
        """Every run so far, in order."""
        return self._journal.runs

    @property
    def deferred(self) -> list[Deferred]:
        """Context waiting for the next request of this turn, or for the next prompt."""
        return self._deferred.waiting

    @property
    def wakes(self) -> bool:
        """Some of that context is worth a new turn."""
        return any(one.wakes for one in self._deferred.waiting)

    def take_deferred(self) -> tuple[Deferred, ...]:
        """Remove and return the context that has been waiting."""
        return self._deferred.take("" if self.agent is None else self.agent.agent_id)

    def end_agent(self) -> None:
        """The subagent has ended."""
        if self.agent is not None:
            self._deferred.hand_over(self.agent.agent_id)

    def watches(self, event: HookEvent, *targets: str) -> bool:
        """Whether a hook whose verdict is enforced may apply to this event and one of these names of its target."""
        found = (hook for hook in self.hooks if hook.event is self._here(event) and hook.enabled)
        return any(hook.role is Role.ENFORCE and any(map(hook.matcher.matches, targets)) for hook in found)

    def overlooks(self, tool: str, like: str) -> bool:
        """Whether a hook that may run for calls of the tool `like` never runs for those of this one."""
        found = [hook for hook in self.hooks if EVENTS[hook.event].has_tool and hook.enabled]
        return any(hook.may_apply_to(like) and not hook.may_apply_to(tool) for hook in found)

    def waits(self, event: HookEvent, *targets: str) -> bool:
        """Whether a hook that is awaited may apply, even if its verdict has no effect."""
        found = (hook for hook in self.hooks if hook.event is self._here(event) and hook.enabled)
        return any(not hook.is_async and any(map(hook.matcher.matches, targets)) for hook in found)

    def hears(self, event: HookEvent) -> bool:
        """Whether any hook may run on this event."""
        return any(hook.event is self._here(event) and hook.enabled for hook in self.hooks)

    @property
    def is_busy(self) -> bool:
        """Hooks that nothing waits for are running."""
        return self._engine is not None and self._engine.background.is_running

    async def close(self) -> None:
        """Give async hooks a moment to finish, then end them and close the runner."""
        if self._engine is not None:
            await self._engine.background.close()
        await close_runner(self._runner)
