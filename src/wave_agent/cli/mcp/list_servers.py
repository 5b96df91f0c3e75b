"""`wave mcp list`: every server and its state."""

import asyncio
import json
import os
from collections.abc import Iterator

import click
from msgspec.structs import replace

from wave_agent.cli.mcp.connecting import connected, open_host
from wave_agent.cli.options import cwd_option, json_option
from wave_agent.cli.tables import table
from wave_agent.mcp.pins import offered
from wave_agent.mcp.secrets import target_of
from wave_agent.mcp.values import LoginNeededError, McpError, McpHost
from wave_agent.system.ancestry import require_no_agent
from wave_agent.text import one_line, strip_controls
from wave_agent.workshop.server_overview import Overview, ServerRow, overview

_FAILED = ("failed", "needs a login", "program missing")


@click.command("list")
@click.option("--check", is_flag=True, help="Connect to each server that may start, and report whether it answers.")
@cwd_option
@json_option
def list_servers(check: bool, cwd: str | None, as_json: bool) -> int:
    """List the servers and their state

    Nothing is started unless --check is given. Tools are known from earlier connections. Exit status 1 if an entry is
    invalid, or with --check if a server does not answer.
    """
    if check:
        require_no_agent(os.environ, "wave mcp list --check")
    found = overview(cwd)
    if check:
        found = replace(found, rows=tuple(asyncio.run(_checked(found))))
    if as_json:
        click.echo(
            json.dumps({
                "project": found.project.directory,
                "servers": [row.to_dict() for row in found.rows],
                "issues": [str(issue) for issue in found.configured.issues],
            })
        )  # fmt: skip
    else:
        for line in _lines(found):
            click.echo(strip_controls(line))
    failed = check and any(row.state in _FAILED for row in found.rows)
    return 1 if found.configured.issues or failed else 0


async def _checked(found: Overview) -> list[ServerRow]:
    async with open_host(found) as host:
        return list(await asyncio.gather(*(_check(row, host, found) for row in found.rows)))


async def _check(row: ServerRow, host: McpHost, found: Overview) -> ServerRow:
    if row.server is None or not row.may_start:
        return row
    try:
        listing = await connected(host, row.server, found.cache)
    except McpError as error:
        is_login = isinstance(error, LoginNeededError)
        return replace(row, state="needs a login" if is_login else "failed", detail=one_line(str(error)))
    found.cache.clear_failure(row.server)
    known = offered(row.server, listing, found.store.pins([row.server]).get(row.name))
    state, detail = ("tools changed", row.detail) if known.waiting else ("connected", "")
    return replace(row, state=state, detail=detail, known=known)


def _lines(found: Overview) -> Iterator[str]:
    if not found.rows:
        yield "There are no MCP servers. Add one: wave mcp add NAME COMMAND"
    else:
        head = ("name", "state", "tools", "runs", "from")
        rows = [(row.name, row.state, _tools(row), _target(row), row.place) for row in found.rows]
        yield from table([head, *rows], right=(2,))
    if any(row.state == "not tried yet" for row in found.rows):
        yield "wave mcp list --check connects to them."
    details = [row for row in found.rows if row.detail]
    if details:
        yield ""
    yield from (f"{row.name}: {row.detail}" for row in details)
    yield from (f"{'BROKEN' if issue.broken else 'note'}: {issue}" for issue in found.configured.issues)


def _tools(row: ServerRow) -> str:
    return "" if row.known is None else str(len(row.known.tools))


def _target(row: ServerRow) -> str:
    return "" if row.server is None else one_line(target_of(row.server), 48)
