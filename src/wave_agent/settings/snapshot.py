"""A session uses the settings it started with. Later changes on disk are reported but not applied."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from wave_agent.settings.trust import file_digest


class SettingsChange(Struct, frozen=True):
    file: str
    source: str
    """How hooks refer to this file: `user_settings`, `project_settings` …"""
    message: str
    """The message for the user."""


class Snapshot:
    """The settings files of a session, existing or not, as they were when it started."""

    def __init__(self, files: Iterable[Path] = (), sources: Mapping[str, str] | None = None) -> None:
        self._seen = {str(file): file_digest(str(file)) for file in files}
        self._sources = sources or {}

    @property
    def digests(self) -> Mapping[str, str | None]:
        """Their digests when last checked; None: not found."""
        return dict(self._seen)

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(self._seen)

    def changes(self) -> list[SettingsChange]:
        """The files that differ from the last check; each change is returned once."""
        found: list[SettingsChange] = []
        for file, before in self._seen.items():
            now = file_digest(file)
            if now != before:
                self._seen[file] = now
                what = "was removed" if now is None else "was created" if before is None else "has changed"
                message = f"{file} {what}. This session keeps the settings it started with."
                found.append(SettingsChange(file, self._sources.get(file, "other_settings"), message))
        return found
