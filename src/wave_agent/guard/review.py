"""What is installed in a host, what it enforces, and what in its settings would override it."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from wave_agent.errors import SettingsError
from wave_agent.guard.entries import EntriesError, InstalledHook, entries, installed, uninstalled
from wave_agent.guard.hosts import HOSTS, HostRow, Verb
from wave_agent.guard.places import host_files, project_file, user_file
from wave_agent.hooks.events import EVENTS
from wave_agent.settings.places import LARGEST_FILE
from wave_agent.system.project_files import NotReadError, read_project_file

SWITCHES: Mapping[str, tuple[tuple[str, Any, str], ...]] = {
    "claude": (
        ("disableAllHooks", True, "all hooks are off"),
        ("allowManagedHooksOnly", True, "only managed hooks run"),
    ),
    "codex": (("features.hooks", False, "hooks are off"), ("features.codex_hooks", False, "hooks are off")),
    "gemini": (("hooksConfig.enabled", False, "hooks are off"), ("tools.enableHooks", False, "hooks are off")),
    "qwen": (("disableAllHooks", True, "all hooks are off"), ("hooksConfig.enabled", False, "hooks are off")),
}
"""Settings of hosts that switch hooks off: the key, the value, and what it means."""
ONLY_HOOK: Mapping[str, str] = {
    "qwen": "a later allow of another hook beats the guard's deny",
    "kimi": "one odd JSON answer of another hook cancels all verdicts",
    "vibe": "a hook after the guard may rewrite what the guard has judged",
    "codex": "another hook may rewrite what the guard has judged",
    "claude": "another hook may rewrite what the guard has judged",
    "gemini": "another hook may rewrite what the guard has judged",
}
"""Hosts in which another hook before a tool can undo what the guard says."""


class InstalledGuard(Struct, frozen=True, kw_only=True):
    """The guard in one settings file of a host."""

    file: Path
    scope: str
    """`user` or `project`."""
    missing: tuple[str, ...] = ()
    """Events that this version would install, too."""
    line: str = ""
    """The line for the first event."""


class HostReview(Struct, frozen=True, kw_only=True):
    """What a host does with the guard."""

    host: str
    guards: tuple[InstalledGuard, ...] = ()
    overrides: tuple[str, ...] = ()
    """What in its settings would override the guard."""
    problems: tuple[str, ...] = ()
    """Files that cannot be read."""

    @property
    def row(self) -> HostRow:
        return HOSTS[self.host]

    @property
    def enforces(self) -> dict[str, list[str]]:
        """What the host does as told, by its own name of the event."""
        row = self.row
        found = {name: row.enforces.get(row.events[name], frozenset[Verb]()) for name in row.installed}
        return {name: [verb.value for verb in Verb if verb in verbs] for name, verbs in found.items()}

    def to_dict(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "experimental": self.row.experimental,
            "installed": [
                {"file": str(one.file), "scope": one.scope, "missing_events": list(one.missing)} for one in self.guards
            ],
            "enforces": self.enforces,
            "limits": list(self.row.limits),
            "overrides": list(self.overrides),
            "problems": list(self.problems),
        }


def read_settings(file: Path) -> str:
    """The text of a settings file; empty if there is none. Raises `SettingsError`."""
    try:
        return (read_project_file(str(file), "/", LARGEST_FILE) or b"").decode()
    except NotReadError as error:
        raise SettingsError(f"{file} {error}.") from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file} cannot be read: {error}") from None


def changed_text(
    host: str, file: Path, before: str, program: tuple[str, ...] | None, flags: tuple[str, ...] = ()
) -> str:
    """The settings with the guard, or without it if there is no `program`. Raises `SettingsError`."""
    try:
        if program is None:
            return uninstalled(host, before)
        return installed(host, before, program, flags)
    except EntriesError as error:
        raise SettingsError(f"{file} was not changed: {error}.") from None


def review(host: str, project: str, environment: Mapping[str, str]) -> HostReview:
    """Reads the host's settings. What cannot be read is a problem, not an error."""
    guards: list[InstalledGuard] = []
    others: list[tuple[Path, InstalledHook]] = []
    overrides: list[str] = []
    problems: list[str] = []
    row = HOSTS[host]
    before_tool = [name for name in row.installed if EVENTS[row.events[name]].has_rewrites]
    for scope, file in (("user", user_file(host, environment)), ("project", project_file(host, project))):
        if file is None:
            continue
        try:
            found = entries(host, read_settings(file))
        except (SettingsError, EntriesError) as error:
            problems.append(f"{file}: {error}" if isinstance(error, EntriesError) else str(error))
            continue
        ours = [entry for entry in found if entry.is_guard]
        others += [(file, entry) for entry in found if not entry.is_guard and entry.event in before_tool]
        if ours:
            events = {entry.event for entry in ours}
            missing = tuple(name for name in row.installed if name not in events)
            guards.append(InstalledGuard(file=file, scope=scope, missing=missing, line=ours[0].command))
    if host in ONLY_HOOK:
        overrides += [
            f"{file}: another hook on {entry.event} ({entry.command}): {ONLY_HOOK[host]}" for file, entry in others
        ]
    for name in host_files(project, environment, only=host):
        overrides += [f"{name}: {key} is {json.dumps(value)}: {why}" for key, value, why in _switched(host, Path(name))]
    return HostReview(host=host, guards=tuple(guards), overrides=tuple(overrides), problems=tuple(problems))


def _switched(host: str, file: Path) -> list[tuple[str, Any, str]]:
    try:
        text = read_settings(file)
        settings: Any = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text or "{}")
    except (SettingsError, ValueError):
        return []
    return [switch for switch in SWITCHES.get(host, ()) if _value(settings, switch[0]) is switch[1]]


def _value(settings: Any, key: str) -> Any:
    for step in key.split("."):
        settings = cast(dict[str, Any], settings).get(step) if isinstance(settings, dict) else None
    return settings
