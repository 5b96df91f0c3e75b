"""What the user has agreed to: which servers of a project may start, and which tools of any server are offered.

`mcp.json` in the agent's own directory; nothing in a repository can point to it. Programs that an agent has started
cannot change it.
"""

import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wave_agent.errors import SettingsError
from wave_agent.mcp.entries import name_key
from wave_agent.mcp.identity import Binding
from wave_agent.mcp.pins import Pins, pins_of
from wave_agent.mcp.values import USER_SCOPE, Server, ServerListing
from wave_agent.settings.mcp_sources import CONSENT_FILE
from wave_agent.settings.places import require_sound_owner
from wave_agent.system.ancestry import handed_down
from wave_agent.system.private_files import make_private, open_private, unwritten, write_private

_VERSION = 1


class _StoredServers(Struct, kw_only=True):
    version: int = _VERSION
    consents: dict[str, dict[str, Binding]] = {}
    """Project → server's name, as names are compared → what was agreed to."""
    pins: dict[str, dict[str, Pins]] = {}
    """`Server.scope` → server's name → what was accepted of it."""


class ConsentStore:
    """Consents and pins."""

    def __init__(self, home: Path) -> None:
        self.file = home / CONSENT_FILE

    def consents(self, project: str) -> Mapping[str, Binding]:
        """The servers that may start in this project: name (`name_key`) → what was agreed to. Raises `SettingsError`
        if the store cannot be relied on."""
        return self._load().consents.get(project, {})

    def grant(self, server: Server, binding: Binding) -> None:
        """The user has seen this, and agrees. Its pins stay. Raises `SettingsError`, also below an agent, and for a
        server that cannot be bound to what it runs."""
        if binding.unbound:
            raise SettingsError(
                f"Consent to {server.name} cannot be stored: {binding.unbound}. It is asked for in each session."
            )
        with self._changing() as stored:
            stored.consents.setdefault(server.directory, {})[name_key(server.name)] = binding

    def revoke(self, project: str, names: Iterable[str] | None = None) -> tuple[str, ...]:
        """Forgets the consent to these servers (default: all of the project). Their pins stay: what is started again
        under the same name is compared with them. Returns the names, as they are compared."""
        if not self.consents(project):
            return ()
        with self._changing() as stored:
            given = stored.consents.get(project, {})
            wanted = [*given] if names is None else [name_key(name) for name in names]
            gone = tuple(name for name in wanted if given.pop(name, None) is not None)
            if not given:
                stored.consents.pop(project, None)
        return gone

    def forget(self, server: Server) -> None:
        """Forgets consent and pins, when the user removes a server. Raises `SettingsError`."""
        name = name_key(server.name)
        with self._changing() as stored:
            stored.consents.get(server.directory, {}).pop(name, None)
            stored.pins.get(server.scope, {}).pop(name, None)

    def pins(self, servers: Iterable[Server]) -> Mapping[str, Pins]:
        """Server's name → its pins, for those that have been seen before. Raises `SettingsError`."""
        stored = self._load()
        known = {one.name: stored.pins.get(one.scope, {}).get(name_key(one.name)) for one in servers}
        return {name: pins for name, pins in known.items() if pins is not None}

    def pin_first(self, server: Server, listing: ServerListing, held: Pins | None = None) -> Pins:
        """Pins what a server offers, unless it has been seen before: then returns the pins it has. `held` are those of
        the session so far.

        The pins of a project's server without stored consent (`--trust`) are not stored either: no user has seen its
        tools. Like those below an agent, or where nothing can be written, they hold for the session. Raises
        `SettingsError` if the store is damaged: then nothing is offered, since it is unknown what has been accepted.
        """
        known = self.pins([server]).get(server.name) or held
        if known is not None:
            return known
        first = pins_of(listing)
        if server.is_of_project and name_key(server.name) not in self.consents(server.directory):
            return first
        with suppress(SettingsError), self._changing() as stored:  # another session may have been faster
            return stored.pins.setdefault(server.scope, {}).setdefault(name_key(server.name), first)
        return first

    def confirm(self, server: Server, listing: ServerListing, tools: Iterable[str] | None = None) -> Pins:
        """The user has seen these tools (default: all of the listing, with its instructions), and accepts them as they
        are now. Raises `SettingsError`, also below an agent."""
        now = pins_of(listing)
        with self._changing() as stored:
            here = stored.pins.setdefault(server.scope, {})
            before = here.get(name_key(server.name), Pins())
            if tools is None:
                found = now
            else:
                wanted = {name: now.tools[name] for name in tools if name in now.tools}
                # A removed tool stays pinned: it may come back as it was, but not as something else.
                found = replace(
                    before,
                    tools={**before.tools, **wanted},
                    texts={**before.texts, **{name: now.texts[name] for name in wanted if name in now.texts}},
                )
            here[name_key(server.name)] = found
        return found

    def look_back(self, project: str, before: bytes) -> str:
        """An unattended session of this project has ended: what it changed of what only a person can change. That is
        undone. Empty if nothing. `before` is the whole file when the session started. Never raises."""
        try:
            was = msgspec.json.decode(before, type=_StoredServers) if before else _StoredServers()
        except (msgspec.DecodeError, RecursionError):
            return ""  # it could not be relied on then either
        with suppress(SettingsError):
            try:
                if not _restored(self._load(), was, project):
                    return ""
            except SettingsError:
                self.file.unlink(missing_ok=True)  # damaged: nothing of it is of use
            with self._changing() as stored:
                _restored(stored, was, project)
            return "consent to MCP servers was changed while a session ran unattended"
        return ""

    def _load(self) -> _StoredServers:
        try:
            with self.file.open("rb") as opened:
                require_sound_owner(opened.fileno(), self.file, levels=1)
                content = opened.read()
        except FileNotFoundError:
            return _StoredServers()
        except OSError as error:
            raise SettingsError(f"{self.file} cannot be read: {error.strerror}") from None
        try:
            found = msgspec.json.decode(content, type=_StoredServers)
        except (msgspec.DecodeError, RecursionError) as error:
            what = "No project's MCP server starts: delete it, and run wave mcp trust again."
            raise SettingsError(f"{self.file} is damaged: {error}. {what}") from None
        if found.version != _VERSION:
            raise SettingsError(f"{self.file} was written by another version of this program ({found.version}).")
        return found

    @contextmanager
    def _changing(self) -> Generator[_StoredServers]:
        """The whole store, for modification; written atomically, by one process at a time. Not below an agent."""
        if handed_down(os.environ):
            raise SettingsError(
                f"{self.file} cannot be changed by a program that an agent has started: only a person can agree."
            )
        import fcntl  # lazy: only needed to change the store

        try:
            make_private(self.file.parent)
            with open(open_private(self.file.with_suffix(".lock"), os.O_WRONLY | os.O_CREAT), "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                stored = self._load()
                yield stored
                write_private(self.file, msgspec.json.format(msgspec.json.encode(stored), indent=1))
        except OSError as error:
            raise SettingsError(unwritten(self.file, error)) from None


def _restored(now: _StoredServers, was: _StoredServers, project: str) -> bool:
    """Puts back the consents to a project's servers, and the pins that a session in it has relied on. New pins stay:
    they are made when a server is connected for the first time. Returns whether anything was different."""
    found = now.consents.get(project, {}) != was.consents.get(project, {})
    now.consents[project] = was.consents.get(project, {})
    for scope, pins in was.pins.items():
        if scope in (project, USER_SCOPE, f"{USER_SCOPE} {project}"):
            here = now.pins.setdefault(scope, {})
            found = found or any(here.get(name) != one for name, one in pins.items())
            here |= pins
    return found
