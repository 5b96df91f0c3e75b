"""`wave hooks stats`: what hooks cost and did."""

import json
import os
from datetime import timedelta
from pathlib import Path

import click

from wave_agent.agent.options import find_places
from wave_agent.cli.options import cwd_option, json_option, secrets_option, since_option
from wave_agent.cli.progress import reading
from wave_agent.cli.tables import milliseconds, table
from wave_agent.replay.figures import HookFigures, figures
from wave_agent.replay.lines import lines_of
from wave_agent.replay.selection import all_sessions, sessions_of
from wave_agent.replay.timeline import timeline
from wave_agent.sessions.masking import masked

_HEAD = ("hook", "event", "runs", "blocks", "failed", "let through", "p50", "p95", "max", "of turn", "")


@click.command()
@click.option("--all", "everywhere", is_flag=True, help="Include the sessions of all projects.")
@since_option
@click.option("--check", is_flag=True, help="Exit status 1 if a hook is slow, flaky or failing.")
@secrets_option
@cwd_option
@json_option
def stats(
    *, everywhere: bool, since: timedelta | None, check: bool, show_secrets: bool, cwd: str | None, as_json: bool
) -> int:
    """Show what each hook cost and did

    \b
    slow      p95 above 500 ms, or more than 20 % of the time of the turns in which it ran
    flaky     some runs failed, others did not
    failing   every run failed
    """
    project, home = find_places(cwd, os.environ)
    paths = all_sessions(home, since) if everywhere else sessions_of(home, project, since)
    with reading(paths) as progress:
        rows = figures(timeline(path.stem, lines_of(path)) for path in progress)
    rows = rows if show_secrets else masked(rows)  # an unnamed hook is identified by its command
    if as_json:
        click.echo(json.dumps({"sessions": len(paths), "hooks": [row.to_dict() for row in rows]}))
    else:
        _show(paths, rows)
    return int(check and any(row.marks for row in rows))


def _show(paths: list[Path], rows: list[HookFigures]) -> None:
    if not paths:
        click.echo("There are no sessions to analyse.")
        return
    sessions = "1 session" if len(paths) == 1 else f"{len(paths)} sessions"
    if not rows:
        click.echo(f"No hook ran in {sessions}.")
        return
    click.echo(f"{sum(row.runs for row in rows)} hook runs in {sessions}")
    for line in table([_HEAD, *map(_cells, rows)], right=range(2, 10)):
        click.echo(line)


def _cells(row: HookFigures) -> tuple[str, ...]:
    return (
        row.name,
        row.event,
        str(row.runs),
        str(row.blocks),
        str(row.failures),
        str(row.let_through),
        milliseconds(row.p50_ms),
        milliseconds(row.p95_ms),
        milliseconds(row.max_ms),
        f"{row.share:.0%}",
        ", ".join([*row.marks, *([f"{row.tokens:,} tokens"] if row.tokens else [])]),
    )
