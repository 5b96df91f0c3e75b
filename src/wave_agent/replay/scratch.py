"""A directory for one run on this machine, and a copy of a project, up to a limit, for hooks to run in.

The directory is locked while the run lives. If it is killed, its processes remove the directory; if they were killed
too, the next run does, and ends what their hooks have left running.
"""

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from wave_agent.system.orphans import Leftovers
from wave_agent.tools.search.walk import Walk

PREFIX, WORKER = "wave-backtest-", "worker-"
_LOCK = "lock"
_UNLOCKED_SECONDS = 60
"""A directory without a lock is left alone for this long: its run may just have begun."""
_NEVER = frozenset(
    {"node_modules", ".venv", "venv", "__pycache__", ".tox", ".mypy_cache", ".pytest_cache", ".ruff_cache"}
)
_ALWAYS = (".wave", ".claude", ".codex")
"""Settings and hook scripts, copied even if `.gitignore` lists them."""
_MOST_NEEDED = 2000
"""Files in one of these."""


class CopyLimits(Struct, frozen=True):
    """How much of a project is copied."""

    files: int = 20_000
    total: int = 256 << 20
    one_file: int = 32 << 20


class ChosenFiles(Struct, frozen=True):
    """What to copy of a project, and what not."""

    names: tuple[str, ...]
    """Relative to the project. A directory that is copied even if it is empty ends with a slash."""
    left_out: tuple[str, ...]


# ------------------------------------------------------------------------------------------------------- the directory


class RunDirectory:
    """A new directory that exists until it is closed."""

    def __init__(self) -> None:
        remove_leftovers()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        remove_tree(self.path)
        os.close(self._lock)


