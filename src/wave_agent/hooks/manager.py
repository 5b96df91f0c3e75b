"""Runs hooks: finds those that apply to an event, runs them, journals each run, and returns the merged outcome.

`event_run` decides the order, `runners` run each hook, and `semantics` decides what the output means. Each call of
`HookManager.run` is one *occasion*; its number links journal entries and deferred context to the event.
"""

import asyncio
import hashlib
import json
import os
import uuid
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.errors import SessionError
from wave_agent.events import Event, HookFinished, HookRun, HookStarted, Notice
from wave_agent.formats.readable import readable, readable_text
from wave_agent.hooks.definitions import HookDefinition, with_project
from wave_agent.hooks.dialects import ALL, Aside, Dialect
from wave_agent.hooks.event_run import EventRun, Stage, ToolFacts, reading_of, role_of
from wave_agent.hooks.events import EVENTS, EventRow, HookEvent
from wave_agent.hooks.execution import HookExecutionResult, HookJob, HookKind, HookRunner, close_runner
from wave_agent.hooks.kinds import why_absent
from wave_agent.hooks.pinned import is_pinned, search_path
from wave_agent.hooks.runners.function import call_function
from wave_agent.hooks.semantics import lets_through, limited, merge, read, withholds
from wave_agent.hooks.variables import FILE_VARIABLE, ExportFile, SessionVariables, exported
from wave_agent.hooks.verdicts import (
    AddContext,
    Approve,
    Ask,
    Block,
    Blocks,
    Effect,
    EndTurn,
    Failure,
    FailureKind,
    Outcome,
    Role,
    Said,
    TellUser,
    ToUser,
    Verdict,
)
from wave_agent.rules.rule import Places
from wave_agent.system.credentials import without_credentials
from wave_agent.system.private_files import make_private, open_private
from wave_agent.system.real_files import is_below, resolve_or_keep
from wave_agent.system.reentrancy import Door, no_door
from wave_agent.system.timestamps import Clock, stamp, utc_now
from wave_agent.text import TEXT_LIMIT, clip

ARGUMENT_LIMIT = 100 * 1024
"""Maximum bytes of one argument; the system allows 128 KiB."""
ASYNC_GRACE = 5.0
"""Seconds that async hooks get to finish at the end of a session."""


class SessionFacts(Struct, frozen=True, kw_only=True):
    """Facts about the session that every hook receives."""

    session_id: str
    transcript_path: str
    project_dir: str
    home: str
    start: str = ""
    """The directory the agent was started in, if that is not the project directory."""


class Deferred(Struct, frozen=True):
    """Context from a hook that was not awaited, sent to the model with the next request or prompt."""

    event: str
    said: Said
    occasion: int = 0


