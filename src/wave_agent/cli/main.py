"""The `wave` command: loads the requested subcommand and turns its outcome into an exit status."""

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from copy import copy
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from wave_agent import __version__
from wave_agent.cli.quick import FAILED, UNWRITTEN, written
from wave_agent.errors import MissingPathError, WaveError
from wave_agent.text import did_you_mean, strip_controls

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

USAGE = 2
INTERRUPTED = 130
FROM_STDIN = "-"
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


_PROMPT = "prompt"
"""The name of the internal command that runs when a word follows `-p`. No real command has it."""


class CommandSource(NamedTuple):
    """A command's location and its one-line summary, so that listing commands imports none of them."""

    target: str
    """`module:attribute` of a click command"""
    summary: str
    """one line, identical to the first line of the command's help"""


COMMANDS: Mapping[str, CommandSource] = {
    "acp": CommandSource("wave_agent.cli.acp:acp", "Work in an editor, over the Agent Client Protocol"),
    "completion": CommandSource("wave_agent.cli.completion:completion", "Print the completion script for a shell"),
    "demo": CommandSource("wave_agent.cli.demo:demo", "See hooks at work, without a key or a network"),
    "doctor": CommandSource(
        "wave_agent.cli.doctor:doctor", "Check settings, hooks, sandbox, telemetry, endpoint and model"
    ),
    "guard": CommandSource("wave_agent.cli.guard:guard", "Enforce your hooks and rules in other agents"),
    "hooks": CommandSource("wave_agent.cli.hooks:hooks", "Test, check and manage hooks"),
    "mcp": CommandSource("wave_agent.cli.mcp:mcp", "Configure, test and trust MCP servers"),
    "models": CommandSource("wave_agent.cli.models:models", "List the models you can use"),
    "sessions": CommandSource("wave_agent.cli.sessions:sessions", "List, show, verify, export and delete sessions"),
    "setup": CommandSource("wave_agent.cli.setup:setup", "Choose a model and store it in your settings"),
}


class LazyGroup(click.Group):
    """A group that imports a command to run it or to show its help, but never to list it."""

    hint = ""
    """A suggestion for a word that is not a command."""

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

    # click's versions of the two methods below load every command to get its summary.

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.sources:
            with formatter.section("Commands"):
                formatter.write_dl([(name, self.sources[name].summary) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem  # lazy: only when Tab is pressed

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=self.sources[name].summary) for name in names]
        return commands + click.Command.shell_complete(self, ctx, incomplete)


class WaveGroup(LazyGroup):
    """With `-p`, a word in any position is the prompt: `wave -p --trust "Review this" --model small`."""

    hint = ' For one prompt: wave -p "PROMPT".'

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = [part for one in args for part in (("-p", "-c") if one == "-pc" else (one,))]
        given, words, _ = self.make_parser(ctx).parse_args([*args])
        # Options after the first word belong to a subcommand, unless -p is among them: `wave "Review this" -p`.
        prompt_first = bool(words) and words[0] not in self.sources and not {"-p", "--print"}.isdisjoint(words)
        ctx.allow_interspersed_args = "prompt" in given or prompt_first
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        prompt = ctx.params.get("prompt")
        if prompt is None:
            return super().resolve_command(ctx, args)
        if ctx.resilient_parsing:  # Tab was pressed after a prompt, where no command can follow
            return None, None, []
        if len(args) > 1 or prompt != FROM_STDIN:
            raise click.UsageError("Expected a single prompt: put it in quotes.", ctx)
        chosen = {**ctx.params, "prompt": args[0]}
        return _PROMPT, click.Command(_PROMPT, callback=lambda: start(**chosen)), []


