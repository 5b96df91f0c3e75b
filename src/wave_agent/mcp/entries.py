"""One entry of `mcpServers` → a `ServerEntry`, or what is wrong with it. Pure: no files, no processes."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from msgspec import Struct

from wave_agent.formats.readable import why_unreadable
from wave_agent.formats.strict_json import Path as Where
from wave_agent.formats.strict_json import type_name
from wave_agent.hooks.definitions import Layer
from wave_agent.lazy_regex import lazy_regex
from wave_agent.mcp.values import NAME_CHARACTERS, OAuth, ServerEntry, ServerTransport
from wave_agent.settings.hook_entries import Issue
from wave_agent.settings.mcp_keys import ENTRY_SCHEMA
from wave_agent.settings.places import OF_THE_PROJECT
from wave_agent.system.ancestry import VARIABLE
from wave_agent.system.credentials import ENDPOINTS, is_own, without_userinfo
from wave_agent.text import did_you_mean, one_line

LONGEST_NAME = 48
SHORTEST_TIMEOUT = 1000
"""Milliseconds. A smaller number was probably meant as seconds."""
_LONGEST_TIMEOUT = 24 * 3_600_000
_VARIABLE = lazy_regex(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_VARIABLE_NAME = lazy_regex(r"[^=\0]+")
_URL = lazy_regex(r"(?i)https?://[^\s\x00-\x20\x7f\\/?#][^\s\x00-\x20\x7f\\]*")
_HEADER_NAME = lazy_regex(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = lazy_regex(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_TYPES: Mapping[str, ServerTransport] = {
    **{one.value: one for one in ServerTransport},
    "streamable-http": ServerTransport.HTTP,
}
_KEYS = tuple(ENTRY_SCHEMA["properties"])
_OAUTH_KEYS = tuple(ENTRY_SCHEMA["properties"]["oauth"]["properties"])
_NEEDS_TYPE = 'has a "url" but no "type": add "type": "http" (or "sse", for an older server)'


class RawEntry(Struct, frozen=True, kw_only=True):
    """An entry as written, and where."""

    name: str
    value: Any
    layer: Layer
    source: str
    path: Where = ()
    line: int | None = None

    @property
    def is_of_project(self) -> bool:
        return self.layer in OF_THE_PROJECT


class ReadEntry(Struct, frozen=True, kw_only=True):
    """What an entry says."""

    entry: ServerEntry | None
    """None: it cannot be used, and `issues` say why, or it is `disabled`."""
    issues: tuple[Issue, ...] = ()
    """Broken ones, and warnings (`broken` False) about an entry that still works."""
    variables: tuple[str, ...] = ()
    """The environment variables that it uses, in order; also those that are unset or withheld."""
    unset: tuple[str, ...] = ()
    """Those that have no value, and no default."""
    disabled: bool = False
    """Its author has switched it off."""


class Expansion(Struct, frozen=True):
    """A text with its variables filled in."""

    text: str
    used: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()


def name_problem(name: str) -> str | None:
    """Why this cannot be the name of a server; None if it can. Two names that `name_key` maps to one are the same.

    Tools are called `mcp__server__tool`: a server whose name contains `__`, or begins or ends with `_`, could take
    another server's place in front of its tools.
    """
    if not name:
        return "a server needs a name"
    shown = one_line(name, 60)
    if not NAME_CHARACTERS.issuperset(name):
        return f'"{shown}" is not a name for a server: use letters, digits, "-" and "_"'
    if "__" in name or name.startswith("_") or name.endswith("_"):
        return f'"{shown}" is not a name for a server: it contains "__", or begins or ends with "_"'
    if len(name) > LONGEST_NAME:
        return f'"{shown}" is too long for a server\'s name: {len(name)} characters, at most {LONGEST_NAME}'
    return None


def name_key(name: str) -> str:
    """The name as it is compared with others: as the model sees it, case-folded."""
    return name.casefold()


def expand(text: str, value_of: Callable[[str], str | None]) -> Expansion:
    """Fills in `${VAR}` and `${VAR:-default}`, in one pass: values are not expanded again. A variable without a value
    stays as it is written. As in a shell, an empty one counts as unset if there is a default."""
    if "${" not in text:
        return Expansion(text)
    pieces: list[str] = []
    used: list[str] = []
    unset: list[str] = []
    at = 0
    for found in _VARIABLE.finditer(text):
        name, default = found[1], found[2]
        value = value_of(name)
        used.append(name)
        if default is not None:
            value = value or default
        elif value is None:
            unset.append(name)
            value = found[0]
        pieces += [text[at : found.start()], value]
        at = found.end()
    return Expansion("".join([*pieces, text[at:]]), tuple(dict.fromkeys(used)), tuple(dict.fromkeys(unset)))


def read_entry(raw: RawEntry, environment: Mapping[str, str]) -> ReadEntry:
    """Never raises. The agent's own credentials are not expanded in an entry of a project."""
    return _EntryReader(raw, environment).read()


