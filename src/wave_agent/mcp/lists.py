"""`allowedMcpServers` and `deniedMcpServers`: which servers may run at all. Pure.

A list is a restriction. In doubt a server counts as denied, and does not count as allowed.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from wave_agent.formats.strict_json import type_name
from wave_agent.hooks.definitions import Layer
from wave_agent.lazy_regex import lazy_regex
from wave_agent.mcp.entries import name_key
from wave_agent.mcp.values import ServerEntry, ServerTransport
from wave_agent.settings.hook_entries import Issue, SettingsSource
from wave_agent.settings.places import OF_THE_PROJECT
from wave_agent.text import did_you_mean

_WAYS = ("serverName", "serverCommand", "serverUrl")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_UNCLEAR = lazy_regex(r"%|\\|//|/\.\.?(?:/|$)|@")
"""In what follows the scheme of a URL: another program may read it differently."""


class ListedServer(Struct, frozen=True, kw_only=True):
    """One entry of a list: exactly one field is set."""

    name: str = ""
    command: tuple[str, ...] = ()
    url: str = ""


class ServerList(Struct, frozen=True, kw_only=True):
    """One list, and where it is."""

    key: str
    layer: Layer
    source: str
    listed: tuple[ListedServer, ...]

    @property
    def allows(self) -> bool:
        return self.key == "allowedMcpServers"


class ServerLists(Struct, frozen=True, kw_only=True):
    """All lists that apply."""

    lists: tuple[ServerList, ...] = ()
    managed_only: bool = False
    """`allowManagedMcpServersOnly`."""
    issues: tuple[Issue, ...] = ()

    def why_not(self, name: str, entry: ServerEntry, layer: Layer) -> str | None:
        """Why this server may not run; None if no list is against it."""
        for one in self.lists:
            if not one.allows and _concerns(one, layer) and any(_denies(item, name, entry) for item in one.listed):
                return f"denied by {one.key} in {one.source}"
        allowing = [one for one in self.lists if one.allows and _concerns(one, layer)]
        if self.managed_only:
            allowing = [one for one in allowing if one.layer is Layer.MANAGED or one.layer in OF_THE_PROJECT]
            if layer is not Layer.MANAGED and not any(one.layer is Layer.MANAGED for one in allowing):
                return "only managed servers may run (allowManagedMcpServersOnly)"
        for one in allowing:
            if not _allows(one.listed, name, entry):
                return f"not among {one.key} in {one.source}"
        return None


def read_lists(sources: Iterable[SettingsSource]) -> ServerLists:
    """Never raises. A list that cannot be read allows nothing, and is an issue that must not be skipped: it is unknown
    what it would have denied."""
    lists: list[ServerList] = []
    issues: list[Issue] = []
    managed_only = False
    for source in sources:
        settings = cast(Mapping[str, Any], source.document.value)
        for key in ("allowedMcpServers", "deniedMcpServers"):
            if settings.get(key) is not None:
                listed, found = _read_list(source, key, settings[key])
                lists.append(ServerList(key=key, layer=source.layer, source=source.name, listed=tuple(listed)))
                issues += found
        flag = settings.get("allowManagedMcpServersOnly")
        if flag is not None and source.layer is not Layer.MANAGED:
            issues.append(_issue(source, ("allowManagedMcpServersOnly",), "only managed settings can set this"))
        elif flag is not None and not isinstance(flag, bool):
            issues.append(_issue(source, ("allowManagedMcpServersOnly",), "must be true or false", fatal=True))
        managed_only = managed_only or (source.layer is Layer.MANAGED and flag not in (None, False))
    return ServerLists(lists=tuple(lists), managed_only=managed_only, issues=tuple(issues))


def _read_list(source: SettingsSource, key: str, given: Any) -> tuple[list[ListedServer], list[Issue]]:
    fatal = source.layer not in OF_THE_PROJECT
    if not isinstance(given, list):
        return [], [_issue(source, (key,), f"must be a list, not {type_name(given)}", fatal=fatal)]
    listed: list[ListedServer] = []
    issues: list[Issue] = []
    for at, item in enumerate(cast(list[Any], given)):
        try:
            listed.append(_read_item(item))
        except ValueError as error:
            issues.append(_issue(source, (key, at), str(error), fatal=fatal))
    return listed, issues


def _read_item(item: Any) -> ListedServer:
    """Raises `ValueError`."""
    if not isinstance(item, Mapping):
        raise ValueError(f'must be an object such as {{"serverName": "github"}}, not {type_name(item)}')
    given = cast(Mapping[str, Any], item)
    if len(given) != 1 or next(iter(given)) not in _WAYS:
        unknown = next((key for key in given if key not in _WAYS), "")
        raise ValueError(f"must have exactly one of {', '.join(_WAYS)}{did_you_mean(unknown, _WAYS)}")
    (way, value), *_ = given.items()
    if way == "serverCommand":
        words: list[Any] = cast(list[Any], value) if isinstance(value, list) else []
        if not words or not all(isinstance(word, str) for word in words):
            raise ValueError("serverCommand must be a list of strings: the command and its arguments")
        return ListedServer(command=tuple(words))
    if not isinstance(value, str) or not value:
        raise ValueError(f"{way} must be a string, not {type_name(value)}")
    if way == "serverName":
        return ListedServer(name=value)
    if "://" not in value:
        raise ValueError(f'"{value[:200]}" is not a pattern for URLs; expected something like https://*.example.com/*')
    return ListedServer(url=value)


def _issue(source: SettingsSource, path: tuple[str | int, ...], message: str, *, fatal: bool = False) -> Issue:
    line = source.document.line(path)
    return Issue(source=source.name, path=path, line=line, message=message, broken=fatal, fatal=fatal)


def _concerns(one: ServerList, layer: Layer) -> bool:
    """A project's list restricts its own servers, and the user's does not restrict managed ones."""
    if one.layer in OF_THE_PROJECT:
        return layer in OF_THE_PROJECT
    return one.layer is Layer.MANAGED or layer is not Layer.MANAGED


def _denies(item: ListedServer, name: str, entry: ServerEntry) -> bool:
    if item.name:
        return name_key(item.name) == name_key(name)
    if item.command:
        return _same_command(item.command, (entry.command, *entry.args))
    return entry.transport is not ServerTransport.STDIO and _url_matches(item.url, entry.url, strict=False)


def _same_command(denied: Sequence[str], words: Sequence[str]) -> bool:
    """The directory of the program does not matter."""
    return [_last(denied[0]), *denied[1:]] == [_last(words[0]), *words[1:]]


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def _allows(listed: Sequence[ListedServer], name: str, entry: ServerEntry) -> bool:
    """If a list says which commands are allowed, a name does not allow another command; likewise for URLs."""
    if entry.transport is ServerTransport.STDIO:
        commands = [item.command for item in listed if item.command]
        if commands:
            return (entry.command, *entry.args) in commands
    else:
        urls = [item.url for item in listed if item.url]
        if urls:
            return any(_url_matches(pattern, entry.url, strict=True) for pattern in urls)
    return any(item.name and name_key(item.name) == name_key(name) for item in listed)


def _url_matches(pattern: str, url: str, *, strict: bool) -> bool:
    """Scheme, host, port and path are compared one by one: a `*` in the host never reaches into the path.

    `strict`, to allow: nothing about the URL may be unclear. Otherwise, to deny: what is unclear matches.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return not strict
    scheme, _, rest = pattern.partition("://")
    authority, slash, path = rest.partition("/")
    unclear = bool(_UNCLEAR.search(url.partition("://")[2])) or not url.isascii()
    if strict and unclear:
        return False
    if strict and not _glob(scheme.lower(), parts.scheme.lower()):
        return False
    if not _host_matches(authority.lower(), parts, port, strict=strict):
        return False
    if not slash:
        return not strict or parts.path in ("", "/")
    return (unclear and not strict) or _glob(
        "/" + path, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    )


def _host_matches(pattern: str, parts: SplitResult, port: int | None, *, strict: bool) -> bool:
    host = _ascii((parts.hostname or "").rstrip("."))
    named, colon, wanted = pattern.rpartition(":") if re.search(r":(?:\d+|\*)$", pattern) else (pattern, "", "")
    default = _DEFAULT_PORTS.get(parts.scheme)
    actual = str(port if port is not None else default)
    if not _glob(_ascii(named.strip("[]").rstrip(".")), host):
        return False
    if colon:
        return _glob(wanted, actual)
    return not strict or port in (None, default)


def _ascii(host: str) -> str:
    """Each label of an international name in the form that is looked up."""
    if host.isascii():
        return host
    try:
        return ".".join(label.encode("idna").decode() for label in host.split("."))
    except UnicodeError:
        return host


def _glob(pattern: str, text: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.DOTALL) is not None