class HookManager:
    """Runs the hooks of one session and records every run in its journal."""

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
        variables: SessionVariables | None = None,
        async_grace: float = ASYNC_GRACE,
        on_run: Callable[[HookRun, HookExecutionResult, Verdict], None] | None = None,
        journal: Sequence[HookRun] = (),
        deferred: Sequence[Deferred] = (),
        now: Clock = utc_now,
        door: Door = no_door,
        where: Callable[[], str] = str,
        attended: bool = True,
    ) -> None:
        """`environment` is the agent's own; `outputs` is the directory for the full text of output too long to show.

        `why_refused` is called before each run and says why this hook must not run now, or None. A refused hook is a
        failure that blocks whatever its `onFailure`: the guard has not had its say.

        `own_environment` returns variables for one hook, on top of those all hooks get.
        `variables` receives what hooks export for the commands of the session.
        `on_run` receives every run with its output, which the journal does not store.

        `journal` and `deferred` come from a resumed session. `door` wraps each call of a function hook that is awaited.
        `where` returns the session's current directory if it has changed; `attended` means a user can be asked.
        """
        self.hooks = tuple(hooks)
        self.session = session
        self.journal = list(journal)
        self.deferred: list[Deferred] = list(deferred)
        """Context waiting for the next request of this turn, or for the next prompt."""
        self._runner = runner
        self._emit = on_event
        self._outputs = outputs
        self._why_refused = why_refused
        self._own_environment = own_environment
        self._async_grace = async_grace
        self._on_run = on_run
        self._now = now
        self._door = door
        self._occasions = max((run.occasion for run in journal), default=0)
        self._ran_before = {(run.event, run.layer, run.name, run.command) for run in journal}
        self._ran: dict[int, int] = {}
        """By position: the occasion on which each hook first ran."""
        self._variables = variables
        self._export_files: dict[int, str] = {}
        """By occasion: the file to which its hooks can write variables."""
        self._void: set[int] = set()
        """Occasions whose prompt was erased."""
        self._unwaited: set[int] = set()
        """Occasions that did not wait for their hooks."""
        self._where = where
        self._attended = attended
        self._prompt_id = ""
        self._max_stop_blocks = max_stop_blocks
        self._places = Places(session.project_dir, session.home, session.start)
        self._background: set[asyncio.Task[None]] = set()
        kept = without_credentials(environment)
        for not_for_all in ("HOOK_EVENT", "HOOK_TOOL_NAME", FILE_VARIABLE, "CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA"):
            kept.pop(not_for_all, None)
        self.search_path = search_path(environment)
        """PATH for hooks: the agent's own, whatever settings and hooks set for commands."""
        wanted = {
            **kept,
            **{name: value for name, value in (settings_env or {}).items() if not is_pinned(name)},
            "PATH": self.search_path,
            "WAVE_PROJECT_DIR": session.project_dir,
            "CLAUDE_PROJECT_DIR": session.project_dir,
            "WAVE_SESSION_ID": session.session_id,
            "CLAUDE_SESSION_ID": session.session_id,
        }
        self._environment = {readable_text(name): readable_text(value) for name, value in wanted.items()}

    async def run(
        self,
        event: HookEvent,
        facts: Mapping[str, Any],
        *,
        permission_mode: str = "default",
        tool: ToolFacts | None = None,
        blocks: Blocks | None = None,
        waited: bool = True,
        dialects: Collection[Dialect] = ALL,
        aside: Aside | None = None,
    ) -> Outcome:
        """Run every hook that applies to this event and return the combined outcome.

        `facts` are the event's own stdin fields. `blocks` is how often hooks have blocked before; without it, all
        blocks counted in `facts` are taken to be in a row. If `waited` is false, hooks are started but treated like
        async hooks. Only hooks in `dialects` run; `aside` holds facts that only some dialects send. Cancelling kills
        the running hooks and waits for them to end.
        """
        common = {
            "session_id": self.session.session_id,
            "transcript_path": self.session.transcript_path,
            "cwd": self.session.start or self.session.project_dir,
            "hook_event_name": event.value,
            "permission_mode": permission_mode,
        }
        row = EVENTS[event]
        self._occasions += 1
        counted: int = facts.get(row.block_counter or "", 0)
        before = blocks or Blocks(total=counted, in_a_row=counted)
        occasion = EventRun(
            self,
            row,
            tool or ToolFacts(),
            number=self._occasions,
            spent=before.spent,
            aside=self._aside(aside or Aside()),
        )
        hooks = [hook for hook in self.hooks if hook.event is event and hook.dialect in dialects]
        payload = {**common, **facts}
        if not (row.waited and waited):
            self._unwaited.add(occasion.number)
            self._behind(self._unheard(occasion, hooks, payload))
            return Outcome(event=event)
        outcome = self._clipped(await self._run_all(occasion, hooks, payload))
        if outcome.prompt_erased:  # async hooks saw the prompt too: their context must not reach the model either
            self._void.add(occasion.number)
            self.deferred = [waiting for waiting in self.deferred if waiting.occasion != occasion.number]
        if row.block_counter is not None:
            return limited(outcome, before, self._max_stop_blocks)
        return outcome

    def begin_prompt(self) -> None:
        """Start a new prompt: all later events belong to it."""
        self._prompt_id = str(uuid.uuid4())

    def _aside(self, known: Aside) -> Aside:
        session = self.session
        directory = self._where() or session.start or session.project_dir
        # As in the agent the hook was written for: a session stays within its directories.
        if not is_below(resolve_or_keep(directory), resolve_or_keep(session.project_dir)):
            directory = session.start or session.project_dir
        return replace(
            known,
            directory=directory,
            prompt_id=self._prompt_id,
            session_id=session.session_id,
            attended=self._attended,
        )

    async def _run_all(
        self, occasion: EventRun, hooks: Sequence[HookDefinition], payload: Mapping[str, Any]
    ) -> Outcome:
        takes_variables = occasion.row.has_variables and self._variables is not None
        if not (hooks and takes_variables and self._outputs is not None):
            return await occasion.run(hooks, payload)
        try:
            file = ExportFile(self._outputs)
        except OSError as error:
            outcome = await occasion.run(hooks, payload)
            return _telling(outcome, f"hooks cannot set variables: {error}")
        self._export_files[occasion.number] = file.path
        try:
            outcome = await occasion.run(hooks, payload)
            return outcome if file.is_empty else _telling(outcome, await self._take_exports(file))
        finally:
            del self._export_files[occasion.number]
            file.remove()

    async def _take_exports(self, file: ExportFile) -> str:
        """Add the exported variables to the session. Returns a problem, if any."""
        result = await self._runner.run(file.job(self._environment, self.session.project_dir))
        found, problem = exported(result, self._environment)
        if self._variables is not None:
            self._variables.add(found)
        return problem

    async def close(self) -> None:
        """Give async hooks a moment to finish, then end them and close the runner."""
        ends = monotonic() + self._async_grace
        while self._background and (left := ends - monotonic()) > 0:  # a task may start another as it ends
            await asyncio.wait(self._background, timeout=left)
        late = tuple(self._background)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        await close_runner(self._runner)

    def watches(self, event: HookEvent, target: str) -> bool:
        """Whether a hook whose verdict is enforced may apply to this event and target."""
        found = (hook for hook in self.hooks if hook.event is event and hook.enabled)
        return any(role_of(hook) is Role.ENFORCE and hook.matcher.matches(target) for hook in found)

    def waits(self, event: HookEvent, target: str) -> bool:
        """Whether a hook that is awaited may apply, even if its verdict has no effect."""
        found = (hook for hook in self.hooks if hook.event is event and hook.enabled)
        return any(not hook.is_async and hook.matcher.matches(target) for hook in found)

    def _defer(self, outcome: Outcome, occasion: int) -> None:
        self.deferred.extend(Deferred(outcome.event, said, occasion) for said in outcome.contexts)

    def take_deferred(self) -> tuple[Deferred, ...]:
        """Remove and return the context that has been waiting."""
        taken = tuple(self.deferred)
        self.deferred.clear()
        return taken

    # ------------------------------------------------------------------------------------------------------- one run

    def applies(self, hook: HookDefinition, stage: Stage) -> bool:
        return not self._is_over(hook, stage) and hook.why_not(stage.payload, self._places) is None

    def _is_over(self, hook: HookDefinition, stage: Stage) -> bool:
        """Whether a `once` hook has already run. It may still run again on the same occasion, for a second look."""
        if not hook.once:
            return False
        known_as = (hook.event.value, hook.layer.value, hook.name, hook.shown_command)
        return known_as in self._ran_before or self._ran.get(hook.position, stage.occasion) != stage.occasion

    def start(self, hook: HookDefinition, stage: Stage, look: int) -> None:
        """Start an async hook: its context comes later, its messages become notices, its decisions are ignored."""

        self._ran.setdefault(hook.position, stage.occasion)

        async def finish() -> None:
            verdict = await self.execute(hook, stage, look)
            self._heard_late(merge(hook.event, [reading_of(hook, verdict, look)]), stage.occasion)

        self._behind(finish())

    async def _unheard(self, occasion: EventRun, hooks: Sequence[HookDefinition], payload: Mapping[str, Any]) -> None:
        self._heard_late(await self._run_all(occasion, hooks, payload), occasion.number)

    def _behind(self, work: Coroutine[Any, Any, None]) -> None:
        async def unwatched() -> None:
            with suppress(SessionError):  # nothing awaits this task; a failure to record the run is reported elsewhere
                await work

        task = asyncio.create_task(unwatched())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _heard_late(self, outcome: Outcome, occasion: int) -> None:
        """Handle the outcome of hooks that were not awaited: defer their context, emit their messages as notices."""
        outcome = self._clipped(outcome)
        if occasion not in self._void:
            self._defer(outcome, occasion)
        for note in outcome.to_user:
            self._emit(Notice(content=note.text, level=note.level))

    async def execute(self, hook: HookDefinition, stage: Stage, look: int) -> Verdict:
        """Run one hook and journal it."""
        row = EVENTS[hook.event]
        self._ran.setdefault(hook.position, stage.occasion)
        call_id = stage.payload.get("tool_use_id")
        self._emit(
            HookStarted(event=row.event.value, name=hook.name, tool_use_id=call_id, status_message=hook.status_message)
        )
        refused = self._why_refused(hook)
        started = stamp(self._now())
        try:
            if refused is not None:
                result = HookExecutionResult(error=refused, is_refused=True)
            elif stage.seconds(hook.timeout) == 0:  # earlier hooks used up the event's deadline
                result = HookExecutionResult(timed_out=True)
            elif hook.kind is HookKind.ABSENT:  # must not reach a runner, which might treat it as a command
                result = HookExecutionResult(error=why_absent(hook.command))
            elif hook.function is not None:
                unwaited = hook.is_async or stage.occasion in self._unwaited
                door = no_door if unwaited else self._door
                result = await call_function(
                    hook.function, stage.stdin(hook.dialect), stage.seconds(hook.timeout), door
                )
            else:
                result = await self._runner.run(self._job(hook, row, stage))
        except asyncio.CancelledError:
            ended = Verdict((Failure(FailureKind.SIGNAL, "cancelled", blocks=True),))
            self._record(
                hook, stage, look, HookExecutionResult(cancelled=True), ended, started=started, let_through=False
            )
            raise
        if hook.gets_arguments and any(_is_cut(stage.payload, path) for path in row.arguments):
            result = replace(result, has_cut_arguments=True)
        verdict = read(hook.event, result, name=hook.name, on_failure=hook.on_failure, dialect=hook.dialect)
        wanted = verdict.rewrite
        if wanted is not None and (problem := stage.rewritten(hook, wanted)[1]):
            verdict = replace(verdict, effects=(*verdict.effects, TellUser(f"hook {hook.name}: {problem}")))
        failure = verdict.failure
        counts = role_of(hook) is Role.ENFORCE and stage.occasion not in self._unwaited
        let_through = failure is not None and counts and lets_through(row, failure)
        self._record(hook, stage, look, result, verdict, started=started, let_through=let_through)
        return verdict

    def _job(self, hook: HookDefinition, row: EventRow, stage: Stage) -> HookJob:
        environment = {**self._environment, **self._own_environment(hook), "HOOK_EVENT": row.event.value}
        environment |= {name: value(stage.aside) for name, value in hook.columns.environment.items()}
        if row.has_tool:
            environment["HOOK_TOOL_NAME"] = readable_text(str(stage.payload.get("tool_name", "")))
        if hook.plugin_root:
            environment["CLAUDE_PLUGIN_ROOT"] = hook.plugin_root
        if hook.plugin_data:
            environment["CLAUDE_PLUGIN_DATA"] = hook.plugin_data
            with suppress(OSError):  # then the hook itself fails and says why
                make_private(Path(hook.plugin_data))
        project = self.session.project_dir
        command, args = hook.command, hook.args
        if args is not None:
            command, args = with_project(command, project), tuple(with_project(one, project) for one in args)
        if file := self._export_files.get(stage.occasion):
            environment[FILE_VARIABLE] = file
        return HookJob(
            kind=hook.kind,
            command=command,
            args=args,
            arguments=tuple(_argument(stage.payload, path) for path in row.arguments) if hook.gets_arguments else (),
            stdin=stage.stdin(hook.dialect),
            env=environment,
            cwd=self._directory(hook, stage.aside),
            timeout=stage.seconds(hook.timeout),
            is_waited_for=not hook.is_async and stage.occasion not in self._unwaited,
            look_again=partial(self._why_refused, hook),
            headers=hook.headers,
            header_env=hook.header_env if hook.columns.names_its_services else (),
            names_its_services=hook.columns.names_its_services,
            body_format=hook.body_format,
        )

    def _directory(self, hook: HookDefinition, aside: Aside) -> str:
        """The directory this hook runs in."""
        project = self.session.project_dir
        if not hook.columns.follows_session or aside.directory == project:
            return project
        from wave_agent.hooks.named_files import runs_alike  # lazy: most sessions never change directory

        return aside.directory if runs_alike(hook, project, aside.directory, self.search_path) else project

    def _record(
        self,
        hook: HookDefinition,
        stage: Stage,
        look: int,
        result: HookExecutionResult,
        verdict: Verdict,
        *,
        started: str,
        let_through: bool,
    ) -> None:
        row, payload = EVENTS[hook.event], stage.payload
        changes = verdict.rewrite
        before = None if changes is None else payload.get("tool_input")
        run = HookRun(
            event=row.event.value,
            name=hook.name,
            command=hook.shown_command,
            layer=hook.layer.value,
            tool_use_id=payload.get("tool_use_id"),
            exit_code=result.exit_code if hook.kind is HookKind.COMMAND else None,
            outcome=verdict.word(row),
            failure=verdict.failure_kind.value if verdict.failure_kind else None,
            mode=hook.mode.value,
            look=look,
            rewrote=changes is not None,
            let_through=let_through,
            duration_ms=round(result.duration, 3),
            reason=clip(_reason(verdict)),
            is_async=hook.is_async,
            before=before,
            after=None if before is None or changes is None else stage.rewritten(hook, changes)[0],
            original_sha256=_digest(payload) if verdict.replacement is not None or withholds(row, verdict) else None,
            deferred=self._later(hook, stage, verdict),
            occasion=stage.occasion,
            position=hook.position,
            started=started,
        )
        self.journal.append(run)
        if self._on_run is not None:
            self._on_run(run, result, verdict)
        self._emit(HookFinished(run=run))

    def _later(self, hook: HookDefinition, stage: Stage, verdict: Verdict) -> tuple[str, ...]:
        """Context of a run that is not awaited, to be sent with a later request or prompt."""
        if not (hook.is_async or stage.occasion in self._unwaited) or role_of(hook) is Role.SHADOW:
            return ()
        return tuple(effect.text for effect in verdict.effects if isinstance(effect, AddContext))

    def _clipped(self, outcome: Outcome) -> Outcome:
        """The outcome with long texts truncated; the full text goes to a file.

        No file is written for an erased prompt: the text may quote it, and it must not reach the disk.
        """
        said = [one.text for texts in outcome.reasons.values() for one in texts]
        said += [one.text for one in (*outcome.contexts, *outcome.refusals)]
        texts = [*said, *(note.text for note in outcome.to_user)]
        if all(len(text) <= TEXT_LIMIT for text in texts):
            return outcome
        keep = not outcome.prompt_erased

        def short(text: str) -> str:
            return text if len(text) <= TEXT_LIMIT else clip(text, whole=self._keep(text) if keep else None)

        def cut(texts: tuple[Said, ...]) -> tuple[Said, ...]:
            return tuple(Said(one.hook, short(one.text)) for one in texts)

        return replace(
            outcome,
            reasons={decision: cut(texts) for decision, texts in outcome.reasons.items()},
            contexts=cut(outcome.contexts),
            refusals=cut(outcome.refusals),
            to_user=tuple(replace(note, text=short(note.text)) for note in outcome.to_user),
        )

    def _keep(self, text: str) -> str | None:
        if self._outputs is None:
            return None
        content = text.encode(errors="replace")
        file = self._outputs / f"hook-{hashlib.sha256(content).hexdigest()[:16]}.txt"
        try:
            make_private(self._outputs)
            with os.fdopen(open_private(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as kept:
                kept.write(content)
        except OSError:
            return None  # a full disk must not lose the verdict; the note then names no file
        return str(file)


def _telling(outcome: Outcome, problem: str) -> Outcome:
    return replace(outcome, to_user=(*outcome.to_user, ToUser("", problem))) if problem else outcome


def _text_of(effect: Effect) -> str:
    """The text of an effect, if it has one."""
    if isinstance(effect, Block | Ask | Approve | EndTurn):
        return effect.reason
    if isinstance(effect, AddContext | TellUser):
        return effect.text
    return effect.message if isinstance(effect, Failure) else ""


def _reason(verdict: Verdict) -> str:
    """The reasons behind a verdict, for the journal."""
    said = [effect for effect in verdict.effects if isinstance(effect, Block | Ask | Approve | EndTurn | Failure)]
    return "\n".join(text for effect in said if (text := _text_of(effect)))


def _is_cut(payload: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    return len(_argument(payload, path).encode()) > ARGUMENT_LIMIT - 4  # truncation may drop a whole character


def _argument(payload: Mapping[str, Any], path: tuple[str, ...]) -> str:
    """One value of the payload as a command-line argument."""
    value: Any = payload
    for step in path:
        value = cast(Mapping[str, Any], value).get(step, "") if isinstance(value, Mapping) else ""
    value = readable_text(value.replace("\0", "")) if isinstance(value, str) else readable(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode()[:ARGUMENT_LIMIT].decode(errors="ignore")


def _digest(payload: Mapping[str, Any]) -> str:
    response = payload.get("tool_response", payload.get("error"))
    return hashlib.sha256(json.dumps(response, sort_keys=True).encode()).hexdigest()
