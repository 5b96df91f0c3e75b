"""`wave mcp get`: one server, as it is configured."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from wave_agent.cli.mcp.arguments import name_argument
from wave_agent.cli.mcp.connecting import row_of, tool_lines
from wave_agent.cli.mcp.options import shown_entry
from wave_agent.cli.options import cwd_option, json_option, secrets_option
from wave_agent.mcp.secrets import target_of, unfilled
from wave_agent.mcp.values import Server, ServerTransport
from wave_agent.text import strip_controls
from wave_agent.workshop.server_overview import Overview, ServerRow, counted, overview


@click.command()
@name_argument
@click.option("--verbose", is_flag=True, help="Show whole descriptions.")
@secrets_option
@cwd_option
@json_option
def get(name: str, verbose: bool, show_secrets: bool, cwd: str | None, as_json: bool) -> int:
    """Show one server

    Its command or URL with variables filled in, its state, and its tools as they were when it was last connected.
    Values of variables and headers are hidden.
    """
    found = overview(cwd)
    row = row_of(found, name)
    entry: Mapping[str, Any] = {} if row.server is None else _entry(row.server, secrets=show_secrets)
    if as_json:
        click.echo(json.dumps({**row.to_dict(), "entry": entry}))
        return 0
    for line in _lines(found, row, entry, verbose=verbose):
        click.echo(strip_controls(line))
    return 0


def _lines(found: Overview, row: ServerRow, entry: Mapping[str, Any], *, verbose: bool) -> Iterator[str]:
    yield f"{row.name}  {row.state}{f': {row.detail}' if row.detail else ''}"
    yield f"    from     {row.place} ({row.layer})"
    if row.server is not None:
        is_program = row.server.entry.transport is ServerTransport.STDIO
        yield f"    {'runs' if is_program else row.server.entry.transport.value:<8} {target_of(row.server)}"
        if is_program:
            yield f"    in       {row.server.directory or found.project.directory}"
        for key in ("env", "headers"):
            yield from (f"    {key:<8} {name}={value}" for name, value in entry.get(key, {}).items())
    if row.known is not None:
        yield f"    {counted(len(row.known.tools), 'tool')}"
        yield from tool_lines(((tool.name, tool.description) for tool in row.known.tools), verbose=verbose)
        yield from (f"    {tool.name or 'instructions'}  {tool.why}: not offered yet" for tool in row.known.waiting)
        yield from (f"    note: {notice}" for notice in row.known.notices)


def _entry(server: Server, *, secrets: bool) -> Mapping[str, Any]:
    entry = server.entry
    parts: dict[str, Any] = {"type": entry.transport.value}
    if entry.transport is ServerTransport.STDIO:
        args = entry.args if secrets else [unfilled(one, server) for one in entry.args]
        parts |= {"command": entry.command, "args": list(args), "env": dict(entry.env)}
    else:
        parts |= {"url": entry.url, "headers": dict(entry.headers)}
        parts |= {"headersHelper": entry.headers_helper} if entry.headers_helper else {}
    parts |= {"timeout": entry.timeout * 1000} if entry.timeout else {}
    return shown_entry(parts, secrets=secrets)
