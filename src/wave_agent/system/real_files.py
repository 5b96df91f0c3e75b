"""Files by their real paths: what was judged is what is opened.

Between a look at a path and its use, somebody can put a link, or another directory, in the place of what was seen. So a
path is resolved once, and what is opened afterwards has exactly that real path, or nothing is opened.

Imports nothing that is slow to import: the search program uses it too.
"""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import NamedTuple

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Without O_NONBLOCK, opening a named pipe waits for somebody to write."""
# Where there is O_PATH, a directory that may be passed but not listed can be opened as well.
_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 18

Identity = tuple[int, int]
"""Device and inode."""


class ReplacedError(OSError):
    """The path leads to something else than it did when it was judged."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ESTALE, "it was moved or replaced meanwhile; try again", path)


class Seen(NamedTuple):
    """What a path led to when somebody looked."""

    real: str
    """Absolute, without links."""
    parent: Identity | None
    """The directory that it is in; None if there is none."""
    file: Identity | None
    """None: nothing there."""

    def check_parent(self, facts: os.stat_result) -> None:
        """Raises `ReplacedError` for another directory. One that was not there may have been made meanwhile."""
        if self.parent not in (None, identity(facts)):
            raise ReplacedError(self.real)

    def check_file(self, facts: os.stat_result) -> None:
        """Raises `ReplacedError` for another file, and for one where there was none."""
        if self.file != identity(facts):
            raise ReplacedError(self.real)


def identity(facts: os.stat_result) -> Identity:
    return facts.st_dev, facts.st_ino


def is_below(path: str, base: str) -> bool:
    """Or the same. Both are absolute, and both are real paths or neither is."""
    return path == base or path.startswith(base.rstrip("/") + "/")


def resolve(path: str) -> str:
    """The real path, whether something is there or not. Raises `OSError` where the system cannot tell, also for what
    cannot be a path."""
    if "\0" in path:
        raise OSError(errno.EINVAL, "a path cannot hold a NUL character", path.replace("\0", "\\0"))
    try:
        os.fsencode(path)  # whatever part of it the system gets to see
        real = os.path.realpath(path)
    except UnicodeError:
        shown = path.encode(errors="backslashreplace").decode()
        raise OSError(errno.EILSEQ, "it has half a surrogate pair in it, which no path can hold", shown) from None
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error), path) from None
    return real[1:] if real.startswith("//") else real  # POSIX lets two leading slashes stand


def resolve_or_keep(path: str) -> str:
    """The real path or, where the system cannot tell, the path as it is. Only for comparing: open what it names with
    the functions below."""
    try:
        return resolve(path)
    except OSError:
        return path


def look(path: str) -> Seen:
    """Raises `OSError` where the system cannot tell where the path leads."""
    real = resolve(path)
    there = _facts(real)
    if there is not None and stat.S_ISLNK(there.st_mode):
        raise OSError(errno.ELOOP, "it is a symbolic link that leads back to itself", path)
    above = _facts(os.path.dirname(real))
    return Seen(real, above and identity(above), there and identity(there))


def _facts(path: str) -> os.stat_result | None:
    """None: nothing is there, or nothing that could be opened."""
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None


def open_file(real: str) -> int:
    """A descriptor of the file with this real path, for reading. It never waits. Raises `OSError`."""
    try:
        descriptor = os.open(real, _READ)
    except OSError as error:
        raise _explained(error, real) from None
    if _real_path_of(descriptor) == real:
        return descriptor
    os.close(descriptor)
    with opened_directory(os.path.dirname(real)) as parent:  # the slow way, which tells for certain
        return open_in(parent, real)


def open_in(parent: int, real: str) -> int:
    """The same, of a file in a directory that is open."""
    try:
        return os.open(os.path.basename(real), _READ, dir_fd=parent)
    except OSError as error:
        raise _explained(error, real) from None


@contextmanager
def opened_directory(real: str, *, make: bool = False) -> Generator[int]:
    """A descriptor of the directory with this real path. `make`: it and those above it are made where they are missing.
    Raises `OSError`."""
    descriptor = _open_directory(real, make=make)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open_directory(real: str, *, make: bool) -> int:
    with suppress(OSError):
        descriptor = os.open(real, _DIRECTORY)
        if _real_path_of(descriptor) == real:
            return descriptor
        os.close(descriptor)
    descriptor = os.open("/", _DIRECTORY)
    for name in filter(None, real.split("/")):
        try:
            inner = _step(descriptor, name, make=make)
        except OSError as error:
            raise _explained(error, real) from None
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def _step(parent: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=parent)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=parent)
    return os.open(name, _DIRECTORY, dir_fd=parent)


def _explained(error: OSError, real: str) -> OSError:
    """A link in a real path was not there when the path was resolved."""
    if error.errno in (errno.ELOOP, errno.EMLINK):  # FreeBSD says EMLINK
        return ReplacedError(real)
    return error


def _real_path_of(descriptor: int) -> str | None:
    """None where the system does not tell."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None


def read_at_most(descriptor: int, limit: int) -> tuple[bytes, bool]:
    """What is in the file, and whether that is all of it. `BlockingIOError` where reading would have to wait."""
    pieces: list[bytes] = []
    left = limit + 1
    size = os.fstat(descriptor).st_size
    while left and (piece := os.read(descriptor, min(left, max(size + 1, _CHUNK)))):
        pieces.append(piece)
        left -= len(piece)
        size -= len(piece)
    data = b"".join(pieces)
    return data[:limit], len(data) <= limit
