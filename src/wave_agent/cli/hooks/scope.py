"""Which recorded sessions a command is about: of this project, of all, of a directory, or of an export."""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from wave_agent.agent.options import find_places
from wave_agent.cli.options import cwd_option, since_option
from wave_agent.cli.progress import Progress
from wave_agent.replay.export_place import ExportPlace
from wave_agent.replay.selection import foreign_sessions, project_directories
from wave_agent.replay.snapshot import is_url
from wave_agent.replay.tallies import Tallies
from wave_agent.replay.tally import SessionTally
from wave_agent.sessions.touched import DIRECTORY
from wave_agent.sessions.transcript import transcripts
from wave_agent.text import strip_controls

_OWN_EXPORT = "parquet"
"""In the directory of the index: an export of this machine's own sessions, for questions in SQL."""


class SessionScope(Struct, frozen=True, kw_only=True):
    home: Path
    directories: list[Path]
    """Of the projects."""
    place: str | None
    """What `--from` names."""
    since: float

    def export(self) -> ExportPlace | None:
        """What `--from` names, if it is an export."""
        if self.place is None:
            return None
        found = ExportPlace(self.place)
        if found.is_export():
            return found
        if is_url(self.place):
            raise click.UsageError(f"{self.place} is not an export; make one with: wave hooks export {self.place}")
        return None

    def export_for_questions(self) -> ExportPlace:
        """The same. Without `--from`, an export of all sessions here, which is brought up to date."""
        if self.place is not None:
            found = self.export()
            if found is None:
                raise click.UsageError(f"{self.place} is not an export; make one with: wave hooks export DIR")
            return found
        from wave_agent.replay.export import export_sessions  # lazy: needs an extra

        own = ExportPlace(str(self.home / DIRECTORY / _OWN_EXPORT))
        with Progress("Reading sessions") as progress:
            export_sessions(self.home, own, progress, prune=True)
        return own

    def tallies(self, found: Tallies) -> Iterator[SessionTally]:
        if self.place is None:
            return found.of_projects(self.home, self.directories, self.since)
        directory = Path(self.place)
        if not directory.is_dir():
            raise click.UsageError(f"There is no directory {self.place}.")
        age = timedelta(seconds=datetime.now(UTC).timestamp() - self.since) if self.since else None
        return found.of_files(foreign_sessions(directory, age))


def scope_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--all`, `--from`, `--since` and `--cwd`, for `scope_of`."""
    options = (
        click.option("--all", "everywhere", is_flag=True, help="Include the sessions of all projects."),
        click.option(
            "--from",
            "place",
            metavar="DIR|URL",
            help="Read the transcripts below DIR, or an export of wave hooks export.",
        ),
        since_option,
        cwd_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


def scope_of(*, everywhere: bool, place: str | None, since: timedelta | None, cwd: str | None) -> SessionScope:
    if everywhere and place is not None:
        raise click.UsageError("--all and --from exclude each other.")
    project, home = find_places(cwd, os.environ)
    return SessionScope(
        home=home,
        directories=project_directories(home) if everywhere else [transcripts(home, project)],
        place=place,
        since=0.0 if since is None else (datetime.now(UTC) - since).timestamp(),
    )


def tell_skipped(found: Tallies) -> None:
    for path in found.skipped:
        click.echo(strip_controls(f"Skipped, since it cannot be read as a transcript: {path}"), err=True)
