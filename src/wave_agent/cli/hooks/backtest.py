"""`wave hooks backtest`: what the current hooks would have done in past sessions."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from threading import Lock
from typing import Any

import click
import msgspec

from wave_agent.agent.options import locate_project
from wave_agent.cli.options import cwd_option, json_option, secrets_option, since_option
from wave_agent.cli.tables import milliseconds
from wave_agent.replay.backtest import Backtest, UnknownHookError
from wave_agent.replay.backtest import backtest as replay
from wave_agent.replay.comparison import KINDS, REWRITTEN, BacktestReport, ChangedVerdict, merge_reports
from wave_agent.replay.figures import percentile
from wave_agent.replay.selection import foreign_sessions, sessions_of
from wave_agent.sessions.index import find_session
from wave_agent.sessions.masking import masked
from wave_agent.settings.inheritance import inherited
from wave_agent.settings.sources import SourceChoice, gather_settings
from wave_agent.text import one_line

_SHOWN = 20
"""Maximum number of findings shown per kind; --json prints all."""


def _read_shard(_context: click.Context, _parameter: click.Parameter, value: str) -> tuple[int, int]:
    number, _, parts = value.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise click.BadParameter(f'"{value}" is not a valid shard; write it as 2/5')
    return int(number), int(parts)


@click.command()
@click.option("--session", metavar="ID", help="Replay this session.")
@click.option("--all", "everything", is_flag=True, help="Replay all sessions of this project.")
@since_option
@click.option("--from", "folder", metavar="DIR", help="Replay another agent's transcripts, such as ~/.claude/projects.")
@click.option("--settings", multiple=True, metavar="FILE", help="Load an extra settings file, on top of all others.")
@click.option("--hook", metavar="NAME", help="Run only this hook, as if it were enabled and enforced.")
@click.option("--trust", is_flag=True, help="Trust the project's hooks for this run. Nothing is stored.")
@click.option(
    "--jobs", type=click.IntRange(min=1), metavar="N", help="Run up to N processes in parallel. Default: one per CPU."
)
@click.option(
    "--shard", default="1/1", callback=_read_shard, metavar="I/N", help="Replay only part I of N of the events."
)
@click.option(
    "--ask-models", is_flag=True, help="Let prompt hooks ask their model again. It costs tokens, and needs the network."
)
@click.option("--merge", is_flag=True, help="Merge the --json reports of shards, given as FILES.")
@click.argument("files", nargs=-1)
@secrets_option
@cwd_option
@json_option
def backtest(merge: bool, files: tuple[str, ...], show_secrets: bool, as_json: bool, **asked: Any) -> int:
    """Replay recorded sessions against the current hooks

    Without --session, --all, --since or --from, replays this project's latest session. Hooks run in a copy of the
    project, with "dry_run": true on stdin and, if the system supports it, without network access. No tool is run.
    Hooks that ask a model get the answer that was recorded; without one, the event is reported and not judged.

    Exit status: 0 no differences, 1 differences, a failed hook or a missing shard, 2 usage.

    \b
    wave hooks backtest --since 7d                      what would have been different last week
    wave hooks backtest --all --hook guard.sh           one hook, on all sessions
    wave hooks backtest --from ~/.claude/projects --settings new.json
    wave hooks backtest --all --shard 1/2 --json > 1.json
    wave hooks backtest --merge 1.json 2.json
    """
    if merge != bool(files):
        raise click.UsageError("--merge needs report files." if merge else "FILES need --merge.")
    report = _merged(files) if merge else _replayed(show_secrets=show_secrets, **asked)
    report = report if show_secrets else masked(report)
    if as_json:
        click.echo(json.dumps(None if report is None else report.to_dict()))
    else:
        for line in ["There are no sessions to replay."] if report is None else _lines(report):
            click.echo(line)
    return int(report is not None and (report.differs or (merge and bool(report.missing))))


def _merged(files: Sequence[str]) -> BacktestReport:
    reports: list[BacktestReport] = []
    for file in files:
        try:
            reports.append(msgspec.json.decode(Path(file).read_bytes(), type=BacktestReport))
        except OSError as error:
            raise click.UsageError(f"{file} cannot be read: {error.strerror}") from None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise click.UsageError(f"{file} is not a backtest report: {error}") from None
    return merge_reports(reports)


def _replayed(
    *,
    session: str | None,
    everything: bool,
    since: timedelta | None,
    folder: str | None,
    settings: tuple[str, ...],
    hook: str | None,
    trust: bool,
    jobs: int | None,
    shard: tuple[int, int],
    ask_models: bool,
    cwd: str | None,
    show_secrets: bool,
) -> BacktestReport | None:
    if (session is not None) + everything + (folder is not None) > 1 or (session and since):
        raise click.UsageError(
            "--session, --all and --from are mutually exclusive; --since works with --all and --from."
        )
    environment = dict(os.environ)
    if trust and inherited(environment) is not None:
        raise click.UsageError("--trust cannot be used inside an agent's process: the agent's limits apply here too.")
    choice = SourceChoice(overlays=settings, trust=trust).in_environment(environment)
    place, home = locate_project(cwd, environment, choice)
    project = place.directory
    paths = _transcripts(home, project, session, since, folder, latest=not everything)
    if not paths:
        return None
    gathered = gather_settings(home, place, choice)
    for notice in gathered.notices:
        click.echo(f"wave: {one_line(notice)}", err=True)
    with _Progress() as progress:
        asked = Backtest(
            project=project,
            gathered=gathered,
            transcripts=paths,
            hook=hook,
            jobs=jobs or os.cpu_count() or 1,
            shard=shard,
            environment=environment,
            show_secrets=show_secrets,
            home=str(home),
            ask_models=ask_models,
            on_start=progress.start,
            on_event=progress.step,
        )
        try:
            return replay(asked)
        except UnknownHookError as error:
            raise click.UsageError(str(error)) from None


def _transcripts(
    home: Path, project: str, session: str | None, since: timedelta | None, folder: str | None, *, latest: bool
) -> list[Path]:
    if session is not None:
        return [find_session(home, project, session)]
    if folder is not None:
        directory = Path(folder).expanduser()
        if not directory.is_dir():
            raise click.UsageError(f"Directory {folder} does not exist; --from needs one with transcripts.")
        return foreign_sessions(directory, since)
    return sessions_of(home, project, since)[: 1 if latest and since is None else None]


class _Progress(ExitStack):
    """A progress bar on stderr, if it is a terminal."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = Lock()

    def start(self, events: int) -> None:
        self._bar = (
            self.enter_context(click.progressbar(length=events, label="Replaying", file=sys.stderr))
            if sys.stderr.isatty()
            else None
        )

    def step(self) -> None:
        """Safe to call from any thread."""
        if self._bar is not None:
            with self._lock:
                self._bar.update(1)


