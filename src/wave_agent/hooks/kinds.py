"""What a hook runs: the part of an entry that depends on its kind."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar, cast

from msgspec import Struct

from wave_agent.formats.strict_json import Path, type_name
from wave_agent.hooks.execution import BodyFormat, HookKind, ServerCall
from wave_agent.lazy_regex import lazy_regex
from wave_agent.text import did_you_mean

MAIN_KEYS = ("command", "function", "target", "url", "tool", "prompt")
"""Keys that say what to run. A hook has exactly one of them."""
RUN_KEYS = (
    *("type", *MAIN_KEYS, "args", "shell", "headers", "allowedEnvVars", "format", "server", "input"),
    *("model", "continueOnBlock"),
)
SHELLS = ("bash", "sh")
"""Accepted values of `shell`. Both run in Bash."""
TYPES = tuple(kind.value for kind in HookKind if kind not in (HookKind.FUNCTION, HookKind.ABSENT))


class BrokenError(Exception):
    """The entry is invalid."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(message)
        self.path, self.message = path, message


class RunFields(Struct, frozen=True, kw_only=True):
    """The fields of `HookDefinition` that say what to run."""

    kind: HookKind
    command: str = ""
    args: tuple[str, ...] | None = None
    function: Callable[..., Any] | None = None
    headers: tuple[tuple[str, str], ...] = ()
    header_env: tuple[str, ...] = ()
    body_format: BodyFormat = BodyFormat.PLAIN
    call: ServerCall | None = None
    model: str = ""


THINKING = frozenset({HookKind.PROMPT, HookKind.AGENT})
"""The kinds that ask a model."""


def read_run(entry: Mapping[str, Any], path: Path, *, any_type: bool = False) -> RunFields:
    """Read what an entry runs. Raises `BrokenError`.

    With `any_type`, an unknown type is not an error: the hook is loaded, but cannot be run.
    """
    stated: object = entry.get("type")
    if any_type and isinstance(stated, str) and stated not in TYPES:
        return _absent(stated, entry)
    kind = _kind(entry, path)
    row = _ROWS[kind]
    if stray := next((key for key in MAIN_KEYS if entry.get(key) is not None and key != row.main), None):
        if entry.get(row.main) is not None:
            raise BrokenError(path, f"has a {stray} and a {row.main}; a hook can have only one of them")
        raise BrokenError((*path, stray), f'"{stray}" does not belong to a hook of type {kind}{_whose(stray)}')
    if kind is not HookKind.COMMAND and entry.get("args") is not None:
        raise BrokenError((*path, "args"), f"a {row.noun} takes no args")
    return row.read(entry, path)


def _kind(entry: Mapping[str, Any], path: Path) -> HookKind:
    kind = entry.get("type")
    if kind in (None, HookKind.COMMAND.value) and entry.get("function") is not None:
        return HookKind.FUNCTION
    if kind is None:
        return HookKind.COMMAND
    if kind not in TYPES:
        hint = did_you_mean(kind, TYPES) if isinstance(kind, str) else ""
        raise BrokenError((*path, "type"), f"{kind!r} is not a type of hook{hint}; expected one of {', '.join(TYPES)}")
    return HookKind(kind)


def _absent(stated: str, entry: Mapping[str, Any]) -> RunFields:
    """A hook that cannot be run. Its command shows what it would do."""
    wanted: object = entry.get("prompt")
    return RunFields(kind=HookKind.ABSENT, command=f"{stated}: {wanted}" if isinstance(wanted, str) else stated)


def absent_type(command: str) -> str:
    """The type of a hook that cannot be run, from its command."""
    return command.partition(":")[0]


def why_absent(command: str) -> str:
    """Why such a hook cannot be run."""
    return f'this agent has no hooks of type "{absent_type(command)}"'


def _whose(key: str) -> str:
    return next(f'; did you mean "type": "{kind}"?' for kind, row in _ROWS.items() if row.main == key)


def _command(entry: Mapping[str, Any], path: Path) -> RunFields:
    args = entry.get("args")
    if args is not None and not _is_texts(args):
        raise BrokenError((*path, "args"), "must be a list of strings")
    kept = None if args is None else tuple(cast(list[str], args))
    shell = entry.get("shell")
    if kept is None and shell is not None and shell not in SHELLS:
        raise BrokenError((*path, "shell"), f"{shell!r} is not available: commands run in Bash")
    return RunFields(kind=HookKind.COMMAND, command=_filled(entry, "command", path), args=kept)


def _function(entry: Mapping[str, Any], path: Path) -> RunFields:
    if not callable(entry["function"]):
        raise BrokenError((*path, "function"), "must be a Python function")
    return RunFields(kind=HookKind.FUNCTION, function=entry["function"])


def _python(entry: Mapping[str, Any], path: Path) -> RunFields:
    target = _filled(entry, "target", path)
    file, _, name = target.rpartition(":")
    if not file or "\0" in file or not all(part.isidentifier() for part in name.split(".")):
        raise BrokenError((*path, "target"), f'"{target}" must name a file and a function, such as guard.py:check')
    return RunFields(kind=HookKind.PYTHON, command=target)


