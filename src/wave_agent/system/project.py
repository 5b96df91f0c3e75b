"""Where a project starts: an agent may be started anywhere below, without losing a guard."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from wave_agent.system.project_files import NotReadError, read_project_file
from wave_agent.system.real_files import resolve_or_keep

_LARGEST_POINTER = 4096
"""Bytes to read of a `.git` file."""


class Project(Struct, frozen=True):
    """A project, and where in it an agent is started. Real paths."""

    directory: str
    """The outermost directory with settings, else the root of the repository, else where the agent is started. Trust,
    file rules and the hooks' working directory are based on it."""
    start: str
    """Commands and relative paths start here."""
    root: str
    """Its outermost directory: the repository's root, if there is one. Instructions are read from here down."""

    @classmethod
    def at(cls, directory: str) -> "Project":
        """A project whose agent starts in its root."""
        return cls(directory, directory, directory)

    @property
    def inner(self) -> tuple[str, ...]:
        """The directories whose settings apply, relative to the project; the outermost comes first, and is empty."""
        parts = Path(self.start).relative_to(self.directory).parts
        return tuple("/".join(parts[:end]) for end in range(len(parts) + 1))

    @property
    def levels(self) -> tuple[str, ...]:
        """The same as absolute paths."""
        return tuple(os.path.join(self.directory, inner).rstrip("/") or "/" for inner in self.inner)

    @property
    def path(self) -> tuple[str, ...]:
        """Every directory from the root to where the agent is started."""
        return tuple(_upwards(self.start, self.root))[::-1]


def find_project(start: str, has_settings: Callable[[str], bool], user_home: str) -> Project:
    """The project around `start`, a real path. `has_settings` tells whether a directory has settings."""
    repository = _repository(start, user_home)
    outermost = _outermost(start, repository, user_home)
    found = [one for one in reversed(list(_upwards(start, outermost))) if has_settings(one)]
    directory = found[0] if found else repository or start
    return Project(directory, start, min(directory, repository or directory, key=len))


def branch_of(directory: str) -> str:
    """The branch checked out around a directory, else the commit, read from git's own file.

    Empty outside a repository, or if that file cannot be relied on.
    """
    git = git_directory(directory)
    if git is None:
        return ""
    head = os.path.join(git, "HEAD")
    try:
        with open(head, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            text = file.read(_LARGEST_POINTER).decode(errors="replace").strip()
    except OSError:
        return ""
    return text.removeprefix("ref: ").removeprefix("refs/heads/") if text.startswith("ref: ") else f"commit {text[:40]}"


def git_directory(directory: str) -> str | None:
    """Git's own directory of the repository around a directory."""
    root = next((one for one in _upwards(directory, "/") if _has_git(one)), None)
    return None if root is None else _pointed(root) or os.path.join(root, ".git")


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)  # a FIFO may never have a writer


def _upwards(start: str, end: str) -> Iterator[str]:
    """From `start` up to `end`, which is a parent of it or the same."""
    yield start
    while start != end:
        start = os.path.dirname(start)
        yield start


def _outermost(start: str, repository: str | None, user_home: str) -> str:
    """How far up to look for settings."""
    if repository is not None:
        return _superproject(repository, user_home) or repository
    below_home = start.startswith(user_home.rstrip("/") + "/")
    above = start
    for parent in _parents(start, user_home):
        if not (below_home or _is_own(parent)):
            break
        above = parent
    return above


def _parents(start: str, user_home: str) -> Iterator[str]:
    """The parent directories, up to the user's home, a shared place such as /tmp, and the file system's root. None of
    these is a project for the directories below it."""
    while start not in ("/", user_home):
        start = os.path.dirname(start)
        if start in ("/", user_home) or _is_for_everybody(start):
            return
        yield start


def _repository(start: str, user_home: str) -> str | None:
    """The root of the git repository around a directory. A home that is a repository (for dotfiles) is ignored."""
    above = start
    while not (above != user_home and _has_git(above)):
        above = os.path.dirname(above)
        if above == os.path.dirname(above) or _is_for_everybody(above):
            return None
    return above


def _superproject(repository: str, user_home: str) -> str | None:
    """The root of the outermost repository that this one is a submodule of."""
    found = None
    git = _pointed(repository)
    for above in _parents(repository, user_home) if git is not None else ():
        if not _has_git(above):
            continue
        theirs = _pointed(above) or resolve_or_keep(os.path.join(above, ".git"))
        if git is None or not git.startswith(f"{theirs}/modules/"):
            break
        found, git = above, _pointed(above)
    return found


def _has_git(directory: str) -> bool:
    """An empty `.git` is not a repository, so it cannot hide the one around it."""
    return os.path.lexists(os.path.join(directory, ".git", "HEAD")) or _pointed(directory) is not None


def _pointed(directory: str) -> str | None:
    """The target of the `.git` file of a worktree or submodule."""
    file = os.path.join(directory, ".git")
    if not os.path.lexists(file):  # most directories: there is nothing to resolve and open
        return None
    try:
        data = read_project_file(file, directory, _LARGEST_POINTER)
    except NotReadError:
        return None
    text = os.fsdecode(data or b"")
    label, _, path = text.partition(":")
    usable = label == "gitdir" and path.strip() and "\0" not in path
    return resolve_or_keep(os.path.join(directory, path.strip())) if usable else None


def _is_for_everybody(directory: str) -> bool:
    try:
        mode = os.stat(directory).st_mode
    except OSError:
        return False
    return bool(mode & stat.S_IWOTH and mode & stat.S_ISVTX)


def _is_own(directory: str) -> bool:
    try:
        return os.stat(directory).st_uid == os.geteuid()
    except OSError:
        return False
