"""`wave hooks export`: hook runs, tool calls and sessions as Parquet."""

import json
import os

import click
import msgspec

from wave_agent.agent.options import find_places
from wave_agent.cli.options import json_option
from wave_agent.cli.progress import Progress
from wave_agent.replay.export import Exported, export_sessions
from wave_agent.replay.export_place import ExportPlace


@click.command()
@click.argument("place", metavar="DIR|URL")
@click.option("--format", type=click.Choice(["parquet"]), expose_value=False, help="The format: parquet, the default.")
@click.option("--content", is_flag=True, help="Include prompts, commands, inputs and results, with secrets masked.")
@click.option("--prune", is_flag=True, help="Remove sessions that were deleted here, and older copies of others.")
@json_option
def export(place: str, content: bool, prune: bool, as_json: bool) -> int:
    """Export hook runs, tool calls and sessions

    Writes the sessions of all projects to a directory, or to a URL such as s3://bucket/hooks: a file for each table and
    day. Run it again at any time: only what has changed since is written. Names the user, the machine and the
    repository of each session, but contains no prompts, commands and results without --content.

    Needs the extra: pip install 'wave-agent[fleet]'
    """
    _, home = find_places(None, os.environ)
    with Progress("Exporting sessions") as progress:
        done = export_sessions(home, ExportPlace(place), progress, content=content, prune=prune)
    click.echo(json.dumps(msgspec.to_builtins(done)) if as_json else _sentence(done, place))
    return 0


def _sentence(done: Exported, place: str) -> str:
    if not done.sessions and not done.removed:
        return f"{place} is up to date: {_count(done.unchanged, 'session')}."
    parts = [_count(done.sessions, "session"), _count(done.hook_runs, "hook run"), _count(done.tool_calls, "tool call")]
    removed = f" Removed {_count(done.removed, 'session')}." if done.removed else ""
    return f"Exported {', '.join(parts)} on {_count(done.days, 'day')}; {done.unchanged:,} unchanged.{removed}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