HEADER_VARIABLE = lazy_regex(r"\$(?:(\$)|\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)
"""`$$`, `${NAME}` or `$NAME` in the value of a header."""


def header_variables(value: str) -> tuple[str, ...]:
    """The names of the variables in a header's value."""
    return tuple(braced or bare for _, braced, bare in HEADER_VARIABLE.findall(value) if braced or bare)


_HEADER = lazy_regex(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = lazy_regex(r"[\t\x20-\x7e]*")
_OURS = ("host", "content-length", "transfer-encoding", "connection", "content-type")


def _http(entry: Mapping[str, Any], path: Path) -> RunFields:
    url = _filled(entry, "url", path)
    if problem := _url_problem(url):
        raise BrokenError((*path, "url"), problem)
    headers = entry.get("headers")
    if headers is not None and not isinstance(headers, Mapping):
        raise BrokenError((*path, "headers"), f"must be an object, not {type_name(headers)}")
    given = cast(Mapping[str, object], headers or {})
    variables = entry.get("allowedEnvVars")
    if variables is not None and not _is_texts(variables):
        raise BrokenError((*path, "allowedEnvVars"), "must be a list of strings")
    return RunFields(
        kind=HookKind.HTTP,
        command=url,
        headers=tuple(_header(str(name), value, (*path, "headers", str(name))) for name, value in given.items()),
        header_env=tuple(cast(list[str], variables or [])),
        body_format=choice(entry, "format", path, BodyFormat) or BodyFormat.PLAIN,
    )


def is_listed(url: str, hosts: Sequence[str]) -> bool:
    """Whether a URL's host is listed. An entry is a host or `*.domain`, with a port or for all ports."""
    from urllib.parse import urlsplit  # lazy: few hooks are HTTP hooks

    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    return any(_is_entry_for(host, port, entry.strip().lower()) for entry in hosts)


def _is_entry_for(host: str, port: int, entry: str) -> bool:
    name, colon, number = entry.rpartition(":")
    if colon and number.isdigit() and (":" not in name or name.endswith("]")):
        if int(number) != port:
            return False
        entry = name
    entry = entry.removeprefix("[").removesuffix("]")
    return host.endswith(entry[1:]) and host != entry[2:] if entry.startswith("*.") else host == entry


def _url_problem(url: str) -> str:
    from urllib.parse import urlsplit  # lazy: few hooks are HTTP hooks

    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return f'"{url}" is not a URL; expected something like https://policy.example.com/decide'
    if parts.username is not None:
        return "must not contain a user and password; put them in headers, using a variable listed in httpHooks.env"
    if not usable or not url.isascii() or any(ord(character) <= 32 for character in url):
        return f'"{url}" is not a URL; expected something like https://policy.example.com/decide'
    return ""


def _header(name: str, value: object, path: Path) -> tuple[str, str]:
    if not _HEADER.fullmatch(name):
        raise BrokenError(path, "is not a valid header name")
    if name.lower() in _OURS:
        raise BrokenError(path, "is set by the agent and cannot be overridden")
    if not isinstance(value, str):
        raise BrokenError(path, f"must be a string, not {type_name(value)}")
    if not _HEADER_VALUE.fullmatch(value):
        raise BrokenError(path, "has characters that are not allowed in a header")
    return name, value


def _mcp_tool(entry: Mapping[str, Any], path: Path) -> RunFields:
    server, tool = _filled(entry, "server", path), _filled(entry, "tool", path)
    given = entry.get("input")
    if given is not None and not isinstance(given, Mapping):
        raise BrokenError((*path, "input"), f"must be an object, not {type_name(given)}")
    values = cast(Mapping[str, Any], given or {})
    return RunFields(
        kind=HookKind.MCP_TOOL,
        command=f"{server}/{tool}",
        call=ServerCall(server, tool, json.dumps(values, ensure_ascii=False)),
    )


def _prompt(kind: HookKind) -> Callable[[Mapping[str, Any], Path], RunFields]:
    def read(entry: Mapping[str, Any], path: Path) -> RunFields:
        model = entry.get("model")
        if model is not None and not isinstance(model, str):
            raise BrokenError((*path, "model"), f"must be a string, not {type_name(model)}")
        return RunFields(kind=kind, command=_filled(entry, "prompt", path), model=(model or "").strip())

    return read


class _KindRow(Struct, frozen=True):
    main: str
    noun: str
    read: Callable[[Mapping[str, Any], Path], RunFields]
    timeout: float | None = None
    """Default timeout in seconds. None: the event's."""


_ROWS: Mapping[HookKind, _KindRow] = {
    HookKind.COMMAND: _KindRow("command", "command", _command),
    HookKind.FUNCTION: _KindRow("function", "function", _function),
    HookKind.PYTHON: _KindRow("target", "target", _python),
    HookKind.HTTP: _KindRow("url", "url", _http),
    HookKind.MCP_TOOL: _KindRow("tool", "tool", _mcp_tool),
    HookKind.PROMPT: _KindRow("prompt", "prompt", _prompt(HookKind.PROMPT), timeout=30),
    HookKind.AGENT: _KindRow("prompt", "prompt", _prompt(HookKind.AGENT), timeout=60),
}


def usual_timeout(kind: HookKind, event: float) -> float:
    """The default timeout of a hook, whose event has this one."""
    row = _ROWS.get(kind)
    return event if row is None or row.timeout is None else row.timeout


Word = TypeVar("Word", bound=StrEnum)


def choice(entry: Mapping[str, Any], key: str, path: Path, words: type[Word]) -> Word | None:
    """The value of a key that must be one of these words; None if it is absent."""
    value = entry.get(key)
    if value is None:
        return None
    known = [word.value for word in words]
    if value not in known:
        hint = did_you_mean(value, known) if isinstance(value, str) else ""
        shown = f'"{value}"' if isinstance(value, str) else type_name(value)
        raise BrokenError((*path, key), f"{shown} is not valid{hint}; expected one of {', '.join(known)}")
    return words(value)


def _filled(entry: Mapping[str, Any], key: str, path: Path) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value.strip():
        raise BrokenError(path, f'needs a "{key}"')
    return value.strip()


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in cast(list[object], value))
