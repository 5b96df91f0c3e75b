"""`wave mcp add`: configure a server."""

import json
import os
import re
from collections.abc import Sequence
from typing import Any

import click

from wave_agent.cli.mcp.arguments import new_name_argument
from wave_agent.cli.mcp.options import command_line, scope_option, server_files, shown_entry
from wave_agent.cli.options import cwd_option, json_option
from wave_agent.hooks.definitions import Layer
from wave_agent.mcp.entries import RawEntry, ReadEntry, name_key, name_problem, read_entry
from wave_agent.mcp.server_files import Scope, ServerFile
from wave_agent.mcp.values import ServerTransport
from wave_agent.system.ancestry import require_no_agent
from wave_agent.system.which import which
from wave_agent.text import strip_controls

_VARIABLE = re.compile(r"[A-Za-z_]\w*")


class CommandLast(click.Command):
    """Options may stand before and after the first word; everything from the second word on belongs to the server."""

    allow_interspersed_args = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        before, words = self._split(args)
        after, command = self._split(words[1:])
        return super().parse_args(ctx, [*before, *after, "--", *words[:1], *command])

    def _split(self, args: list[str]) -> tuple[list[str], list[str]]:
        """The options at the beginning, and the rest."""
        with_value = {
            name for one in self.params if isinstance(one, click.Option) and not one.is_flag for name in one.opts
        }
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] != "--":
            at += 2 if args[at] in with_value else 1
        return args[:at], args[at + 1 :] if args[at : at + 1] == ["--"] else args[at:]


@click.command(cls=CommandLast)
@new_name_argument
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="COMMAND [ARGS]... | URL")
@click.option(
    "--transport",
    type=click.Choice([transport.value for transport in ServerTransport]),
    default=ServerTransport.STDIO.value,
    show_default=True,
    help="stdio: a program is started. http, sse: a remote server.",
)
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="A variable for the program. Without VALUE it is taken from your environment at each start and not stored.",
)
@click.option("--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="An HTTP header, for http and sse.")
@scope_option
@click.option("--force", is_flag=True, help="Replace a server with this name.")
@cwd_option
@json_option
def add(
    *,
    name: str,
    command: tuple[str, ...],
    transport: str,
    variables: Sequence[str],
    headers: Sequence[str],
    scope: str | None,
    force: bool,
    cwd: str | None,
    as_json: bool,
) -> int:
    """Add a server to your settings or to the project

    Without --scope it is added to your own settings, for all projects. Everything else in the file stays as it is.
    Everything after COMMAND belongs to the server, options included. ${NAME} in a value stands for a variable of your
    environment when the server starts; put it in single quotes.

    \b
    wave mcp add time uvx mcp-server-time
    wave mcp add files --scope project -- npx -y @modelcontextprotocol/server-filesystem .
    wave mcp add issues --env GITHUB_TOKEN -- issue-server --read-only
    wave mcp add docs --transport http https://example.com/mcp --header 'Authorization: Bearer ${DOCS_TOKEN}'
    """
    require_no_agent(os.environ, "wave mcp add")
    entry = _entry(command, ServerTransport(transport), variables, headers)
    target = server_files(cwd, scope or Scope.USER)[Scope(scope or Scope.USER)]
    read = _check(name, entry, target)
    if name in target.servers and not force:
        place = f"{target.file}:{target.lines[name]}"
        raise click.UsageError(f'A server named "{name}" already exists ({place}); --force replaces it.')
    target.write(target.text_with(name, entry))
    shown = shown_entry(entry)
    if as_json:
        click.echo(json.dumps({"name": name, "scope": target.scope, "file": str(target.file), "entry": shown}))
        return 0
    replaced = "Replaced" if name in target.servers else "Added"
    click.echo(strip_controls(f"{replaced} {name} in {target.file}: {command_line(shown)}"))
    for line in _what_next(name, entry, target.scope, read.unset):
        click.echo(strip_controls(line))
    return 0


def _entry(
    command: Sequence[str], transport: ServerTransport, variables: Sequence[str], headers: Sequence[str]
) -> dict[str, Any]:
    if not command:
        raise click.UsageError("What does it run, or where is it? Give a command, or --transport http and a URL.")
    if transport is ServerTransport.STDIO:
        if "://" in command[0]:
            raise click.UsageError(f"{command[0]} is a URL: add --transport http (or sse).")
        if headers:
            raise click.UsageError("--header is for http and sse; use --env for a program.")
        entry: dict[str, Any] = {"command": command[0]}
        if command[1:]:
            entry["args"] = [*command[1:]]
        if variables:
            entry["env"] = dict(map(_variable, variables))
        return entry
    if len(command) > 1:
        raise click.UsageError(f"Expected one URL, not also {command[1]}. Options go before the URL.")
    if not command[0].startswith(("http://", "https://", "${")):
        raise click.UsageError(f'"{command[0]}" is not a URL; expected something like https://example.com/mcp.')
    if variables:
        raise click.UsageError("--env is for programs; use --header for a remote server.")
    entry = {"type": transport.value, "url": command[0]}
    if headers:
        entry["headers"] = dict(map(_header, headers))
    return entry


def _variable(text: str) -> tuple[str, str]:
    name, given, value = text.partition("=")
    if not _VARIABLE.fullmatch(name):
        raise click.UsageError("--env expects NAME=VALUE, or NAME alone for a variable of your environment.")
    return name, value if given else f"${{{name}}}"


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise click.UsageError("--header expects 'NAME: VALUE'.")
    return name.strip(), value.strip()


def _check(name: str, entry: dict[str, Any], target: ServerFile) -> ReadEntry:
    """What would be refused at the next start is refused now."""
    if problem := name_problem(name):
        raise click.UsageError(f"{problem}.")
    if twin := next((one for one in target.servers if one != name and name_key(one) == name_key(name)), None):
        raise click.UsageError(f'A server named "{twin}" already exists, and case does not matter in names.')
    layer = {Scope.USER: Layer.USER, Scope.PROJECT: Layer.PROJECT, Scope.LOCAL: Layer.LOCAL}[target.scope]
    read = read_entry(RawEntry(name=name, value=entry, layer=layer, source=str(target.file)), os.environ)
    if read.entry is None:
        raise click.UsageError("; ".join(issue.message for issue in read.issues))
    return read


def _what_next(name: str, entry: dict[str, Any], scope: Scope, unset: Sequence[str]) -> list[str]:
    lines = [f"Note: {variable} is not set in your environment." for variable in unset]
    program = entry.get("command", "")
    if program and "$" not in program and not which(program):
        lines.append(f"Note: {program} is not on your PATH.")
    if scope is Scope.USER:
        return [*lines, f"Try it: wave mcp test {name}"]
    return [*lines, f"It starts once you trust it: wave mcp trust {name}"]
