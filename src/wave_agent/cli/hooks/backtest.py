"""`wave hooks backtest`: what the current hooks would have done in past sessions."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import msgspec

from wave_agent.agent.options import locate_project
from wave_agent.cli.hooks.replay_progress import ReplayProgress
from wave_agent.cli.options import cwd_option, json_option, secrets_option, since_option
from wave_agent.cli.tables import milliseconds
from wave_agent.errors import UntrustedHooksError
from wave_agent.replay.backtest import Backtest
from wave_agent.replay.backtest import backtest as replay
from wave_agent.replay.comparison import KINDS, REWRITTEN, ChangedVerdict
from wave_agent.replay.errors import UnknownHookError
from wave_agent.replay.export_place import MARK
from wave_agent.replay.report import BacktestReport
from wave_agent.replay.run_store import RunStore, latest_run
from wave_agent.replay.selection import foreign_sessions, sessions_of
from wave_agent.replay.snapshot import is_url, sessions_at, snapshot_of
from wave_agent.replay.units import RecordedSession
from wave_agent.sessions.index import find_session
from wave_agent.sessions.masking import masked
from wave_agent.settings.inheritance import inherited
from wave_agent.settings.sources import SourceChoice, gather_settings
from wave_agent.text import one_line

_SHOWN = 20
"""Maximum number of findings shown per kind, and of sessions left out; --json prints all."""
_DIFFERS, _INCOMPLETE, _INTERRUPTED = 1, 3, 130


@click.command()
@click.option("--session", metavar="ID", help="Replay this session.")
@click.option("--all", "everything", is_flag=True, help="Replay all sessions of this project.")
@since_option
@click.option(
    "--from",
    "folder",
    metavar="DIR|URL",
    help="Replay the transcripts below a directory, such as ~/.claude/projects, or a URL, such as s3://bucket/prefix.",
)
@click.option("--settings", multiple=True, metavar="FILE", help="Load an extra settings file, on top of all others.")
@click.option("--hook", metavar="NAME", help="Run only this hook, as if it were enabled and enforced.")
@click.option("--trust", is_flag=True, help="Trust the project's hooks for this run. Nothing is stored.")
@click.option(
    "--jobs", type=click.IntRange(min=1), metavar="N", help="Run up to N processes in parallel. Default: one per CPU."
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Replay on the workers of a Dask cluster, such as tcp://10.0.0.5:8786, or on one of this machine: local.",
)
@click.option("--resume", is_flag=True, help="Continue this project's latest unfinished backtest.")
@click.option(
    "--ask-models",
    is_flag=True,
    help="Let prompt and agent hooks ask their model again. It costs tokens, and needs the network.",
)
@secrets_option
@cwd_option
@json_option
def backtest(as_json: bool, **asked: Any) -> int:
    """Replay recorded sessions against the current hooks

    Without --session, --all, --since or --from, replays this project's latest session. What hooks change in the project
    is discarded. They get "dry_run": true on stdin and, if the system supports it, no network access. No tool is run.
    Hooks that ask a model get the answer that was recorded; without one, the event is reported and not judged.

    Ctrl-C ends the run with a report of what was found so far; --resume continues it.

    Exit status: 0 no differences, 1 differences or a failed hook, 2 usage, 3 incomplete (some sessions could not be
    replayed), 130 interrupted.

    \b
    wave hooks backtest --since 7d                      what would have been different last week
    wave hooks backtest --all --hook guard.sh           one hook, on all sessions
    wave hooks backtest --from ~/.claude/projects --settings new.json
    wave hooks backtest --from s3://sessions/2026 --scheduler tcp://10.0.0.5:8786
    """
    with ExitStack() as stack:
        with ReplayProgress() as progress:
            request = _request(progress, **asked)
            if request is None:
                click.echo("null" if as_json else "There are no sessions to replay.")
                return 0
            try:
                replayed = stack.enter_context(replay(*request))
            except UnknownHookError as error:
                raise click.UsageError(str(error)) from None
        report = replayed.report if request[0].show_secrets else masked(replayed.report)
        if as_json:
            _print_json(report, replayed.findings())
        else:
            for line in _lines(report, replayed.findings):
                click.echo(line)
    if report.error:
        click.echo(f"wave: {one_line(report.error)}", err=True)
    if not report.complete:
        click.echo("wave: The backtest is incomplete; to continue: wave hooks backtest --resume", err=True)
    return _status(report)


def _status(report: BacktestReport) -> int:
    if report.interrupted:
        return _INTERRUPTED
    return _INCOMPLETE if not report.complete else _DIFFERS if report.differs else 0


def _request(
    progress: ReplayProgress,
    *,
    session: str | None,
    everything: bool,
    since: timedelta | None,
    folder: str | None,
    settings: tuple[str, ...],
    hook: str | None,
    trust: bool,
    jobs: int | None,
    scheduler: str | None,
    resume: bool,
    ask_models: bool,
    cwd: str | None,
    show_secrets: bool,
) -> tuple[Backtest, RunStore | None] | None:
    """What to replay, and the run to resume. None if there are no sessions."""
    if (session is not None) + everything + (folder is not None) > 1 or (session and since):
        raise click.UsageError(
            "--session, --all and --from are mutually exclusive; --since works with --all and --from."
        )
    if resume and (session or everything or since or folder or settings or hook or ask_models or show_secrets):
        raise click.UsageError(
            "--resume continues a run as it was asked for: it takes only --jobs, --scheduler and --trust."
        )
    if scheduler is not None and ask_models:
        raise click.UsageError("--ask-models does not work with --scheduler: workers do not get your keys.")
    environment = dict(os.environ)
    if trust and inherited(environment) is not None:
        raise click.UsageError("--trust cannot be used inside an agent's process: the agent's limits apply here too.")
    choice = SourceChoice(overlays=settings, trust=trust).in_environment(environment)
    place, home = locate_project(cwd, environment, choice)
    unfinished = latest_run(home, place.directory) if resume else None
    sessions: list[RecordedSession] = []
    if unfinished is not None:
        asked = unfinished.request
        settings, hook, ask_models, show_secrets = asked.settings, asked.hook, asked.ask_models, asked.show_secrets
        choice = SourceChoice(overlays=settings, trust=trust).in_environment(environment)
    else:
        sessions = _sessions(home, place.directory, session, since, folder, latest=not everything, tell=progress.say)
        if not sessions:
            return None
    try:
        gathered = gather_settings(home, place, choice)
    except UntrustedHooksError as error:
        raise error.offering("--trust") from None
    for notice in gathered.notices:
        click.echo(f"wave: {one_line(notice)}", err=True)
    return (
        Backtest(
            project=place.directory,
            gathered=gathered,
            sessions=sessions,
            settings=settings,
            hook=hook,
            jobs=jobs or os.cpu_count() or 1,
            scheduler=scheduler,
            environment=environment,
            show_secrets=show_secrets,
            home=home,
            ask_models=ask_models,
            listener=progress,
        ),
        unfinished,
    )


def _sessions(
    home: Path,
    project: str,
    session: str | None,
    since: timedelta | None,
    folder: str | None,
    *,
    latest: bool,
    tell: Callable[[str], object],
) -> list[RecordedSession]:
    if session is not None:
        return snapshot_of([find_session(home, project, session)])
    if folder is None:
        return snapshot_of(sessions_of(home, project, since)[: 1 if latest and since is None else None])
    if is_url(folder):
        return sessions_at(folder, since, lambda count: tell(f"Looking for sessions: {count:,} so far"))
    directory = Path(folder).expanduser()
    if not directory.is_dir():
        raise click.UsageError(f"Directory {folder} does not exist; --from needs one with transcripts.")
    if (directory / MARK).is_file():
        raise click.UsageError(
            f"{folder} is an export, which holds no transcripts; --from needs a directory with transcripts. "
            "wave hooks stats and report can read an export."
        )
    return snapshot_of(foreign_sessions(directory, since))


# ---------------------------------------------------------------------------------------------------------- output


def _print_json(report: BacktestReport, findings: Iterable[ChangedVerdict]) -> None:
    """One object, written piece by piece: there may be millions of findings."""
    sys.stdout.write(f'{json.dumps(report.to_dict())[:-1]}, "findings": [')
    for number, finding in enumerate(findings):
        sys.stdout.write(f"{', ' if number else ''}{msgspec.json.encode(finding).decode()}")
    click.echo("]}")


def _lines(report: BacktestReport, findings: Callable[[], Iterator[ChangedVerdict]]) -> Iterator[str]:
    sessions = "1 session" if report.sessions == 1 else f"{report.sessions} sessions"
    yield f"{report.events} events of {sessions}; hooks ran on {report.judged} of them"
    if report.pending:
        yield f"INCOMPLETE: {report.pending} sessions were not replayed, or not to their end"
    shown = _first_of_each_kind(findings())
    for kind in KINDS:
        if own := shown.get(kind):
            yield ""
            yield f"{kind} ({report.totals[kind]})"
            for finding in own:
                yield from _finding(finding)
            if report.totals[kind] > len(own):
                yield f"  … and {report.totals[kind] - len(own)} more; use --json to see all"
    if report.left_out:
        yield ""
        yield f"not replayed ({report.missing or len(report.left_out)})"
        for one in report.left_out[:_SHOWN]:
            yield f"  {one_line(f'{one.session}: {one.why}', 200)}"
    yield ""
    yield " · ".join(f"{kind} {report.totals.get(kind, 0)}" for kind in KINDS)
    if report.judged:
        times = [milliseconds(time) for time in (report.p50_ms, report.p95_ms)]
        yield f"hook time per event: p50 {times[0]}, p95 {times[1]}"
    for note in report.notes:
        yield f"note: {one_line(note)}"


def _first_of_each_kind(findings: Iterable[ChangedVerdict]) -> dict[str, list[ChangedVerdict]]:
    shown: dict[str, list[ChangedVerdict]] = {}
    for finding in findings:
        own = shown.setdefault(finding.kind, [])
        if len(own) < _SHOWN:
            own.append(finding)
    return shown


def _finding(finding: ChangedVerdict) -> Iterator[str]:
    what = " ".join(filter(None, [finding.event, finding.tool, finding.call]))
    where = "/".join(filter(None, (finding.session_id[:8], finding.agent_id)))
    yield f"  {one_line(what, 110)}   [{where}:{finding.line}]"
    if finding.does:
        yield f"      it {one_line(finding.does, 200)}"
    hooks = ", ".join(finding.hooks) or "no hook"
    yield f"      {one_line(f'{finding.before} → {finding.after}, {hooks}: {finding.reason}', 200)}"
    if finding.kind == REWRITTEN:
        new = finding.new_result if finding.new_input is None else json.dumps(finding.new_input, ensure_ascii=False)
        yield f"      now: {one_line('unchanged' if new is None else new, 200)}"
