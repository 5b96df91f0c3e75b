"""The listings of servers, so that a session can start before it is connected to any: `mcp-cache/` in the agent's own
directory. One file for all servers of a project, and one for the user's own, for projects where they are new."""

import hashlib
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from wave_agent.mcp.entries import name_key
from wave_agent.mcp.values import Server, ServerListing
from wave_agent.system.private_files import keep_private, write_private

_LARGEST = 32 << 20
_MOST = 100
"""Servers in one file."""
_SHARED = "user.json"


class _CachedListing(Struct, frozen=True):
    identity: str
    listing: ServerListing


class _CachedListings(Struct, kw_only=True):
    version: int = 1
    servers: dict[str, _CachedListing] = {}


class ListingCache:
    def __init__(self, home: Path, project: str) -> None:
        """`project` is its directory."""
        self._directory = home / "mcp-cache"
        self._own = self._directory / f"{hashlib.sha256(os.fsencode(project)).hexdigest()[:32]}.json"
        self._shared = self._directory / _SHARED

    def read(self, servers: Iterable[Server]) -> Mapping[str, ServerListing]:
        """Server's name → its listing, if it is still the same server (`Server.identity`). Never raises."""
        wanted = [server for server in servers if server.identity]
        found = _matching(wanted, _load(self._own)) if wanted else {}
        missing = [one for one in wanted if one.name not in found and not one.is_of_project]
        return {**_matching(missing, _load(self._shared)), **found} if missing else found

    def keep(self, server: Server, listing: ServerListing) -> None:
        """Never raises: without a cache the next start only takes longer."""
        cached = _CachedListing(server.identity, listing)
        for file in (self._own, *(() if server.is_of_project else (self._shared,))):
            stored = _load(file)
            if stored.servers.get(name_key(server.name)) == cached:
                continue
            stored.servers.pop(name_key(server.name), None)
            stored.servers = dict([*stored.servers.items(), (name_key(server.name), cached)][-_MOST:])
            self._write(file, stored)

    def forget(self, name: str) -> None:
        """When a server is removed. Never raises."""
        for file in (self._own, self._shared):
            stored = _load(file)
            if stored.servers.pop(name_key(name), None) is not None:
                self._write(file, stored)

    def _write(self, file: Path, stored: _CachedListings) -> None:
        with suppress(OSError, ValueError, TypeError, RecursionError):
            keep_private(self._directory)
            write_private(file, msgspec.json.encode(stored), sync=False)


def _matching(servers: Iterable[Server], stored: _CachedListings) -> dict[str, ServerListing]:
    known = {server.name: stored.servers.get(name_key(server.name)) for server in servers}
    identities = {server.name: server.identity for server in servers}
    return {name: cached.listing for name, cached in known.items() if cached and cached.identity == identities[name]}


def _load(file: Path) -> _CachedListings:
    try:
        with file.open("rb") as opened:
            content = opened.read(_LARGEST + 1)
        found = msgspec.json.decode(content, type=_CachedListings)
    except (OSError, msgspec.DecodeError, ValueError, RecursionError):
        return _CachedListings()
    return found if found.version == 1 else _CachedListings()
