"""Replays recorded sessions against the current hooks, in several processes that share the events."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wave_agent.errors import WaveError
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.named_files import named_files
from wave_agent.replay.comparison import KINDS, UNCHANGED, BacktestReport
from wave_agent.replay.isolation import Isolation, isolate
from wave_agent.replay.lines import lines_of
from wave_agent.replay.recorded_events import recording
from wave_agent.replay.scratch import copy_project
from wave_agent.replay.worker import PlannedSource, ReplayedEvent, ReplayPlan, chosen_hooks, settings_of
from wave_agent.settings.sources import Gathered

_EVENTS_A_WORKER = 25
"""With fewer events per worker, another process costs more than it saves."""
_START = "from wave_agent.replay.worker import main; main()"
_PATIENCE = 10
"""Seconds a worker gets to end its hooks when asked to."""


class ReplayError(WaveError):
    """The replay could not be started or completed."""


class UnknownHookError(ReplayError):
    """There is no hook with this name."""


class ReplayScope(Struct, frozen=True):
    """The sessions and events to replay."""

    transcripts: tuple[str, ...]
    events: int
    notes: tuple[str, ...]
    subject: str


class Backtest(Struct, frozen=True, kw_only=True):
    """What to replay, and how."""

    project: str
    gathered: Gathered
    transcripts: Sequence[Path]
    hook: str | None = None
    jobs: int = 1
    shard: tuple[int, int] = (1, 1)
    environment: Mapping[str, str]
    show_secrets: bool = False
    """Do not mask secrets in texts."""
    home: str = ""
    ask_models: bool = False
    """Ask models again, instead of using their recorded answers."""
    on_start: Callable[[int], None] = lambda _: None
    """Called with the number of events."""
    on_event: Callable[[], None] = lambda: None


def backtest(asked: Backtest) -> BacktestReport:
    """Run a replay. Raises `ReplayError`, or `SettingsError` for unusable settings."""
    sources = tuple(
        PlannedSource(source.layer.value, source.name, source.document.value, source.dialect)
        for source in asked.gathered.sources
    )
    settings = settings_of(sources)
    settings.require_usable()
    hooks = chosen_hooks(settings, asked.hook)
    if asked.hook is not None and not hooks:
        names = ", ".join(sorted({hook.name for hook in settings.hooks.hooks})) or "none"
        raise UnknownHookError(
            f'There is no hook "{asked.hook}" to replay (async hooks are not replayed). Available: {names}'
        )
    notes = [f"{hook.name} is async: decisions cannot be compared" for hook in settings.hooks.hooks if hook.is_async]
    survey = _survey(asked, hooks)
    number, parts = asked.shard
    mine = len(range(number - 1, survey.events, parts))
    asked.on_start(mine)
    root = Path(tempfile.mkdtemp(prefix="wave-backtest-"))
    try:
        needed = [file for hook in hooks for file in named_files(hook.command, hook.args, asked.project)]
        scratch = copy_project(Path(asked.project), root / "project", needed)
        _require_trust(asked.gathered, hooks)
        isolation = isolate(asked.project, str(root / "project"), asked.environment, network=asked.ask_models)
        plan = ReplayPlan(
            project=isolation.project,
            real_project=asked.project,
            user_home=os.path.expanduser("~"),
            sources=sources,
            hook=asked.hook,
            transcripts=survey.transcripts,
            directory=str(root),
            show_secrets=asked.show_secrets,
            home=asked.home,
            ask_models=asked.ask_models,
        )
        answers = _run(plan, asked, isolation, root, mine)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    if scratch.left_out:
        notes.append(f"Missing from the project copy that hooks ran in: {', '.join(scratch.left_out)}.")
    notes = [isolation.network, *survey.notes, *notes]
    return _report(asked, survey, answers, notes)


def _survey(asked: Backtest, hooks: Sequence[HookDefinition]) -> ReplayScope:
    """Count the events. The order does not depend on modification times, so that shards fit together."""
    digest = hashlib.sha256(repr([(hook.event.value, hook.name, hook.command, hook.args) for hook in hooks]).encode())
    ordered = sorted(asked.transcripts)
    events = erased = replaced = skipped = 0
    for path in ordered:
        found = recording(lines_of(path), asked.hook)
        digest.update(f"\n{path.stem} {len(found.happenings)}".encode())
        events += len(found.happenings)
        erased, replaced, skipped = erased + found.erased, replaced + found.replaced, skipped + found.skipped
    lines = {
        "prompts blocked by hooks were not stored, so they cannot be replayed": erased,
        "results replaced by hooks are replayed as replaced: the originals were not stored": replaced,
        "transcript lines could not be read": skipped,
    }
    notes = tuple(f"{count} {text}." for text, count in lines.items() if count)
    return ReplayScope(tuple(map(str, ordered)), events, notes, digest.hexdigest()[:16])


def _require_trust(gathered: Gathered, hooks: Sequence[HookDefinition]) -> None:
    """Check that what was copied is what was trusted."""
    for hook in hooks:
        if (problem := gathered.trust.problem(hook)) is not None:
            raise ReplayError(f"{hook.name}: {problem}")


def _run(plan: ReplayPlan, asked: Backtest, isolation: Isolation, root: Path, events: int) -> list[ReplayedEvent]:
    number, parts = asked.shard
    workers = max(1, min(asked.jobs, events // _EVENTS_A_WORKER))
    plans: list[ReplayPlan] = []
    for worker in range(workers if events else 0):
        directory = root / f"worker-{worker}"
        directory.mkdir()
        remainder = number - 1 + worker * parts
        plans.append(replace(plan, directory=str(directory), remainder=remainder, divisor=parts * workers))
    processes = [_start(one, isolation, asked.environment) for one in plans]
    try:
        with ThreadPoolExecutor(max(1, workers)) as pool:
            parts_found = [pool.submit(_answers, process, asked.on_event) for process in processes]
            try:
                answers = [answer for part in parts_found for answer in part.result()]
            finally:
                _end(processes)
    except BaseException:
        _end(processes)
        raise
    if len(answers) != events:
        raise ReplayError(f"The replay ended early: {len(answers)} of {events} events. {_complaint(root, processes)}")
    return answers


def _start(plan: ReplayPlan, isolation: Isolation, environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    with (Path(plan.directory) / "stderr").open("wb") as errors:
        process = subprocess.Popen(
            [*isolation.prefix, sys.executable, "-P", "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=isolation.project,
            env=environment,
            # An interrupt goes to this process, which closes the worker's stdin; the worker ends its hooks first.
            start_new_session=True,
        )
    with suppress(BrokenPipeError):  # it has already ended; its stderr will say why
        _pipe(process.stdin).write(msgspec.json.encode(plan) + b"\n")
        _pipe(process.stdin).flush()
    return process


def _answers(process: "subprocess.Popen[bytes]", on_event: Callable[[], None]) -> list[ReplayedEvent]:
    decoder = msgspec.json.Decoder(ReplayedEvent)
    found: list[ReplayedEvent] = []
    for line in _pipe(process.stdout):
        found.append(decoder.decode(line))
        on_event()
    return found


def _end(processes: Sequence["subprocess.Popen[bytes]"]) -> None:
    """Close each worker's stdin: the worker ends its hooks, then exits."""
    for process in processes:
        with suppress(BrokenPipeError):
            _pipe(process.stdin).close()
    for process in processes:
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        _pipe(process.stdout).close()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # each process was started with both
    return pipe


def _complaint(root: Path, processes: Sequence["subprocess.Popen[bytes]"]) -> str:
    lines = [file.read_text(errors="replace").strip() for file in sorted(root.glob("worker-*/stderr"))]
    last = next((text.splitlines()[-1] for text in lines if text), "")
    return last or f"Exit status {', '.join(str(process.returncode) for process in processes)}."


def _report(
    asked: Backtest, survey: ReplayScope, answers: Sequence[ReplayedEvent], notes: Sequence[str]
) -> BacktestReport:
    totals = {kind: sum(answer.kind == kind for answer in answers) for kind in KINDS}
    findings = [answer.finding for answer in answers if answer.finding is not None]
    durations = [answer.duration_ms for answer in answers if answer.duration_ms is not None]
    assert len(findings) == len(answers) - totals[UNCHANGED]
    return BacktestReport(
        subject=survey.subject,
        shards=(f"{asked.shard[0]}/{asked.shard[1]}",),
        project=asked.project,
        sessions=len(survey.transcripts),
        events=len(answers),
        judged=len(durations),
        totals=totals,
        findings=tuple(sorted(findings, key=lambda one: one.number)),
        durations_ms=tuple(durations),
        notes=tuple(notes),
    )
