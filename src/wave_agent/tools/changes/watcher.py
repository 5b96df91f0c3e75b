"""Which files of the project were created, changed or deleted since the last look, and what they contained before.

On Linux the kernel reports which directory entries were touched (see `inotify`), so a look costs no more than what has
changed. Elsewhere, and if there are more directories than may be watched, every look compares all files.

What is covered: files and symlinks below the project directory, except for git's own and those that `.gitignore` files
ignore, as they were before the look; files that a rule denies are always covered. A file that is known stays known if
it is ignored later. Content and permissions matter, times do not. Former contents come from git if the file was tracked
and unmodified when the watch was armed, otherwise from copies within the limits below.

What escapes: a write through a hard link outside the project to a file that no rule denies, and a change through a
memory map of a process that still runs. Both show at the next look that compares all files.
"""

import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from wave_agent.system.real_files import Identity, identity, is_below, open_file, read_at_most, resolve, resolve_or_keep
from wave_agent.tools.changes.found import FileChange, FoundChanges
from wave_agent.tools.changes.git_index import GitObjects, clean_files, converts, find_work_tree
from wave_agent.tools.changes.inotify import Inotify, Mask, TouchedEntry, watches_allowed
from wave_agent.tools.changes.signatures import FACTS, SIGNATURE, inode_in, mode_in, signature, size_in
from wave_agent.tools.changes.store import ContentStore
from wave_agent.tools.changes.tree import KnownTree, TooManyFilesError, Touched
from wave_agent.tools.changes.versions import BlobContent, Content, FileVersion, LostContent


class WatchLimits(Struct, frozen=True, kw_only=True):
    """Sizes in bytes."""

    denied: int = 64 << 20
    """Kept of all files that rules deny."""
    copies: int = 64 << 20
    """Copied of files that neither git has nor rules deny, when the watch is armed."""
    copied_files: int = 10_000
    copied: int = 1 << 20
    """Maximum size of one of them."""
    stored: int = 192 << 20
    """Kept of all files that rules do not deny, including those that changed later."""
    largest: int = 8 << 20
    """Maximum size of a changed file whose content is kept, unless a rule denies it."""
    always_checked: int = 2_000
    """Denied files that are watched by themselves: they may have another name outside the project."""
    files: int = 400_000
    """Files and directories of a project. A home directory has more."""
    watches: int | None = None
    """Watched directories; None: half of what the system allows a user, who has an editor too."""


_NOT_COPIED = LostContent("was not kept: it is too large, or the project has too many files that are not in git")


def nothing_denied(_path: str) -> bool:
    return False


class _CannotWatchError(Exception):
    """The system allows no more watches."""


