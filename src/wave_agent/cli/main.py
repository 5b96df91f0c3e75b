"""The command `wave`: loads the one command that was asked for, and turns how it ended into an exit status."""

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from wave_agent.errors import MissingPathError, WaveError
from wave_agent.text import did_you_mean, strip_controls

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

FAILED = 1
USAGE = 2
INTERRUPTED = 130
FROM_STDIN = "-"
UNWRITTEN = "The output cannot be written"
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


_PROMPT = "prompt"
"""What is run when a word follows `-p`. No command has this name."""


class CommandSource(NamedTuple):
    """Where a command is, and what the list of commands says about it, so that listing needs no import."""

    target: str
    """`module:attribute` of a click command"""
    summary: str
    """one line, the same as the first line of the command's own help"""


COMMANDS: Mapping[str, CommandSource] = {
    "completion": CommandSource("wave_agent.cli.completion:completion", "Print the completion script for a shell"),
    "demo": CommandSource("wave_agent.cli.demo:demo", "See hooks at work, without a key or a network"),
    "doctor": CommandSource("wave_agent.cli.doctor:doctor", "Check settings, hooks, endpoint and model"),
    "hooks": CommandSource("wave_agent.cli.hooks:hooks", "Look after hooks"),
    "sessions": CommandSource("wave_agent.cli.sessions:sessions", "List, show, verify, export and delete sessions"),
}


class LazyGroup(click.Group):
    """A group that imports a command when it is run or asked for its own help, and never in order to list it."""

    hint = ""
    """What else a word may be meant for that is no command."""

    def __init__(self, *args: Any, sources: Mapping[str, CommandSource], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sources = sources

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.sources)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        source = self.sources.get(cmd_name)
        return None if source is None else load(source)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not (args[0] in self.sources or args[0].startswith("-") or ctx.resilient_parsing):
            nearest = did_you_mean(args[0], self.sources)
            raise click.UsageError(f'There is no command "{args[0]}"{nearest}.{self.hint}', ctx)
        return super().resolve_command(ctx, args)

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


class WaveGroup(LazyGroup):
    """With `-p` every word is the prompt, wherever it stands: `wave -p --trust "Review this" --model small`."""

    hint = ' For one prompt: wave -p "PROMPT".'

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = [part for one in args for part in (("-p", "-c") if one == "-pc" else (one,))]
        given, words, _ = self.make_parser(ctx).parse_args([*args])
        # Options behind the first word are a subcommand's own, except that -p has none: `wave "Review this" -p`.
        prompt_first = bool(words) and words[0] not in self.sources and not {"-p", "--print"}.isdisjoint(words)
        ctx.allow_interspersed_args = "prompt" in given or prompt_first
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        prompt = ctx.params.get("prompt")
        if prompt is None:
            return super().resolve_command(ctx, args)
        if ctx.resilient_parsing:  # somebody presses Tab behind a prompt: no command comes there
            return None, None, []
        if len(args) > 1 or prompt != FROM_STDIN:
            raise click.UsageError("One prompt at a time: put it into quotes.", ctx)
        chosen = {**ctx.params, "prompt": args[0]}
        return _PROMPT, click.Command(_PROMPT, callback=lambda: start(**chosen)), []


