"""All configured MCP servers with their state, without starting any."""

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct

from wave_agent.agent.options import locate_project
from wave_agent.mcp.cache import LastFailure, ListingCache
from wave_agent.mcp.consent import ConsentStore
from wave_agent.mcp.pins import Offered, offered
from wave_agent.mcp.secrets import target_of
from wave_agent.mcp.servers import Configured, RefusedServer, WaitingServer, configured_servers
from wave_agent.mcp.values import Server
from wave_agent.settings.sources import SourceChoice, gather_settings
from wave_agent.system.extras import install_extra
from wave_agent.system.project import Project
from wave_agent.text import one_line

WAITING = ("needs consent", "changed", "variable unset")
"""States of a server that does not start before the user has done something about it."""


class ServerRow(Struct, frozen=True, kw_only=True):
    """One server as commands show it."""

    name: str
    state: str
    """`ready`: it was connected before. `not tried yet`, `failed`, `needs a login`, `program missing`, `extra missing`,
    `tools changed`: it may start. `needs consent`, `changed`, `variable unset`, `forbidden`: it may not."""
    detail: str = ""
    """Why it is not ready, and what to do."""
    place: str = ""
    """The file it is configured in, with the line."""
    layer: str
    server: Server | None = None
    """None if it does not run whatever the user answers."""
    known: Offered | None = None
    """What it offers, as far as it was seen before."""

    @property
    def may_start(self) -> bool:
        """Whether there is any point in trying."""
        hopeless = (*WAITING, "extra missing", "program missing")
        return self.server is not None and self.state not in hopeless

    def to_dict(self) -> dict[str, Any]:
        known, server = self.known, self.server
        return {
            "name": self.name,
            "state": self.state,
            "detail": self.detail,
            "layer": self.layer,
            "place": self.place,
            "transport": server.entry.transport.value if server else None,
            "target": target_of(server) if server else None,
            "tools": [tool.name for tool in known.tools] if known else None,
            "waiting_tools": [{"name": tool.name, "why": tool.why} for tool in known.waiting] if known else [],
        }


class Overview(Struct, frozen=True, kw_only=True):
    """Everything about the servers that apply in one directory."""

    project: Project
    home: Path
    configured: Configured
    rows: tuple[ServerRow, ...]

    @property
    def store(self) -> ConsentStore:
        return ConsentStore(self.home)

    @property
    def cache(self) -> ListingCache:
        return ListingCache(self.home, self.project.directory)


def overview(cwd: str | os.PathLike[str] | None, choice: SourceChoice | None = None) -> Overview:
    """`choice`: which settings are read, if not the usual ones. Raises `SettingsError`."""
    choice = choice or SourceChoice(project_hooks=False).in_environment(os.environ)
    project, home = locate_project(cwd, os.environ, choice)
    gathered = gather_settings(home, project, choice)
    configured = configured_servers(gathered, project=project, home=home, choice=choice, environment=os.environ)
    found = Overview(project=project, home=home, configured=configured, rows=())
    return Overview(project=project, home=home, configured=configured, rows=tuple(_rows(found)))


def _rows(found: Overview) -> Iterator[ServerRow]:
    configured, root = found.configured, found.project.directory
    pins, listings = found.store.pins(configured.servers), found.cache.read(configured.servers)
    failures = found.cache.failures(configured.servers)
    for server in configured.servers:
        listing = listings.get(server.name)
        known = None if listing is None else offered(server, listing, pins.get(server.name))
        state, detail = _state(server, known, failures.get(server.name))
        place = place_of(server.source, server.line, root)
        yield ServerRow(
            name=server.name, state=state, detail=detail, place=place, layer=server.layer, server=server, known=known
        )
    yield from (_waiting_row(one, root) for one in configured.waiting)
    yield from (_refused_row(one, root) for one in configured.refused)


def _state(server: Server, known: Offered | None, failure: LastFailure | None) -> tuple[str, str]:
    if not has_extra():
        return "extra missing", f"MCP servers need an extra: {install_extra('mcp')}"
    if problem := _missing_program(server):
        return "program missing", problem
    if failure is not None:
        return "needs a login" if failure.needs_login else "failed", f"when last tried: {one_line(failure.problem)}"
    if known and known.waiting:
        names = ", ".join(one_line(tool.name, 60) or "its instructions" for tool in known.waiting[:3])
        more = f" and {len(known.waiting) - 3} more" if len(known.waiting) > 3 else ""
        return "tools changed", f"not offered until you review them: {names}{more} (wave mcp trust {server.name})"
    return ("not tried yet", "") if known is None else ("ready", "")


def _missing_program(server: Server) -> str:
    """Why its program cannot be started; empty if it can."""
    command = server.entry.command
    if not command:
        return ""
    if "/" in command:
        found = os.access(os.path.join(server.directory, command), os.X_OK)
    else:
        found = shutil.which(command, path=server.environment.get("PATH", os.defpath)) is not None
    return "" if found else f'there is no program "{one_line(command, 100)}"; install it, or give its path'


def _waiting_row(one: WaitingServer, root: str) -> ServerRow:
    return ServerRow(
        name=one.server.name,
        state="variable unset" if one.unset else "changed" if one.is_changed else "needs consent",
        detail=one.why if one.unset else f"{one.why}; review it with wave mcp trust {one.server.name}",
        place=place_of(one.server.source, one.server.line, root),
        layer=one.server.layer,
        server=one.server,
    )


def _refused_row(one: RefusedServer, root: str) -> ServerRow:
    place = place_of(one.source, one.line, root)
    return ServerRow(name=one.name, state="forbidden", detail=one.why, place=place, layer=one.layer)


def has_extra() -> bool:
    return find_spec("mcp") is not None


def place_of(source: str, line: int | None, project: str) -> str:
    """File and line, relative for files in the project."""
    name = os.path.relpath(source, project) if source.startswith(f"{project}/") else source
    return name if line is None else f"{name}:{line}"


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