class Count(click.IntRange):
    """An integer with a minimum and a readable error message."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f'"{value}" is not valid: expected a number of at least {self.min}.', param, ctx)


def _complete_rule(_: click.Context, __: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    from wave_agent.cli.mcp.shell_completion import complete_rule  # lazy: only when Tab is pressed

    return complete_rule(incomplete)


class Dollars(click.ParamType[float]):
    name = "dollars"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            dollars = float(value)
        except ValueError:
            dollars = 0.0
        if not 0 < dollars < float("inf"):
            self.fail(f'"{value}" is not valid: expected a number of US dollars, such as 0.50.', param, ctx)
        return dollars


def load(source: CommandSource) -> click.Command:
    """Import the command `source` refers to."""
    module, _, attribute = source.target.partition(":")
    command = getattr(import_module(module), attribute)
    if not isinstance(command, click.Command):
        raise TypeError(f"{source.target} is not a click command")
    return command


@click.group(
    cls=WaveGroup,
    sources=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="wave", message="%(prog)s %(version)s")
@click.option(
    "-p",
    "--print",
    "prompt",
    is_flag=False,
    flag_value=FROM_STDIN,
    metavar="[PROMPT]",
    help="Run one prompt and exit. Without PROMPT, or with -, read it from stdin.",
)
@click.option(
    "--output-format",
    type=click.Choice(["text", "json", "stream-json"]),
    default="text",
    show_default=True,
    help="With -p: print only the answer, one JSON object, or a stream of JSON objects, one per line.",
)
@click.option("--model", metavar="NAME", help="The model to use (WAVE_MODEL).")
@click.option("--base-url", metavar="URL", help="The model's endpoint (WAVE_BASE_URL).")
@click.option(
    "--api",
    metavar="API",
    type=click.Choice(["openai-chat", "openai-responses", "anthropic"]),
    help="The endpoint's API: openai-chat, openai-responses or anthropic (WAVE_API). Default: detected from its URL, "
    "or by asking the server.",
)
@click.option("--settings", multiple=True, metavar="FILE", help="Load an extra settings file, on top of all others.")
@click.option(
    "--permission-mode",
    metavar="MODE",
    type=click.Choice(["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]),
    help="The permission mode: default, acceptEdits, plan, dontAsk or bypassPermissions.",
)
@click.option(
    "--allowed-tools",
    multiple=True,
    metavar="RULE",
    shell_complete=_complete_rule,
    help="Allow matching calls without asking, such as 'Bash(git log:*),mcp__files'.",
)
@click.option(
    "--disallowed-tools", multiple=True, metavar="RULE", shell_complete=_complete_rule, help="Deny matching calls."
)
@click.option(
    "--add-dir",
    "add_dirs",
    multiple=True,
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="Let the agent work in this directory too.",
)
@click.option("--max-turns", type=Count(min=1), metavar="N", help="Stop after N model requests.")
@click.option("--max-cost", type=Dollars(), metavar="USD", help="Stop once this many US dollars are spent.")
@click.option("--max-output-tokens", type=Count(min=1), metavar="N", help="Limit each answer to N tokens.")
@click.option(
    "--effort", type=click.Choice(["low", "medium", "high", "xhigh", "max"]), help="How hard the model should think."
)
@click.option("--fallback-model", metavar="NAME", help="Continue with this model if the model is overloaded.")
@click.option("--append-system-prompt", default="", metavar="TEXT", help="Add instructions to the system prompt.")
@click.option("--cwd", metavar="DIR", help="Work in DIR instead of the current directory.")
@click.option("--trust", is_flag=True, help="Trust the project's hooks for this run. Nothing is stored.")
@click.option(
    "--trust-ref", metavar="REF", help="Trust only hooks and servers as they are at this git ref, such as origin/main."
)
@click.option("--no-project-hooks", is_flag=True, help="Skip the project's own hooks.")
@click.option("--no-hooks", is_flag=True, help="Run only managed hooks. Requires a person at a terminal.")
@click.option(
    "--plugin-dir", "plugins", multiple=True, metavar="DIR", help="Also run this plugin's hooks (hooks/hooks.json)."
)
@click.option(
    "--mcp-config", multiple=True, metavar="FILE", help="Also use the MCP servers in FILE, or in a JSON string."
)
@click.option("--strict-mcp-config", is_flag=True, help="Use only the MCP servers of --mcp-config.")
@click.option("--strict-hooks", is_flag=True, help="Block on every hook failure: no hook may fail open.")
@click.option(
    "--sandbox", is_flag=True, help="Run commands in a sandbox: writes only in the project, no network (Linux)."
)
@click.option("-c", "--continue", "go_on", is_flag=True, help="Resume this project's latest session.")
@click.option("-r", "--resume", metavar="ID", help="Resume this session. A unique prefix of its id is enough.")
@click.option(
    "--plain",
    is_flag=True,
    help="Use lines of text instead of the full screen, for screen readers. Also on if TERM=dumb.",
)
@click.option("--debug", "debug_topics", multiple=True, type=click.Choice(["hooks"]), help="Log every hook run.")
@click.pass_context
def wave(ctx: click.Context, prompt: str | None, debug_topics: Sequence[str], **flags: Any) -> int:
    """A coding agent for the terminal, guarded by hooks.

    \b
    wave setup                            choose a model
    wave                                  start a session
    wave -p "What does this project do?"  print one answer
    git diff | wave -p "Review this"      read stdin as well
    wave demo                             see hooks at work

    Works with Anthropic, OpenAI, Gemini, OpenRouter and Mistral, with Ollama, LM Studio, llama.cpp and vLLM, and with
    any other server that speaks one of their APIs: run wave setup. Or set WAVE_MODEL and the provider's own key, such
    as ANTHROPIC_API_KEY; or WAVE_BASE_URL and WAVE_MODEL, and WAVE_API_KEY if the server needs a key.

    Exit status: 0 completed, 1 failed, 2 usage, 3 blocked or stopped by a hook, 4 --max-turns or --max-cost reached,
    130 interrupted (143 by SIGTERM, 129 by SIGHUP).
    """
    return 0 if ctx.invoked_subcommand is not None else start(prompt, debug_topics, **flags)


def start(prompt: str | None, debug_topics: Sequence[str], **flags: Any) -> int:
    """Run one prompt, or open a session if there is none."""
    is_plain = flags.pop("plain") or os.environ.get("TERM") == "dumb"
    if prompt is None:
        require_terminal(flags["output_format"], plain=is_plain)
    if flags["go_on"] and flags["resume"] is not None:
        raise click.UsageError("-c and -r cannot be combined: -c resumes the latest session, -r the one you name.")
    if prompt is not None:
        from wave_agent.cli.headless import start_prompt  # lazy: --help needs none of it

        return start_prompt(prompt, debug_topics, **flags)
    from wave_agent.cli.flags import check_rules, options_from  # lazy: --help needs none of it

    check_rules(flags)
    from wave_agent.cli.first_start import offer_setup_if_needed  # lazy: --help needs none of it

    options = partial(options_from, flags)
    if not offer_setup_if_needed(options):
        return FAILED
    if is_plain:
        from wave_agent.cli.plain.launch import open_plain  # lazy: --help needs none of it

        return open_plain(options, debug_hooks="hooks" in debug_topics)
    from wave_agent.screen.launch import open_screen  # lazy: the screen's library takes a while to load

    return open_screen(options, debug_hooks="hooks" in debug_topics)


def require_terminal(output_format: str, *, plain: bool) -> None:
    """The screen needs a terminal on stdin and stdout. A plain session may print to a file."""
    if output_format != "text":
        raise click.UsageError("--output-format needs -p: wave -p PROMPT.")
    streams: tuple[Any, Any] = (sys.stdin, sys.stdout)  # None if the caller closed them
    if plain and not (streams[0] is not None and streams[0].isatty()):
        raise click.UsageError(
            'wave --plain needs a terminal on stdin. To run a single prompt without one: wave -p "PROMPT". '
            "See wave --help."
        )
    if not plain and not all(stream is not None and stream.isatty() for stream in streams):
        raise click.UsageError(
            "The interactive screen needs a terminal on stdin and stdout. To run a single prompt without one: "
            'wave -p "PROMPT". See wave --help.'
        )


def run(group: click.Group, arguments: Sequence[str]) -> int:
    """Run one command line and return its exit status. A command sets the status by returning an integer."""
    try:
        status = group.main(list(arguments), prog_name="wave", standalone_mode=False)
    except click.ClickException as error:
        if isinstance(error, click.UsageError) and error.ctx is not None and error.ctx.info_name == _PROMPT:
            error.ctx = error.ctx.parent  # the user did not type that command
        if isinstance(error, click.BadOptionUsage) and error.option_name in ("-r", "--resume"):
            where = "wave sessions lists the ids, /resume in a session searches them, and -c takes the latest."
            error = click.UsageError(f"{error.message} {where}", error.ctx)
        error.show()
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    except BrokenPipeError:
        return 0  # the reader closed the pipe: `wave demo | head`
    except (WaveError, OSError) as error:
        click.echo(f"wave: {strip_controls(_said(error))}", err=True)
        return USAGE if isinstance(error, MissingPathError) else FAILED
    return status if isinstance(status, int) else 0


def report(error: BaseException) -> int:
    """Report an error of a run that did without the parser as if it had been there, and return the exit status."""

    def fail(**_: Any) -> None:
        raise error

    failed = copy(wave)
    failed.callback = fail
    return run(failed, [])


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:  # file errors have a name
        return f"{UNWRITTEN}: {error.strerror}"
    return str(error)


def main() -> int:
    """Run this process's command line; the installed script exits with the returned status."""
    return written(run(wave, sys.argv[1:]))
