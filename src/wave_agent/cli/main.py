"""The command `wave`: loads the one command that was asked for, and turns how it ended into an exit status."""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from wave_agent.errors import WaveError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

FAILED = 1
INTERRUPTED = 130


class CommandSource(NamedTuple):
    """Where a command is, and what the list of commands says about it, so that listing needs no import."""

    target: str
    """`module:attribute` of a click command"""
    summary: str
    """one line, the same as the first line of the command's own help"""


COMMANDS: Mapping[str, CommandSource] = {
    "demo": CommandSource("wave_agent.cli.demo:demo", "See hooks at work, without a key or a network"),
}


class LazyGroup(click.Group):
    """A group that imports a command when it is run or asked for its own help, and never in order to list it."""

    def __init__(self, *args: Any, sources: Mapping[str, CommandSource], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sources = sources

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.sources)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        source = self.sources.get(cmd_name)
        return None if source is None else load(source)

    # click's own versions of the two methods below load every command for its summary.

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.sources:
            with formatter.section("Commands"):
                formatter.write_dl([(name, self.sources[name].summary) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=self.sources[name].summary) for name in names]
        return commands + click.Command.shell_complete(self, ctx, incomplete)


def load(source: CommandSource) -> click.Command:
    """Import the command that `source` names."""
    module, _, attribute = source.target.partition(":")
    command = getattr(import_module(module), attribute)
    if not isinstance(command, click.Command):
        raise TypeError(f"{source.target} is no click command")
    return command


@click.group(
    cls=LazyGroup,
    sources=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="wave-agent", prog_name="wave", message="%(prog)s %(version)s")
@click.pass_context
def wave(ctx: click.Context) -> None:
    """A coding agent for the terminal."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run(group: click.Group, arguments: Sequence[str]) -> int:
    """Run one command line and return its exit status. A command sets the status by returning an integer."""
    try:
        status = group.main(list(arguments), prog_name="wave", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    except WaveError as error:
        click.echo(f"wave: {error}", err=True)
        return FAILED
    return status if isinstance(status, int) else 0


def main() -> int:
    """Run the command line of this process; the installed script exits with what is returned."""
    return run(wave, sys.argv[1:])
