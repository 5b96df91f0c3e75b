"""Settings are those that a session began with. What changes on disk meanwhile is told, and does not count."""

from collections.abc import Iterable
from pathlib import Path

from wave_agent.trust import file_digest


class Snapshot:
    """The settings files of a session, whether they exist or not, as they were when it began."""

    def __init__(self, files: Iterable[Path] = ()) -> None:
        self._seen = {str(file): file_digest(str(file)) for file in files}

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(self._seen)

    def changes(self) -> list[str]:
        """What to tell about files that differ from what was last seen: each change once."""
        told: list[str] = []
        for file, before in self._seen.items():
            now = file_digest(file)
            if now != before:
                self._seen[file] = now
                what = "was removed" if now is None else "appeared" if before is None else "has changed"
                told.append(f"{file} {what}. This session goes on with the settings that it began with.")
        return told
