"""`wave guard status`: where the guard is installed, and what each host does with it."""

import json
import os
from collections.abc import Iterator

import click

from wave_agent.agent.options import find_places
from wave_agent.cli.guard.options import any_host_argument
from wave_agent.cli.options import cwd_option, json_option
from wave_agent.guard.hosts import HOSTS
from wave_agent.guard.review import HostReview, review
from wave_agent.text import strip_controls


@click.command()
@any_host_argument
@cwd_option
@json_option
def status(host: str | None, cwd: str | None, as_json: bool) -> int:
    """Show where the guard is installed and what is enforced

    For each host: the settings files that have the guard, what the host enforces, what it cannot do, and what else in
    its settings would override the guard. Exit status 1 if something is missing or overrides it.
    """
    project, _ = find_places(cwd, os.environ)
    found = [review(name, project, os.environ) for name in ([host] if host else HOSTS)]
    shown = found if host else [one for one in found if one.guards or one.problems]
    if as_json:
        click.echo(json.dumps([one.to_dict() for one in shown]))
    else:
        for one in shown:
            for line in _lines(one):
                click.echo(strip_controls(line))
        absent = [one.host for one in found if not one.guards]
        if not host and absent:
            click.echo(f"Not installed: {', '.join(absent)}. To install it: wave guard install HOST")
    incomplete = any(guard.missing for one in shown for guard in one.guards)
    asked_for_missing = host is not None and not found[0].guards
    return int(asked_for_missing or incomplete or any(one.overrides or one.problems for one in shown))


def _lines(found: HostReview) -> Iterator[str]:
    note = " (experimental)" if found.row.experimental else ""
    yield f"{found.row.title}{note}"
    for guard in found.guards:
        yield f"  installed   {guard.file} ({guard.scope})"
        if guard.missing:
            yield f"  outdated    {', '.join(guard.missing)} missing: run wave guard install {found.host} again"
    if not found.guards:
        yield f"  not installed: run wave guard install {found.host}"
    for name, verbs in found.enforces.items():
        if verbs:
            yield f"  {name:<20} {', '.join(verbs)}"
    for limit in found.row.limits:
        yield f"  limit       {limit}"
    for override in found.overrides:
        yield f"  OVERRIDDEN  {override}"
    for problem in found.problems:
        yield f"  UNREADABLE  {problem}"
