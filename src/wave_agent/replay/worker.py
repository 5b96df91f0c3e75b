"""The process that replays events against hooks. It runs in the same directory and isolation as the hooks.

It reads a plan as one line on stdin and writes one line to stdout for each event. When stdin closes, the parent process
has ended or wants no more results, so running hooks are ended.
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
from wave_agent.agent.model_choice import ModelWishes, model_for, model_name_for
from wave_agent.effects.shown import summary
from wave_agent.formats.strict_json import Document
from wave_agent.hooks.definitions import HookDefinition, Layer, Mode
from wave_agent.hooks.dialects import Dialect, has_failed, heard_by
from wave_agent.hooks.events import EVENTS
from wave_agent.hooks.execution import close_runner
from wave_agent.hooks.manager import HookManager, SessionFacts
from wave_agent.hooks.python_guard import PythonGuard
from wave_agent.hooks.runners.thinking import Thinker
from wave_agent.hooks.verdicts import FailureKind
from wave_agent.replay.comparison import UNANSWERED, UNCHANGED, ChangedVerdict, Judgement, kind_of, present
from wave_agent.replay.lines import lines_of
from wave_agent.replay.recorded_answers import RecordedAnswers
from wave_agent.replay.recorded_events import Happening, Recording, recording, tool_facts
from wave_agent.sessions.masking import masked
from wave_agent.settings.hook_entries import SettingsSource
from wave_agent.settings.layers import Settings, merge_settings
from wave_agent.text import clip
from wave_agent.tools.base import ToolContext


class PlannedSource(Struct, frozen=True):
    """Settings of one layer, in a form that can be sent to another process."""

    layer: str
    name: str
    value: Any
    dialect: Dialect = Dialect.WAVE


class ReplayPlan(Struct, frozen=True, kw_only=True):
    """What to replay."""

    project: str
    """The project directory that hooks see."""
    real_project: str
    """The real project directory, used in reports."""
    user_home: str
    sources: tuple[PlannedSource, ...]
    hook: str | None = None
    """Replay only the hook with this name, as if it were enabled and enforced."""
    transcripts: tuple[str, ...]
    directory: str
    """Where to write the transcripts that hooks can read."""
    remainder: int = 0
    divisor: int = 1
    """Replay only events whose number, modulo `divisor`, is `remainder`."""
    show_secrets: bool = False
    home: str = ""
    ask_models: bool = False
    """Hooks that ask a model ask it again, instead of using the recorded answers."""


class ReplayedEvent(Struct, frozen=True):
    """The result of replaying one event."""

    kind: str
    duration_ms: float | None
    """None if no hook ran."""
    finding: ChangedVerdict | None = None


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

    def __init__(self, source: Path, directory: Path) -> None:
        self.path = directory / source.name
        self._content = source.read_bytes()
        self._written = 0
        self.path.write_bytes(b"")

    def grow(self, size: int) -> None:
        if size > self._written:
            with self.path.open("ab") as file:
                file.write(self._content[self._written : size])
            self._written = size

    def close(self) -> None:
        with suppress(OSError):
            self.path.unlink()


class Replay:
    """Replays sessions, one event after another."""

    def __init__(self, plan: ReplayPlan, tell: Callable[[ReplayedEvent], None]) -> None:
        settings = settings_of(plan.sources)
        self._plan = plan
        self._tell = tell
        self._settings = settings
        self._hooks = chosen_hooks(settings, plan.hook)
        self._recorded = RecordedAnswers()
        self._runner = hook_runner_for(settings, os.environ, open_thinker=self._thinker)
        self._number = 0

    def _thinker(self) -> "Thinker":
        if not self._plan.ask_models:
            return self._recorded
        from wave_agent.agent.hook_thinking import HookThinker  # lazy: costs money, so it is rarely asked for

        settings, home = self._settings, Path(self._plan.home)
        return HookThinker(
            settings,
            client=lambda name: model_for(ModelWishes(), settings, os.environ, model=name, home=home),
            usual_model=lambda: model_name_for(None, settings, os.environ),
            home=home,
        )

    async def run(self) -> None:
        try:
            for name in self._plan.transcripts:
                path = Path(name)
                await self._session(path, recording(lines_of(path), self._plan.hook))
        finally:
            await close_runner(self._runner)

    async def _session(self, path: Path, recorded: Recording) -> None:
        transcript = _GrowingTranscript(path, Path(self._plan.directory))
        start = relocated(recorded.cwd, recorded.project, self._plan.project)
        python = PythonGuard(self._plan.project, Path(self._plan.directory), os.environ)
        manager = HookManager(
            self._hooks,
            runner=self._runner,
            session=SessionFacts(
                session_id=path.stem,
                transcript_path=str(transcript.path),
                project_dir=self._plan.project,
                home=self._plan.user_home,
                start=start,
            ),
            environment=os.environ,
            settings_env=self._settings.env,
            max_stop_blocks=self._settings.max_stop_blocks,
            why_refused=python.problem,
            own_environment=python.environment,
        )
        try:
            for happening in recorded.happenings:
                if self._number % self._plan.divisor == self._plan.remainder:
                    transcript.grow(happening.written)
                    self._tell(await self._event(manager, happening, recorded.project))
                self._number += 1
        finally:
            transcript.close()

    async def _event(self, manager: HookManager, happening: Happening, project: str) -> ReplayedEvent:
        facts = relocated(happening.facts, project, self._plan.project)
        journal = len(manager.journal)
        start = manager.session.start
        context = ToolContext(
            project_dir=Path(self._plan.project),
            start=Path(start) if start else None,
            environment={**os.environ, **self._settings.env},
            outputs=Path(self._plan.directory),
        )
        tool = tool_facts(happening.tool, context)
        self._recorded.begin(happening.answers)
        started = monotonic()
        outcome = await manager.run(
            happening.event,
            {**facts, "dry_run": True},
            tool=tool,
            dialects=heard_by(happening.event, failed=has_failed(facts)),
        )
        taken = (monotonic() - started) * 1000
        runs = manager.journal[journal:]
        left = relocated(outcome.tool_input, self._plan.project, project)
        after = self._shown(present(outcome, runs, left))
        kind = kind_of(happening.before, after)
        if self._recorded.has_none and all(run.failure in (None, FailureKind.ANSWER.value) for run in runs):
            kind = UNANSWERED
        duration = round(taken, 3) if runs else None
        if kind == UNCHANGED:
            return ReplayedEvent(kind, duration)
        finding = _finding(kind, self._number, manager.session.session_id, happening, after)
        if EVENTS[happening.event].shows_effects:
            finding = replace(finding, does=summary(tool.effects(facts.get("tool_input") or {}), self._plan.project))
        finding = finding if self._plan.show_secrets else masked(finding)
        return ReplayedEvent(kind, duration, replace(finding, call=clip(finding.call, 1000)))

    def _shown(self, after: Judgement) -> Judgement:
        """Make texts name the project, not its copy."""

        def real(text: str) -> str:
            return relocated(text, self._plan.project, self._plan.real_project)

        return replace(after, reason=real(after.reason), failed=tuple(map(real, after.failed)))


def _finding(kind: str, number: int, session_id: str, happening: Happening, after: Judgement) -> ChangedVerdict:
    before = happening.before
    reason = "\n".join(after.failed) or after.reason or before.reason
    return ChangedVerdict(
        number=number,
        kind=kind,
        session_id=session_id,
        line=happening.line,
        event=happening.event.value,
        tool=happening.tool,
        call=happening.call,
        tool_input=happening.facts.get("tool_input"),
        before=before.decision.name.lower(),
        after=after.decision.name.lower(),
        reason=reason,
        hooks=after.hooks or before.hooks,
        new_input=after.tool_input,
        new_result=after.result,
    )


async def _work(plan: ReplayPlan) -> None:
    def tell(answer: ReplayedEvent) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()

    loop, stdin = asyncio.get_running_loop(), sys.stdin.fileno()
    work = asyncio.create_task(Replay(plan, tell).run())
    loop.add_reader(stdin, work.cancel)  # nothing more is sent, so readable means closed
    try:
        with suppress(asyncio.CancelledError):
            await work
    finally:
        loop.remove_reader(stdin)


def main() -> None:
    plan = msgspec.json.decode(sys.stdin.buffer.readline(), type=ReplayPlan)
    with suppress(KeyboardInterrupt, BrokenPipeError):
        asyncio.run(_work(plan))
