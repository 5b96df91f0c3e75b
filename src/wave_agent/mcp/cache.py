"""The listings of servers, so that a session can start before it is connected to any: `mcp-cache/` in the agent's own
directory. One file for all servers of a project, and one for the user's own, for projects where they are new."""

import hashlib
import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from wave_agent.mcp.entries import name_key
from wave_agent.mcp.values import LoginNeededError, McpError, Server, ServerListing
from wave_agent.system.private_files import keep_private, write_private

_LARGEST = 32 << 20
_MOST = 100
"""Servers in one file."""
_LONGEST_PROBLEM = 2000
_SHARED = "user.json"


class _CachedListing(Struct, frozen=True):
    identity: str
    listing: ServerListing


class LastFailure(Struct, frozen=True):
    """Why a server could not be connected when that was last tried."""

    identity: str
    problem: str
    needs_login: bool = False


class _CachedListings(Struct, kw_only=True):
    version: int = 1
    servers: dict[str, _CachedListing] = {}
    failures: dict[str, LastFailure] = {}


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
            had_failed = stored.failures.pop(name_key(server.name), None) is not None
            if stored.servers.get(name_key(server.name)) == cached and not had_failed:
                continue
            stored.servers.pop(name_key(server.name), None)
            stored.servers = dict([*stored.servers.items(), (name_key(server.name), cached)][-_MOST:])
            self._write(file, stored)

    def failures(self, servers: Collection[Server]) -> Mapping[str, LastFailure]:
        """Server's name → why it could not be connected last time. Never raises."""
        known = _load(self._own).failures
        found = {one.name: known.get(name_key(one.name), LastFailure("", "")) for one in servers}
        identities = {one.name: one.identity for one in servers}
        return {name: one for name, one in found.items() if one.problem and one.identity == identities[name]}

    def note_failure(self, server: Server, error: McpError) -> None:
        """It could not be connected. Never raises."""
        stored = _load(self._own)
        noted = LastFailure(server.identity, str(error)[:_LONGEST_PROBLEM], isinstance(error, LoginNeededError))
        if stored.failures.get(name_key(server.name)) != noted:
            stored.failures = dict([*stored.failures.items(), (name_key(server.name), noted)][-_MOST:])
            self._write(self._own, stored)

    def clear_failure(self, server: Server) -> None:
        """It answers again, or the user has logged in. Never raises."""
        stored = _load(self._own)
        if stored.failures.pop(name_key(server.name), None) is not None:
            self._write(self._own, stored)

    def forget(self, name: str) -> None:
        """When a server is removed. Never raises."""
        for file in (self._own, self._shared):
            stored = _load(file)
            gone = [one.pop(name_key(name), None) for one in (stored.servers, stored.failures)]
            if any(gone):
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
