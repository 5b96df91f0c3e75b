"""The layers of settings → one `Settings`.

Hooks and permission rules of all layers add up, as does `env` (by key); otherwise the last layer that sets a value
wins, and managed settings cannot be overridden. Within a project the inner directory wins, but it cannot loosen.
"""

import json
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import fields, replace

from wave_agent.errors import SettingsError
from wave_agent.formats.readable import why_unreadable
from wave_agent.formats.strict_json import Path as Where
from wave_agent.formats.strict_json import type_name
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.dialects import Dialect
from wave_agent.hooks.execution import HookKind
from wave_agent.hooks.kinds import header_variables, is_listed
from wave_agent.hooks.matcher import KNOWN_TOOLS
from wave_agent.models.apis import APIS
from wave_agent.models.limits import LIMIT_KEYS
from wave_agent.models.prices import PRICED
from wave_agent.models.profiles import Profile
from wave_agent.permissions.decision import NOT_LOOSER, PermissionMode, Rules
from wave_agent.rules.rule import NET, Rule, RuleError, below, parse_rule
from wave_agent.settings.hook_entries import (
    HookConfig,
    Issue,
    SettingsSource,
    in_configuration_order,
    load_hooks,
    parse_settings,
)
from wave_agent.system.credentials import is_own
from wave_agent.system.project import Project
from wave_agent.system.project_files import NotReadError, read_project_file
from wave_agent.system.real_files import resolve, resolve_or_keep
from wave_agent.text import did_you_mean


class Settings(Struct, frozen=True, kw_only=True):
    """The merged settings of all layers."""

    hooks: HookConfig = HookConfig()
    env: Mapping[str, str] = {}
    rules: Rules = Rules()
    default_mode: PermissionMode = PermissionMode.DEFAULT
    additional_directories: tuple[str, ...] = ()
    model: str | None = None
    base_url: str | None = None
    api: str | None = None
    api_key_helper: str | None = None
    hook_model: str | None = None
    models: Mapping[str, Mapping[str, Any]] = {}
    max_stop_blocks: int = 8
    strict_hooks: bool = False
    compat_claude: bool | None = None
    http_hosts: tuple[str, ...] = ()
    http_env: tuple[str, ...] = ()
    managed_hooks_only: bool = False
    all_hooks_disabled: bool = False
    """What the last layer says. Which hooks that concerns depends on the layer: see `disabled_hooks`."""
    cleanup_days: int = 30
    record_identity: bool = True
    managed: frozenset[str] = frozenset()
    """The names of the fields above set by managed settings: neither flags nor environment override them."""
    upload: str | None = None
    """Where finished sessions are uploaded to."""
    sandbox_network: bool | tuple[str, ...] = False
    """Or the hosts that commands can reach."""
    telemetry_endpoint: str | None = None
    telemetry_content: bool = False
    issues: tuple[Issue, ...] = ()

    def require_usable(self) -> None:
        """Raises `SettingsError` if starting would drop a guard that must not be dropped."""
        fatal = [str(issue) for issue in self.issues if issue.fatal]
        if fatal:
            raise SettingsError("These settings are invalid and must not be skipped; fix them first:", fatal)


def merge_settings(sources: Iterable[SettingsSource], *, strict: bool = False) -> Settings:
    """Never raises: problems are collected as issues. `strict` is `--strict-hooks`."""
    ordered = in_configuration_order(sources)
    layered = _layered(ordered)
    strict = strict or layered.values.get("strict_hooks", False)
    with_hooks = ordered
    if layered.values.get("managed_hooks_only"):
        with_hooks = [source for source in ordered if source.layer is Layer.MANAGED]
    hooks = load_hooks(with_hooks, strict=strict)
    rules = Rules(deny=tuple(layered.deny), ask=tuple(layered.ask), allow=tuple(layered.allow))
    values: dict[str, Any] = {**layered.values, "strict_hooks": strict}
    return Settings(
        **values,
        hooks=hooks,
        env=layered.env,
        models=layered.models,
        managed=frozenset(layered.managed),
        rules=rules,
        issues=(
            *hooks.issues,
            *_unlisted(hooks, values.get("http_hosts", ()), values.get("http_env", ()), layered.managed),
            *layered.issues,
        ),
    )