class _BrokenEntryError(Exception):
    def __init__(self, message: str, *inside: str | int) -> None:
        super().__init__(message)
        self.inside = inside


class _EntryReader:
    def __init__(self, raw: RawEntry, environment: Mapping[str, str]) -> None:
        self._raw, self._environment = raw, environment
        self._issues: list[Issue] = []
        self._used: dict[str, None] = {}
        self._unset: dict[str, None] = {}
        self._withheld: dict[str, None] = {}

    def read(self) -> ReadEntry:
        entry, disabled = None, False
        try:
            if problem := name_problem(self._raw.name):
                raise _BrokenEntryError(problem)
            given = self._object(self._raw.value)
            disabled = given.get("disabled") is True
            entry = None if disabled else self._entry(given)
        except _BrokenEntryError as error:
            self._report(str(error), *error.inside, broken=True)
        return ReadEntry(
            entry=entry,
            issues=tuple(self._issues),
            variables=tuple(self._used),
            unset=tuple(self._unset),
            disabled=disabled,
        )

    def _entry(self, given: Mapping[str, Any]) -> ServerEntry:
        if problem := why_unreadable(given):
            raise _BrokenEntryError(f"cannot be used: {problem}")
        transport = self._transport(given)
        for key in given:
            if key not in _KEYS and not key.startswith("//"):
                self._report(f'unknown key "{one_line(key, 60)}"{did_you_mean(key[:60], _KEYS)}', key)
        stdio = transport is ServerTransport.STDIO
        for key in ("url", "headers", "headersHelper", "oauth") if stdio else ("command", "args", "env"):
            # A helper runs with the server's environment, so `env` has a meaning there.
            if key in given and not (key == "env" and "headersHelper" in given):
                self._report(f'"{key}" has no meaning for a {transport} server', key)
        entry = ServerEntry(
            transport=transport,
            command=self._expanded(self._text(given["command"], "command"), "command") if stdio else "",
            args=self._args(given.get("args")) if stdio else (),
            env=self._pairs(given.get("env"), "env", _VARIABLE_NAME, "the name of a variable"),
            url="" if stdio else self._url(given.get("url")),
            headers={} if stdio else self._headers(given.get("headers")),
            headers_helper="" if stdio else self._text(given.get("headersHelper", ""), "headersHelper"),
            oauth=None if stdio or given.get("oauth") is None else self._oauth(given["oauth"]),
            timeout=self._timeout(given.get("timeout")),
            always_load=self._flag(given.get("alwaysLoad", False), "alwaysLoad"),
        )
        if self._withheld:
            names = ", ".join(f"${{{name}}}" for name in self._withheld)
            self._report(f"{names} is one of the agent's own keys: no project's server gets it")
        if self._unset:
            names = ", ".join(f"${{{name}}}" for name in self._unset)
            self._report(f"{names} is not set, and stays as it is written: set it, or write ${{NAME:-default}}")
        return entry

    def _transport(self, given: Mapping[str, Any]) -> ServerTransport:
        kind = given.get("type")
        if kind is None:
            if "url" in given:
                raise _BrokenEntryError(_NEEDS_TYPE)
            kind = ServerTransport.STDIO.value
        if kind == "ws":
            raise _BrokenEntryError('WebSocket servers are not supported: use "http" if the server has it', "type")
        if not isinstance(kind, str) or kind not in _TYPES:
            hint = did_you_mean(kind[:60], _TYPES) if isinstance(kind, str) else ""
            raise _BrokenEntryError(f"must be one of {', '.join(_TYPES)}{hint}", "type")
        transport = _TYPES[kind]
        main = "command" if transport is ServerTransport.STDIO else "url"
        if not given.get(main):
            raise _BrokenEntryError(f'has no "{main}", which a {transport} server needs')
        return transport

    def _args(self, given: Any) -> tuple[str, ...]:
        if given is None:
            return ()
        if not isinstance(given, list):
            raise _BrokenEntryError(f"must be a list of strings, not {type_name(given)}", "args")
        texts = [self._text(one, "args", at) for at, one in enumerate(cast(list[Any], given))]
        return tuple(self._expanded(text, "args", at) for at, text in enumerate(texts))

    def _url(self, given: Any) -> str:
        before = len(self._unset) + len(self._withheld)
        url = self._expanded(self._text(given, "url"), "url")
        complete = before == len(self._unset) + len(self._withheld)
        if complete and not _URL.fullmatch(url):  # the value of a variable may be a secret: show what is written
            raise _BrokenEntryError(f'"{one_line(given, 200)}" is not a URL; expected something like https://…', "url")
        return url

    def _headers(self, given: Any) -> Mapping[str, str]:
        headers = self._pairs(given, "headers", _HEADER_NAME, "the name of a header")
        for name, value in headers.items():
            if not _HEADER_VALUE.fullmatch(value):
                raise _BrokenEntryError("contains a line break or another control character", "headers", name)
        return headers

    def _pairs(self, given: Any, key: str, names: Any, what: str) -> Mapping[str, str]:
        if given is None:
            return {}
        pairs = self._object(given, key)
        for name in pairs:
            if not names.fullmatch(name):
                raise _BrokenEntryError(f'"{one_line(name, 60)}" is not {what}', key)
        return {name: self._expanded(self._text(value, key, name), key, name) for name, value in pairs.items()}

    def _oauth(self, given: Any) -> OAuth:
        facts = self._object(given, "oauth")
        for key in facts:
            if key not in _OAUTH_KEYS and not key.startswith("//"):
                self._report(f'unknown key "{one_line(key, 60)}"{did_you_mean(key[:60], _OAUTH_KEYS)}', "oauth", key)
        port = facts.get("callbackPort")
        if port is not None and (isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536):
            raise _BrokenEntryError("must be a port number", "oauth", "callbackPort")
        scopes = facts.get("scopes", "")
        if isinstance(scopes, list):
            scopes = " ".join(self._text(one, "oauth", "scopes") for one in cast(list[Any], scopes))
        metadata = self._text(facts.get("authServerMetadataUrl", ""), "oauth", "authServerMetadataUrl")
        if metadata and not _URL.fullmatch(metadata):
            raise _BrokenEntryError("is not a URL", "oauth", "authServerMetadataUrl")
        return OAuth(
            client_id=self._text(facts.get("clientId", ""), "oauth", "clientId"),
            client_secret=self._expanded(
                self._text(facts.get("clientSecret", ""), "oauth", "clientSecret"), "oauth", "clientSecret"
            ),
            callback_port=port,
            scopes=self._text(scopes, "oauth", "scopes"),
            metadata_url=metadata,
        )

    def _timeout(self, given: Any) -> float | None:
        if given is None:
            return None
        if isinstance(given, bool) or not isinstance(given, int | float):
            raise _BrokenEntryError(f"must be a number of milliseconds, not {type_name(given)}", "timeout")
        if given < SHORTEST_TIMEOUT:
            self._report(f"{given} is ignored: it is in milliseconds, at least {SHORTEST_TIMEOUT}", "timeout")
            return None
        return min(given, _LONGEST_TIMEOUT) / 1000

    def _flag(self, given: Any, key: str) -> bool:
        if not isinstance(given, bool):
            raise _BrokenEntryError(f"must be true or false, not {type_name(given)}", key)
        return given

    def _text(self, given: Any, *inside: str | int) -> str:
        if not isinstance(given, str):
            raise _BrokenEntryError(f"must be a string, not {type_name(given)}", *inside)
        return given

    def _object(self, given: Any, *inside: str) -> Mapping[str, Any]:
        if not isinstance(given, Mapping):
            raise _BrokenEntryError(f"must be an object, not {type_name(given)}", *inside)
        pairs = cast(Mapping[Any, Any], given)
        if not all(isinstance(key, str) for key in pairs):
            raise _BrokenEntryError("must have strings as keys", *inside)
        return pairs

    def _expanded(self, text: str, *inside: str | int) -> str:
        found = expand(text, self._value_of)
        self._used |= dict.fromkeys(found.used)
        self._unset |= dict.fromkeys(name for name in found.unset if name not in self._withheld)
        if why_unreadable(found.text):  # the value itself may be a secret
            names = ", ".join(found.used)
            raise _BrokenEntryError(f"the value of {names} contains a character that cannot be passed on", *inside)
        return found.text

    def _value_of(self, name: str) -> str | None:
        value = self._environment.get(name)
        if not self._raw.is_of_project:
            return value
        if is_own(name) or name == VARIABLE:
            self._withheld[name] = None
            return None
        return value if value is None or name not in ENDPOINTS else without_userinfo(value)

    def _report(self, message: str, *inside: str | int, broken: bool = False) -> None:
        raw = self._raw
        fatal = broken and raw.layer is Layer.MANAGED
        path = (*raw.path, *inside)
        self._issues.append(
            Issue(source=raw.source, path=path, line=raw.line, message=message, broken=broken, fatal=fatal)
        )
