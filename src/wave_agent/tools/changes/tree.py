"""The files of the project as they were last seen, and what is different on disk.

Stored compactly, since a project may have 100,000 files: for each directory the names of its files, and for each file
the values by which a change shows.
"""

import errno
import os
import stat
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from wave_agent.system.real_files import is_below
from wave_agent.tools.changes.ignored import Layers, is_ignored, layers_above, layers_in
from wave_agent.tools.changes.signatures import SIGNATURE, inode_in, signature

Touched = dict[str, bytes | None]
"""Paths that may have changed, with the values of the files before. None: there was no such file."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TICK = 50_000_000
"""Nanoseconds. A file changed twice within a tick of the clock may have the same times after both."""
_COARSE_TICK = 2_000_000_000
"""The same on file systems that store whole seconds."""


class TooManyFilesError(Exception):
    """This is not a project, but perhaps a home directory."""


class KnownDirectory:
    __slots__ = ("children", "files", "ignored", "layers", "listed", "reached", "watch")

    def __init__(self, layers: Layers, *, ignored: bool, reached: bool) -> None:
        self.files: dict[str, bytes] = {}
        """Signatures; longer values carry git's name for the content."""
        self.children: set[str] = set()
        self.layers = layers
        self.ignored = ignored
        """Only files that rules deny, or that git tracks nevertheless, are known."""
        self.reached = reached
        """Rules may deny files in it."""
        self.listed = False
        self.watch = -1