def wants_managed_hooks_only(sources: Iterable[SettingsSource]) -> bool:
    return bool(_layered(in_configuration_order(sources)).values.get("managed_hooks_only"))


def wants_foreign(sources: Iterable[SettingsSource]) -> bool | None:
    """Whether these settings enable hooks of other agents. None: not set."""
    stated = [source for source in sources if "compat" in source.document.value]
    return _layered(in_configuration_order(stated)).values.get("compat_claude")


def _layered(ordered: Iterable[SettingsSource]) -> "_Merge":
    """Managed settings are applied last, so that nothing overrides them."""
    layered = _Merge()
    for source in sorted(ordered, key=lambda source: source.layer is Layer.MANAGED):
        layered.add(source)
    return layered


def _unlisted(
    hooks: HookConfig, hosts: Sequence[str], variables: Sequence[str], managed: Collection[str]
) -> Iterator[Issue]:
    """Hooks that would always fail. One for another agent needs no entry, unless managed settings restrict it."""
    for hook in hooks.hooks:
        found: list[tuple[Where, str]] = []
        anywhere = hook.columns.names_its_services and "http_hosts" not in managed
        if hook.kind is HookKind.HTTP and not anywhere and not is_listed(hook.command, hosts):
            found.append((("url",), "its host is not listed in httpHooks.hosts"))
        for header, value in hook.headers:
            named = header_variables(value)
            known = named if hook.columns.names_its_services and "http_env" not in managed else variables
            unknown = [f"${name}" for name in named if name not in known or is_own(name)]
            if unknown:
                why = "is not listed in httpHooks.env, or is one of the agent's own keys"
                found.append((("headers", header), f"{unknown[0]} {why}"))
        for inside, reason in found:
            message = f"{reason}, so the hook cannot run"
            yield Issue(source=hook.source, path=(*hook.path, *inside), line=hook.line, message=message, broken=False)


SourceName: TypeAlias = Literal["managed", "user", "project", "local"]
"""One of `DEFAULT_SOURCES`, as users write it."""
DEFAULT_SOURCES = (Layer.MANAGED, Layer.USER, Layer.PROJECT, Layer.LOCAL)
OF_THE_PROJECT = (Layer.PROJECT, Layer.LOCAL)
"""Layers that come with a project: used only if it is trusted."""
MANAGED_FILE = Path("/etc/wave/settings.json")
OWN_FILES: Mapping[str, Layer] = {".wave/settings.json": Layer.PROJECT, ".wave/settings.local.json": Layer.LOCAL}
"""In each directory of a project."""


LARGEST_FILE = 4 << 20
"""Bytes of a settings file."""


def settings_files(home: Path, project_dir: str) -> Mapping[Layer, Path]:
    """The settings file of each layer."""
    project = Path(project_dir) / ".wave"
    return {
        Layer.MANAGED: MANAGED_FILE,
        Layer.USER: home / "settings.json",
        Layer.PROJECT: project / "settings.json",
        Layer.LOCAL: project / "settings.local.json",
    }


class LayerFile(Struct, frozen=True):
    """A file that may contain settings of a project."""

    layer: Layer
    file: Path
    inner: str = ""
    """The directory it applies to, if that is below the project's root."""
    root: str = "/"
    """Real path of the directory it must not lead out of: the project, for a project's file."""


def project_places(home: Path, project: Project, names: Mapping[str, Layer] | None = None) -> tuple[LayerFile, ...]:
    """The places where a project may have settings, or files with these `names`; outermost directory first.

    If a directory's `.wave` is the agent's own state, it holds no project settings.
    """
    wanted = OWN_FILES if names is None else names
    is_state = _state_test(home)
    return tuple(
        LayerFile(layer, file, inner, project.root)
        for level, inner in zip(project.levels, project.inner, strict=True)
        for name, layer in wanted.items()
        if not is_state(file := Path(level) / name)
    )


