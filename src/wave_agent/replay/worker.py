"""The process that replays events against hooks. It runs in the same directory and isolation as the hooks.

It reads a plan as one line on stdin, then a unit of work per line. It answers `{"type":"ready"}`, and for each unit a
line for each finding, now and then how far it is, and at last its totals. When stdin closes, the parent process has
ended or wants no more results, so running hooks are ended.
"""

import asyncio
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wave_agent.agent.hook_runners import hook_runner_for
from wave_agent.effects.shown import summary
from wave_agent.formats.strict_json import Document
from wave_agent.hooks.definitions import HookDefinition, Layer, Mode
from wave_agent.hooks.dialects import Dialect, has_failed, heard_by
from wave_agent.hooks.events import EVENTS
from wave_agent.hooks.execution import close_runner
from wave_agent.hooks.manager import HookManager, SessionFacts
from wave_agent.hooks.python_guard import PythonGuard
from wave_agent.hooks.runners.thinking import Thinker
from wave_agent.hooks.stage import ToolFacts
from wave_agent.hooks.verdicts import FailureKind
from wave_agent.replay.comparison import UNANSWERED, UNCHANGED, ChangedVerdict, Judgement, kind_of, present
from wave_agent.replay.durations import bucket_of
from wave_agent.replay.lines import parse_lines
from wave_agent.replay.namespace import Overlay, enter, leave
from wave_agent.replay.recorded_answers import RecordedAnswers
from wave_agent.replay.recorded_events import Happening, Recording, recording, tool_facts
from wave_agent.replay.report import UnitTotals
from wave_agent.replay.scratch import remove_if_abandoned
from wave_agent.replay.snapshot import SessionChangedError, is_url, read_session
from wave_agent.replay.units import RecordedSession, SessionPart, Unit
from wave_agent.sessions.masking import masked
from wave_agent.settings.hook_entries import SettingsSource
from wave_agent.settings.layers import Settings, merge_settings
from wave_agent.system.orphans import Leftovers
from wave_agent.text import clip
from wave_agent.tools.base import ToolContext

_TELL_SECONDS = 0.2
"""How often to say how far it is."""


class PlannedSource(Struct, frozen=True):
    """Settings of one layer, in a form that can be sent to another process."""

    layer: str
    name: str
    value: Any
    dialect: Dialect = Dialect.WAVE


class ReplayPlan(Struct, frozen=True, kw_only=True):
    """How to replay."""

    real_project: str
    """The real project directory, used in reports."""
    real_home: str
    """The user's home directory, used in reports."""
    sources: tuple[PlannedSource, ...]
    hook: str | None = None
    """Replay only the hook with this name, as if it were enabled and enforced."""
    show_secrets: bool = False
    wave_home: str = ""
    ask_models: bool = False
    """Hooks that ask a model ask it again, instead of using the recorded answers."""
    project: str = ""
    """The project directory that hooks see."""
    home: str = ""
    """The home directory that hooks see."""
    directory: str = ""
    """Where to write the transcripts that hooks can read."""
    overlays: tuple[Overlay, ...] = ()
    """Directories whose changes are discarded."""
    network: bool = False
    """Do not cut the network. Only with `overlays`: otherwise whoever starts the process sees to it."""


class WorkerReady(Struct, frozen=True, tag="ready"):
    """The process has started."""


class FoundChange(Struct, frozen=True, tag="found"):
    finding: ChangedVerdict


class Tick(Struct, frozen=True, tag="tick"):
    """How far the unit is."""

    events: int
    size: int
    """Bytes."""


class UnitDone(Struct, frozen=True, tag="done"):
    """The end of a unit."""

    unit: int
    totals: UnitTotals


Answer = WorkerReady | FoundChange | Tick | UnitDone


def settings_of(sources: Sequence[PlannedSource]) -> Settings:
    return merge_settings(
        [
            SettingsSource(Layer(source.layer), source.name, Document(source.value, {}), source.dialect)
            for source in sources
        ]
    )


