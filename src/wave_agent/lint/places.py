"""The settings files of a project, the user and plugins, and definitions of subagents. Only the parts about hooks are
read."""

import os
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from wave_agent.errors import SettingsError
from wave_agent.formats.front_matter import FrontMatterError
from wave_agent.formats.strict_json import Document
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.dialects import Dialect
from wave_agent.hooks.events import EVENTS
from wave_agent.settings.definition_hooks import hooks_in_definition
from wave_agent.settings.extension_files import FoundExtension, find_extensions
from wave_agent.settings.hook_entries import SettingsSource, parse_settings
from wave_agent.settings.places import LARGEST_FILE, ExtensionKind, ExtensionPlace
from wave_agent.system.project_files import NotReadError, read_project_file


class FileOwner(StrEnum):
    """Who a settings file belongs to."""

    WAVE = "wave"
    OTHER = "other"
    """Written for another agent, and read by several."""
    USER = "user"
    PLUGIN = "plugin"


class SettingsFile(Struct, frozen=True, kw_only=True):
    """One settings file and its content."""

    file: str
    kind: FileOwner
    shared: bool
    """Whether it is committed with the project."""
    text: str = ""
    source: SettingsSource | None = None
    problem: str = ""
    """Why it could not be read."""

    @property
    def plugin_root(self) -> str:
        """The plugin's directory, which contains hooks.json, directly or in `hooks/`."""
        directory = os.path.dirname(os.path.abspath(self.file))
        return os.path.dirname(directory) if os.path.basename(directory) == "hooks" else directory


_OF_A_PROJECT = (
    (".wave/settings.json", FileOwner.WAVE, True),
    (".wave/settings.local.json", FileOwner.WAVE, False),
    (".claude/settings.json", FileOwner.OTHER, True),
    (".claude/settings.local.json", FileOwner.OTHER, False),
    (".codex/hooks.json", FileOwner.OTHER, True),
    ("hooks/hooks.json", FileOwner.PLUGIN, True),
)


def places(project: str, home: Path | None) -> list[SettingsFile]:
    """Every settings file in a project and, with a `home`, those of the user."""
    found = [(Path(project, name), kind, shared) for name, kind, shared in _OF_A_PROJECT]
    if home is not None:
        found.append((home / "settings.json", FileOwner.USER, False))
    settings = [read_place(str(file), kind, shared=shared) for file, kind, shared in found if file.is_file()]
    bases = [(Path(project, ".wave"), FileOwner.WAVE), (Path(project, ".claude"), FileOwner.OTHER)]
    if home is not None:
        bases.append((home, FileOwner.USER))
    return [*settings, *(one for base, kind in bases for one in _definitions(base / ExtensionKind.AGENTS, kind))]


def _definitions(directory: Path, kind: FileOwner) -> Iterator[SettingsFile]:
    """The definitions of subagents in a directory that have hooks, or cannot be read."""
    for one in _texts(str(directory), kind) if directory.is_dir() else ():
        found = read_definition(one, kind)
        if found.problem or found.source is not None:
            yield found


def _texts(directory: str, kind: FileOwner) -> Iterator[FoundExtension]:
    layer = Layer.USER if kind is FileOwner.USER else Layer.PROJECT
    dialect = Dialect.CLAUDE if kind is FileOwner.OTHER else Dialect.WAVE
    return find_extensions([ExtensionPlace(ExtensionKind.AGENTS, directory, layer, dialect)])


def read_definition(found: FoundExtension, kind: FileOwner) -> SettingsFile:
    """Never raises: errors are stored in `problem`. Without hooks it has no `source`."""
    shared = kind is not FileOwner.USER
    if found.problem:
        return SettingsFile(file=found.path, kind=kind, shared=shared, problem=f"{found.path}: it {found.problem}")
    try:
        source = hooks_in_definition(found)
    except FrontMatterError as error:
        problem = f"{found.path}:{error.line}: not a valid front matter: {error.problem}"
        return SettingsFile(file=found.path, kind=kind, shared=shared, problem=problem)
    except UnicodeDecodeError:
        return SettingsFile(file=found.path, kind=kind, shared=shared, problem=f"{found.path}: it is not UTF-8")
    return SettingsFile(file=found.path, kind=kind, shared=shared, source=source)


def place_named(file: str) -> SettingsFile:
    """A settings file, or the definition of a subagent, specified by its path."""
    if file.endswith(".md"):
        path = os.path.abspath(file)
        kind = FileOwner.OTHER if "/.claude/" in path else FileOwner.WAVE
        found = next((one for one in _texts(os.path.dirname(path), kind) if one.path == path), None)
        if found is None:
            return SettingsFile(file=file, kind=kind, shared=True, problem=f"{file}: its directory has too many files")
        return read_definition(found, kind)
    for name, kind, shared in _OF_A_PROJECT:
        if Path(os.path.abspath(file)).as_posix().endswith(f"/{name}"):
            return read_place(file, kind, shared=shared)
    kind = FileOwner.PLUGIN if os.path.basename(file) == "hooks.json" else FileOwner.WAVE
    return read_place(file, kind, shared=True)


def read_place(file: str, kind: FileOwner, *, shared: bool) -> SettingsFile:
    """Never raises: errors are stored in `problem`."""
    try:
        content = read_project_file(file, "/", LARGEST_FILE)
        if content is None:
            raise NotReadError("does not exist")
        text = content.decode()
        source = parse_settings(text, Layer.USER if kind is FileOwner.USER else Layer.PROJECT, file)
    except UnicodeDecodeError:
        return SettingsFile(file=file, kind=kind, shared=shared, problem=f"{file}: it is not UTF-8")
    except NotReadError as error:
        return SettingsFile(file=file, kind=kind, shared=shared, problem=f"{file}: it {error}")
    except SettingsError as error:
        return SettingsFile(file=file, kind=kind, shared=shared, problem=str(error))
    if kind in (FileOwner.OTHER, FileOwner.PLUGIN):
        source = SettingsSource(source.layer, source.name, _only_hooks(source.document), Dialect.CLAUDE)
    return SettingsFile(file=file, kind=kind, shared=shared, text=text, source=source)


def _only_hooks(document: Document) -> Document:
    """Another agent's other settings are ignored. A plugin may contain just the map of events."""
    value = document.value
    if "hooks" in value or not set(value) & {event.value for event in EVENTS}:
        return Document({"hooks": value.get("hooks")}, document.lines, document.spans)
    lines = {("hooks", *path): line for path, line in document.lines.items()}
    spans = {("hooks", *path): span for path, span in document.spans.items()}
    return Document({"hooks": value}, lines, spans)


def is_settings(file: str) -> bool:
    return file.endswith((".json", ".md"))


def unreadable(paths: Sequence[str]) -> list[str]:
    """The files that do not exist."""
    return [path for path in paths if not os.path.exists(path)]