class ExtensionKind(StrEnum):
    """What a directory of settings may hold besides settings, each kind in a directory of its name."""

    AGENTS = "agents"
    SKILLS = "skills"
    COMMANDS = "commands"


class ExtensionPlace(Struct, frozen=True):
    """A directory with agents, skills or commands."""

    kind: ExtensionKind
    directory: str
    layer: Layer
    dialect: Dialect = Dialect.WAVE
    inner: str = ""
    """The directory of the project it belongs to, if that is below the project's root."""
    root: str = "/"
    """Real path of the directory it must not lead out of: the project, for a project's place."""


def extension_places(
    home: Path, project: Project, layers: Collection[Layer], claude_home: Path | None
) -> tuple[ExtensionPlace, ...]:
    """Those that exist, the ones that win over others first: the user's, then the project's, innermost directory first.

    `claude_home` is the user's directory for another agent, if what is in there and in `.claude` is used.
    """
    bases: list[tuple[Path, Layer, Dialect, str, str]] = []
    if Layer.USER in layers:
        bases.append((home, Layer.USER, Dialect.WAVE, "", "/"))
        bases += [(claude_home, Layer.USER, Dialect.CLAUDE, "", "/")] if claude_home is not None else []
    if Layer.PROJECT in layers:
        names = {".wave": Dialect.WAVE, **({".claude": Dialect.CLAUDE} if claude_home is not None else {})}
        for level, inner in zip(reversed(project.levels), reversed(project.inner), strict=True):
            bases += [(Path(level) / name, Layer.PROJECT, one, inner, project.root) for name, one in names.items()]
    users = {resolve_or_keep(str(one)) for one in (home, *([claude_home] if claude_home is not None else []))}
    return tuple(
        ExtensionPlace(kind, os.path.join(base, kind), layer, dialect, inner, root)
        for base, layer, dialect, inner, root in bases
        if os.path.isdir(base) and (layer is Layer.USER or resolve_or_keep(str(base)) not in users)
        for kind in ExtensionKind
        if os.path.isdir(os.path.join(base, kind))
    )


def has_settings(directory: str, home: Path, names: Iterable[str]) -> bool:
    """Whether one of these files exists. True as well if one cannot be checked; reading it reports the problem."""
    is_state = _state_test(home)
    return any(_may_exist(file := Path(directory) / name) and not is_state(file) for name in names)


def _state_test(home: Path) -> Callable[[Path], bool]:
    """Whether a file is in the agent's own directory. Each directory is resolved once: a start asks for many files."""
    real = cache(resolve_or_keep)
    return lambda file: real(str(file.parent)) == real(str(home))


def _may_exist(file: Path) -> bool:
    """True for a dangling link as well: its author meant settings to be there."""
    try:
        os.stat(file)
    except (FileNotFoundError, NotADirectoryError):
        return os.path.islink(file) or (os.path.lexists(file.parent) and not os.path.isdir(file.parent))
    except OSError:
        return True
    return True


def read_place(place: LayerFile) -> SettingsSource | None:
    """The settings there, if there are any. Raises `SettingsError`."""
    found = read_source(place.layer, place.file, place.root)
    return None if found is None else replace(found, inner=place.inner)


def read_source(layer: Layer, file: Path, root: str = "/") -> SettingsSource | None:
    """The settings in this file, if it exists. Never reads outside `root`. Raises `SettingsError`: a file that exists
    but cannot be read may have held guards."""

    def check(_real: str, facts: os.stat_result) -> None:
        if layer is Layer.MANAGED:
            _require_sound_place(facts, file)

    try:
        content = read_project_file(str(file), root, LARGEST_FILE, denied=check)
        if content is None:
            if os.path.islink(file) or (layer is not Layer.USER and _may_exist(file)):
                raise NotReadError("cannot be read: it or its directory is a dangling link, or not a directory")
            return None
        text = content.decode()
    except NotReadError as error:
        raise SettingsError(f"{file} {error}.") from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file}: not valid JSON: not UTF-8 ({error.reason} at byte {error.start})") from None
    return parse_settings(text, layer, str(file))


