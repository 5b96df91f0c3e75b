"""`wave hooks stats`: what hooks cost and did."""

import json
from typing import TYPE_CHECKING, Any

import click

from wave_agent.cli.hooks.scope import SessionScope, scope_of, scope_options, tell_skipped
from wave_agent.cli.options import json_option, secrets_option
from wave_agent.cli.progress import Progress
from wave_agent.cli.tables import milliseconds, table
from wave_agent.replay.figures import HookFigures, figures, rolled_out
from wave_agent.replay.questions import QUESTIONS
from wave_agent.replay.tallies import Tallies
from wave_agent.replay.tally import SHADOW
from wave_agent.sessions.masking import masked

if TYPE_CHECKING:
    from wave_agent.replay.export_query import QueryResult

_HEAD = ("hook", "event", "runs", "blocks", "failed", "let through", "p50", "p95", "max", "of turn", "")
_COMPARED = (
    "rolled out",
    "event",
    "mode",
    "sessions",
    "with a block",
    "",
    "runs",
    "blocks",
    "",
    "failed",
    "p50",
    "p95",
)
_SHOWN = 1000
"""Rows of an answer that are printed; with --json, there is no such limit."""


@click.command()
@scope_options
@click.option("--check", is_flag=True, help="Exit status 1 if a hook is slow, flaky or failing.")
@click.option("--sql", metavar="QUERY", help="Query the tables sessions, hook_runs and tool_calls.")
@click.option("--question", type=click.Choice([*QUESTIONS]), help="Run a built-in query.")
@secrets_option
@json_option
def stats(
    *, check: bool, sql: str | None, question: str | None, show_secrets: bool, as_json: bool, **scope: Any
) -> int:
    """Show what each hook cost and did

    \b
    slow      p95 above 500 ms, or more than 20 % of the time of the turns in which it ran
              and 500 ms of the average session
    flaky     some runs failed, others did not
    failing   every run failed
    shadow    it ran in shadow mode; in brackets, the runs that would have blocked

    A hook that is being rolled out has a row for each mode, and both are compared below.

    --sql and --question are about the sessions of all projects, or an export (--from), and need the extra:
    pip install 'wave-agent[fleet]'
    """
    if sql is not None and question is not None:
        raise click.UsageError("--sql and --question exclude each other.")
    chosen = scope_of(**scope)
    if question is not None or sql is not None:
        return _ask(chosen, QUESTIONS[question].sql if question is not None else sql or "", as_json=as_json)
    sessions, rows = _figures(chosen)
    rows = rows if show_secrets else masked(rows)  # an unnamed hook is identified by its command
    if as_json:
        click.echo(json.dumps({"sessions": sessions, "hooks": [row.to_dict() for row in rows]}))
    else:
        _show(sessions, rows)
    return int(check and any(row.marks for row in rows))


def _figures(scope: SessionScope) -> tuple[int, list[HookFigures]]:
    if (export := scope.export()) is not None:
        from wave_agent.replay.export_query import hook_figures  # lazy: needs an extra

        return hook_figures(export, scope.since)
    with Progress("Reading sessions") as progress:
        tallies = Tallies(progress)
        rows = figures(hook for one in scope.tallies(tallies) for hook in one.hooks)
    tell_skipped(tallies)
    return tallies.sessions, rows


def _ask(scope: SessionScope, sql: str, *, as_json: bool) -> int:
    from wave_agent.replay.export_query import ask  # lazy: needs an extra

    if scope.since:
        raise click.UsageError("--since has no effect here: use the column day, as in WHERE day >= today() - 7.")
    answer = ask(scope.export_for_questions(), sql)
    if as_json:
        click.echo(json.dumps([dict(zip(answer.columns, row, strict=True)) for row in answer.rows]))
    else:
        _show_answer(answer)
    if answer.cut or (len(answer.rows) > _SHOWN and not as_json):
        click.echo("There are more rows: limit the query.", err=True)
    return 0


def _show_answer(answer: "QueryResult") -> None:
    rows = [["" if cell is None else f"{cell}" for cell in row] for row in answer.rows[:_SHOWN]]
    numbers = [
        at
        for at in range(len(answer.columns))
        if any(isinstance(row[at], int | float) and not isinstance(row[at], bool) for row in answer.rows)
    ]
    for line in table([answer.columns, *rows], right=numbers):
        click.echo(line)
    if not rows:
        click.echo("(no rows)")


def _show(count: int, rows: list[HookFigures]) -> None:
    if not count:
        click.echo("There are no sessions to analyse.")
        return
    sessions = "1 session" if count == 1 else f"{count:,} sessions"
    if not rows:
        click.echo(f"No hook ran in {sessions}.")
        return
    click.echo(f"{sum(row.runs for row in rows):,} hook runs in {sessions}")
    for line in table([_HEAD, *map(_cells, rows)], right=range(2, 10)):
        click.echo(line)
    if pairs := rolled_out(rows):
        click.echo()
        for line in table([_COMPARED, *(_compared(row) for pair in pairs for row in pair)], right=range(3, 12)):
            click.echo(line)


def _compared(row: HookFigures) -> tuple[str, ...]:
    blocks = row.blocks + row.would_block
    return (
        row.name,
        row.event,
        row.mode,
        f"{row.sessions:,}",
        f"{row.blocked_sessions:,}",
        _percent(row.blocked_sessions, row.sessions),
        f"{row.runs:,}",
        f"{blocks:,}",
        _percent(blocks, row.runs),
        f"{row.failures:,}",
        milliseconds(row.p50_ms),
        milliseconds(row.p95_ms),
    )


def _shadow(row: HookFigures) -> list[str]:
    return [SHADOW] if row.mode == SHADOW else []


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""


def _cells(row: HookFigures) -> tuple[str, ...]:
    return (
        row.name,
        row.event,
        f"{row.runs:,}",
        f"({row.would_block:,})" if row.mode == SHADOW else f"{row.blocks:,}",
        f"{row.failures:,}",
        f"{row.let_through:,}",
        milliseconds(row.p50_ms),
        milliseconds(row.p95_ms),
        milliseconds(row.max_ms),
        f"{row.share:.0%}",
        ", ".join([*row.marks, *([f"{row.tokens:,} tokens"] if row.tokens else []), *_shadow(row)]),
    )