def remove_leftovers() -> None:
    """Remove the directories of runs that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/"):
        with suppress(OSError):
            if path.stat().st_uid == os.getuid() and not path.is_symlink() and not _is_in_use(path):
                for worker in path.glob("*/"):
                    end_hooks_of(worker)
                remove_tree(path)


def remove_if_abandoned(worker: Path) -> None:
    """Remove the directory of a replaying process that is about to end, if its run was killed. The last one of its run
    removes the whole."""
    with suppress(OSError):
        run = worker.parent
        if run.name.startswith(PREFIX) and not _is_in_use(run):
            remove_tree(worker)
            if any(run.glob(f"{WORKER}*")):
                return
            for rest in run.glob("*/"):
                remove_tree(rest)
            # The lock goes last: without it, what cannot be removed looks like a new run.
            if [rest.name for rest in run.iterdir()] == [_LOCK]:
                remove_tree(run)


def _is_in_use(path: Path) -> bool:
    try:
        descriptor = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return path.stat().st_mtime > time.time() - _UNLOCKED_SECONDS
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: several may ask at a time
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def end_hooks_of(directory: Path) -> None:
    """End the hooks that a replaying process has left running when it was killed. The directory is its own."""
    if (directory / "running").is_dir():
        left = Leftovers(directory, directory / "cleanup")
        left.open()
        left.close()


def remove_tree(path: Path) -> None:
    """Remove a directory, even if hooks or the kernel have made parts of it unreadable."""

    def open_up(function: Any, name: str, _: Any) -> None:
        with suppress(OSError):
            os.chmod(os.path.dirname(name), stat.S_IRWXU)
            os.chmod(name, stat.S_IRWXU)
            if function in (os.scandir, os.open, os.lstat):
                shutil.rmtree(name, ignore_errors=True)
            else:
                function(name)

    shutil.rmtree(path, onerror=open_up)
    if path.exists():  # what could not be entered then can be now
        shutil.rmtree(path, ignore_errors=True)


# ------------------------------------------------------------------------------------------------------------- the copy


def choose_files(project: Path, needed: Iterable[str] = (), limits: CopyLimits | None = None) -> ChosenFiles:
    """Files that git does not ignore, and the repository if it fits. `needed` are files that come first."""
    budget = _Budget(project, limits or CopyLimits())
    for name in needed_files(project, needed):
        budget.take(name)
    if (project / ".git").is_dir():
        budget.take_repository()
    elif (project / ".git").exists():
        budget.left_out[".git (it only points to another repository)"] = None
    for name, _ in Walk(str(project), str(project)).files():
        if PREFIX in name and any(part.startswith(PREFIX) for part in name.split("/")):
            continue  # temporary files are in the project: this may be the copy itself
        unwanted = next((part for part in name.split("/")[:-1] if part in _NEVER), None)
        if unwanted is not None:
            budget.left_out[f"{name[: name.index(unwanted) + len(unwanted)]}/ (can be regenerated)"] = None
        elif not budget.take(name):
            break
    budget.left_out.update(dict.fromkeys(f"{name} (ignored)" for name in _ignored(project, budget)))
    return ChosenFiles(tuple(budget.names), tuple(budget.left_out))


def needed_files(project: Path, needed: Iterable[str]) -> list[str]:
    """Files that hooks name, settings and scripts, relative to the project."""
    found = [os.path.relpath(path, project) for path in needed if os.path.isfile(path)]
    for directory in _ALWAYS:
        found += islice(_files_below(project, directory), _MOST_NEEDED)
    return [name for name in dict.fromkeys(found) if not name.startswith("..")]


def _files_below(project: Path, directory: str) -> Iterator[str]:
    for folder, inner, files in os.walk(project / directory):
        inner.sort()
        for file in sorted(files):
            path = os.path.join(folder, file)
            if os.path.isfile(path):
                yield os.path.relpath(path, project)


def copy_files(project: Path, target: Path, names: Iterable[str]) -> Iterator[str]:
    """Copy files of the project. Yields what could not be copied, and why."""
    target.mkdir(mode=0o700, exist_ok=True)
    made = {str(target)}
    for name in names:
        copy = os.path.join(target, name)
        try:
            if (parent := os.path.dirname(copy)) not in made:
                os.makedirs(parent, exist_ok=True)
                made.add(parent)
            if not name.endswith("/"):
                _copy(os.path.join(project, name), copy)
        except OSError as error:
            yield f"{name} ({error.strerror or error})"


class _Budget:
    """Collects files until a limit is reached."""

    def __init__(self, project: Path, limits: CopyLimits) -> None:
        self._project = project
        self._limits = limits
        self._total = limits.total
        self.names: dict[str, None] = {}
        self.tops: set[str] = set()
        """Top-level entries that have been looked at."""
        self.left_out: dict[str, None] = {}
        self.is_spent = False

    def take(self, name: str) -> bool:
        """False if there is no room for another file."""
        try:
            size = os.lstat(os.path.join(self._project, name)).st_size
        except OSError as error:
            self.left_out[f"{name} ({error.strerror or error})"] = None
            return True
        if name in self.names:
            return True
        if size > self._limits.one_file:
            self.left_out[f"{name} ({size >> 20} MiB)"] = None
            self.tops.add(name.partition("/")[0])
            return True
        if len(self.names) >= self._limits.files or size > self._total:
            self.left_out["everything beyond the limit (too many files, or too large)"] = None
            self.is_spent = True
            return False
        self._add(name, size)
        return True

    def take_repository(self) -> None:
        """All of it, or nothing."""
        found: dict[str, int] = {}
        room, size = self._limits.files - len(self.names), 0
        for directory, _, files in os.walk(self._project / ".git"):
            place = os.path.relpath(directory, self._project)
            found[f"{place}/"] = 0  # git needs its empty directories too
            for file in files:
                with suppress(OSError):  # git has just removed it
                    found[f"{place}/{file}"] = os.lstat(os.path.join(directory, file)).st_size
                    size += found[f"{place}/{file}"]
            if len(found) > room or size > self._total // 2:
                self.left_out[f".git (more than {size >> 20} MiB or {len(found)} files: too much)"] = None
                return
        for name, own in found.items():
            self._add(name, own)

    def _add(self, name: str, size: int) -> None:
        self.names[name] = None
        self.tops.add(name.partition("/")[0])
        self._total -= size


def _copy(source: str, target: str) -> None:
    """A copy with the same mode and time. File systems that can share the data until it is changed do so."""
    facts = os.lstat(source)
    if stat.S_ISLNK(facts.st_mode):
        os.symlink(os.readlink(source), target)
        return
    if not stat.S_ISREG(facts.st_mode):
        raise OSError(None, "not a file")
    if hasattr(os, "copy_file_range"):
        _copy_in_kernel(source, target, stat.S_IMODE(facts.st_mode))
    else:
        shutil.copyfile(source, target, follow_symlinks=False)
        os.chmod(target, stat.S_IMODE(facts.st_mode))
    os.utime(target, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def _copy_in_kernel(source: str, target: str, mode: int) -> None:
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            try:
                while os.copy_file_range(reading, writing, 1 << 30):
                    pass
            except OSError:  # not between these file systems
                os.lseek(reading, 0, os.SEEK_SET)
                os.ftruncate(writing, 0)
                os.lseek(writing, 0, os.SEEK_SET)
                while data := os.read(reading, 1 << 20):
                    os.write(writing, data)
            os.fchmod(writing, mode)
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def _ignored(project: Path, budget: _Budget) -> list[str]:
    """Top-level entries of the project that git ignores. Unknown once the budget is spent."""
    if budget.is_spent:
        return []
    try:
        names = sorted(os.listdir(project))
    except OSError:
        return []
    return [
        f"{name}/" if (project / name).is_dir() else name
        for name in names
        if name != ".git" and name not in _NEVER and name not in budget.tops and _has_files(project / name)
    ]


def _has_files(path: Path) -> bool:
    return not path.is_dir() or any(path.iterdir()) if os.access(path, os.R_OK) else True