class ProjectWatcher:
    """Every method but `is_quiet` blocks: call it in a thread. Safe to use from several threads."""

    def __init__(
        self,
        root: str,
        private: Path,
        *,
        is_denied: Callable[[str], bool] = nothing_denied,
        places: Sequence[str] | None = None,
        own: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        watch: bool = True,
        limits: WatchLimits | None = None,
    ) -> None:
        """`private` is a directory of the agent, for former contents. `is_denied` says whether a deny rule names a
        path; an error in it is a yes. What a denied link leads to is denied too, if it is in the project. Everything
        that rules deny is in one of the real paths `places`; None: it may be anywhere. `own` are directories in which
        the agent itself writes: they are left out. `environment` is for git. Without `watch`, all files are compared.
        """
        self.root = resolve(root)
        self._environment = os.environ if environment is None else environment
        self._limits = limits or WatchLimits()
        self._denied_contents = ContentStore(private, self._limits.denied)
        self._contents = ContentStore(private, self._limits.stored)
        self._kept: dict[str, Content] = {}
        watched_places = () if is_denied is nothing_denied else (self.root,) if places is None else tuple(places)
        self._tree = KnownTree(self.root, is_denied, watched_places, self._watch, self._limits.files)
        self._tree.own = frozenset(resolve_or_keep(path) for path in (*own, str(private)))
        self._queue: Inotify | None = None
        self._wants_watch = watch
        self._watched: dict[int, str] = {}
        self._watched_files: dict[int, str] = {}
        self._unsure: set[str] = set()
        """Denied files that may have changed just before they were watched: the next look checks them."""
        self._checks_all = False
        """Not all denied files are watched: every look checks all of them."""
        self._objects = GitObjects(self.root, self._environment)
        self._later: Touched = {}
        """Differences that were noticed, but belong to the next look."""
        self._identity: Identity | None = None
        self._armed = False
        self.off = ""
        """Why nothing is watched; empty: everything is."""
        self._lock = threading.RLock()

    # ------------------------------------------------------------------------------------------------------------- use

    def arm(self) -> None:
        """Learns all files. Changes from now on are reported. Does nothing if it is armed."""
        with self._lock:
            if self._armed:
                return
            self._armed = True
            try:
                self._learn()
            except (OSError, TooManyFilesError) as error:
                self._give_up(error)

    def settle(self) -> FoundChanges:
        """What has changed since the last call, or since the watch was armed; arms it if necessary.

        Called before a tool runs, the result is what others changed in the meantime; called after it, what changed
        while it ran.
        """
        with self._lock:
            if not self._armed:
                self.arm()
                return self._found(())
            if self.off:
                return self._found(())
            try:
                touched = self._gather()
            except (OSError, TooManyFilesError) as error:
                self._give_up(error)
                return self._found(())
            changes = tuple(self._changes(touched))
            found = self._found(changes)
            if any(change.path.endswith("/.gitignore") for change in changes):
                self._read_rules_again()
            return found

    def is_quiet(self) -> bool:
        """Whether `settle` has nothing to look at, and so need not run in a thread. Does not block."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if not self._armed or self._queue is None or self._later or self._unsure or self._checks_all:
                return bool(self.off)
            return self._identify() == self._identity and not self._queue.has_news()
        finally:
            self._lock.release()

    @property
    def watches(self) -> bool:
        """False: every look compares all files."""
        return self._queue is not None

    @property
    def unkept(self) -> dict[str, str]:
        """Existing files that rules deny, but whose content is not kept, and why."""
        with self._lock:
            lost = ((path, self._kept.get(path, _NOT_COPIED)) for path in sorted(self._tree.denied))
            return {path: content.why for path, content in lost if isinstance(content, LostContent)}

    def close(self) -> None:
        """Former contents cannot be read any more."""
        with self._lock:
            self._stop_watching()
            self._contents.close()
            self._denied_contents.close()
            self.off = "it is closed"

    def _found(self, changes: tuple[FileChange, ...]) -> FoundChanges:
        made, self._tree.made = sorted(self._tree.made), []
        unseen = (self.root,) if self.off else tuple(sorted(self._tree.unreadable))
        return FoundChanges(changes=changes, directories=tuple(made), unseen=unseen)

    def _give_up(self, error: Exception) -> None:
        self._stop_watching()
        self._tree.directories.clear()
        self.off = "it has too many files" if isinstance(error, TooManyFilesError) else f"it cannot be read: {error}"

    # ---------------------------------------------------------------------------------------------------------- arming

    def _learn(self) -> None:
        self._identity = self._identify()
        if self._wants_watch:
            self._start_watching()
        self._walk_first()
        while self._tree.deny_targets():
            self._walk_first()
        self._tree.vanished.clear()
        for path in sorted(self._tree.denied):
            self._keep(path, self._tree.value(path) or b"", denied=True)
        self._watch_denied()
        self._ask_git()
        self._copy()

    def _walk_first(self) -> None:
        try:
            self._tree.walk(self.root, None)
        except _CannotWatchError:
            self._stop_watching()
            self._tree.directories.clear()
            self._tree.walk(self.root, None)

    def _ask_git(self) -> None:
        """Which files need no copy."""
        tree = find_work_tree(self.root)
        if tree is None or converts(tree, self._tree.attributes, self._environment.get("HOME")):
            return
        for file in clean_files(tree):
            path = os.path.join(tree.top, file.path)
            if not is_below(path, self.root):
                continue
            value = self._tree.value(path)
            if value is None and os.path.lexists(path):
                value = self._included(path)
            if value is not None and value[:FACTS] == file.facts:
                self._tree.put(path, value[:SIGNATURE] + file.name)

    def _included(self, path: str) -> bytes | None:
        try:
            return self._tree.include(path)
        except _CannotWatchError:
            self._stop_watching()
            return self._tree.include(path)

    def _copy(self) -> None:
        left = self._limits.copied_files
        for directory, record in self._tree.directories.items():
            for name, value in record.files.items():
                path = f"{directory}/{name}"
                if len(value) > SIGNATURE or size_in(value) > self._limits.copied or path in self._kept:
                    continue
                left -= 1
                if left < 0 or not self._keep(path, value, denied=False, room=self._limits.copies):
                    return

    def _keep(self, path: str, value: bytes, *, denied: bool, room: int | None = None) -> bool:
        """False: there is no room for it."""
        content = self._stored(self._read(path, value, denied=denied), denied=denied, room=room)
        if denied or not isinstance(content, LostContent):
            self._kept[path] = content
        return content is not _FULL

    # --------------------------------------------------------------------------------------------------------- looking

    def _gather(self) -> Touched:
        """Everything that may have changed."""
        touched, self._later = self._later, {}
        fresh, self._tree.fresh = self._tree.fresh, set()
        try:
            whole = self._queue is None or self._is_replaced() or not self._follow(self._queue.read(), touched)
        except _CannotWatchError:
            self._stop_watching()
            whole = True
        if whole:
            self._compare_all(touched)
            for path in fresh:  # these may have changed without a sign of it
                if (value := self._tree.value(path)) is not None:
                    touched.setdefault(path, value)
        else:
            self._check_denied(touched)
        self._forget_vanished()
        return touched

    def _is_replaced(self) -> bool:
        """Another directory is in the place of the project: what is watched is elsewhere."""
        before, self._identity = self._identity, self._identify()
        return before != self._identity

    def _identify(self) -> Identity | None:
        try:
            return identity(os.lstat(self.root))
        except OSError:
            return None

    def _compare_all(self, touched: Touched) -> None:
        if self._queue is not None:  # events were lost: all watches are made anew
            self._stop_watching()
            self._start_watching()
        try:
            self._tree.walk(self.root, touched)
        except _CannotWatchError:
            self._stop_watching()
            self._tree.walk(self.root, touched)
        self._watch_denied()

    def _follow(self, events: Iterable[TouchedEntry], touched: Touched) -> bool:
        """Looks at what the events name. False: events were lost."""
        directories: set[str] = set()
        entries: set[tuple[str, str]] = set()
        for watch, mask, name in events:
            if mask & Mask.OVERFLOW:
                return False
            if watch in self._watched_files:
                entries.add(_parted(self._watched_files[watch]))
                if mask & Mask.IGNORED:
                    del self._watched_files[watch]
                continue
            directory = self._watched.get(watch)
            if directory is None:
                continue
            if mask & Mask.IGNORED:
                del self._watched[watch]
                directories.add(directory)
            elif name and mask & Mask.IS_DIRECTORY:
                inside = f"{directory}/{name}"
                if not mask & Mask.ATTRIB or any(is_below(closed, inside) for closed in self._tree.unreadable):
                    directories.add(inside)
            elif name:
                entries.add((directory, name))
        # What is below a directory that is compared as a whole needs no look of its own.
        for path in sorted(directories):
            if not any(above in directories for above in _above(path, self.root)):
                self._tree.walk(path, touched)
        self._touch(entries, touched)
        return True

    def _touch(self, entries: Iterable[tuple[str, str]], touched: Touched) -> None:
        links: set[bytes] = set()
        for directory, name in entries:
            facts = self._tree.touch(directory, name, touched)
            if facts is not None and facts.st_nlink > 1:
                links.add(inode_in(signature(facts)))
        if links:  # an event names only one of a file's names
            for path in [path for path, _ in self._tree.linked(links)]:
                self._tree.touch(*_parted(path), touched)

    def _check_denied(self, touched: Touched) -> None:
        checked, self._unsure = self._tree.denied if self._checks_all else self._unsure, set()
        if len(checked) > self._limits.always_checked:
            return
        for path in sorted(checked):
            value = self._tree.value(path)
            try:
                same = value is not None and signature(os.lstat(path)) == value[:SIGNATURE]
            except OSError:
                same = False
            if not same:
                self._tree.touch(*_parted(path), touched)

    def _forget_vanished(self) -> None:
        for path, watch in self._tree.vanished:
            # A directory that was moved within the project has the same watch there.
            if self._queue is not None and self._watched.get(watch) == path:
                self._queue.forget(watch)
                del self._watched[watch]
        self._tree.vanished.clear()

    def _read_rules_again(self) -> None:
        """Knows the files that are not ignored any more. That is no change of theirs; whatever else differs by now is
        reported by the next look."""
        touched: Touched = {}
        try:
            self._tree.walk(self.root, touched, afresh=True)
        except _CannotWatchError:
            self._stop_watching()
        except (OSError, TooManyFilesError) as error:
            self._give_up(error)
        self._tree.made.clear()
        for path, old in touched.items():
            if old is not None:
                self._later.setdefault(path, old)
            elif (value := self._tree.value(path)) is not None:
                self._keep(path, value, denied=path in self._tree.denied)

    # --------------------------------------------------------------------------------------------------------- judging

    def _changes(self, touched: Touched) -> Iterator[FileChange]:
        for path in sorted(touched):
            change = self._change(path, touched[path], self._tree.value(path))
            if change is not None:
                yield change

    def _change(self, path: str, old: bytes | None, new: bytes | None) -> FileChange | None:
        before = None if old is None else self._version(path, old)
        denied = self._tree.is_denied(path)
        if new is None:
            self._kept.pop(path, None)
            if before is None:
                return None
            return FileChange(path=path, kind="deleted", before=before, after=None, denied=denied)
        if denied:  # with the same content it may be another file
            self._watch_file(path)
        data = self._read(path, new, denied=denied)
        same = before.content.equals(data) if before is not None and isinstance(data, bytes) else None
        if old is not None and same:
            self._tree.put(path, new[:SIGNATURE] + old[SIGNATURE:])
        elif old is not None and same is None and old[:SIGNATURE] == new[:SIGNATURE]:
            return None
        if old is not None and same and mode_in(old) == mode_in(new):
            return None
        content = before.content if before is not None and same else self._stored(data, denied=denied)
        self._kept[path] = content
        after = FileVersion(mode_in(new), content, new[:SIGNATURE])
        kind = "created" if before is None else "changed"
        return FileChange(path=path, kind=kind, before=before, after=after, denied=denied)

    def _version(self, path: str, value: bytes) -> FileVersion:
        content = self._kept.get(path)
        if content is None:
            name = value[SIGNATURE:]
            content = BlobContent(self._objects.read, name, size_in(value)) if name else _NOT_COPIED
        return FileVersion(mode_in(value), content, value[:SIGNATURE])

    def _read(self, path: str, value: bytes, *, denied: bool) -> bytes | LostContent:
        limit = self._limits.denied if denied else self._limits.largest
        try:
            if stat.S_ISLNK(mode_in(value)):
                return os.fsencode(os.readlink(path))
            if size_in(value) > limit:
                return LostContent(f"was not kept: it is larger than {limit:,} bytes")
            descriptor = open_file(path)
        except OSError as error:
            return LostContent(f"was not kept: it could not be read ({error.strerror})")
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return LostContent("was not kept: it was replaced meanwhile")
            data, complete = read_at_most(descriptor, limit)
        except OSError as error:
            return LostContent(f"was not kept: it could not be read ({error.strerror})")
        finally:
            os.close(descriptor)
        return data if complete else LostContent(f"was not kept: it is larger than {limit:,} bytes")

    def _stored(self, data: bytes | LostContent, *, denied: bool, room: int | None = None) -> Content:
        if isinstance(data, LostContent):
            return data
        store = self._denied_contents if denied else self._contents
        return store.add(data, room) or (_FULL_DENIED if denied else _FULL)

    # -------------------------------------------------------------------------------------------------------- watching

    def _start_watching(self) -> None:
        try:
            self._queue = Inotify()
        except OSError:
            return
        self._allowed = watches_allowed() if self._limits.watches is None else self._limits.watches

    def _stop_watching(self) -> None:
        if self._queue is not None:
            self._queue.close()
        self._queue = None
        self._watched.clear()
        self._watched_files.clear()

    def _watch_denied(self) -> None:
        self._checks_all = False
        if len(self._tree.denied) <= self._limits.always_checked:
            for path in self._tree.denied:
                self._watch_file(path)

    def _watch_file(self, path: str) -> None:
        """By itself, in addition to its directory."""
        self._unsure.add(path)
        if self._queue is None or self._checks_all:
            return
        if len(self._watched) + len(self._watched_files) >= self._allowed:
            self._checks_all = True
            return
        try:
            self._watched_files[self._queue.watch_file(path)] = path
        except FileNotFoundError:  # it has vanished by now, which its directory reports
            pass
        except OSError:
            self._checks_all = True

    def _watch(self, directory: str) -> int:
        """Raises `_CannotWatchError` at a limit of the system, `OSError` if this directory cannot be watched."""
        if self._queue is None:
            return -1
        if len(self._watched) >= self._allowed:
            raise _CannotWatchError
        try:
            watch = self._queue.watch(directory)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            raise
        except OSError:
            raise _CannotWatchError from None
        self._watched[watch] = directory
        return watch


_FULL = LostContent("was not kept: too much has changed in this session")
_FULL_DENIED = LostContent("was not kept: the files that rules protect are too large together")


def _parted(path: str) -> tuple[str, str]:
    directory, _, name = path.rpartition("/")
    return directory, name


def _above(path: str, root: str) -> Iterator[str]:
    while len(path) > len(root):
        path = path.rpartition("/")[0]
        yield path
