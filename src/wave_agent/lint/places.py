"""The settings files of a project, the user and plugins. Only the parts about hooks are read."""

import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from wave_agent.errors import SettingsError
from wave_agent.formats.strict_json import Document
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.dialects import Dialect
from wave_agent.hooks.events import EVENTS
from wave_agent.settings.hook_entries import SettingsSource
from wave_agent.settings.layers import LARGEST_FILE, parse_settings
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
    return [read_place(str(file), kind, shared=shared) for file, kind, shared in found if file.is_file()]


def place_named(file: str) -> SettingsFile:
    """A settings file specified by its path."""
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
    return file.endswith(".json")


def unreadable(paths: Sequence[str]) -> list[str]:
    """The files that do not exist."""
    return [path for path in paths if not os.path.exists(path)]
