"""Every place where servers are configured, read: entries in order of precedence, and what is said about them."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from wave_agent.errors import MissingPathError, SettingsError
from wave_agent.formats.strict_json import Document, type_name
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.dialects import Dialect
from wave_agent.mcp.entries import RawEntry, name_key
from wave_agent.settings.hook_entries import Issue, SettingsSource, parse_settings
from wave_agent.settings.mcp_sources import claude_state, claude_state_file, mcp_places
from wave_agent.settings.places import OF_THE_PROJECT, read_place, read_source
from wave_agent.settings.sources import Gathered, Overlay, SourceChoice, is_config_file
from wave_agent.system.project import Project
from wave_agent.text import one_line

MOST_SERVERS = 200
IN_CODE = "mcp_servers"
ON_COMMAND_LINE = "--mcp-config"
_KEY = "mcpServers"
_LISTS = frozenset({"allowedMcpServers", "deniedMcpServers", "allowManagedMcpServersOnly"})


class ServerSources(Struct, frozen=True, kw_only=True):
    """What all places say."""

    entries: tuple[RawEntry, ...] = ()
    """The one that takes precedence comes first."""
    lists: tuple[SettingsSource, ...] = ()
    """Settings with lists of allowed and denied servers."""
    in_files: frozenset[tuple[str, str]] = frozenset()
    """(source, name) of the entries that come from a `.mcp.json`."""
    disabled: Mapping[str, str] = {}
    """Servers of `.mcp.json` that are rejected: name → by which file."""
    approvals: tuple[str, ...] = ()
    """Files that approve servers in the way of another agent, which counts for nothing here."""
    exclusive: str = ""
    """The managed file whose servers are the only ones."""
    issues: tuple[Issue, ...] = ()
    notices: tuple[str, ...] = ()


class _ClaudeProject(Struct):
    servers: Any = msgspec.field(default=None, name="mcpServers")
    disabled: Any = msgspec.field(default=None, name="disabledMcpjsonServers")


class _ClaudeState(Struct):
    servers: Any = msgspec.field(default=None, name="mcpServers")
    projects: dict[str, _ClaudeProject] = {}


def read_sources(gathered: Gathered, project: Project, home: Path, choice: SourceChoice) -> ServerSources:
    """Raises `SettingsError` for a file that cannot be parsed, or was named and does not exist."""
    documents: list[SettingsSource] = []  # the first one takes precedence
    of_layers = gathered.mcp
    documents += [one for one in of_layers if one.layer is Layer.MANAGED]
    exclusive = ""
    if gathered.foreign and (managed := read_source(Layer.MANAGED, choice.managed_mcp_file)):
        documents.append(managed)
        exclusive = managed.name
    documents += [_named(one) for one in reversed(choice.mcp_config)]
    documents += [one for one in reversed(of_layers) if one.layer is Layer.FLAG]
    if choice.mcp_servers is not None:
        documents.append(SettingsSource(Layer.CODE, IN_CODE, Document({_KEY: choice.mcp_servers}, {})))
    notices: list[str] = []
    issues: list[Issue] = []
    in_files: set[tuple[str, str]] = set()
    theirs: dict[str, str] = {}
    if not choice.strict_mcp_config:
        users = [one for one in of_layers if one.layer is Layer.USER]
        state = _claude_state(gathered, project, choice, notices)
        local, everywhere, theirs = state if state else (None, None, {})
        documents += [local] if local else []
        documents += [one for one in users if one.dialect is Dialect.WAVE]
        documents += [everywhere] if everywhere else []
        documents += [one for one in users if one.dialect is not Dialect.WAVE]
        files = [one for place in mcp_places(home, project, choice) if (one := read_place(place)) is not None]
        issues += [_without_servers(one) for one in files if one.document.value and _KEY not in one.document.value]
        in_files = {(one.name, name) for one in files for name in _names(one)}
        own = [one for one in of_layers if one.layer in OF_THE_PROJECT]
        documents += sorted((*own, *files), key=_nearness, reverse=True)
    entries: list[RawEntry] = []
    for source in documents:
        found, wrong = _entries(source)
        entries += found
        issues += wrong
    return ServerSources(
        entries=tuple(entries),
        lists=tuple(one for one in of_layers if not _LISTS.isdisjoint(one.document.value)),
        in_files=frozenset(in_files),
        disabled={**theirs, **dict(_disabled(of_layers))},
        approvals=tuple(one.name for one in of_layers if _approves(one)),
        exclusive=exclusive,
        issues=tuple(issues),
        notices=tuple(notices),
    )


def _nearness(source: SettingsSource) -> tuple[int, bool]:
    """An inner directory takes precedence, and there the user's own file for the project."""
    return len(source.inner), source.layer is Layer.LOCAL