class KnownTree:
    """Symlinks are files here, and never followed. Git's own directory is left out, and so are files and directories
    that `.gitignore` files ignore, except for files that rules deny."""

    def __init__(
        self, root: str, is_denied: Callable[[str], bool], places: Sequence[str], watch: Callable[[str], int], most: int
    ) -> None:
        """`places`: everything that rules deny is in one of them. `watch` is called for a directory before it is
        listed, and returns the number of its watch. `most`: files and directories."""
        self.root = root
        self._judge = is_denied
        self._places = tuple(places)
        self.own: frozenset[str] = frozenset()
        """Directories of the agent itself, which are left out."""
        self._targets: tuple[str, ...] = ()
        self._watch = watch
        self.directories: dict[str, KnownDirectory] = {}
        self.denied: set[str] = set()
        """Existing files that rules deny."""
        self.attributes: list[str] = []
        """The `.gitattributes` files."""
        self.made: list[str] = []
        """Directories that are new."""
        self.unreadable: set[str] = set()
        """Directories that could not be listed when they were last looked at."""
        self.vanished: list[tuple[str, int]] = []
        """Directories that are gone, with the numbers of their watches."""
        self.fresh: set[str] = set()
        """Files whose next change may not show in their values."""
        self._most = self._left = most

    # ---------------------------------------------------------------------------------------------------------- values

    def value(self, path: str) -> bytes | None:
        directory, _, name = path.rpartition("/")
        record = self.directories.get(directory)
        return None if record is None else record.files.get(name)

    def put(self, path: str, value: bytes) -> None:
        directory, _, name = path.rpartition("/")
        if record := self.directories.get(directory):
            record.files[name] = value

    def linked(self, inodes: set[bytes]) -> Iterator[tuple[str, bytes]]:
        """The files with these inodes, by all their names in the project."""
        for path, record in self.directories.items():
            for name, value in record.files.items():
                if inode_in(value) in inodes:
                    yield f"{path}/{name}", value

    def is_denied(self, path: str) -> bool:
        if any(is_below(path, target) for target in self._targets):
            return True
        try:
            return self._judge(path)
        except Exception:  # a path that cannot be judged is protected
            return True

    def deny_targets(self) -> bool:
        """Denies what denied links lead to, within the project. True: that is more than was known, walk again."""
        links = [path for path in self.denied if os.path.islink(path)]
        targets = {real for path in links if is_below(real := os.path.realpath(path), self.root) and real != self.root}
        if targets <= {*self._targets}:
            return False
        self._targets = (*self._targets, *sorted(targets))
        self._places = (*self._places, *sorted(targets))
        self.directories.clear()
        self.denied.clear()
        return True

    # --------------------------------------------------------------------------------------------------------- looking

    def walk(self, top: str, touched: Touched | None, *, afresh: bool = False) -> None:
        """Compares the directory, and everything below it, with the disk. `touched` receives the differences; None:
        nothing was known. `afresh`: ignore files are read again. Raises `TooManyFilesError`."""
        self._left = self._most
        pending = deque([top] if self._enter(top, touched) else [])
        while pending:
            path = pending.popleft()
            record = self.directories[path]
            if afresh:
                record.layers, record.ignored = self._rules_for(path)
            pending.extend(self._visit(path, record, touched, afresh=afresh))

    def _enter(self, path: str, touched: Touched | None) -> bool:
        """Whether this is a directory to look into."""
        parent = self.directories.get(os.path.dirname(path))
        if parent is None and path != self.root:
            return False
        try:
            is_directory = stat.S_ISDIR(os.lstat(path).st_mode)
        except OSError:
            is_directory = False
        if not is_directory:
            self.drop(path, touched)
            return False
        if path not in self.directories and not self._add(path, is_new=touched is not None):
            return False
        if parent is not None:
            parent.children.add(os.path.basename(path))
        return True

    def _add(self, path: str, *, is_new: bool = False, wanted: bool = False) -> bool:
        """Knows the directory from now on, if it belongs to the project or rules deny files in it."""
        if path in self.own:
            return False
        layers, ignored = self._rules_for(path)
        reached = any(is_below(path, place) or is_below(place, path) for place in self._places)
        # Git's objects have no names that a rule could mean, and are many.
        if ignored and not wanted and (not reached or path.endswith("/.git/objects")):
            return False
        self.directories[path] = KnownDirectory(layers, ignored=ignored, reached=reached)
        if is_new and not ignored:
            self.made.append(path)
        return True

    def _rules_for(self, path: str) -> tuple[Layers, bool]:
        """The ignore files above a directory, and whether it is ignored itself."""
        parent = self.directories.get(os.path.dirname(path))
        if path == self.root or parent is None:
            return layers_above(self.root), False
        ignored = parent.ignored or path.endswith("/.git") or is_ignored(path, parent.layers, is_directory=True)
        return parent.layers, ignored

    def _visit(self, path: str, record: KnownDirectory, touched: Touched | None, *, afresh: bool) -> list[str]:
        """The directories in it to look into."""
        entries = self._entries(path, record, touched)
        if entries is None:
            return []
        try:
            files, children = self._sorted(path, record, entries, afresh=afresh or not record.listed)
        finally:
            os.close(entries)
        record.listed = True
        self._compare(path, record, files, touched)
        inside: list[str] = []
        for name in children:
            child = f"{path}/{name}"
            if child in self.directories or self._add(child, is_new=touched is not None):
                inside.append(child)
        for name in record.children.difference(children):
            self.drop(f"{path}/{name}", touched)
        record.children = {child.rpartition("/")[2] for child in inside}
        return inside

    def _entries(self, path: str, record: KnownDirectory, touched: Touched | None) -> int | None:
        """A descriptor of the directory. Watched first: what is made while it is listed is seen later."""
        try:
            record.watch = self._watch(path)
            descriptor = os.open(path, _DIRECTORY)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                self.drop(path, touched)
            else:
                self.unreadable.add(path)
            return None
        if not _leads_to(descriptor, path):  # a directory above it was replaced by a link
            os.close(descriptor)
            self.drop(path, touched)
            return None
        self.unreadable.discard(path)
        return descriptor

    def _sorted(
        self, path: str, record: KnownDirectory, descriptor: int, *, afresh: bool
    ) -> tuple[dict[str, bytes], list[str]]:
        """Signatures of the files, and names of the directories."""
        with os.scandir(descriptor) as listing:
            entries = list(listing)
        self._left -= len(entries)
        if self._left < 0:
            raise TooManyFilesError
        if afresh:
            names = {entry.name for entry in entries}
            if ".git" in names:  # a repository inside another one has its own rules
                record.layers = () if path != self.root else record.layers
            if ".gitignore" in names:
                record.layers = layers_in(path, record.layers)
        files: dict[str, bytes] = {}
        children: list[str] = []
        recently = time.time_ns() - _TICK
        for entry in entries:
            name = entry.name
            try:
                if entry.is_dir(follow_symlinks=False):
                    children.append(name)
                elif name in record.files or self._is_wanted(path, name, record):
                    facts = entry.stat(follow_symlinks=False)
                    if self._is_file(f"{path}/{name}", facts.st_mode):
                        files[name] = signature(facts)
                        if facts.st_ctime_ns > recently or not facts.st_ctime_ns % 1_000_000_000:
                            self._note_fresh(f"{path}/{name}", facts.st_ctime_ns)
            except OSError:  # just removed
                continue
        return files, children

    def _compare(self, path: str, record: KnownDirectory, files: dict[str, bytes], touched: Touched | None) -> None:
        if touched is None and not record.files:
            record.files = files
            return
        for name, value in files.items():
            old = record.files.get(name)
            if old is None or old[:SIGNATURE] != value:  # a longer value is kept if nothing has changed
                record.files[name] = value
                if touched is not None:
                    touched.setdefault(f"{path}/{name}", old)
        for name in [name for name in record.files if name not in files]:
            self._forget(f"{path}/{name}", record.files.pop(name), touched)

    def drop(self, path: str, touched: Touched | None) -> None:
        """The directory, and everything below it, is gone."""
        if parent := self.directories.get(os.path.dirname(path)):
            parent.children.discard(os.path.basename(path))
        pending = [path]
        while pending:
            path = pending.pop()
            record = self.directories.pop(path, None)
            if record is None:
                continue
            self.vanished.append((path, record.watch))
            self.unreadable.discard(path)
            pending.extend(f"{path}/{name}" for name in record.children)
            for name, value in record.files.items():
                self._forget(f"{path}/{name}", value, touched)

    def touch(self, directory: str, name: str, touched: Touched) -> os.stat_result | None:
        """Looks at one entry of a directory. The result is that of the file, if it is one of the project."""
        record = self.directories.get(directory)
        if record is None:
            return None
        path = f"{directory}/{name}"
        try:
            facts = os.lstat(path)
        except PermissionError:  # the directory was closed: what became of the file shows when it is open again
            self.unreadable.add(directory)
            return None
        except OSError:
            facts = None
        old = record.files.get(name)
        if facts is not None and old is None and not self._is_wanted(directory, name, record):
            return None
        if facts is None or not self._is_file(path, facts.st_mode):
            if old is not None:
                self._forget(path, record.files.pop(name), touched)
            return None
        record.files[name] = signature(facts)
        touched.setdefault(path, old)
        self._note_fresh(path, facts.st_ctime_ns)
        return facts

    def include(self, path: str) -> bytes | None:
        """Knows a file that is ignored from now on: git tracks it. Its value, if there is one."""
        steps = os.path.dirname(path)[len(self.root) + 1 :].split("/")
        directory = self.root
        for step in filter(None, steps):
            parent, directory = self.directories[directory], f"{directory}/{step}"
            if directory not in self.directories:
                self._add(directory, wanted=True)
                try:
                    self.directories[directory].watch = self._watch(directory)
                except OSError:
                    del self.directories[directory]
                    return None
            parent.children.add(step)
        self.touch_tracked(directory, os.path.basename(path))
        return self.value(path)

    def touch_tracked(self, directory: str, name: str) -> None:
        try:
            facts = os.lstat(f"{directory}/{name}")
        except OSError:
            return
        if self._is_file(f"{directory}/{name}", facts.st_mode):
            self.directories[directory].files[name] = signature(facts)

    # --------------------------------------------------------------------------------------------------------- helpers

    def _forget(self, path: str, value: bytes, touched: Touched | None) -> None:
        self.denied.discard(path)
        if touched is not None:
            touched.setdefault(path, value)

    def _is_wanted(self, directory: str, name: str, record: KnownDirectory) -> bool:
        path = f"{directory}/{name}"
        if name == ".gitattributes":
            self.attributes.append(path)
        if record.reached and self.is_denied(path):
            self.denied.add(path)
            return True
        return not record.ignored and name != ".git" and not is_ignored(path, record.layers, is_directory=False)

    def _is_file(self, path: str, mode: int) -> bool:
        """Named pipes and sockets come and go in a project: they matter only where rules deny them."""
        return stat.S_ISREG(mode) or stat.S_ISLNK(mode) or (not stat.S_ISDIR(mode) and path in self.denied)

    def _note_fresh(self, path: str, changed: int) -> None:
        if time.time_ns() - changed < (_TICK if changed % 1_000_000_000 else _COARSE_TICK):
            self.fresh.add(path)


def _leads_to(descriptor: int, path: str) -> bool:
    """True if the system cannot say."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}") == path
    except OSError:
        return True