def chosen_hooks(settings: Settings, name: str | None) -> tuple[HookDefinition, ...]:
    """The hooks to replay. Async hooks are skipped: their decisions never apply, so there is nothing to compare."""
    hooks = [hook for hook in settings.hooks.hooks if not hook.is_async]
    if name is None:
        return tuple(hooks)
    return tuple(replace(hook, mode=Mode.ENFORCE, enabled=True) for hook in hooks if hook.name == name)


def relocated(value: Any, old: str, new: str) -> Any:
    """The value with one directory replaced by another wherever a text names it."""
    if old == new or not old:
        return value
    pattern = re.compile(rf"(?<![\w.-]){re.escape(old.rstrip('/'))}(?![\w.-])")

    def change(one: Any) -> Any:
        if isinstance(one, str):
            return pattern.sub(lambda _: new, one)
        if isinstance(one, Mapping):
            return {key: change(item) for key, item in cast(Mapping[str, Any], one).items()}
        return [change(item) for item in cast(list[Any], one)] if isinstance(one, list) else one

    return change(value)


class _GrowingTranscript:
    """A transcript, up to what had been written when an event happened."""

    def __init__(self, content: bytes, name: str, directory: Path) -> None:
        self.path = directory / f"{name}.jsonl"
        self._content = content
        self._written = 0
        self._file = self.path.open("wb", buffering=0)

    def grow(self, size: int) -> None:
        if size > self._written:
            self._file.write(self._content[self._written : size])
            self._written = size

    def close(self) -> None:
        self._file.close()
        with suppress(OSError):
            self.path.unlink()


class _ReadSession(Struct, frozen=True):
    """A session that has been read: the next part of it may come to this process too."""

    session: RecordedSession
    content: bytes
    recording: Recording
    grown: bool


class Replay:
    """Replays sessions, one event after another."""

    def __init__(self, plan: ReplayPlan, tell: Callable[[Answer], None]) -> None:
        settings = settings_of(plan.sources)
        self.plan = plan
        self._tell = tell
        self._settings = settings
        self._hooks = chosen_hooks(settings, plan.hook)
        self.heard = frozenset(hook.event for hook in self._hooks if hook.enabled)
        """Events that have hooks."""
        self.answers = RecordedAnswers()
        directory = Path(plan.directory)
        self._left = Leftovers(directory, directory / "replay")
        self._left.open()
        self._runner = hook_runner_for(settings, os.environ, self._left.entry, open_thinker=self._thinker)
        self._directory = directory
        self._environment = {**os.environ, **settings.env}
        self._last: _ReadSession | None = None

    def _thinker(self) -> "Thinker":
        if not self.plan.ask_models:
            return self.answers
        from wave_agent.replay.asked_models import asking_thinker  # lazy: costs money, so it is rarely asked for

        plan = self.plan
        home, outputs = Path(plan.wave_home), Path(plan.directory)
        return asking_thinker(self._settings, self._hooks, project=plan.project, home=home, outputs=outputs)

    async def unit(self, unit: Unit) -> None:
        progress = _Progress(self._tell)
        for part in unit.parts:
            try:
                read = self._read(part.session)
            except SessionChangedError as error:
                progress.totals.leave_out(part.session.place, str(error), first=part.part == 0)
            else:
                await _SessionReplay(self, part, read, progress).run()
            progress.end_part(part)
        self._tell(UnitDone(unit.number, progress.totals))

    async def close(self) -> None:
        await close_runner(self._runner)
        self._left.close()

    def _read(self, session: RecordedSession) -> _ReadSession:
        if self._last is None or self._last.session != session:
            content, grown = read_session(session)
            # Transcripts of subagents are beside it, unless it is in an object store or came here by itself.
            path = None if is_url(session.place) else Path(session.place)
            found = recording(replace(parse_lines(content.splitlines()), path=path), self.plan.hook)
            self._last = _ReadSession(session, content, found, grown)
        return self._last

    def tell(self, finding: ChangedVerdict) -> None:
        self._tell(FoundChange(finding))

    def context(self, start: str) -> ToolContext:
        return ToolContext(
            project_dir=Path(self.plan.project),
            start=Path(start) if start else None,
            environment=self._environment,
            outputs=Path(self.plan.directory),
        )

    def manager(self, session: SessionFacts) -> HookManager:
        # Looked at once for a session: nobody but its own hooks can change the files of a hook here.
        python = PythonGuard(self.plan.project, self._directory, os.environ)
        problems = {hook.position: python.problem(hook) for hook in self._hooks}
        given = {hook.position: python.environment(hook) for hook in self._hooks}
        return HookManager(
            self._hooks,
            runner=self._runner,
            session=session,
            environment=os.environ,
            settings_env=self._settings.env,
            max_stop_blocks=self._settings.max_stop_blocks,
            why_refused=lambda hook: problems[hook.position],
            own_environment=lambda hook: given[hook.position],
        )

    def inward(self, value: Any, recorded_project: str) -> Any:
        """Make texts name the directories that hooks see."""
        value = relocated(value, recorded_project, self.plan.project)
        return relocated(value, self.plan.real_home, self.plan.home)

    def outward(self, value: Any, project: str) -> Any:
        """Make texts name the project, not its copy."""
        return relocated(relocated(value, self.plan.project, project), self.plan.home, self.plan.real_home)


