"""The arguments of the `wave mcp` commands that Tab completes."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def _complete_server(ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    from wave_agent.cli.mcp.shell_completion import complete_server  # lazy: only when Tab is pressed

    return complete_server(ctx, param, incomplete)


new_name_argument = click.argument("name", metavar="NAME")
name_argument = click.argument("name", metavar="NAME", shell_complete=_complete_server)
names_argument = click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=_complete_server)
