"""`wave mcp test`: connect to a server, list its tools, call one."""

import asyncio
import json
import os
import time
from collections.abc import Iterator, Mapping
from typing import Any

import click
import msgspec

from wave_agent.cli.hooks.options import json_object
from wave_agent.cli.mcp.arguments import name_argument
from wave_agent.cli.mcp.connecting import connected, open_host, startable, tool_lines, tools_of
from wave_agent.cli.options import cwd_option, json_option
from wave_agent.cli.tables import milliseconds
from wave_agent.mcp.pins import Offered, offered
from wave_agent.mcp.values import McpError, McpHost, McpResult, Server, ServerListing
from wave_agent.system.ancestry import require_no_agent
from wave_agent.text import did_you_mean, one_line, strip_controls
from wave_agent.workshop.server_overview import counted, overview


@click.command()
@name_argument
@click.argument("tool", required=False)
@click.argument("arguments", required=False, metavar="[JSON]")
@click.option("--verbose", is_flag=True, help="Show whole descriptions and the schemas.")
@cwd_option
@json_option
def test(*, name: str, tool: str | None, arguments: str | None, verbose: bool, cwd: str | None, as_json: bool) -> int:
    """Connect to a server and list or call its tools

    Waits up to 30 seconds for the connection. The call is yours, not the agent's: no hook and no rule judges it. Exit
    status 1 if the tool reports an error.

    \b
    wave mcp test time
    wave mcp test time get_current_time '{"timezone": "UTC"}'
    """
    require_no_agent(os.environ, "wave mcp test")
    found = overview(cwd)
    server = startable(found, name)
    given = json_object(arguments, "JSON") if arguments is not None else {}

    async def run() -> int:
        async with open_host(found) as host:
            started = time.perf_counter()
            listing = await connected(host, server, found.cache)
            taken = (time.perf_counter() - started) * 1000
            pins = found.store.pin_first(server, listing)  # whoever tests it sees its tools
            found.cache.keep(server, listing)
            if tool is not None:
                return await _call(host, server, listing, tool, given, as_json=as_json)
        offer = offered(server, listing, pins)
        withheld = {one.name: one.why for one in offer.waiting}
        if as_json:
            facts = {"name": name, "connected_ms": round(taken, 1), "withheld": withheld}
            click.echo(json.dumps({**facts, **msgspec.to_builtins(listing)}))
            return 0
        for line in (*_lines(name, listing, withheld, taken, verbose=verbose), *_notes(offer)):
            click.echo(strip_controls(line))
        return 0

    return asyncio.run(run())


def _notes(offer: Offered) -> Iterator[str]:
    yield from (f"    note: {one}" for one in offer.notices)


def _lines(
    name: str, listing: ServerListing, withheld: Mapping[str, str], taken: float, *, verbose: bool
) -> Iterator[str]:
    about = ", ".join(one_line(part, 80) for part in (listing.server, listing.protocol) if part)
    yield f"{name}  connected in {milliseconds(taken)}{f' ({about})' if about else ''}"
    offers = ((listing.tools, "tool"), (listing.resources, "resource"), (listing.prompts, "prompt"))
    yield "    " + (", ".join(counted(len(some), what) for some, what in offers if some) or "offers nothing")
    if not verbose:
        yield from tool_lines(_marked(tools_of(listing), withheld).items())
        return
    for tool in listing.tools:
        yield from tool_lines(_marked({tool.name: tool.description}, withheld).items(), verbose=True)
        yield f"        {json.dumps(tool.input_schema, ensure_ascii=False)}"


def _marked(tools: Mapping[str, str], withheld: Mapping[str, str]) -> dict[str, str]:
    """The names of tools that the model does not get say so."""
    return {
        f"{name} ({withheld[name]}, not offered)" if name in withheld else name: text for name, text in tools.items()
    }


async def _call(
    host: McpHost, server: Server, listing: ServerListing, tool: str, given: Mapping[str, Any], *, as_json: bool
) -> int:
    known = tools_of(listing)
    if tool not in known:
        raise McpError(f'{server.name} has no tool "{tool}"{did_you_mean(tool, known)}. It has: {", ".join(known)}')
    started = time.perf_counter()
    result = await host.call(server, tool, given, progress=None if as_json else _progress)
    taken = (time.perf_counter() - started) * 1000
    if as_json:
        click.echo(json.dumps({"ms": round(taken, 1), **msgspec.to_builtins(result)}))
    else:
        for line in _shown(result):
            click.echo(strip_controls(line))
        click.echo(f"{'failed' if result.is_error else 'ok'} after {milliseconds(taken)}", err=True)
    return 1 if result.is_error else 0


def _progress(done: float, total: float | None, message: str) -> None:
    share = f"{done:g}" if total is None else f"{done:g} of {total:g}"
    click.echo(f"{share} {one_line(message, 100)}".rstrip(), err=True)


def _shown(result: McpResult) -> Iterator[str]:
    for block in result.content:
        if block.get("type") == "text":
            yield str(block.get("text", ""))
        else:
            yield f"[{block.get('type')}: {one_line(json.dumps(_without_data(block), ensure_ascii=False), 300)}]"
    if result.structured is not None and not result.content:
        yield json.dumps(result.structured, indent=2, ensure_ascii=False)
    if result.cut:
        yield f"[{result.cut:,} more bytes]"


def _without_data(block: Mapping[str, Any]) -> dict[str, Any]:
    return {key: f"{len(str(value)):,} characters" if key == "data" else value for key, value in block.items()}
