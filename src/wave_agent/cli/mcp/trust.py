"""`wave mcp trust`: review what a project's servers run, and tools that are new or have changed."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import click
from msgspec import Struct

from wave_agent.cli.mcp.arguments import names_argument
from wave_agent.cli.mcp.connecting import connected, new_host, row_of, tool_lines, tools_of
from wave_agent.cli.options import cwd_option, json_option
from wave_agent.errors import SettingsError
from wave_agent.mcp.cache import ListingCache
from wave_agent.mcp.identity import Binding
from wave_agent.mcp.pins import Offered, Pins, WaitingTool, offered
from wave_agent.mcp.secrets import target_of
from wave_agent.mcp.servers import WaitingServer
from wave_agent.mcp.values import McpError, McpHost, Server, ServerListing, ServerTransport
from wave_agent.sessions.masking import mask
from wave_agent.system.ancestry import require_no_agent
from wave_agent.system.presence import at_terminal, doubt
from wave_agent.text import one_line, reveal, strip_controls
from wave_agent.workshop.server_overview import Overview, ServerRow, counted, overview

_FILES = 12
"""Files that are listed by name."""
_DIFF = 24
"""Lines of a diff that are shown."""


class TrustOptions(Struct, frozen=True, kw_only=True):
    yes: bool
    verbose: bool
    as_json: bool


@click.command()
@names_argument
@click.option("--all", "everything", is_flag=True, help="Everything that waits for review. --yes needs this or names.")
@click.option("--yes", is_flag=True, help="Skip the confirmations.")
@click.option("--revoke", is_flag=True, help="Withdraw trust from these servers, or from all of this project.")
@click.option("--verbose", is_flag=True, help="Show all files, whole descriptions and whole differences.")
@cwd_option
@json_option
def trust(
    *,
    names: tuple[str, ...],
    everything: bool,
    yes: bool,
    revoke: bool,
    verbose: bool,
    cwd: str | None,
    as_json: bool,
) -> int:
    """Review a project's servers and changed tools

    A project's servers start only once you have approved them. Your approval is bound to the command or URL, with
    variables filled in, and to the files that it names. It also pins the tools: one that is new or has changed, on any
    server, is not offered to the model until you have seen it here.

    \b
    wave mcp trust               review everything that waits
    wave mcp trust NAME          review one server
    wave mcp trust --revoke      withdraw trust from this project's servers
    """
    require_no_agent(os.environ, "wave mcp trust")
    if everything and (names or revoke):
        raise click.UsageError("--all cannot be combined with names or --revoke.")
    if yes and not (names or everything):
        raise click.UsageError("--yes needs the names of the servers, or --all.")
    if as_json and not (yes or revoke):
        raise click.UsageError("--json needs --yes or --revoke. What waits is shown by wave mcp list --json.")
    found = overview(cwd)
    _require_person(found, "revoked" if revoke else "given")
    if revoke:
        return _revoke(found, names, as_json=as_json)
    rows = [row_of(found, name) for name in names] or [row for row in found.rows if _waits(row)]
    if not rows:
        click.echo(json.dumps({"servers": []}) if as_json else "Nothing waits for your review.")
        return 0
    if not (yes or sys.stdin.isatty()):
        _show_all(found, rows, verbose=verbose)
        raise click.UsageError("Not interactive: review the list above and rerun with --yes and the names.")
    results = _review_all(found, rows, TrustOptions(yes=yes, verbose=verbose, as_json=as_json))
    if as_json:
        click.echo(json.dumps({"servers": results}))
    return 0 if all(one["trusted"] for one in results) else 1


def _waits(row: ServerRow) -> bool:
    return row.state in ("needs consent", "changed", "tools changed")


def _show_all(found: Overview, rows: Sequence[ServerRow], *, verbose: bool) -> None:
    """What there is to review, without starting anything."""
    waiting = {one.server.name: one for one in found.configured.waiting}
    for row in rows:
        if (one := waiting.get(row.name)) is not None:
            lines = _what_runs(one, verbose=verbose)
        else:
            lines = _what_changed(row, verbose=verbose)
        for line in lines:
            click.echo(strip_controls(line))


def _what_changed(row: ServerRow, *, verbose: bool) -> Iterator[str]:
    """As it was when the server was last connected."""
    yield f"{row.name}  {row.state}{f': {row.detail}' if row.detail else ''}  ({row.place})"
    yield from _waiting_tools(row.known.waiting if row.known is not None else (), verbose=verbose)


def _require_person(found: Overview, what: str) -> None:
    """Raises `SettingsError` if this may come from a session of the project."""
    if why := doubt(found.home, found.project.directory, terminal=at_terminal()):
        raise SettingsError(
            f"Trust was not {what}: {why}, and an agent must not change its own guards. Run this in a terminal once no "
            "session runs. Scripts and CI can use --trust."
        )


def _revoke(found: Overview, names: Sequence[str], *, as_json: bool) -> int:
    gone = found.store.revoke(found.project.directory, names or None)
    if as_json:
        click.echo(json.dumps({"revoked": list(gone)}))
    else:
        click.echo(f"No longer trusted: {', '.join(gone)}." if gone else "Nothing was trusted.")
    return 0


def _review_all(found: Overview, rows: Sequence[ServerRow], options: TrustOptions) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    waiting = {one.server.name: one for one in found.configured.waiting}
    host = new_host(found)
    with asyncio.Runner() as runner:  # it runs only while a server is connected: Ctrl-C then ends a question at once
        try:
            for row in rows:
                if row.server is None:
                    raise McpError(f"{row.name} cannot be trusted: {row.detail}.")
                listed = partial(_listed, runner, host, row.server, found.cache)
                review = ServerReview(found, row.server, waiting.get(row.name), options, listed)
                results.append({"name": row.name, "trusted": review.run(), "problem": review.problem})
        finally:
            runner.run(host.close())
    return results


def _listed(runner: asyncio.Runner, host: McpHost, server: Server, cache: ListingCache) -> ServerListing:
    return runner.run(connected(host, server, cache))


class ServerReview:
    """One server, shown to the user and decided on."""

    def __init__(
        self,
        found: Overview,
        server: Server,
        waiting: WaitingServer | None,
        options: TrustOptions,
        listed: Callable[[], ServerListing],
    ) -> None:
        """`waiting`: it has no consent yet. `listed` connects to it, and raises `McpError`."""
        self._found = found
        self._listed = listed
        self._server = server
        self._waiting = waiting
        self._options = options
        self.problem = ""

    def run(self) -> bool:
        """Whether the user trusts it, with its tools as they are now."""
        name, verbose = self._server.name, self._options.verbose
        if self._waiting is not None:
            self._tell(_what_runs(self._waiting, verbose=verbose))
            if not self._confirm(f"Start {name} now, to see its tools?"):
                return self._refused()
        try:
            listing = self._listed()
        except McpError as error:
            return self._unreachable(error)
        pins = self._found.store.pins([self._server]).get(name)
        seen = offered(self._server, listing, pins)
        known = pins if self._waiting is None or self._waiting.is_changed else None
        self._tell(_what_it_offers(self._server, listing, seen, known, verbose=verbose))
        if self._waiting is None and not seen.waiting:
            self._found.cache.keep(self._server, listing)
            return True
        if not self._confirm(f"Trust {name} and offer these tools to the model?"):
            return self._refused()
        if self._waiting is not None:
            self._found.store.grant(self._server, self._waiting.binding)
        self._found.store.confirm(self._server, listing)
        self._found.cache.keep(self._server, listing)
        self._tell([f"{name} is trusted, until it changes. wave mcp trust {name} --revoke withdraws it."])
        return True

    def _unreachable(self, error: McpError) -> bool:
        """A server that needs a login, or does not answer today, can still be trusted to start."""
        self.problem = str(error)
        self._tell([f"    {strip_controls(str(error))}"])
        if self._waiting is None or self._options.yes:
            return False
        if not self._confirm("Trust it anyway, and its tools as they are when it is first connected?"):
            return self._refused()
        self._found.store.grant(self._server, self._waiting.binding)
        self._tell([f"{self._server.name} is trusted to start."])
        return True

    def _refused(self) -> bool:
        self._tell([f"{self._server.name} stays as it was."])
        return False

    def _confirm(self, question: str) -> bool:
        if self._options.yes:
            return True
        import termios  # lazy: only for a person

        termios.tcflush(sys.stdin, termios.TCIFLUSH)  # what was typed before the question is no answer to it
        return click.confirm(question)

    def _tell(self, lines: Sequence[str] | Iterator[str]) -> None:
        for line in () if self._options.as_json else lines:
            click.echo(line)


def _what_runs(one: WaitingServer, *, verbose: bool) -> Iterator[str]:
    server, entry = one.server, one.server.entry
    place = server.source if server.line is None else f"{server.source}:{server.line}"
    yield f"{server.name}  {reveal(one.why)}  ({reveal(place)})"
    if entry.transport is ServerTransport.STDIO:
        yield _fact("runs", target_of(server))
        yield _fact("in", server.directory)
    else:
        yield _fact("connects", target_of(server))
    if entry.headers_helper:
        yield _fact("runs", f"{mask(entry.headers_helper)}, for its headers")
    for label, names in (("sets", entry.env), ("headers", entry.headers), ("uses", one.binding.variables)):
        if names:
            yield _fact(label, ", ".join(names))
    files = _files_first(one.binding)
    for number, name in enumerate(files if verbose else files[:_FILES]):
        yield _fact("" if number else "files", name)
    if not verbose and len(files) > _FILES:
        yield _fact("", f"and {len(files) - _FILES} more (--verbose)")
    if one.binding.loads_project:
        watched = one.binding.unwatched or "all code of the project: a change of any of it needs your consent again"
        yield _fact("watched", watched)
    if one.binding.unbound:
        yield _fact("note", f"{one.binding.unbound}: it needs your consent in every session")


def _files_first(binding: Binding) -> list[str]:
    """What certainly runs comes first."""
    return [*binding.runs, *(name for name in binding.files if name not in {*binding.runs})]


def _fact(label: str, text: str) -> str:
    return f"    {label:<9} {reveal(text)}"


def _what_it_offers(
    server: Server, listing: ServerListing, seen: Offered, pins: Pins | None, *, verbose: bool
) -> Iterator[str]:
    """`pins` None: the user is asked for the first time, and sees every tool."""
    about = f" ({one_line(listing.server, 80)})" if listing.server else ""
    yield f"{server.name}{about}: {counted(len(listing.tools), 'tool')}"
    if pins is None or not seen.waiting:
        yield from tool_lines(tools_of(listing).items(), verbose=verbose)
        if listing.instructions:
            yield f"{server.name}: instructions, which are not a tool; the model reads them with every request"
            shown = reveal(listing.instructions) if verbose else one_line(listing.instructions, 100)
            yield from (f"    {one_line(line)}" for line in shown.splitlines())
    yield from _waiting_tools(seen.waiting, verbose=verbose)
    if pins is not None and not seen.waiting:
        yield "    as you trusted it"
    yield from (f"    note: {one_line(notice)}" for notice in offered(server, listing, None).notices)


def _waiting_tools(waiting: Sequence[WaitingTool], *, verbose: bool) -> Iterator[str]:
    for one in waiting:
        yield f"    {one.why.upper()}  {one_line(one.name) or 'its instructions'}"
        lines = strip_controls(one.diff).splitlines()
        yield from (f"        {line}" for line in (lines if verbose else lines[:_DIFF]))
        if not verbose and len(lines) > _DIFF:
            yield f"        … {len(lines) - _DIFF} more lines (--verbose)"