def _named(config: Overlay) -> SettingsSource:
    """Servers that the user named on the command line."""
    if isinstance(config, Mapping):
        return SettingsSource(Layer.FLAG, ON_COMMAND_LINE, Document(_with_key(config), {}))
    if not is_config_file(config):
        found = parse_settings(cast(str, config), Layer.FLAG, ON_COMMAND_LINE)
    else:
        read = read_source(Layer.FLAG, Path(config))
        if read is None:
            raise MissingPathError(f"MCP configuration file not found: {config}")
        found = read
    return replace(found, document=_with_key_in(found.document))


def _with_key(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return value if _KEY in value else {_KEY: value}


def _with_key_in(document: Document) -> Document:
    """A file with just the servers is meant as well."""
    if _KEY in document.value:
        return document
    lines = {(_KEY, *path): line for path, line in document.lines.items()}
    return Document({_KEY: document.value}, {(): 1, **lines})


def _without_servers(source: SettingsSource) -> Issue:
    """A file that is only for servers has other keys: other programs call it differently."""
    given = ", ".join(f'"{one_line(name, 40)}"' for name in [*source.document.value][:3])
    return Issue(source=source.name, path=(_KEY,), message=f"is missing, so there are no servers; the file has {given}")


def _names(source: SettingsSource) -> Iterator[str]:
    servers: Any = source.document.value.get(_KEY)
    yield from cast(Mapping[str, Any], servers) if isinstance(servers, Mapping) else ()


def _entries(source: SettingsSource) -> tuple[list[RawEntry], list[Issue]]:
    servers: Any = source.document.value.get(_KEY)
    if servers is None:
        return [], []
    line = source.document.line((_KEY,))
    fatal = source.layer is Layer.MANAGED
    if not isinstance(servers, Mapping):
        message = f"must be an object of servers by name, not {type_name(servers)}"
        return [], [Issue(source=source.name, path=(_KEY,), line=line, message=message, fatal=fatal)]
    given = cast(Mapping[str, Any], servers)
    issues: list[Issue] = []
    if len(given) > MOST_SERVERS:
        message = f"has {len(given):,} servers; only the first {MOST_SERVERS} are used"
        issues.append(Issue(source=source.name, path=(_KEY,), line=line, message=message, fatal=fatal))
    found = [
        RawEntry(
            name=name,
            value=value,
            layer=source.layer,
            source=source.name,
            path=(_KEY, name),
            line=source.document.line((_KEY, name)),
        )
        for name, value in [*given.items()][:MOST_SERVERS]
        if not name.startswith("//")
    ]
    return found, issues


def _claude_state(
    gathered: Gathered, project: Project, choice: SourceChoice, notices: list[str]
) -> tuple[SettingsSource | None, SettingsSource | None, dict[str, str]] | None:
    """Servers that the user added with another agent: for this project, for all, and which of `.mcp.json` they
    rejected."""
    if not gathered.foreign or Layer.USER not in choice.wanted or not (content := claude_state(choice)):
        return None
    name = str(claude_state_file(choice))
    try:
        state = msgspec.json.decode(content, type=_ClaudeState)
    except (msgspec.DecodeError, RecursionError) as error:
        notices.append(f"{name}: its MCP servers are ignored: not valid JSON: {error}")
        return None
    places = dict.fromkeys((project.directory, project.start, project.root))
    here = [state.projects[place] for place in places if place in state.projects]
    local = {key: value for one in reversed(here) for key, value in _mapping(one.servers).items()}
    rejected = {name_key(one): name for found in here for one in _texts(found.disabled)}
    return (
        SettingsSource(Layer.USER, name, Document({_KEY: local}, {})) if local else None,
        SettingsSource(Layer.USER, name, Document({_KEY: state.servers}, {})) if state.servers else None,
        rejected,
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, Mapping) else {}


def _texts(value: Any) -> list[str]:
    return [one for one in cast(list[Any], value) if isinstance(one, str)] if isinstance(value, list) else []


def _disabled(sources: Iterable[SettingsSource]) -> Iterator[tuple[str, str]]:
    """A rejection in any file counts."""
    for source in sources:
        given: Any = source.document.value.get("disabledMcpjsonServers")
        if given is not None and not isinstance(given, list):
            raise SettingsError(f"{source.name}: disabledMcpjsonServers: must be a list, not {type_name(given)}")
        yield from ((name_key(name), source.name) for name in _texts(given))


def _approves(source: SettingsSource) -> bool:
    settings = cast(Mapping[str, Any], source.document.value)
    return bool(settings.get("enabledMcpjsonServers") or settings.get("enableAllProjectMcpServers"))
