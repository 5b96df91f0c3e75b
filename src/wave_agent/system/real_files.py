"""Files by their real paths: the file that was judged is the file that is opened.

Between checking a path and using it, another process can replace it with a link or another directory. So a path is
resolved once, and only a file with exactly that real path is opened afterwards.

Imports nothing slow: the search program uses it too.
"""

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import NamedTuple

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Without O_NONBLOCK, opening a named pipe waits for a writer."""
# With O_PATH, a directory that can be traversed but not listed can be opened as well.
_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 18

Identity = tuple[int, int]
"""Device and inode."""


class ReplacedError(OSError):
    """The path leads to something other than when it was judged."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ESTALE, "it was moved or replaced meanwhile; try again", path)


class Seen(NamedTuple):
    """What a path led to when it was checked."""

    real: str
    """Absolute, without links."""
    parent: Identity | None
    """Its parent directory; None if that does not exist."""
    file: Identity | None
    """None: not found."""

    def check_parent(self, facts: os.stat_result) -> None:
        """Raises `ReplacedError` for a different directory. A missing one may have been created in the meantime."""
        if self.parent not in (None, identity(facts)):
            raise ReplacedError(self.real)

    def check_file(self, facts: os.stat_result) -> None:
        """Raises `ReplacedError` for a different file, or if there was none."""
        if self.file != identity(facts):
            raise ReplacedError(self.real)


def identity(facts: os.stat_result) -> Identity:
    return facts.st_dev, facts.st_ino


def is_below(path: str, base: str) -> bool:
    """Below or equal. Both are absolute, and both are real paths or neither is."""
    return path == base or path.startswith(base.rstrip("/") + "/")


def resolve(path: str) -> str:
    """The real path, existing or not. Raises `OSError` if the system cannot resolve it, or if it is not a valid
    path."""
    if "\0" in path:
        raise OSError(errno.EINVAL, "a path cannot contain a NUL character", path.replace("\0", "\\0"))
    try:
        os.fsencode(path)  # whichever part of it reaches the system
        real = os.path.realpath(path)
    except UnicodeError:
        shown = path.encode(errors="backslashreplace").decode()
        raise OSError(errno.EILSEQ, "it contains half a surrogate pair, which no path can", shown) from None
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error), path) from None
    return real[1:] if real.startswith("//") else real  # POSIX keeps two leading slashes


def resolve_or_keep(path: str) -> str:
    """The real path or, if the system cannot resolve it, the path unchanged. Only for comparisons: open files with the
    functions below."""
    try:
        return resolve(path)
    except OSError:
        return path


def look(path: str) -> Seen:
    """Raises `OSError` if the system cannot resolve the path."""
    real = resolve(path)
    there = _facts(real)
    if there is not None and stat.S_ISLNK(there.st_mode):
        raise OSError(errno.ELOOP, "it is a symbolic link that points back to itself", path)
    above = _facts(os.path.dirname(real))
    return Seen(real, above and identity(above), there and identity(there))


def _facts(path: str) -> os.stat_result | None:
    """None: there is nothing, or nothing that could be opened."""
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None


def open_file(real: str) -> int:
    """A descriptor of the file with this real path, for reading. Never blocks. Raises `OSError`."""
    try:
        descriptor = os.open(real, _READ)
    except OSError as error:
        raise _explained(error, real) from None
    if _real_path_of(descriptor) == real:
        return descriptor
    os.close(descriptor)
    with opened_directory(os.path.dirname(real)) as parent:  # the slow way, which is certain
        return open_in(parent, real)


def open_in(parent: int, real: str) -> int:
    """The same, for a file in an open directory."""
    try:
        return os.open(os.path.basename(real), _READ, dir_fd=parent)
    except OSError as error:
        raise _explained(error, real) from None


@contextmanager
def opened_directory(real: str, *, make: bool = False) -> Generator[int]:
    """A descriptor of the directory with this real path. `make`: it and missing parents are created. Raises
    `OSError`."""
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
    """A link in a real path did not exist when the path was resolved."""
    if error.errno in (errno.ELOOP, errno.EMLINK):  # FreeBSD reports EMLINK
        return ReplacedError(real)
    return error


def _real_path_of(descriptor: int) -> str | None:
    """None if the system cannot tell."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None


def read_at_most(descriptor: int, limit: int) -> tuple[bytes, bool]:
    """The file's content, and whether that is all of it. `BlockingIOError` if reading would block."""
    pieces: list[bytes] = []
    left = limit + 1
    size = os.fstat(descriptor).st_size
    while left and (piece := os.read(descriptor, min(left, max(size + 1, _CHUNK)))):
        pieces.append(piece)
        left -= len(piece)
        size -= len(piece)
    data = b"".join(pieces)
    return data[:limit], len(data) <= limit