class _Progress:
    """The totals of a unit so far."""

    def __init__(self, tell: Callable[[Answer], None]) -> None:
        self.totals = UnitTotals()
        self._tell = tell
        self._told = monotonic()
        self._before = 0
        """Bytes of the parts that are done."""

    def step(self, size: int) -> None:
        """`size`: bytes of the current part."""
        if (now := monotonic()) - self._told >= _TELL_SECONDS:
            self._told = now
            self._tell(Tick(self.totals.events, self._before + size))

    def end_part(self, part: SessionPart) -> None:
        self._before += part.size


class _SessionReplay:
    """Replays the events of one session, or some of them."""

    def __init__(self, replay: Replay, part: SessionPart, read: _ReadSession, progress: _Progress) -> None:
        self._replay = replay
        self._part = part
        self._progress = progress
        self._recording = found = read.recording
        plan = replay.plan
        self._start = replay.inward(found.cwd, found.project)
        self._transcript = _GrowingTranscript(read.content, part.session.name, Path(plan.directory))
        self._manager = replay.manager(
            SessionFacts(
                session_id=part.session.name,
                transcript_path=str(self._transcript.path),
                project_dir=plan.project,
                home=plan.home,
                start=self._start,
            )
        )
        self._context = replay.context(self._start)
        self._tools: dict[str, ToolFacts] = {}
        if part.part == 0:
            totals = progress.totals
            totals.sessions += 1
            totals.grown += read.grown
            totals.erased += found.erased
            totals.replaced += found.replaced
            totals.skipped += found.skipped

    async def run(self) -> None:
        happenings = self._recording.happenings
        first, end = self._part.share(len(happenings))
        try:
            for number in range(first, end):
                happening = happenings[number]
                if happening.event in self._replay.heard:
                    self._transcript.grow(happening.written)
                await self._event(number, happening)
                self._progress.step(self._part.size * (number - first) // (end - first))
        finally:
            self._transcript.close()

    async def _event(self, number: int, happening: Happening) -> None:
        heard = happening.event in self._replay.heard
        after, unanswered = await self._judged(happening) if heard else (Judgement(), False)
        kind = UNANSWERED if unanswered else kind_of(happening.before, after)
        self._progress.totals.count(kind)
        if kind != UNCHANGED:
            self._replay.tell(self._finding(kind, number, happening, self._shown(after)))

    async def _judged(self, happening: Happening) -> tuple[Judgement, bool]:
        """What hooks decide now, and whether that depends on an answer of a model that was not recorded."""
        replay, project, totals = self._replay, self._recording.project, self._progress.totals
        facts = replay.inward(happening.facts, project)
        journal = len(self._manager.journal)
        replay.answers.begin(happening.answers)
        started = monotonic()
        outcome = await self._manager.run(
            happening.event,
            {**facts, "dry_run": True},
            tool=self._tool(happening.tool),
            dialects=heard_by(happening.event, failed=has_failed(facts)),
        )
        taken = (monotonic() - started) * 1000
        runs = self._manager.journal[journal:]
        if runs:
            totals.judged += 1
            bucket = bucket_of(taken)
            totals.durations[bucket] = totals.durations.get(bucket, 0) + 1
        left = replay.outward(outcome.tool_input, project) if outcome.rewritten_by else None
        failed_otherwise = any(run.failure not in (None, FailureKind.ANSWER.value) for run in runs)
        return present(outcome, runs, left), replay.answers.has_none and not failed_otherwise

    def _tool(self, name: str) -> ToolFacts:
        if name not in self._tools:
            self._tools[name] = tool_facts(name, self._context)
        return self._tools[name]

    def _shown(self, after: Judgement) -> Judgement:
        def real(text: str) -> str:
            return self._replay.outward(text, self._replay.plan.real_project)

        return replace(
            after,
            reason=real(after.reason),
            failed=tuple(map(real, after.failed)),
            hooks=tuple(map(real, after.hooks)),
        )

    def _finding(self, kind: str, number: int, happening: Happening, after: Judgement) -> ChangedVerdict:
        plan, before, does = self._replay.plan, happening.before, ""
        if EVENTS[happening.event].shows_effects:
            tool_input = self._replay.inward(happening.facts.get("tool_input") or {}, self._recording.project)
            effects = self._tool(happening.tool).effects(tool_input)
            does = self._replay.outward(summary(effects, plan.project), plan.real_project)
        finding = ChangedVerdict(
            number=number,
            kind=kind,
            session_id=self._part.session.name,
            line=happening.line,
            agent_id=str(happening.facts.get("agent_id", "")),
            event=happening.event.value,
            tool=happening.tool,
            call=happening.call,
            tool_input=happening.facts.get("tool_input"),
            before=before.decision.name.lower(),
            after=after.decision.name.lower(),
            reason="\n".join(after.failed) or after.reason or before.reason,
            hooks=after.hooks or before.hooks,
            new_input=after.tool_input,
            new_result=after.result,
            does=does,
        )
        finding = finding if plan.show_secrets else masked(finding)
        return replace(finding, call=clip(finding.call, 1000))


class _Orders(asyncio.Protocol):
    """The lines on stdin. When it closes, the task is cancelled."""

    def __init__(self) -> None:
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()
        self.task: asyncio.Task[None] | None = None
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self.lines.put_nowait(line)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.task is not None:
            self.task.cancel()


async def _work(plan: ReplayPlan) -> None:
    def tell(answer: Answer) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        if not isinstance(answer, FoundChange):
            sys.stdout.buffer.flush()

    async def work() -> None:
        replay = Replay(plan, tell)
        try:
            tell(WorkerReady())
            while True:
                await replay.unit(msgspec.json.decode(await orders.lines.get(), type=Unit))
        finally:
            await replay.close()

    orders = _Orders()
    task = orders.task = asyncio.create_task(work())
    await asyncio.get_running_loop().connect_read_pipe(lambda: orders, sys.stdin.buffer)
    with suppress(asyncio.CancelledError):
        await task


def main() -> None:
    plan = msgspec.json.decode(sys.stdin.buffer.readline(), type=ReplayPlan)
    if plan.overlays:
        enter(plan.overlays, network=plan.network)
        os.chdir(plan.project)
    with suppress(KeyboardInterrupt, BrokenPipeError):
        asyncio.run(_work(plan))
    leave(plan.overlays)
    remove_if_abandoned(Path(plan.directory))
