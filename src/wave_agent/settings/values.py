"""The settings for which the last layer wins: their keys, what each accepts, and who may set it."""

import os
from collections.abc import Callable, Mapping
from typing import Any, cast

from msgspec import Struct

from wave_agent.formats.strict_json import Path as Where
from wave_agent.formats.strict_json import type_name
from wave_agent.models.apis import APIS
from wave_agent.models.limits import LIMIT_KEYS
from wave_agent.models.prices import PRICED
from wave_agent.models.profiles import Profile
from wave_agent.permissions.decision import NOT_LOOSER, PermissionMode
from wave_agent.system.real_files import resolve
from wave_agent.text import did_you_mean


class WrongValueError(Exception):
    """This value cannot be used. `inside` is the place within it, if only a part is wrong."""

    def __init__(self, message: str, inside: Where = ()) -> None:
        super().__init__(message)
        self.inside = inside


def read_text(value: Any) -> str:
    if not isinstance(value, str):
        raise WrongValueError(f"must be a string, not {type_name(value)}")
    return value


def _read_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise WrongValueError(f"must be true or false, not {type_name(value)}")
    return value


def _read_receiver(value: Any) -> str:
    """Empty: none."""
    url = read_text(value)
    if url and not url.startswith(("http://", "https://")):
        raise WrongValueError(f'"{url}" is not a URL; expected something like http://localhost:4318')
    return url


def _read_count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise WrongValueError(
            f"must be a whole number, 0 or more, not {value if isinstance(value, int) else type_name(value)}"
        )
    return value


def _read_texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise WrongValueError(f"must be a list of strings, not {type_name(value)}")
    return tuple(read_text(item) for item in cast(list[Any], value))


def _read_network(value: Any) -> bool | tuple[str, ...]:
    if isinstance(value, bool):
        return value
    if not isinstance(value, list):
        raise WrongValueError(f"must be true, false or a list of hosts, not {type_name(value)}")
    from wave_agent.permissions.hosts import parse_entry  # lazy: few settings have such a list

    entries: list[str] = []
    for index, item in enumerate(cast(list[Any], value)):
        try:
            entries.append(parse_entry(read_text(item)).text)
        except (ValueError, WrongValueError) as error:
            raise WrongValueError(str(error), (index,)) from None
    return tuple(dict.fromkeys(entries))


def _read_directories(value: Any) -> tuple[str, ...]:
    found = _read_texts(value)
    for index, text in enumerate(found):
        try:
            resolve(os.path.expanduser(text))
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise WrongValueError(f"cannot be a directory: {why}", (index,)) from None
    return found


def read_object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise WrongValueError(f"must be an object, not {type_name(value)}")
    return cast(Mapping[str, Any], value)


def read_model(value: Any) -> Mapping[str, Any]:
    """The settings of one model."""
    facts = read_object(value)
    window = facts.get("contextWindow", 1)
    if not isinstance(window, int) or isinstance(window, bool) or window < 1:
        raise WrongValueError(f"must be a number of tokens, not {window!r}", ("contextWindow",))
    for key in (*LIMIT_KEYS, "maxOutputTokens"):
        limit = facts.get(key, 1)
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            raise WrongValueError(f"must be a whole number, 1 or more, not {limit!r}", (key,))
    if not isinstance(facts.get("images", False), bool):
        raise WrongValueError(f"must be true or false, not {facts['images']!r}", ("images",))
    if "api" in facts:
        try:
            _read_api(facts["api"])
        except WrongValueError as error:
            raise WrongValueError(str(error), ("api",)) from None
    profiles = [one.value for one in Profile]
    if facts.get("profile", profiles[0]) not in profiles:
        raise WrongValueError(f"must be one of {', '.join(profiles)}, not {facts['profile']!r}", ("profile",))
    _read_prices(facts.get("prices", {}))
    return facts


def _read_api(value: Any) -> str:
    if value not in APIS:
        hint = did_you_mean(value, APIS) if isinstance(value, str) else ""
        raise WrongValueError(f"{value!r} is not an API{hint}; expected one of {', '.join(APIS)}")
    return value


