"""Replays recorded sessions against the current hooks, on this machine or on a Dask cluster."""

import hashlib
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from wave_agent import __version__
from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.named_files import hook_files
from wave_agent.replay.comparison import ChangedVerdict
from wave_agent.replay.crew import LOCAL, Crew, LocalCrew, ReplayListener
from wave_agent.replay.errors import ReplayError, UnknownHookError
from wave_agent.replay.report import BacktestReport, UnitTotals, report_of
from wave_agent.replay.run_store import RunRequest, RunStore, new_run
from wave_agent.replay.scratch import RunDirectory
from wave_agent.replay.station import Station, missing_files, place_here
from wave_agent.replay.units import RecordedSession, units_of
from wave_agent.replay.worker import PlannedSource, ReplayPlan, chosen_hooks, settings_of
from wave_agent.settings.sources import Gathered
from wave_agent.settings.trust import file_digest

_SMALL = 48 << 10
"""With fewer bytes of transcript per process, another one costs more than it saves."""
_FLEET = 64
"""A cluster is taken to have as many workers: it may grow during the run."""


class Backtest(Struct, frozen=True, kw_only=True):
    """What to replay, and how."""

    project: str
    gathered: Gathered
    sessions: Sequence[RecordedSession] = ()
    """Not used by a resumed run, which has its own."""
    settings: tuple[str, ...] = ()
    """The files that were named on the command line."""
    hook: str | None = None
    jobs: int = 1
    scheduler: str | None = None
    """The address of a Dask scheduler, or `local`."""
    environment: Mapping[str, str]
    show_secrets: bool = False
    """Do not mask secrets in texts."""
    home: Path
    ask_models: bool = False
    """Ask models again, instead of using their recorded answers."""
    listener: ReplayListener


class Replayed(Struct, frozen=True):
    """The outcome of a run, complete or not. Valid until the run is closed."""

    report: BacktestReport
    findings: Callable[[], Iterator[ChangedVerdict]]


@contextmanager
def backtest(asked: Backtest, unfinished: RunStore | None = None) -> Generator[Replayed]:
    """Run a replay, or the rest of one. An interrupt ends it early, with what has been found so far. A run that is not
    complete can be resumed. Raises `ReplayError`, or `SettingsError` for unusable settings."""
    prepared = _Prepared(asked)
    store = unfinished or _new_store(asked, prepared)
    try:
        if store.request.subject != prepared.subject:
            raise ReplayError("Hooks or settings have changed since this run began: start a new one, without --resume.")
        try:
            outcome = _run(asked, prepared, store)
        except BaseException:
            if not store.finished:  # it never began: there is nothing to resume
                store.discard()
            raise
        report = report_of(
            store.totals,
            project=asked.project,
            pending=store.pending(),
            interrupted=outcome.interrupted,
            error=outcome.error,
            notes=[_network(asked, store.totals), *outcome.notes, *prepared.notes],
        )
        yield Replayed(report, store.findings)
        if report.complete:
            store.discard()
    finally:
        store.close()


class _Prepared:
    """The hooks to replay, checked."""

    def __init__(self, asked: Backtest) -> None:
        sources = tuple(
            PlannedSource(source.layer.value, source.name, source.document.value, source.dialect)
            for source in asked.gathered.sources
        )
        settings = settings_of(sources)
        settings.require_usable()
        self.hooks = chosen_hooks(settings, asked.hook)
        if asked.hook is not None and not self.hooks:
            names = ", ".join(sorted({hook.name for hook in settings.hooks.hooks})) or "none"
            raise UnknownHookError(
                f'There is no hook "{asked.hook}" to replay (async hooks are not replayed). Available: {names}'
            )
        self.notes = [
            f"{hook.name} is async: decisions cannot be compared" for hook in settings.hooks.hooks if hook.is_async
        ]
        self.files = [file for hook in self.hooks for file in hook_files(hook, asked.project)]
        self.plan = ReplayPlan(
            real_project=asked.project,
            real_home=os.path.expanduser("~"),
            sources=sources,
            hook=asked.hook,
            show_secrets=asked.show_secrets,
            wave_home=str(asked.home),
            ask_models=asked.ask_models,
        )
        self.subject = _subject(self.plan, self.files)


