"""Arguments that several `wave guard` commands share."""

import click

from wave_agent.guard.hosts import HOSTS

host_argument = click.argument("host", type=click.Choice(list(HOSTS)), metavar="HOST")
