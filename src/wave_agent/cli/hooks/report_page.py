"""`wave hooks report`: a page with plots of what hooks did."""

from typing import Any

import click

from wave_agent.cli.hooks.scope import SessionScope, scope_of, scope_options, tell_skipped
from wave_agent.cli.options import secrets_option
from wave_agent.cli.private_output import write_private_page
from wave_agent.cli.progress import Progress
from wave_agent.replay.overview import HookOverview, overview
from wave_agent.replay.report_page import report_page
from wave_agent.replay.tallies import Tallies
from wave_agent.sessions.masking import masked


@click.command()
@scope_options
@click.option("--html", metavar="FILE", required=True, help="Write the page to FILE.")
@secrets_option
def report(*, html: str, show_secrets: bool, **scope: Any) -> int:
    """Write a page with plots of what hooks did

    Shows how often hooks blocked and failed over time, how long each takes, and which calls were denied most. The page
    is a single file that needs no network. Denied commands from an export are shown only if it has them (--content).
    """
    found = _overview(scope_of(**scope))
    if not found.sessions:
        click.echo("There are no sessions to analyse: the page is empty.", err=True)
    write_private_page(html, report_page(found if show_secrets else masked(found), "What hooks did"))
    click.echo(f"Wrote {html}", err=True)
    return 0


def _overview(scope: SessionScope) -> HookOverview:
    if (export := scope.export()) is not None:
        from wave_agent.replay.export_query import export_overview  # lazy: needs an extra

        return export_overview(export, scope.since)
    with Progress("Reading sessions") as progress:
        tallies = Tallies(progress)
        found = overview(scope.tallies(tallies))
    tell_skipped(tallies)
    return found