def _subject(plan: ReplayPlan, files: Sequence[str]) -> str:
    """Whatever decides what a replay finds: answers to different questions must not be mixed."""
    digests = [(file, file_digest(file)) for file in files if os.path.isfile(file)]
    return hashlib.sha256(msgspec.json.encode([__version__, plan, digests])).hexdigest()[:16]


def _new_store(asked: Backtest, prepared: _Prepared) -> RunStore:
    # A `once` hook runs once in a session, so whoever replays it has to see all of it.
    whole = any(hook.once for hook in prepared.hooks)
    request = RunRequest(
        subject=prepared.subject,
        settings=tuple(map(os.path.abspath, asked.settings)),
        hook=asked.hook,
        ask_models=asked.ask_models,
        show_secrets=asked.show_secrets,
        size=sum(session.size for session in asked.sessions),
    )
    units = units_of(asked.sessions, _workers(asked), whole=whole, sent=asked.scheduler is not None)
    return new_run(asked.home, asked.project, request, units)


def _workers(asked: Backtest) -> int:
    size = sum(session.size for session in asked.sessions)
    return max(1, min(asked.jobs if asked.scheduler in (None, LOCAL) else _FLEET, size // _SMALL))


class _Outcome(Struct):
    """How a run ended."""

    notes: Sequence[str] = ()
    interrupted: bool = False
    error: str = ""


def _run(asked: Backtest, prepared: _Prepared, store: RunStore) -> _Outcome:
    outcome = _Outcome()
    try:
        crew, outcome.notes = _crew(asked, prepared)
    except KeyboardInterrupt:
        return _Outcome(interrupted=True)
    try:
        asked.listener.begin(store.request.size, store.finished)
        for unit, answers in crew.replay(store.todo(), asked.listener):
            before = store.totals.events
            store.add(unit, answers)
            asked.listener.finish(unit.number, store.totals.events - before, unit.size)
    except KeyboardInterrupt:
        outcome.interrupted = True
    except ReplayError as error:
        outcome.error = str(error)
    finally:
        asked.listener.say("Ending")
        crew.close()
    return outcome


def _crew(asked: Backtest, prepared: _Prepared) -> tuple[Crew, Sequence[str]]:
    """Whoever replays, and notes about the conditions."""
    asked.listener.say("Preparing the project")
    return _local_crew(asked, prepared) if asked.scheduler is None else _fleet(asked, prepared, asked.scheduler)


def _local_crew(asked: Backtest, prepared: _Prepared) -> tuple[Crew, Sequence[str]]:
    run = RunDirectory()
    try:
        place = place_here(
            run.path,
            asked.project,
            prepared.files,
            asked.environment,
            network=asked.ask_models,
            home=prepared.plan.real_home,
        )
        _require_trust(asked.gathered, prepared.hooks)
    except BaseException:
        run.close()
        raise
    station = Station(prepared.plan, place, run, asked.environment)
    return LocalCrew(station, asked.jobs), place.notes


def _fleet(asked: Backtest, prepared: _Prepared, scheduler: str) -> tuple[Crew, Sequence[str]]:
    from wave_agent.replay.fleet import DaskCrew  # lazy: from an extra
    from wave_agent.replay.packed import pack_project

    packed = pack_project(asked.project, prepared.plan.real_home, prepared.files)
    _require_trust(asked.gathered, prepared.hooks)
    asked.listener.say("Starting a cluster here" if scheduler == LOCAL else f"Connecting to {scheduler}")
    return DaskCrew(scheduler, asked.jobs, prepared.plan, packed), missing_files(packed.left_out)


def _network(asked: Backtest, totals: UnitTotals) -> str:
    if asked.ask_models:
        return "The network was NOT cut: models were asked."
    if totals.uncut:
        part = "" if totals.uncut == totals.sessions else f" for {totals.uncut} of {totals.sessions} sessions"
        return f"The network was NOT cut{part}: the system has no namespaces, and neither a working bwrap nor unshare."
    return "The network was cut."


def _require_trust(gathered: Gathered, hooks: Sequence[HookDefinition]) -> None:
    """Check that what was copied is what was trusted."""
    for hook in hooks:
        if (problem := gathered.trust.problem(hook)) is not None:
            raise ReplayError(f"{hook.name}: {problem}")
