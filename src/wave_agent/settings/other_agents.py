"""Hooks that a project or a user already has for other agents, read in place.

Only hooks, permission rules, what is said about MCP servers and, once the file is trusted, variables are used from such
a file. The rest is ignored.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from wave_agent.errors import MissingPathError, SettingsError
from wave_agent.formats.strict_json import Document
from wave_agent.formats.strict_json import Path as Where
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.dialects import Dialect
from wave_agent.hooks.events import EVENTS, NEVER_HERE
from wave_agent.lazy_regex import lazy_regex
from wave_agent.rules.rule import FETCH, RuleError, parse_rule
from wave_agent.settings.hook_entries import SettingsSource
from wave_agent.settings.layers import RESTRICTIONS
from wave_agent.settings.places import LayerFile, project_places, read_place, read_source
from wave_agent.settings.values import MCP_KEYS
from wave_agent.system.project import Project
from wave_agent.system.real_files import resolve_or_keep

PROJECT_FILES: Mapping[str, Layer] = {
    ".claude/settings.json": Layer.PROJECT,
    ".codex/hooks.json": Layer.PROJECT,
    ".claude/settings.local.json": Layer.LOCAL,
}
PLUGIN_FILE = "hooks/hooks.json"
TAKEN = ("hooks", "permissions", "env", "disableAllHooks", *MCP_KEYS)
RULES = (*RESTRICTIONS, "allow")
_TOOL_WITH_PATTERN = lazy_regex(r"\s*(\w+)\(.*\)\s*", re.DOTALL)


def claude_home(environment: Mapping[str, str]) -> Path:
    """The user's directory of settings for all projects."""
    return Path(environment.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude").absolute()


def foreign_files(home: Path, project: Project, user_directory: Path) -> list[LayerFile]:
    """The user's files first, so that they are not mistaken for a project's."""
    return [LayerFile(Layer.USER, user_directory / "settings.json"), *project_places(home, project, PROJECT_FILES)]


def read_foreign(files: Iterable[LayerFile], known: Iterable[Path]) -> Iterator[SettingsSource]:
    """The settings in these files. A file that is a `known` one under another name is skipped.

    Raises `SettingsError`.
    """
    seen = _real(known)
    for place in files:
        yield from _read_unseen(place, seen)


def _real(files: Iterable[Path]) -> set[str]:
    return {resolve_or_keep(str(file)) for file in files}


def _read_unseen(place: LayerFile, seen: set[str]) -> Iterator[SettingsSource]:
    real = resolve_or_keep(str(place.file))
    source = read_place(place) if real not in seen else None
    seen.add(real)
    if source is not None:
        yield as_foreign(source)


def look_at_foreign(files: Iterable[LayerFile], known: Iterable[Path]) -> Iterator[SettingsSource]:
    """The same for files that are not used: problems in them are ignored."""
    seen = _real(known)
    for one in files:
        try:
            yield from _read_unseen(one, {*seen})
        except SettingsError:
            continue


def read_plugin(directory: str, home: Path) -> SettingsSource | None:
    """The hooks of a plugin; None if it has none. Its data is stored below the agent's own directory.

    Raises `SettingsError`."""
    if not os.path.isdir(directory):
        raise MissingPathError(f"Plugin directory not found: {directory}")
    root = os.path.abspath(directory)
    source = read_source(Layer.FLAG, Path(root) / PLUGIN_FILE, resolve_or_keep(root))
    if source is None:
        return None
    taken = as_foreign(source)
    hooks = {"hooks": taken.document.value.get("hooks", {})}
    document = Document(hooks, taken.document.lines)
    return replace(taken, plugin_root=root, plugin_data=str(_plugin_data(root, home)), document=document)


def _plugin_data(root: str, home: Path) -> Path:
    """Two plugins with the same name have separate directories."""
    real = resolve_or_keep(root)
    name = re.sub(r"[^A-Za-z0-9_.-]", "-", os.path.basename(real)) or "plugin"
    return home / "plugins" / "data" / f"{name}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:8]}"


def as_foreign(source: SettingsSource) -> SettingsSource:
    """The parts used from a file written for another agent."""
    from wave_agent.settings.guard_lines import without_guard  # lazy: most projects have no such file

    document = without_guard(_with_hooks(source.document))
    settings = cast(Mapping[str, Any], document.value)
    kept = {key: settings[key] for key in TAKEN if key in settings}
    rules: Any = kept.get("permissions")
    if isinstance(rules, Mapping):
        given = cast(Mapping[str, Any], rules)
        kept["permissions"] = {kind: _readable(kind, given[kind]) for kind in RULES if kind in given}
    return replace(source, document=Document(kept, document.lines), dialect=Dialect.CLAUDE)


def _with_hooks(document: Document) -> Document:
    """`hooks.json` files may be just the map of events."""
    found = cast(Mapping[str, Any], document.value)
    if "hooks" in found or not any(key in EVENTS or key in NEVER_HERE for key in found):
        return document
    events = {key: found[key] for key in found if isinstance(found[key], list)}
    lines: dict[Where, int] = {("hooks", *place): line for place, line in document.lines.items()}
    return Document({"hooks": events}, {(): 1, **lines})


def _readable(kind: str, rules: Any) -> Any:
    """If a tool takes no patterns here, or only others, as in `WebFetch(https://…)`, a restriction is widened to every
    call of the tool, and an allow rule is dropped."""
    if not isinstance(rules, list):
        return rules
    texts = [(rule, _tool_without_patterns(rule)) for rule in cast(list[Any], rules)]
    return [tool or rule for rule, tool in texts if tool is None or kind in RESTRICTIONS]


def _tool_without_patterns(rule: Any) -> str | None:
    """The rule's tool, if the rule has a pattern and the tool takes none like it."""
    shape = _TOOL_WITH_PATTERN.fullmatch(rule) if isinstance(rule, str) else None
    if shape is None or _is_rule(rule) or (_is_rule(f"{shape[1]}(x)") and shape[1].casefold() != FETCH):
        return None
    return shape[1]


def _is_rule(text: str) -> bool:
    try:
        parse_rule(text)
    except RuleError:
        return False
    return True
