"""What changed between two points in time."""

from typing import Literal

from msgspec import Struct

from wave_agent.tools.changes.versions import FileVersion

Kind = Literal["created", "changed", "deleted"]


class FileChange(Struct, frozen=True, kw_only=True):
    path: str
    """Absolute, below the real path of the project."""
    kind: Kind
    before: FileVersion | None
    """None: it did not exist."""
    after: FileVersion | None
    """None: it does not exist any more."""
    denied: bool = False
    """A deny rule names this path."""


class FoundChanges(Struct, frozen=True, kw_only=True):
    changes: tuple[FileChange, ...] = ()
    """By path. A renamed file was deleted and created."""
    directories: tuple[str, ...] = ()
    """Directories that are new, outer ones first."""
    unseen: tuple[str, ...] = ()
    """Directories that could not be listed: changes below them are unknown."""

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(change.path for change in self.changes)

    @property
    def violations(self) -> tuple[FileChange, ...]:
        """Changes to paths that a deny rule names."""
        return tuple(change for change in self.changes if change.denied)
