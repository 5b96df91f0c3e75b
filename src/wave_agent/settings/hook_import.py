"""Copies hooks written for another agent into a project's own settings."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.errors import SettingsError
from wave_agent.formats.json_edits import append
from wave_agent.formats.strict_json import show_path, type_name
from wave_agent.hooks.definitions import HookDefinition, Layer
from wave_agent.hooks.events import NEVER_HERE
from wave_agent.hooks.execution import HookKind
from wave_agent.settings.hook_entries import SettingsSource, load_hooks, parse_settings
from wave_agent.settings.layers import RESTRICTIONS
from wave_agent.settings.other_agents import PLUGIN_FILE, PROJECT_FILES, as_foreign
from wave_agent.settings.places import read_source
from wave_agent.settings.schema_file import with_schema
from wave_agent.settings.trust import entry_digest, fingerprint

_NOT_COPIED = {
    "permissions.allow": "it loosens permissions; copy the rules you want by hand",
    "env": "it changes the environment of hooks and tools; copy the variables you want by hand",
}


class ImportPlan(Struct, frozen=True):
    """What an import would do."""

    text: str
    """The resulting settings."""
    added: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Changes made during the import."""
    left_out: tuple[str, ...] = ()


def find_importable(place: Path, *, any_kind: bool = True) -> list[Path]:
    """Files with hooks for other agents in a project or, with `any_kind`, in a plugin or a settings directory."""
    if place.is_file():
        return [place]
    names = [name for name, layer in PROJECT_FILES.items() if layer is Layer.PROJECT]
    names += [PLUGIN_FILE, "settings.json"] if any_kind else []
    return [file for name in names if (file := place / name).is_file()]


def plan_import(files: Sequence[Path], before: str, target: str) -> ImportPlan:
    """`before` is the current content of the settings file `target`. Raises `SettingsError`."""
    text = before if before.strip() else "{}\n"
    own = parse_settings(text, Layer.PROJECT, target)
    text = with_schema(text, Path(target))
    present = {fingerprint(hook, own) for hook in load_hooks([own]).hooks}
    collected = _Collected(present)
    for file in files:
        collected.add(file)
    for kind in RESTRICTIONS:
        given = [rule for rule in collected.rules[kind] if rule not in _rules(own, kind)]
        if given:
            text = _put(text, target, ("permissions", kind), given)
            collected.added += [f"permissions.{kind}: {rule}" for rule in given]
    for event, groups in collected.groups.items():
        text = _put(text, target, ("hooks", event), groups)
    return ImportPlan(text, tuple(collected.added), tuple(collected.notes), tuple(collected.left_out))


def _put(text: str, target: str, path: tuple[str, str], items: list[Any]) -> str:
    """The text with these items appended to the list at `path`, which is created if missing."""
    settings = cast(Mapping[str, Any], parse_settings(text, Layer.PROJECT, target).document.value)
    section: Any = settings.get(path[0], {})
    if not isinstance(section, Mapping):
        raise SettingsError(f"{target}: {path[0]} must be an object, not {type_name(section)}; fix it first.")
    held = cast(Mapping[str, Any], section).get(path[1], [])
    if not isinstance(held, list):
        raise SettingsError(f"{target}: {show_path(path)} must be a list, not {type_name(held)}; fix it first.")
    for item in items:
        text = append(text, path, item)
    return text


class _Collected:
    """Hooks and rules collected from the files, in order."""

    def __init__(self, present: set[str]) -> None:
        self.present = present
        self.groups: dict[str, list[Any]] = {}
        self.rules: dict[str, list[str]] = {kind: [] for kind in RESTRICTIONS}
        self.added: list[str] = []
        self.notes: list[str] = []
        self.left_out: list[str] = []

    def add(self, file: Path) -> None:
        raw = read_source(Layer.PROJECT, file)
        if raw is None:
            raise SettingsError(f"File not found: {file}")
        source = as_foreign(raw)
        if file.parts[-2:] == tuple(PLUGIN_FILE.split("/")):
            source = replace(source, plugin_root=str(file.parent.parent))
        found = load_hooks([source])
        self.left_out += [str(issue) for issue in found.issues if issue.broken or issue.path[-1] in NEVER_HERE]
        self.left_out += _others(raw, source)
        for kind in RESTRICTIONS:
            self.rules[kind] += [rule for rule in _rules(source, kind) if rule not in self.rules[kind]]
        groups: dict[tuple[Any, ...], list[HookDefinition]] = {}
        for hook in found.hooks:
            groups.setdefault(hook.path[:3], []).append(hook)
        for path, hooks in groups.items():
            self.group(source, cast(tuple[str, str, int], path), hooks)

    def group(self, source: SettingsSource, path: tuple[str, str, int], hooks: Sequence[HookDefinition]) -> None:
        written: Any = source.document.value["hooks"][path[1]][path[2]]
        alone = hooks[0].path == path
        around = {} if alone else {key: value for key, value in written.items() if key != "hooks"}
        kept: list[Any] = []
        for hook in hooks:
            entry, note = _as_own(written if alone else written["hooks"][hook.path[4]], hook)
            known_as = entry_digest(hook.event.value, around, entry)
            before = entry_digest(hook.event.value, around, {key: entry[key] for key in entry if key != "dialect"})
            described = f"{hook.event}: {hook.shown_command} ({hook.source}:{hook.line})"
            if self.present & {known_as, before}:
                self.left_out.append(f"{described}: already present")
                continue
            self.present.add(known_as)
            self.added.append(described)
            self.notes += [f"{described}: {note}"] if note else []
            kept.append(entry)
        if kept:
            self.groups.setdefault(path[1], []).append(kept[0] if alone else {**around, "hooks": kept})


def _as_own(entry: Any, hook: HookDefinition) -> tuple[dict[str, Any], str]:
    """The entry, adapted so that it keeps its meaning, and a note on what had to change."""
    own = {"command": entry} if isinstance(entry, str) else {**cast(Mapping[str, Any], entry)}
    changed: dict[str, Any] = {"dialect": hook.dialect.value}
    note = ""
    if hook.plugin_root and hook.kind is HookKind.COMMAND and hook.command != own["command"].strip():
        note = "the plugin's directory is inlined; CLAUDE_PLUGIN_ROOT and CLAUDE_PLUGIN_DATA are no longer set for it"
        changed["command"] = hook.command
    if note and hook.args is not None:
        changed["args"] = list(hook.args)
    return {**own, **changed}, note


def _rules(source: SettingsSource, kind: str) -> list[str]:
    rules: Any = source.document.value.get("permissions")
    listed: Any = cast(Mapping[str, Any], rules).get(kind) if isinstance(rules, Mapping) else None
    return [rule for rule in cast(list[Any], listed) if isinstance(rule, str)] if isinstance(listed, list) else []


def _others(raw: SettingsSource, source: SettingsSource) -> Iterator[str]:
    """The file's other settings, and why they are not copied."""
    name = os.path.basename(raw.name)
    taken = cast(Mapping[str, Any], source.document.value)
    if "hooks" not in raw.document.value and "hooks" in taken:  # the bare map of events
        return
    for key, value in cast(Mapping[str, Any], raw.document.value).items():
        if key in ("hooks", "$schema") or key.startswith("//"):
            continue
        has_rules = key == "permissions" and isinstance(value, Mapping)
        inner = [f"permissions.{kind}" for kind in cast(Mapping[str, Any], value)] if has_rules else [key]
        for place in inner:
            if place.removeprefix("permissions.") not in RESTRICTIONS:
                yield f"{name}: {place}: {_NOT_COPIED.get(place, 'a setting of another agent')}"