def read_managed(file: Path, added: str | None) -> list[SettingsSource]:
    """The managed settings: the system's file and its drop-ins, and one file `added` to them.

    The added one comes first, so the system's values win. Of the system's, a drop-in wins over the file and over
    drop-ins before it.
    """
    found: list[SettingsSource | None] = []
    if added:
        more = read_source(Layer.MANAGED, Path(added).absolute())
        if more is None:
            raise SettingsError(f"Managed settings file not found: {added} (named by WAVE_MANAGED_SETTINGS).")
        found.append(more)
    found += [read_source(Layer.MANAGED, one) for one in managed_files(file)]
    return [source for source in found if source is not None]


def drop_ins(file: Path) -> Path:
    """The directory of the files that are read after this managed one."""
    return file.with_suffix(".d")


def managed_files(file: Path) -> tuple[Path, ...]:
    """The system's settings file, whether it exists or not, and the `*.json` in `settings.d` beside it, by name.

    Raises `SettingsError` if the directory is there and cannot be listed: it may hold guards."""
    directory = drop_ins(file)
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        if os.path.islink(directory):
            raise SettingsError(f"{directory} is a dangling link.") from None
        return (file,)
    except OSError as error:
        raise SettingsError(f"{directory} cannot be listed: {error.strerror}.") from None
    return (file, *(directory / name for name in names if name.endswith(".json") and not name.startswith(".")))


def require_sound_owner(descriptor: int, file: Path, *, levels: int | None = None) -> None:
    """Raises `SettingsError` if anyone but root or the running user could have written or replaced this file, which
    includes anyone who can write to a directory above it. `levels`: check only this many directories."""
    _require_sound_place(os.fstat(descriptor), file, levels)


def _require_sound_place(facts: os.stat_result, file: Path, levels: int | None = None) -> None:
    _require_sound(str(file), facts)
    written, real = Path(os.path.abspath(file)), Path(os.path.realpath(file))
    for directory in dict.fromkeys((*list(written.parents)[:levels], *list(real.parents)[:levels])):
        _require_sound(str(directory), os.stat(directory))


def _require_sound(name: str, facts: os.stat_result) -> None:
    if facts.st_uid not in (0, os.geteuid()):
        raise SettingsError(f"{name} is owned by user {facts.st_uid}, not by root or you, so it is not trusted.")
    # In a sticky directory only the owner of a file can remove it.
    sticky = stat.S_ISDIR(facts.st_mode) and facts.st_mode & stat.S_ISVTX
    if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not sticky:
        raise SettingsError(f"{name} is writable by other users, so it is not trusted: chmod go-w {name}")


def without_hooks(source: SettingsSource) -> SettingsSource:
    return source.with_settings({key: value for key, value in source.document.value.items() if key != "hooks"})


def without_servers(source: SettingsSource) -> SettingsSource:
    """Without what is about MCP servers: see `Gathered.mcp`."""
    settings = cast(Mapping[str, Any], source.document.value)
    if settings.keys().isdisjoint(MCP_KEYS):
        return source
    return source.with_settings({key: value for key, value in settings.items() if key not in MCP_KEYS})


RESTRICTIONS = ("deny", "ask")
"""The rules that apply no matter who sets them."""


