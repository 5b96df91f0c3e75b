"""Which MCP servers are configured, and which of them may run: sources, layers, lists and consent."""

import hashlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.errors import SettingsError
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.pinned import is_pinned
from wave_agent.mcp.consent import ConsentStore
from wave_agent.mcp.entries import RawEntry, ReadEntry, name_key, read_entry
from wave_agent.mcp.file_digests import LOOK_LIMITS, FileDigests, LookLimits
from wave_agent.mcp.identity import Binding, bind, bind_code, entry_digest
from wave_agent.mcp.launchers import loads_code
from wave_agent.mcp.sources import read_sources
from wave_agent.mcp.values import USER_SCOPE, Server, ServerTransport
from wave_agent.settings.hook_entries import Issue, SettingsSource
from wave_agent.settings.places import OF_THE_PROJECT
from wave_agent.settings.sources import Gathered, SourceChoice
from wave_agent.system.credentials import without_credentials
from wave_agent.system.private_files import keep_private
from wave_agent.system.project import Project
from wave_agent.text import one_line

if TYPE_CHECKING:
    from wave_agent.mcp.lists import ServerLists
    from wave_agent.mcp.servers_at_ref import ServersAtRef

PYTHON_CACHE = "PYTHONPYCACHEPREFIX"
_SHOWN = 5


class WaitingServer(Struct, frozen=True, kw_only=True):
    """A server that must not start before the user agrees: one of the project, or one that would run its code."""

    server: Server
    binding: Binding
    """What the user would agree to: `ConsentStore.grant(server, binding)`."""
    why: str
    """A phrase: `not trusted yet`, `changed since you trusted it: server.py`."""
    is_changed: bool = False
    """The user has agreed to an earlier version of it."""
    unset: tuple[str, ...] = ()
    """Variables that had a value when the user agreed. Nothing else has changed."""

    @property
    def files(self) -> str:
        """What consent covers besides the entry: `files: server.py, lib.py and 3 more`; empty if nothing."""
        return f"files: {_listed(self.binding.runs)}" if self.binding.runs else ""


class RefusedServer(Struct, frozen=True, kw_only=True):
    """A server that does not run, whatever the user answers now."""

    name: str
    layer: Layer
    source: str
    line: int | None = None
    why: str
    """A phrase: `denied by deniedMcpServers in /etc/wave/settings.json`."""


class Configured(Struct, frozen=True, kw_only=True):
    """All servers that are configured for a session."""

    servers: tuple[Server, ...] = ()
    """Those that may run; managed ones first, the project's last."""
    waiting: tuple[WaitingServer, ...] = ()
    refused: tuple[RefusedServer, ...] = ()
    notices: tuple[str, ...] = ()
    """For the user, one line each: about servers that wait or are refused, and about entries with warnings."""
    issues: tuple[Issue, ...] = ()
    """Entries that are invalid, with file and line. The others still run."""
    bindings: Mapping[str, Binding] = {}
    """Server's name → the files that it runs, as they are now; of the user's own servers, those in the project."""
    base: Mapping[str, str] = {}
    """The environment of all servers, without what their entries and the session add."""
    digests: FileDigests

    def get(self, name: str) -> Server | WaitingServer | RefusedServer | None:
        """By its name, as names are compared."""
        key = name_key(name)
        waiting = (one for one in self.waiting if name_key(one.server.name) == key)
        running = (one for one in self.servers if name_key(one.name) == key)
        refused = (one for one in self.refused if name_key(one.name) == key)
        return next((found for several in (running, waiting, refused) for found in several), None)

    def agreed(self, names: Iterable[str]) -> "Configured":
        """The same after a person has agreed to these servers, for this session."""
        keys = {name_key(name) for name in names}
        now = [one for one in self.waiting if name_key(one.server.name) in keys]
        return replace(
            self,
            servers=(*self.servers, *(one.server for one in now)),
            waiting=tuple(one for one in self.waiting if one not in now),
            bindings={**self.bindings, **{one.server.name: one.binding for one in now}},
        )

    def why_changed(self, name: str, project: Project) -> str | None:
        """Why this server must not be started now, although it may run, or the user has just been asked about it: its
        files have changed since. To be called right before its process is started: the agent may have edited them.
        Stored digests do not matter here."""
        compared = [(one, self.bindings.get(one.name)) for one in self.servers]
        compared += [(one.server, one.binding) for one in self.waiting]
        server, before = next(((one, binding) for one, binding in compared if one.name == name), (None, None))
        if server is None or before is None or before.unbound:
            return None
        look = bind if server.is_of_project else bind_code
        now = look(server.entry, project, {**self.base, **server.entry.env}, digests=self.digests.read_here())
        now = replace(now, variables=before.variables)
        if now.identity == before.identity:
            return None
        return (
            f'The MCP server "{name}" is not started, since it has changed in the meantime: '
            f"{now.unbound or _listed(now.changes(before))}. Review it with: wave mcp trust {name}"
        )


