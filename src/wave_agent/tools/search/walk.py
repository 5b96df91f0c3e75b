"""The files below a directory that are not ignored by `.gitignore` files. Has only fast imports."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

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


class FileRun(NamedTuple):
    """Files of one directory that follow each other when everything is sorted by path."""

    directory: str
    """Relative to the root, with a slash at its end; empty for the root itself."""
    names: list[str]
    is_whole: bool
    """The directory contains no other file, and no subdirectory that is searched: naming it names them all."""


_Directory: TypeAlias = tuple[str, list[_IgnoreLayer]]
"""One that is still to be read, and the ignore files above it."""


class Walk:
    """Never enters `.git` or symlinks to directories. A repository inside another one has its own rules."""

    def __init__(self, root: str, project: str) -> None:
        """Ignore files are read from the repository root down or, outside one, from the project directory."""
        self._root = root
        self._inside = len(root.rstrip("/")) + 1
        self.skipped: list[tuple[str, str]] = []
        """Ignore files that were not read, and why."""
        self._above = self._layers_above(root, project)
        self.unreadable = 0
        """Directories that could not be listed."""

    def files(self) -> Iterator[tuple[str, bool]]:
        """Paths relative to the root, unordered, and whether each is a symlink."""
        pending: list[_Directory] = [(self._root, self._above)]
        while pending:
            entries, layers = self._left(*pending.pop())
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append((entry.path, layers))
                elif entry.is_symlink() or entry.is_file():
                    yield entry.path[self._inside :], entry.is_symlink()

    def in_order(self) -> Iterator[FileRun]:
        """The files that are no symlinks, sorted by path.

        A directory is read when its turn comes: whoever has seen enough can stop, and no list of everything is kept.
        """
        pending: list[FileRun | _Directory] = [(self._root, self._above)]
        while pending:
            part = pending.pop()
            if isinstance(part, FileRun):
                yield part
            else:
                pending += reversed(self._parts(*part))

    def by_depth(self) -> Iterator[FileRun]:
        """The files, symlinks included, sorted by depth and then by path: one directory at a time."""
        level: list[_Directory] = [(self._root, self._above)]
        while level:
            deeper: list[_Directory] = []
            for directory, layers in level:
                entries, below = self._left(directory, layers)
                inner = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
                deeper += ((entry.path, below) for entry in sorted(inner, key=lambda entry: f"{entry.name}/"))
                names = sorted(entry.name for entry in entries if entry.is_symlink() or entry.is_file())
                if names:
                    yield FileRun(self._prefix(directory), names, is_whole=False)
            level = deeper

    def top_level(self) -> Iterator[tuple[str, bool]]:
        """Names in the root itself, unordered, and whether each is a directory."""
        entries, _ = self._left(self._root, self._above)
        for entry in entries:
            yield entry.name, entry.is_dir(follow_symlinks=False)

    def _parts(self, directory: str, layers: list[_IgnoreLayer]) -> list[FileRun | _Directory]:
        """What is in a directory, sorted by path: runs of files, and the subdirectories between them."""
        listed = self._entries(directory)
        entries, layers = self._left(directory, layers, listed)
        files: list[str] = []
        subdirectories: list[str] = []
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                subdirectories.append(f"{entry.name}/")  # as in the paths below it: `a.b` comes before `a/b`
            elif entry.is_file(follow_symlinks=False):
                files.append(entry.name)
        inside = self._prefix(directory)
        if not subdirectories:
            others = len(listed) - len(files)
            is_whole = not others or others == sum(entry.is_dir(follow_symlinks=False) for entry in listed)
            return [FileRun(inside, sorted(files), is_whole)] if files else []
        parts: list[FileRun | _Directory] = []
        run: list[str] = []
        for name in sorted(files + subdirectories):
            if not name.endswith("/"):
                run.append(name)
                continue
            if run:
                parts.append(FileRun(inside, run, is_whole=False))
                run = []
            parts.append((os.path.join(directory, name[:-1]), layers))
        return [*parts, FileRun(inside, run, is_whole=False)] if run else parts

    def _prefix(self, directory: str) -> str:
        inside = directory[self._inside :]
        return inside and f"{inside}/"

    def _left(
        self, directory: str, layers: list[_IgnoreLayer], listed: list[os.DirEntry[str]] | None = None
    ) -> tuple[list[os.DirEntry[str]], list[_IgnoreLayer]]:
        """The entries of a directory that are not ignored, and the ignore files for everything below it."""
        entries = self._entries(directory) if listed is None else listed
        names = {entry.name for entry in entries}
        if ".git" in names:
            layers = []
            entries = [entry for entry in entries if entry.name != ".git"]
        if ".gitignore" in names:
            layers = [*layers, *self._read(directory)]
        if layers:
            entries = [
                entry
                for entry in entries
                if not _is_ignored(entry.path, layers, is_directory=entry.is_dir(follow_symlinks=False))
            ]
        return entries, layers

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