def only_restrictions(source: SettingsSource, *, keep_hooks: bool = False) -> tuple[SettingsSource, tuple[str, ...]]:
    """The part an untrusted project may set: deny and ask rules. Also returns the names of the dropped settings.

    `keep_hooks`: its hooks, and only they, are trusted. Unknown keys stay: they are reported when the settings are
    merged, since a misspelt `hooks` is a missing guard that trust would not bring back.
    """
    settings = cast(Mapping[str, Any], source.document.value)
    permissions: Any = settings.get("permissions")
    rules: Mapping[str, Any] = cast(Mapping[str, Any], permissions) if isinstance(permissions, Mapping) else {}
    misspelt = [key for key in rules if key not in _PERMISSION_KEYS]
    restrictions: Any = {key: rules[key] for key in (*RESTRICTIONS, *misspelt) if key in rules}
    if permissions is not None and not isinstance(permissions, Mapping):
        restrictions = permissions  # reported as invalid when the settings are merged
    kept = {"permissions": restrictions, **{key: value for key, value in settings.items() if key not in KEYS}}
    if keep_hooks and "hooks" in settings:
        kept["hooks"] = settings["hooks"]
    dropped = [key for key in settings if key not in (*kept, "$schema") and not key.startswith("//")]
    dropped += [f"permissions.{key}" for key in rules if key not in restrictions]
    return source.with_settings(kept), tuple(dropped)


class _WrongError(Exception):
    """This value cannot be used. `inside` is the place within it, if only a part is wrong."""

    def __init__(self, message: str, inside: Where = ()) -> None:
        super().__init__(message)
        self.inside = inside


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _WrongError(f"must be a string, not {type_name(value)}")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _WrongError(f"must be true or false, not {type_name(value)}")
    return value


def _receiver(value: Any) -> str:
    """Empty: none."""
    url = _text(value)
    if url and not url.startswith(("http://", "https://")):
        raise _WrongError(f'"{url}" is not a URL; expected something like http://localhost:4318')
    return url


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _WrongError(
            f"must be a whole number, 0 or more, not {value if isinstance(value, int) else type_name(value)}"
        )
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _WrongError(f"must be a list of strings, not {type_name(value)}")
    return tuple(_text(item) for item in cast(list[Any], value))


def _network(value: Any) -> bool | tuple[str, ...]:
    if isinstance(value, bool):
        return value
    if not isinstance(value, list):
        raise _WrongError(f"must be true, false or a list of hosts, not {type_name(value)}")
    from wave_agent.permissions.hosts import parse_entry  # lazy: few settings have such a list

    entries: list[str] = []
    for index, item in enumerate(cast(list[Any], value)):
        try:
            entries.append(parse_entry(_text(item)).text)
        except (ValueError, _WrongError) as error:
            raise _WrongError(str(error), (index,)) from None
    return tuple(dict.fromkeys(entries))


def _directories(value: Any) -> tuple[str, ...]:
    found = _texts(value)
    for index, text in enumerate(found):
        try:
            resolve(os.path.expanduser(text))
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise _WrongError(f"cannot be a directory: {why}", (index,)) from None
    return found


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _WrongError(f"must be an object, not {type_name(value)}")
    return cast(Mapping[str, Any], value)


def _model(value: Any) -> Mapping[str, Any]:
    """The settings of one model."""
    facts = _object(value)
    window = facts.get("contextWindow", 1)
    if not isinstance(window, int) or isinstance(window, bool) or window < 1:
        raise _WrongError(f"must be a number of tokens, not {window!r}", ("contextWindow",))
    for key in (*LIMIT_KEYS, "maxOutputTokens"):
        limit = facts.get(key, 1)
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            raise _WrongError(f"must be a whole number, 1 or more, not {limit!r}", (key,))
    if not isinstance(facts.get("images", False), bool):
        raise _WrongError(f"must be true or false, not {facts['images']!r}", ("images",))
    if "api" in facts:
        try:
            _api(facts["api"])
        except _WrongError as error:
            raise _WrongError(str(error), ("api",)) from None
    profiles = [one.value for one in Profile]
    if facts.get("profile", profiles[0]) not in profiles:
        raise _WrongError(f"must be one of {', '.join(profiles)}, not {facts['profile']!r}", ("profile",))
    _prices(facts.get("prices", {}))
    return facts


def _api(value: Any) -> str:
    if value not in APIS:
        hint = did_you_mean(value, APIS) if isinstance(value, str) else ""
        raise _WrongError(f"{value!r} is not an API{hint}; expected one of {', '.join(APIS)}")
    return value


