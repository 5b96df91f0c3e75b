"""`wave sessions`: what was said and done, and when."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import click

from wave_agent.assembly import find_places
from wave_agent.session import load_session
from wave_agent.session_index import as_markdown, delete_session, find_session, list_sessions
from wave_agent.text import clip, strip_controls

in_project = click.option("--cwd", metavar="DIR", help="The project, instead of the current directory.")
as_json = click.option("--json", "as_json", is_flag=True, help="For programs.")


@click.group(invoke_without_command=True)
@in_project
@as_json
@click.pass_context
def sessions(ctx: click.Context, cwd: str | None, as_json: bool) -> int:
    """List, show, export and delete sessions

    Without a command: the sessions of this project, the latest first. An id may be cut short as long as it is the only
    one that begins so.
    """
    if ctx.invoked_subcommand is not None:
        ctx.obj = cwd
        return 0
    project, home = find_places(cwd, os.environ)
    found = list_sessions(home, project)
    if as_json:
        click.echo(json.dumps([session.to_dict() for session in found]))
    elif not found:
        click.echo("There are no sessions in this project yet.")
    for session in [] if as_json else found:
        prompt = " ".join(strip_controls(clip(session.first_prompt, 200)).split()) or "(no prompt)"
        click.echo(f"{session.session_id}  {_ago(session.modified):>12}  {prompt[:70]}")
    return 0


@sessions.command()
@click.argument("session_id", metavar="ID")
@as_json
@click.pass_obj
def show(cwd: str | None, session_id: str, as_json: bool) -> int:
    """Print the conversation."""
    path = _find(cwd, session_id)
    resumed = load_session(path)
    if as_json:
        click.echo(json.dumps([message.to_dict() for message in resumed.messages], ensure_ascii=False))
    else:
        click.echo(strip_controls(as_markdown(resumed.messages, f"Session {path.stem}")), nl=False)
    if resumed.skipped:
        click.echo(f"wave: {resumed.skipped} lines of the transcript could not be read", err=True)
    return 0


@sessions.command()
@click.argument("session_id", metavar="ID")
@click.option("-o", "--output", metavar="FILE", help="Write here instead of standard output.")
@click.pass_obj
def export(cwd: str | None, session_id: str, output: str | None) -> int:
    """Write the conversation as Markdown."""
    path = _find(cwd, session_id)
    text = as_markdown(load_session(path).messages, f"Session {path.stem}")
    if output is None:
        click.echo(text, nl=False)
        return 0
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"{output} cannot be written: {error.strerror}") from None
    return 0


@sessions.command()
@click.argument("session_ids", metavar="ID...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def delete(cwd: str | None, session_ids: tuple[str, ...], yes: bool) -> int:
    """Delete sessions for good."""
    paths = [_find(cwd, session_id) for session_id in session_ids]
    for path in paths:
        if yes or click.confirm(f"Delete {path.stem}?"):
            delete_session(path)
            click.echo(f"Deleted {path.stem}.")
    return 0


def _find(cwd: str | None, session_id: str) -> Path:
    project, home = find_places(cwd, os.environ)
    return find_session(home, project, session_id)


def _ago(when: datetime) -> str:
    seconds = (datetime.now(UTC) - when).total_seconds()
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            number = int(seconds // size)
            return f"{number} {unit}{'s' if number > 1 else ''} ago"
    return "just now"