def configured_servers(
    gathered: Gathered,
    *,
    project: Project,
    home: Path,
    choice: SourceChoice,
    environment: Mapping[str, str],
    fixed: Mapping[str, str] | None = None,
    limits: LookLimits = LOOK_LIMITS,
) -> Configured:
    """Reads every source. Starts nothing.

    `environment` is the agent's own: variables are taken from it, and what servers get is derived from it. For an
    agent, all of it comes from the foundation: `gathered`, `place`, `home`, `options`, `environment`. `fixed` are
    variables that every server gets, and no entry changes, such as the session's id.

    Raises `SettingsError` for a file that cannot be parsed, or was named and does not exist, for invalid managed
    settings, and for a list of denied servers that cannot be read.
    """
    request = _Request(gathered, project, home, choice, environment, fixed or {}, limits)
    return _Configuration(request).result()


class _Request(Struct, frozen=True):
    gathered: Gathered
    project: Project
    home: Path
    choice: SourceChoice
    environment: Mapping[str, str]
    fixed: Mapping[str, str]
    limits: LookLimits


class _Configuration:
    def __init__(self, request: _Request) -> None:
        self._project, self._choice = request.project, request.choice
        self._fixed = request.fixed
        self._store = ConsentStore(request.home)
        self._digests = FileDigests(request.home, request.project.directory, request.limits)
        self._bytecode = request.home / "mcp-cache" / "python"
        sources = read_sources(request.gathered, request.project, request.home, request.choice)
        self._sources, self._lists = sources, _lists_in(sources.lists)
        directory = request.project.directory
        places = {"CLAUDE_PROJECT_DIR": directory, "WAVE_PROJECT_DIR": directory}
        self._expandable = {**request.environment, **places}
        settings = {
            name: value
            for name, value in request.gathered.settings.env.items()
            if not is_pinned(name) and not loads_code(name)
        }
        self._base = {**without_credentials(request.environment), **settings, **places}
        hooks = request.gathered.settings.hooks.hooks
        self._asked_by_hooks = {
            name_key(hook.call.server) for hook in hooks if hook.call is not None and hook.layer not in OF_THE_PROJECT
        }
        self._taken: dict[str, RawEntry] = {}
        self._servers: list[Server] = []
        self._waiting: list[WaitingServer] = []
        self._refused: list[RefusedServer] = []
        self._notices: list[str] = [*sources.notices]
        self._issues: list[Issue] = [*sources.issues, *(self._lists.issues if self._lists else ())]
        self._bindings: dict[str, Binding] = {}
        self._consents: Mapping[str, Binding] | None = None
        self._home = request.home
        self._at_ref: ServersAtRef | None = None

    def result(self) -> Configured:
        for raw in sorted(self._sources.entries, key=self._turn):
            self._add(raw)
        self._about_lists()
        fatal = [str(issue) for issue in self._issues if issue.fatal]
        if fatal:
            raise SettingsError("These settings about MCP servers are invalid and must not be skipped:", fatal)
        self._notices += [str(issue) for issue in self._issues]
        self._digests.keep()
        return Configured(
            servers=tuple(self._servers),
            waiting=tuple(self._waiting),
            refused=tuple(self._refused),
            notices=tuple(self._notices),
            issues=tuple(issue for issue in self._issues if issue.broken),
            bindings=self._bindings,
            base=self._base,
            digests=self._digests,
        )

    def _turn(self, raw: RawEntry) -> int:
        """Names go by precedence. But a server that the user's own hooks ask keeps its name, also if a file that is
        named on the command line has another one: it may be a file of the project."""
        is_guard = raw.layer is Layer.USER and name_key(raw.name) in self._asked_by_hooks
        return 0 if raw.layer is Layer.MANAGED else 1 if is_guard else 2

    def _add(self, raw: RawEntry) -> None:
        key = name_key(raw.name)
        winner = self._taken.setdefault(key, raw)
        if winner is not raw:
            self._lose(raw, winner)
            return
        read = read_entry(raw, self._expandable)
        self._issues += read.issues
        why = self._why_not(raw, read)
        if why:
            self._refuse(raw, why)
        elif read.entry is not None:
            self._place(raw, read)

    def _lose(self, raw: RawEntry, winner: RawEntry) -> None:
        """Another entry has this name. A project's server never replaces one of the user, nor the user's a managed
        one: a guard may rely on it."""
        why = f'the name is taken by the server "{winner.name}" in {winner.source}'
        same_rank = _rank(raw.layer) == _rank(winner.layer)
        self._refuse(raw, why, quiet=(same_rank and raw.name == winner.name) or not _is_pushed_aside(raw, winner))

    def _why_not(self, raw: RawEntry, read: ReadEntry) -> str | None:
        sources = self._sources
        if read.disabled:
            return 'disabled by "disabled": true in its entry'
        if sources.exclusive and raw.layer is not Layer.MANAGED:
            return f"only the servers in {sources.exclusive} may run"
        if (raw.source, raw.name) in sources.in_files and (file := sources.disabled.get(name_key(raw.name))):
            return f"disabled by disabledMcpjsonServers in {file}"
        if read.entry is None or self._lists is None:
            return None
        return self._lists.why_not(raw.name, read.entry, raw.layer)

    def _refuse(self, raw: RawEntry, why: str, *, quiet: bool = False) -> None:
        self._refused.append(RefusedServer(name=raw.name, layer=raw.layer, source=raw.source, line=raw.line, why=why))
        if not quiet:
            self._notices.append(f"MCP server {one_line(raw.name, 60)} ({raw.source}) is not used: {why}.")

    def _place(self, raw: RawEntry, read: ReadEntry) -> None:
        entry = read.entry
        assert entry is not None
        server = Server(
            name=raw.name,
            entry=entry,
            layer=raw.layer,
            source=raw.source,
            line=raw.line,
            identity=entry_digest(entry),
            environment={**self._base, **entry.env, **self._fixed},
            directory=self._project.directory,
            scope=_scope(raw.layer, self._project),
            variables=read.variables,
        )
        if entry.transport is not ServerTransport.STDIO and not entry.headers_helper and not raw.is_of_project:
            self._servers.append(server)
            return
        # What the session adds is different each time, and not part of what a server is.
        surroundings = {**self._base, **entry.env}
        if raw.is_of_project:
            values = {name: self._expandable.get(name, "") for name in read.variables}
            binding = bind(entry, self._project, surroundings, values, digests=self._digests)
            server = self._without_old_bytecode(server, binding)
            self._judge(replace(server, identity=binding.identity), binding, unset=read.unset)
            return
        binding = bind_code(entry, self._project, surroundings, digests=self._digests)
        server = self._without_old_bytecode(server, binding)
        if not binding.runs:
            self._use(server, binding)
        else:
            self._judge_own(server, binding)

    def _without_old_bytecode(self, server: Server, binding: Binding) -> Server:
        """Python would run `__pycache__` of the project instead of the sources that the user has read. It gets a
        directory of its own for that; the user's own servers can choose another one."""
        if not binding.loads_project:
            return server
        with suppress(OSError):
            keep_private(self._bytecode)
        own = {
            PYTHON_CACHE: str(self._bytecode / hashlib.sha256(os.fsencode(self._project.directory)).hexdigest()[:32])
        }
        chosen: Mapping[str, str] = {} if server.is_of_project else server.entry.env
        return replace(server, environment={**server.environment, **own, **chosen, **self._fixed})

    def _use(self, server: Server, binding: Binding) -> None:
        self._servers.append(server)
        self._bindings[server.name] = binding

    def _judge_own(self, server: Server, binding: Binding) -> None:
        """A server of the user that would run code of this project: a script with a relative path, or a package that
        the project has as well."""
        names = _listed(binding.runs)
        if server.layer in (Layer.FLAG, Layer.CODE):  # chosen for this run, and so for this project
            self._notices.append(f"MCP server {server.name} ({server.source}) runs files of this project: {names}.")
            self._use(server, binding)
        else:
            server = replace(server, identity=binding.identity)
            self._judge(server, binding, f"it would run files of this project: {names}")

    def _judge(self, server: Server, binding: Binding, new: str = "not trusted yet", unset: Sequence[str] = ()) -> None:
        before = self._consent_to(server.name)
        missing: tuple[str, ...] = ()
        if self._choice.trust is True:
            why = ""
        elif self._choice.trust_ref is not None:
            why = self._differs_from_ref(server, binding)
        elif binding.unbound:
            why = f"cannot be bound to what it runs, so you are asked in each session: {binding.unbound}"
        elif before is None:
            why = new
        elif before.identity != binding.identity:
            missing = binding.lost(before, unset)
            why = _why_unset(missing) if missing else _why_different(binding.changes(before))
        else:
            why = ""
        if not why:
            self._use(server, binding)
            return
        changed = before is not None
        self._waiting.append(WaitingServer(server=server, binding=binding, why=why, is_changed=changed, unset=missing))
        todo = "Set it" if missing else f"Review with: wave mcp trust {server.name}"
        self._notices.append(f"MCP server {server.name} ({server.source}) does not start: {why}. {todo}")

    def _differs_from_ref(self, server: Server, binding: Binding) -> str:
        """Why the ref does not vouch for a server; empty if it does."""
        ref = str(self._choice.trust_ref)
        if binding.unbound:
            return f"cannot be bound to what it runs, so --trust-ref {ref} does not cover it: {binding.unbound}"
        if self._at_ref is None:
            from wave_agent.mcp.servers_at_ref import ServersAtRef  # lazy: for CI

            self._at_ref = ServersAtRef(ref, self._project, self._home)
        raw = self._taken[name_key(server.name)] if server.is_of_project else None
        found = self._at_ref.differences(raw, binding)
        return f"differs from {ref}: {_listed(found)}" if found else ""

    def _consent_to(self, name: str) -> Binding | None:
        if self._consents is None:
            self._consents = self._store.consents(self._project.directory)
        return self._consents.get(name_key(name))

    def _about_lists(self) -> None:
        for one in self._lists.lists if self._lists else ():
            if one.layer in OF_THE_PROJECT:
                self._notices.append(f"{one.source}: {one.key}: a project's list only applies to its own servers.")
        waits = any((one.server.source, one.server.name) in self._sources.in_files for one in self._waiting)
        if waits:
            self._notices += [
                f"{source}: approvals of MCP servers in settings have no effect: use wave mcp trust."
                for source in self._sources.approvals
            ]