def _prices(value: Any) -> None:
    """US dollars per million tokens, by kind."""
    if not isinstance(value, Mapping):
        raise _WrongError(f"must be an object, not {type_name(value)}", ("prices",))
    for kind, price in cast(Mapping[str, Any], value).items():
        if kind not in PRICED or not isinstance(price, int | float) or isinstance(price, bool) or price < 0:
            raise _WrongError(f"takes a price for each of {', '.join(PRICED)}, not {kind} {price!r}", ("prices", kind))


def _mode(value: Any) -> PermissionMode:
    known = [mode.value for mode in PermissionMode]
    if value not in known:
        hint = did_you_mean(value, known) if isinstance(value, str) else ""
        raise _WrongError(f"{value!r} is not a permission mode{hint}; expected one of {', '.join(known)}")
    return PermissionMode(value)


_Reader = Callable[[Any], Any]
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


SCHEMAS: Mapping[_Reader, Mapping[str, Any]] = {
    _text: {"type": "string"},
    _receiver: {"type": "string"},
    _flag: {"type": "boolean"},
    _count: {"type": "integer", "minimum": 0},
    _texts: {"type": "array", "items": {"type": "string"}},
    _directories: {"type": "array", "items": {"type": "string"}},
    _network: {"type": ["boolean", "array"], "items": {"type": "string"}},
    _mode: {"enum": [mode.value for mode in PermissionMode]},
    _api: {"enum": [*APIS]},
    _model: {
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
MODEL_SCHEMA = SCHEMAS[_model]


class Value(Struct, frozen=True):
    """A setting for which the last layer wins."""

    section: str
    """The object it belongs to; empty at the top level."""
    key: str
    name: str
    """The field of `Settings`."""
    reader: _Reader
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
    Value("", "model", "model", _text, "the model to use; `--model` and `WAVE_MODEL` take precedence"),
    Value("", "baseUrl", "base_url", _text, "the endpoint; `--base-url` and `WAVE_BASE_URL` take precedence"),
    Value("", "api", "api", _api,
          "how the endpoint is spoken to; `--api` and `WAVE_API` take precedence, else the URL or the server decides"),
    Value("", "apiKeyHelper", "api_key_helper", _text,
          "a shell command that prints the key, if no variable holds one; run again when the server refuses that key",
          not_the_project=True),
    Value("", "hookModel", "hook_model", _text,
          "the model that `prompt` and `agent` hooks ask, on the same server; else the session's",
          not_the_project=True),
    Value("", "maxStopBlocks", "max_stop_blocks", _count,
          "how often in a row Stop hooks can keep the agent from stopping; 0 means no limit"),
    Value("", "strictHooks", "strict_hooks", _flag, "every hook failure blocks, as with `--strict-hooks`",
          below=_either),
    Value("", "allowManagedHooksOnly", "managed_hooks_only", _flag, "only managed hooks run", managed_only=True),
    Value("", "disableAllHooks", "all_hooks_disabled", _flag,
          "no hooks run: in your settings yours and the project's, in other files only those of the file; managed ones "
          "always run, unless managed settings say this"),
    Value("", "cleanupPeriodDays", "cleanup_days", _count,
          "your sessions unused for this many days are deleted, of all projects; 0 keeps all: see "
          "[sessions.md](sessions.md#deleting-old-sessions)", not_the_project=True),
    Value("sessions", "identity", "record_identity", _flag,
          "record user, host name and repository in a session's first line: see "
          "[sessions.md](sessions.md#who-and-where)"),
    Value("sessions", "upload", "upload", _text,
          "where finished sessions are sent to: see [sessions.md](sessions.md#collecting-sessions-of-a-team)",
          not_the_project=True),
    Value("compat", "claude", "compat_claude", _flag,
          "use hooks and rules in `.claude/` and `.codex/` in place: see [compat.md](compat.md)",
          below=_either),
    Value("httpHooks", "hosts", "http_hosts", _texts,
          "the hosts that `http` hooks may call: `policy.example.com`, `localhost:8181`, `*.example.com`",
          below=_all_of),
    Value("httpHooks", "env", "http_env", _texts, "the environment variables that `http` hook headers may use",
          below=_all_of),
    Value("sandbox", "network", "sandbox_network", _network,
          "with `--sandbox`: whether commands can reach the network, or the hosts that they can reach: "
          '`["api.example.com", "*.example.org"]`', below=_narrower_network, unreadable=False),
    Value("telemetry", "endpoint", "telemetry_endpoint", _receiver,
          "where spans and metrics go, with OTLP over HTTP: `http://localhost:4318`; see [telemetry.md](telemetry.md)",
          not_the_project=True),
    Value("telemetry", "content", "telemetry_content", _flag,
          "also send prompts, answers, and the inputs and results of tools, with secrets masked",
          not_the_project=True),
    Value("permissions", "defaultMode", "default_mode", _mode,
          "the permission mode; `--permission-mode` takes precedence", below=_stricter_mode),
    Value("permissions", "additionalDirectories", "additional_directories", _directories,
          "directories to treat as part of the project", adds_up=True, below=_outer_stays),
)  # fmt: skip
_SECTIONS = ("permissions", "compat", "httpHooks", "sandbox", "sessions", "telemetry", "env", "models")
_FREE = ("env", "models")
"""Sections whose keys are names chosen by the user."""
_RULES = ("deny", "ask", "allow")
MOST_RULES = 2000
"""Rules in one list of a settings file. Each is compared with every call."""
MOST_RULES_IN_ALL = 8000
"""Rules in all files of a session: a project has a file for each directory."""
_MOST_HINTS = 20
"""Rules in one list that get a "did you mean" hint."""
_SECTION_KEYS: Mapping[str, tuple[str, ...] | None] = {
    section: None
    if section in _FREE
    else (*(value.key for value in VALUES if value.section == section), *(_RULES if section == "permissions" else ()))
    for section in _SECTIONS
}
_PERMISSION_KEYS = _SECTION_KEYS["permissions"] or ()
MCP_KEYS = (
    *("mcpServers", "allowedMcpServers", "deniedMcpServers", "allowManagedMcpServersOnly"),
    *("enabledMcpjsonServers", "disabledMcpjsonServers", "enableAllProjectMcpServers"),
)
"""Settings about MCP servers: `mcp_keys` explains them, and `wave_agent.mcp` reads them, in sessions that have any."""
KEYS = ("hooks", "$schema", *_SECTIONS, *(value.key for value in VALUES if not value.section), *MCP_KEYS)
"""Every top-level key, for messages and the schema."""


_TOOL_NAMES = frozenset({NET, *(tool.casefold() for tool in KNOWN_TOOLS)})
_DEFAULTS: Mapping[str, Any] = {field.name: field.default for field in fields(Settings)}
_NO_LOOSENING = "has no effect in a subdirectory of the project, where settings can only tighten"


def _shown(value: Any) -> str:
    return json.dumps(value)


class _Merge:
    """The layers so far."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.managed: set[str] = set()
        self.env: dict[str, str] = {}
        self.models: dict[str, Mapping[str, Any]] = {}
        self.deny: list[Rule] = []
        self.ask: list[Rule] = []
        self.allow: list[Rule] = []
        self.issues: list[Issue] = []
        self.count = 0
        """Rules so far."""

    def add(self, source: SettingsSource) -> None:
        settings = cast(Mapping[str, Any], source.document.value)
        self.report_unknown(source, (), settings, KEYS)
        sections: dict[str, Mapping[str, Any]] = {"": settings}
        for name in _SECTIONS:
            # Unreadable permissions may have contained denials.
            fatal = name == "permissions"
            sections[name] = self.read(source, (name,), settings.get(name), _object, fatal=fatal) or {}
            self.report_unknown(source, (name,), sections[name], _SECTION_KEYS[name])
        for value in VALUES:
            path = (value.section, value.key) if value.section else (value.key,)
            raw = sections[value.section].get(value.key)
            found = self.read(source, path, raw, value.reader)
            if found is None and raw is not None:
                found = value.unreadable
            if found is not None:
                self.value(source, path, value, found)
        for key, raw in sections["env"].items():
            text = self.read(source, ("env", key), raw, _text)
            if not key or "=" in key or why_unreadable({key: text}):
                self.report(source, ("env", key), "is not a valid environment variable name or value", broken=True)
                continue
            if text is not None:
                self.env[key] = text
        for name, raw in sections["models"].items():
            facts = self.read(source, ("models", name), raw, _model)
            if facts is not None:
                self.models[name] = facts
        for kind in _RULES:
            self.rules(source, kind, sections["permissions"].get(kind))

    def value(self, source: SettingsSource, path: Where, value: Value, found: Any) -> None:
        if value.managed_only and source.layer is not Layer.MANAGED:
            self.report(source, path, "only managed settings can set this", broken=False)
            return
        if value.not_the_project and source.layer not in (Layer.MANAGED, Layer.USER):
            self.report(source, path, "only user settings and managed settings can set this", broken=False)
            return
        before = self.values.get(value.name, _DEFAULTS[value.name])
        if source.inner:
            kept = value.below(before, found)
            if kept == before != found:
                self.report(source, path, f"{_NO_LOOSENING}; {_shown(before)} is used", broken=False)
            found = kept
        elif value.adds_up:
            found = (*before, *found)
        self.values[value.name] = found
        self.managed |= {value.name} if source.layer is Layer.MANAGED else set()

    def report_unknown(
        self, source: SettingsSource, path: Where, found: Mapping[str, Any], known: tuple[str, ...] | None
    ) -> None:
        """`known` None: any key is accepted."""
        for key in found:
            if known is not None and key not in known and not key.startswith("//"):
                hint = did_you_mean(key, known)
                self.report(source, (*path, key), f'unknown setting "{key}"{hint}', broken=False)

    def read(self, source: SettingsSource, path: Where, raw: Any, reader: _Reader, *, fatal: bool = False) -> Any:
        """The value, or None if it is missing or cannot be used."""
        if raw is None:
            return None
        try:
            return reader(raw)
        except _WrongError as error:
            self.report(source, (*path, *error.inside), str(error), broken=True, fatal=fatal)
            return None

    def rules(self, source: SettingsSource, kind: str, raw: Any) -> None:
        """A restrictive rule that cannot be parsed must not be skipped."""
        path: Where = ("permissions", kind)
        restricts = kind != "allow"
        if source.inner and not restricts and raw:
            self.report(source, path, f"{_NO_LOOSENING}, so it allows nothing", broken=False)
            return
        if raw is not None and not isinstance(raw, list):
            self.report(source, path, f"must be a list of rules, not {type_name(raw)}", broken=True, fatal=restricts)
            return
        rules = cast(list[Any], raw or [])
        self.count += len(rules)
        if rules and (len(rules) > MOST_RULES or self.count > MOST_RULES_IN_ALL):
            most = f"{MOST_RULES:,} per list" if len(rules) > MOST_RULES else f"{MOST_RULES_IN_ALL:,} in all settings"
            message = f"has {len(rules):,} rules; the limit is {most}: use patterns that cover more"
            self.report(source, path, message, broken=True, fatal=restricts)
            return
        for index, text in enumerate(rules):
            try:
                rule = below(parse_rule(_text(text)), source.inner)
                getattr(self, kind).append(rule)
                known = index >= _MOST_HINTS or rule.tool in _TOOL_NAMES
                if not known and (hint := did_you_mean(rule.tool, KNOWN_TOOLS)):
                    message = f'there is no built-in tool "{rule.text.partition("(")[0].strip()}"{hint}'
                    self.report(source, (*path, index), message, broken=False)
            except (RuleError, _WrongError) as error:
                self.report(source, (*path, index), str(error), broken=True, fatal=restricts)

    def report(self, source: SettingsSource, path: Where, message: str, *, broken: bool, fatal: bool = False) -> None:
        fatal = fatal or (broken and source.layer is Layer.MANAGED)
        line = source.document.line(path)
        self.issues.append(Issue(source=source.name, path=path, line=line, message=message, broken=broken, fatal=fatal))