def _read_prices(value: Any) -> None:
    """US dollars per million tokens, by kind."""
    if not isinstance(value, Mapping):
        raise WrongValueError(f"must be an object, not {type_name(value)}", ("prices",))
    for kind, price in cast(Mapping[str, Any], value).items():
        if kind not in PRICED or not isinstance(price, int | float) or isinstance(price, bool) or price < 0:
            raise WrongValueError(
                f"takes a price for each of {', '.join(PRICED)}, not {kind} {price!r}", ("prices", kind)
            )


def _read_mode(value: Any) -> PermissionMode:
    known = [mode.value for mode in PermissionMode]
    if value not in known:
        hint = did_you_mean(value, known) if isinstance(value, str) else ""
        raise WrongValueError(f"{value!r} is not a permission mode{hint}; expected one of {', '.join(known)}")
    return PermissionMode(value)


Reader = Callable[[Any], Any]


_Joined = Callable[[Any, Any], Any]
"""(value of an outer project directory, value of one below it) → the value used there."""


def _inner_wins(_: Any, inner: Any) -> Any:
    return inner


def _outer_stays(outer: Any, _: Any) -> Any:
    return outer


def _either(outer: Any, inner: Any) -> Any:
    return outer or inner


def _narrower_network(outer: bool | tuple[str, ...], inner: bool | tuple[str, ...]) -> bool | tuple[str, ...]:
    from wave_agent.permissions.hosts import narrower  # lazy: few settings have such a list

    return narrower(outer, inner)


def _stricter_mode(outer: PermissionMode, inner: PermissionMode) -> PermissionMode:
    return inner if inner in NOT_LOOSER[outer] else outer


def _all_of(outer: tuple[str, ...], inner: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*outer, *inner)))


SCHEMAS: Mapping[Reader, Mapping[str, Any]] = {
    read_text: {"type": "string"},
    _read_receiver: {"type": "string"},
    _read_flag: {"type": "boolean"},
    _read_count: {"type": "integer", "minimum": 0},
    _read_texts: {"type": "array", "items": {"type": "string"}},
    _read_directories: {"type": "array", "items": {"type": "string"}},
    _read_network: {"type": ["boolean", "array"], "items": {"type": "string"}},
    _read_mode: {"enum": [mode.value for mode in PermissionMode]},
    _read_api: {"enum": [*APIS]},
    read_model: {
        "type": "object",
        "properties": {
            "contextWindow": {"type": "integer", "minimum": 1},
            "images": {"type": "boolean"},
            "api": {"enum": [*APIS]},
            "profile": {"enum": [one.value for one in Profile]},
            **{key: {"type": "integer", "minimum": 1} for key in (*LIMIT_KEYS, "maxOutputTokens")},
            "prices": {"type": "object", "properties": {kind: {"type": "number", "minimum": 0} for kind in PRICED}},
        },
    },
}
"""The JSON Schema of what each reader accepts."""


MODEL_SCHEMA = SCHEMAS[read_model]


class Value(Struct, frozen=True):
    """A setting for which the last layer wins."""

    section: str
    """The object it belongs to; empty at the top level."""
    key: str
    name: str
    """The field of `Settings`."""
    reader: Reader
    meaning: str
    adds_up: bool = False
    """The values of all layers are combined."""
    managed_only: bool = False
    """Only the managed layer can set it."""
    not_the_project: bool = False
    """Only the user's own settings and managed ones can set it."""
    below: _Joined = _inner_wins
    """How settings of an inner project directory may change it: they cannot remove a guard."""
    unreadable: Any = None
    """Used in place of a value that cannot be read, which may have been meant to restrict. None: it is skipped."""