class Count(click.IntRange):
    """A number, with a message for people."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f'"{value}" is not a number of at least {self.min}.', param, ctx)


def load(source: CommandSource) -> click.Command:
    """Import the command that `source` names."""
    module, _, attribute = source.target.partition(":")
    command = getattr(import_module(module), attribute)
    if not isinstance(command, click.Command):
        raise TypeError(f"{source.target} is no click command")
    return command


@click.group(
    cls=WaveGroup,
    sources=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="wave-agent", prog_name="wave", message="%(prog)s %(version)s")
@click.option(
    "-p",
    "--print",
    "prompt",
    is_flag=False,
    flag_value=FROM_STDIN,
    metavar="[PROMPT]",
    help="Run one prompt and end. Without PROMPT, or with -, it is read from standard input.",
)
@click.option(
    "--output-format",
    type=click.Choice(["text", "json", "stream-json"]),
    default="text",
    show_default=True,
    help="With -p: the answer alone, one JSON object, or one JSON object a line as it happens.",
)
@click.option("--model", metavar="NAME", help="The model to ask (WAVE_MODEL).")
@click.option("--base-url", metavar="URL", help="An OpenAI-compatible endpoint (WAVE_BASE_URL).")
@click.option("--settings", multiple=True, metavar="FILE", help="One more settings file, on top of all others.")
@click.option(
    "--permission-mode",
    metavar="MODE",
    type=click.Choice(["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]),
    help="default, acceptEdits, plan, dontAsk or bypassPermissions.",
)
@click.option(
    "--allowed-tools", multiple=True, metavar="RULE", help="Run this without asking, such as 'Bash(git log:*)'."
)
@click.option("--disallowed-tools", multiple=True, metavar="RULE", help="Never run this.")
@click.option(
    "--add-dir",
    "add_dirs",
    multiple=True,
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="Let the agent work in this directory too.",
)
@click.option("--max-turns", type=Count(min=1), metavar="N", help="Stop after N model requests.")
@click.option("--append-system-prompt", default="", metavar="TEXT", help="More instructions for the model.")
@click.option("--cwd", metavar="DIR", help="Work in this project instead of the current directory.")
@click.option("--trust", is_flag=True, help="Trust the project's hooks for this run. Nothing is stored.")
@click.option("--trust-ref", metavar="REF", help="Trust exactly what this git ref holds, such as origin/main.")
@click.option("--no-project-hooks", is_flag=True, help="Leave the project's own hooks out.")
@click.option("--no-hooks", is_flag=True, help="Run no hooks but managed ones. For a person at a terminal only.")
@click.option(
    "--plugin-dir", "plugins", multiple=True, metavar="DIR", help="Run the hooks of this plugin (hooks/hooks.json) too."
)
@click.option("--strict-hooks", is_flag=True, help="No hook may fail open: every failure blocks.")
@click.option("--sandbox", is_flag=True, help="Confine commands: writes stay in the project, no network (Linux).")
@click.option("-c", "--continue", "go_on", is_flag=True, help="Go on with the latest session of this project.")
@click.option("-r", "--resume", metavar="ID", help="Go on with this session. The beginning of its id will do.")
@click.option("--debug", "debug_topics", multiple=True, type=click.Choice(["hooks"]), help="Tell every run of a hook.")
@click.pass_context
def wave(ctx: click.Context, prompt: str | None, debug_topics: Sequence[str], **flags: Any) -> int:
    """A coding agent for the terminal, guarded by hooks.

    \b
    wave                                        the screen: a conversation
    wave -p "What does this project do?"        one answer, on stdout
    git diff | wave -p "Review this change"     with something to read
    wave demo                                   hooks at work, without a key or a network

    The endpoint is any OpenAI-compatible server: set WAVE_BASE_URL and WAVE_MODEL, and WAVE_API_KEY where the server
    wants a key.

    Exit status: 0 completed, 1 failed, 2 usage, 3 blocked or stopped by a hook, 4 --max-turns reached, 130 interrupted
    (143 by SIGTERM, 129 by SIGHUP).
    """
    return 0 if ctx.invoked_subcommand is not None else start(prompt, debug_topics, **flags)


def start(prompt: str | None, debug_topics: Sequence[str], **flags: Any) -> int:
    """One prompt, or without one the screen."""
    if prompt is None:
        require_terminal(flags["output_format"])
    if flags["go_on"] and flags["resume"] is not None:
        raise click.UsageError("-c goes on with the latest session and -r with the one you name: give one of them.")
    from wave_agent.cli.flags import check_rules, options_from  # lazy: --help needs none of it

    check_rules(flags)
    options = partial(options_from, flags)
    debug_hooks = "hooks" in debug_topics
    if prompt is None:
        from wave_agent.screen.launch import open_screen  # lazy: the screen's library takes a while to load

        return open_screen(options, debug_hooks=debug_hooks)
    from wave_agent.cli.headless import run_prompt  # lazy: --help needs none of it

    return run_prompt(prompt, options, flags["output_format"], debug_hooks=debug_hooks)


def require_terminal(output_format: str) -> None:
    """The screen wants a keyboard and something to draw on."""
    if output_format != "text":
        raise click.UsageError("--output-format is for -p: give a prompt, wave -p PROMPT.")
    streams: tuple[Any, Any] = (sys.stdin, sys.stdout)  # None where the caller has closed them
    if not all(stream is not None and stream.isatty() for stream in streams):
        raise click.UsageError(
            "The screen needs a terminal, and standard input or output is none. For one answer without it: "
            'wave -p "PROMPT". wave --help tells the rest.'
        )


def run(group: click.Group, arguments: Sequence[str]) -> int:
    """Run one command line and return its exit status. A command sets the status by returning an integer."""
    try:
        status = group.main(list(arguments), prog_name="wave", standalone_mode=False)
    except click.ClickException as error:
        if isinstance(error, click.UsageError) and error.ctx is not None and error.ctx.info_name == _PROMPT:
            error.ctx = error.ctx.parent  # nobody typed that command
        error.show()
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    except BrokenPipeError:
        return 0  # whoever read the output had enough: `wave demo | head`
    except (WaveError, OSError) as error:
        click.echo(f"wave: {strip_controls(_said(error))}", err=True)
        return USAGE if isinstance(error, MissingPathError) else FAILED
    return status if isinstance(status, int) else 0


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:  # of a file it has a name
        return f"{UNWRITTEN}: {error.strerror}"
    return str(error)


def main() -> int:
    """Run the command line of this process; the installed script exits with what is returned."""
    return written(run(wave, sys.argv[1:]))


def written(status: int) -> int:
    """The status, once all output is out: Python would try at exit again, and tell of it in its own way."""
    streams: tuple[Any] = (sys.stdout,)  # None where the caller has closed it
    if streams[0] is None:
        return status
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return status
        if not status:  # else it was told already
            click.echo(f"wave: {UNWRITTEN}: {error.strerror}", err=True)
        return status or FAILED
    return status