# ---------------------------------------------------------------------------------------------------------- text output


def _lines(report: BacktestReport) -> Iterator[str]:
    sessions = "1 session" if report.sessions == 1 else f"{report.sessions} sessions"
    part = "" if report.shards == ("1/1",) else f" (parts {', '.join(report.shards)})"
    yield f"{report.events} events of {sessions}{part}; hooks ran on {report.judged} of them"
    if report.missing:
        yield f"MISSING: part{'s' * (len(report.missing) > 1)} {', '.join(report.missing)}"
    for kind in KINDS:
        own = [finding for finding in report.findings if finding.kind == kind]
        if own:
            yield ""
            yield f"{kind} ({len(own)})"
        for finding in own[:_SHOWN]:
            yield from _finding(finding)
        if len(own) > _SHOWN:
            yield f"  … and {len(own) - _SHOWN} more; use --json to see all"
    yield ""
    yield " · ".join(f"{kind} {report.totals.get(kind, 0)}" for kind in KINDS)
    if report.durations_ms:
        times = [milliseconds(percentile(report.durations_ms, part)) for part in (0.5, 0.95)]
        yield f"hook time per event: p50 {times[0]}, p95 {times[1]}"
    for note in report.notes:
        yield f"note: {one_line(note)}"


def _finding(finding: ChangedVerdict) -> Iterator[str]:
    what = " ".join(filter(None, [finding.event, finding.tool, finding.call]))
    yield f"  {one_line(what, 110)}   [{finding.session_id[:8]}:{finding.line}]"
    if finding.does:
        yield f"      it {one_line(finding.does, 200)}"
    hooks = ", ".join(finding.hooks) or "no hook"
    yield f"      {one_line(f'{finding.before} → {finding.after}, {hooks}: {finding.reason}', 200)}"
    if finding.kind == REWRITTEN:
        new = finding.new_result if finding.new_input is None else json.dumps(finding.new_input, ensure_ascii=False)
        yield f"      now: {one_line('unchanged' if new is None else new, 200)}"
