"""The files below a directory that are not ignored by `.gitignore` files. Has only fast imports."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from wave_agent.system.project_files import NotReadError, read_project_file

if TYPE_CHECKING:
    from wave_agent.tools.search.gitignore import IgnoreFile

_LARGEST = 1 << 20
"""Maximum size of an ignore file, in bytes."""


class _IgnoreLayer:
    """An ignore file and the directory its patterns are relative to."""

    def __init__(self, directory: str, ignored: "IgnoreFile") -> None:
        self.start = len(directory.rstrip("/")) + 1
        self.ignored = ignored


class Walk:
    """Never enters `.git` or symlinks to directories. A repository inside another one has its own rules."""

    def __init__(self, root: str, project: str) -> None:
        """Ignore files are read from the repository root down or, outside one, from the project directory."""
        self._root = root
        self.skipped: list[tuple[str, str]] = []
        """Ignore files that were not read, and why."""
        self._above = self._layers_above(root, project)
        self.unreadable = 0
        """Directories that could not be listed."""

    def files(self) -> Iterator[tuple[str, bool]]:
        """Paths relative to the root, unordered, and whether each is a symlink."""
        pending = [(self._root, self._above)]
        while pending:
            directory, layers = pending.pop()
            entries, layers = self._left(directory, layers)
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append((entry.path, layers))
                elif entry.is_symlink() or entry.is_file():
                    yield entry.path[len(self._root.rstrip("/")) + 1 :], entry.is_symlink()

    def top_level(self) -> Iterator[tuple[str, bool]]:
        """Names in the root itself, unordered, and whether each is a directory."""
        entries, _ = self._left(self._root, self._above)
        for entry in entries:
            yield entry.name, entry.is_dir(follow_symlinks=False)

    def _left(
        self, directory: str, layers: list[_IgnoreLayer]
    ) -> tuple[Iterator[os.DirEntry[str]], list[_IgnoreLayer]]:
        """The entries of a directory that are not ignored, and the ignore files for everything below it."""
        entries = self._entries(directory)
        names = {entry.name for entry in entries}
        if ".git" in names:
            layers = []
        if ".gitignore" in names:
            layers = [*layers, *self._read(directory)]
        left = (
            entry
            for entry in entries
            if entry.name != ".git"
            and not _is_ignored(entry.path, layers, is_directory=entry.is_dir(follow_symlinks=False))
        )
        return left, layers

    def _entries(self, directory: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(directory) as entries:
                return list(entries)
        except OSError:
            self.unreadable += 1
            return []

    def _read(self, directory: str) -> list[_IgnoreLayer]:
        """Like git, does not follow a symlinked ignore file."""
        file = os.path.join(directory, ".gitignore")
        try:
            data = read_project_file(file, directory, _LARGEST)
        except NotReadError as error:
            self.skipped.append((file, str(error)))
            return []
        if data is None:
            return []
        from wave_agent.tools.search.gitignore import IgnoreFile  # lazy: needed only if there is an ignore file

        return [_IgnoreLayer(directory, IgnoreFile(data.decode(errors="surrogateescape")))]

    def _layers_above(self, root: str, project: str) -> list[_IgnoreLayer]:
        above: list[str] = []
        directory = root
        while not os.path.lexists(os.path.join(directory, ".git")):
            parent = os.path.dirname(directory)
            if parent == directory:  # no repository
                above = [path for path in above if path == project or path.startswith(project.rstrip("/") + "/")]
                break
            directory = parent
            above.append(directory)
        return [layer for path in reversed(above) for layer in self._read(path)]


def _is_ignored(path: str, layers: list[_IgnoreLayer], *, is_directory: bool) -> bool:
    """The nearest ignore file with a matching rule decides."""
    for layer in reversed(layers):
        verdict = layer.ignored.ignores(path[layer.start :], is_directory=is_directory)
        if verdict is not None:
            return verdict
    return False
