"""`wave hooks trace`: a session as a timeline."""

import json
import os
import shutil
from itertools import islice

import click
import msgspec
from msgspec.structs import replace

from wave_agent.agent.options import find_places
from wave_agent.cli.options import cwd_option, json_option, secrets_option
from wave_agent.cli.private_output import write_private_page
from wave_agent.replay.drawing import draw
from wave_agent.replay.lines import lines_of
from wave_agent.replay.selection import sessions_of
from wave_agent.replay.subagent_lines import subagents_in
from wave_agent.replay.timeline import Span, Timeline, timeline
from wave_agent.sessions.index import find_session
from wave_agent.sessions.masking import masked

_AT_ONCE = 500
"""Lines that are printed together: each print is flushed."""


@click.command()
@click.argument("session", required=False)
@click.option("--html", metavar="FILE", help="Write a self-contained HTML page to view in a browser.")
@secrets_option
@cwd_option
@json_option
def trace(session: str | None, html: str | None, show_secrets: bool, cwd: str | None, as_json: bool) -> int:
    """Show a session as a timeline

    Shows prompts, model requests, hooks and tools, how each ended, and who read its output. Without SESSION, shows this
    project's latest session. ∥ marks hooks that ran in parallel; ~ marks a time inferred from its neighbours.
    """
    project, home = find_places(cwd, os.environ)
    paths = [find_session(home, project, session)] if session else sessions_of(home, project)[:1]
    if not paths:
        click.echo("null" if as_json else "There are no sessions in this project yet.")
        return 0
    lines = lines_of(paths[0])
    is_drawn = not as_json and html is None
    found = timeline(paths[0].stem, lines, subagents_in(lines), effects=not is_drawn)
    del lines  # as large as all the rest
    if not show_secrets:
        found = _masked_as_drawn(found) if is_drawn else masked(found)
    if html is not None:
        from wave_agent.replay.page import page  # lazy: rarely used

        write_private_page(html, page(found))
        click.echo(f"Wrote {html}", err=True)
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(found)))
    elif html is None:
        lines_drawn = draw(found, shutil.get_terminal_size((100, 24)).columns)
        while some := list(islice(lines_drawn, _AT_ONCE)):
            click.echo("\n".join(some))
    return 0


def _masked_as_drawn(found: Timeline) -> Timeline:
    """Masks what a drawing shows, and leaves out most of the rest."""
    return replace(found, session_id=masked(found.session_id), spans=tuple(map(_masked_span, found.spans)))


def _masked_span(span: Span) -> Span:
    texts = (span.title, span.verdict, span.text if span.run else "", span.agent_id, span.agent_type)
    title, verdict, text, agent_id, agent_type = masked(texts)
    return replace(span, title=title, verdict=verdict, text=text, agent_id=agent_id, agent_type=agent_type, facts={})
