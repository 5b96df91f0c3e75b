"""Settings are those that a session began with. What changes on disk meanwhile is told, and does not count."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from wave_agent.settings.trust import file_digest


class SettingsChange(Struct, frozen=True):
    file: str
    source: str
    """What hooks know this file by: `user_settings`, `project_settings` …"""
    told: str
    """What to tell the user."""


class Snapshot:
    """The settings files of a session, whether they exist or not, as they were when it began."""

    def __init__(self, files: Iterable[Path] = (), sources: Mapping[str, str] | None = None) -> None:
        self._seen = {str(file): file_digest(str(file)) for file in files}
        self._sources = sources or {}

    @property
    def digests(self) -> Mapping[str, str | None]:
        """What was in them when they were last looked at; None: not there."""
        return dict(self._seen)

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(self._seen)

    def changes(self) -> list[SettingsChange]:
        """The files that differ from what was last seen: each change once."""
        found: list[SettingsChange] = []
        for file, before in self._seen.items():
            now = file_digest(file)
            if now != before:
                self._seen[file] = now
                what = "was removed" if now is None else "appeared" if before is None else "has changed"
                told = f"{file} {what}. This session goes on with the settings that it began with."
                found.append(SettingsChange(file, self._sources.get(file, "other_settings"), told))
        return found