VALUES = (
    Value("", "model", "model", read_text, "the model to use; `--model` and `WAVE_MODEL` take precedence"),
    Value("", "baseUrl", "base_url", read_text, "the endpoint; `--base-url` and `WAVE_BASE_URL` take precedence"),
    Value("", "api", "api", _read_api,
          "how the endpoint is spoken to; `--api` and `WAVE_API` take precedence, else the URL or the server decides"),
    Value("", "apiKeyHelper", "api_key_helper", read_text,
          "a shell command that prints the key, if no variable holds one; run again when the server refuses that key",
          not_the_project=True),
    Value("", "hookModel", "hook_model", read_text,
          "the model that `prompt` and `agent` hooks ask, on the same server; else the session's",
          not_the_project=True),
    Value("", "maxStopBlocks", "max_stop_blocks", _read_count,
          "how often in a row Stop hooks can keep the agent from stopping; 0 means no limit"),
    Value("", "strictHooks", "strict_hooks", _read_flag, "every hook failure blocks, as with `--strict-hooks`",
          below=_either),
    Value("", "allowManagedHooksOnly", "managed_hooks_only", _read_flag, "only managed hooks run", managed_only=True),
    Value("", "disableAllHooks", "all_hooks_disabled", _read_flag,
          "no hooks run: in your settings yours and the project's, in other files only those of the file; managed ones "
          "always run, unless managed settings say this"),
    Value("", "cleanupPeriodDays", "cleanup_days", _read_count,
          "your sessions unused for this many days are deleted, of all projects; 0 keeps all: see "
          "[sessions.md](sessions.md#deleting-old-sessions)", not_the_project=True),
    Value("sessions", "identity", "record_identity", _read_flag,
          "record user, host name and repository in a session's first line: see "
          "[sessions.md](sessions.md#who-and-where)"),
    Value("sessions", "upload", "upload", read_text,
          "where finished sessions are sent to: see [sessions.md](sessions.md#collecting-sessions-of-a-team)",
          not_the_project=True),
    Value("compat", "claude", "compat_claude", _read_flag,
          "use hooks and rules in `.claude/` and `.codex/` in place: see [compat.md](compat.md)",
          below=_either),
    Value("httpHooks", "hosts", "http_hosts", _read_texts,
          "the hosts that `http` hooks may call: `policy.example.com`, `localhost:8181`, `*.example.com`",
          below=_all_of),
    Value("httpHooks", "env", "http_env", _read_texts, "the environment variables that `http` hook headers may use",
          below=_all_of),
    Value("sandbox", "network", "sandbox_network", _read_network,
          "with `--sandbox`: whether commands can reach the network, or the hosts that they can reach: "
          '`["api.example.com", "*.example.org"]`', below=_narrower_network, unreadable=False),
    Value("telemetry", "endpoint", "telemetry_endpoint", _read_receiver,
          "where spans and metrics go, with OTLP over HTTP: `http://localhost:4318`; see [telemetry.md](telemetry.md)",
          not_the_project=True),
    Value("telemetry", "content", "telemetry_content", _read_flag,
          "also send prompts, answers, and the inputs and results of tools, with secrets masked",
          not_the_project=True),
    Value("permissions", "defaultMode", "default_mode", _read_mode,
          "the permission mode; `--permission-mode` takes precedence", below=_stricter_mode),
    Value("permissions", "additionalDirectories", "additional_directories", _read_directories,
          "directories to treat as part of the project", adds_up=True, below=_outer_stays),
)  # fmt: skip


SECTIONS = ("permissions", "compat", "httpHooks", "sandbox", "sessions", "telemetry", "env", "models")


_FREE = ("env", "models")
"""Sections whose keys are names chosen by the user."""


RULE_KINDS = ("deny", "ask", "allow")


PERMISSION_KEYS = (*(value.key for value in VALUES if value.section == "permissions"), *RULE_KINDS)
SECTION_KEYS: Mapping[str, tuple[str, ...] | None] = {
    **{section: tuple(value.key for value in VALUES if value.section == section) for section in SECTIONS},
    **dict.fromkeys(_FREE),
    "permissions": PERMISSION_KEYS,
}
"""None: any key is accepted."""
MCP_KEYS = (
    *("mcpServers", "allowedMcpServers", "deniedMcpServers", "allowManagedMcpServersOnly"),
    *("enabledMcpjsonServers", "disabledMcpjsonServers", "enableAllProjectMcpServers"),
)
"""Settings about MCP servers: `mcp_keys` explains them, and `wave_agent.mcp` reads them, in sessions that have any."""


KEYS = ("hooks", "$schema", *SECTIONS, *(value.key for value in VALUES if not value.section), *MCP_KEYS)
"""Every top-level key, for messages and the schema."""