def _lists_in(sources: Sequence[SettingsSource]) -> "ServerLists | None":
    if not sources:
        return None
    from wave_agent.mcp.lists import read_lists  # lazy: most users have no such lists

    return read_lists(sources)


_RANKS = {Layer.MANAGED: 0, Layer.FLAG: 1, Layer.CODE: 2, Layer.USER: 3, Layer.LOCAL: 4, Layer.PROJECT: 4}


def _rank(layer: Layer) -> int:
    return _RANKS[layer]


def _is_pushed_aside(raw: RawEntry, winner: RawEntry) -> bool:
    """Whether its author has to know that another server is used: not if they chose that themselves."""
    return raw.is_of_project or winner.layer is Layer.MANAGED or raw.name != winner.name


def _scope(layer: Layer, project: Project) -> str:
    """Whose pins apply. A server for one run only is the user's, but each project has its own."""
    if layer in OF_THE_PROJECT:
        return project.directory
    return USER_SCOPE if layer in (Layer.MANAGED, Layer.USER) else f"{USER_SCOPE} {project.directory}"


def _why_unset(names: Sequence[str]) -> str:
    return f"{_listed(names)} {'is' if len(names) == 1 else 'are'} not set, but had a value when you trusted it"


def _why_different(names: Sequence[str]) -> str:
    compiled = all("__pycache__/" in name for name in names)
    hint = " (compiled Python; PYTHONPYCACHEPREFIX in your environment keeps it out of the project)" if compiled else ""
    return f"changed since you trusted it: {_listed(names)}{hint}"


def _listed(names: Collection[str]) -> str:
    shown = ", ".join(list(names)[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown
