"""The layers of settings → one `Settings`.

Hooks and permission rules of all layers add up, as does `env` (by key); otherwise the last layer that sets a value
wins, and managed settings cannot be overridden. Within a project the inner directory wins, but it cannot loosen.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import fields

from wave_agent.errors import SettingsError
from wave_agent.formats.readable import why_unreadable
from wave_agent.formats.strict_json import Path as Where
from wave_agent.formats.strict_json import type_name
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.execution import HookKind
from wave_agent.hooks.kinds import header_variables, is_listed
from wave_agent.hooks.matcher import KNOWN_TOOLS
from wave_agent.permissions.decision import PermissionMode, Rules
from wave_agent.rules.rule import NET, Rule, RuleError, below, parse_rule
from wave_agent.settings.hook_entries import HookConfig, Issue, SettingsSource, in_configuration_order, load_hooks
from wave_agent.settings.values import (
    KEYS,
    MCP_KEYS,
    PERMISSION_KEYS,
    RULE_KINDS,
    SECTION_KEYS,
    SECTIONS,
    VALUES,
    Reader,
    Value,
    WrongValueError,
    read_model,
    read_object,
    read_text,
)
from wave_agent.system.credentials import is_own
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
    misspelt = [key for key in rules if key not in PERMISSION_KEYS]
    restrictions: Any = {key: rules[key] for key in (*RESTRICTIONS, *misspelt) if key in rules}
    if permissions is not None and not isinstance(permissions, Mapping):
        restrictions = permissions  # reported as invalid when the settings are merged
    kept = {"permissions": restrictions, **{key: value for key, value in settings.items() if key not in KEYS}}
    if keep_hooks and "hooks" in settings:
        kept["hooks"] = settings["hooks"]
    dropped = [key for key in settings if key not in (*kept, "$schema") and not key.startswith("//")]
    dropped += [f"permissions.{key}" for key in rules if key not in restrictions]
    return source.with_settings(kept), tuple(dropped)


def why_never(source: SettingsSource, name: str) -> str:
    """Why no project can set this top-level key with what is in it, however trusted; empty if one can."""
    value: Any = cast(Mapping[str, Any], source.document.value).get(name)
    inside: Mapping[str, Any] = cast(Mapping[str, Any], value) if isinstance(value, Mapping) else {}
    rows = [
        row for row in VALUES if (row.section == name and row.key in inside) or (not row.section and row.key == name)
    ]
    if not rows or not all(row.managed_only or row.not_the_project for row in rows):
        return ""
    return _MANAGED_ONLY if all(row.managed_only for row in rows) else _NOT_THE_PROJECT


MOST_RULES = 2000
"""Rules in one list of a settings file. Each is compared with every call."""


MOST_RULES_IN_ALL = 8000
"""Rules in all files of a session: a project has a file for each directory."""


_MOST_HINTS = 20
"""Rules in one list that get a "did you mean" hint."""


_TOOL_NAMES = frozenset({NET, *(tool.casefold() for tool in KNOWN_TOOLS)})


_DEFAULTS: Mapping[str, Any] = {field.name: field.default for field in fields(Settings)}


_MANAGED_ONLY = "only managed settings can set this"
_NOT_THE_PROJECT = "only user settings and managed settings can set this"
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
        for name in SECTIONS:
            # Unreadable permissions may have contained denials.
            fatal = name == "permissions"
            sections[name] = self.read(source, (name,), settings.get(name), read_object, fatal=fatal) or {}
            self.report_unknown(source, (name,), sections[name], SECTION_KEYS[name])
        for value in VALUES:
            path = (value.section, value.key) if value.section else (value.key,)
            raw = sections[value.section].get(value.key)
            found = self.read(source, path, raw, value.reader)
            if found is None and raw is not None:
                found = value.unreadable
            if found is not None:
                self.value(source, path, value, found)
        for key, raw in sections["env"].items():
            text = self.read(source, ("env", key), raw, read_text)
            if not key or "=" in key or why_unreadable({key: text}):
                self.report(source, ("env", key), "is not a valid environment variable name or value", broken=True)
                continue
            if text is not None:
                self.env[key] = text
        for name, raw in sections["models"].items():
            facts = self.read(source, ("models", name), raw, read_model)
            if facts is not None:
                self.models[name] = facts
        for kind in RULE_KINDS:
            self.rules(source, kind, sections["permissions"].get(kind))

    def value(self, source: SettingsSource, path: Where, value: Value, found: Any) -> None:
        if value.managed_only and source.layer is not Layer.MANAGED:
            self.report(source, path, _MANAGED_ONLY, broken=False)
            return
        if value.not_the_project and source.layer not in (Layer.MANAGED, Layer.USER):
            self.report(source, path, _NOT_THE_PROJECT, broken=False)
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

    def read(self, source: SettingsSource, path: Where, raw: Any, reader: Reader, *, fatal: bool = False) -> Any:
        """The value, or None if it is missing or cannot be used."""
        if raw is None:
            return None
        try:
            return reader(raw)
        except WrongValueError as error:
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
                rule = below(parse_rule(read_text(text)), source.inner)
                getattr(self, kind).append(rule)
                known = index >= _MOST_HINTS or rule.tool in _TOOL_NAMES
                if not known and (hint := did_you_mean(rule.tool, KNOWN_TOOLS)):
                    message = f'there is no built-in tool "{rule.text.partition("(")[0].strip()}"{hint}'
                    self.report(source, (*path, index), message, broken=False)
            except (RuleError, WrongValueError) as error:
                self.report(source, (*path, index), str(error), broken=True, fatal=restricts)

    def report(self, source: SettingsSource, path: Where, message: str, *, broken: bool, fatal: bool = False) -> None:
        fatal = fatal or (broken and source.layer is Layer.MANAGED)
        line = source.document.line(path)
        self.issues.append(Issue(source=source.name, path=path, line=line, message=message, broken=broken, fatal=fatal))
