"""Arguments that several `wave guard` commands share."""

import sys
from pathlib import Path

import click

from wave_agent.guard import client
from wave_agent.guard.hosts import HOSTS
from wave_agent.guard.lines import PROGRAM

host_argument = click.argument("host", type=click.Choice(list(HOSTS)), metavar="HOST")
any_host_argument = click.argument("host", type=click.Choice(list(HOSTS)), metavar="[HOST]", required=False)


def program_for(*, for_user: bool) -> tuple[str, ...]:
    """How hosts start the guard: by its path for this user, by its name for everyone who works on a project."""
    return (sys.executable, "-I", "-S", str(Path(client.__file__).absolute())) if for_user else PROGRAM
