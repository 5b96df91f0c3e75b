"""Files as the tools see them: what has been read in this session, and atomic writes."""

import asyncio
import errno
import hashlib
import json
import os
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import TypeVar

from wave_agent.system.real_files import Seen, look, open_file, open_in, opened_directory, read_at_most, resolve_or_keep
from wave_agent.text import nearest
from wave_agent.tools.base import ToolResult

_T = TypeVar("_T")

SIZE_LIMIT = 64 << 20
"""Maximum size of a file that is read or edited whole, in bytes."""


class FileRefusedError(Exception):
    """Why a file cannot be read or written, and what to do instead."""

    def result(self) -> ToolResult:
        return ToolResult(content=str(self), success=False, ran=False)


async def uninterrupted(change: Callable[[], _T]) -> _T:
    """Runs a change to a file in a thread. Every cancellation waits for its end: the change is never half done, and
    never done later."""
    work = asyncio.ensure_future(asyncio.to_thread(change))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([work])
        raise


class KnownFiles:
    """The content of each file when the model last saw it. Shared by the tools of one session."""

    def __init__(self) -> None:
        self._seen: dict[str, bytes] = {}
        self._order: dict[str, int] = {}
        self._count = count()
        self.lock = threading.Lock()
        """Held between checking a file and writing it, so that parallel calls do not undo each other."""

    def note(self, path: str, data: bytes) -> None:
        target = resolve_or_keep(path)
        self._seen[target] = _digest(data)
        self._order[target] = next(self._count)

    def forget(self, path: str) -> None:
        """`path` is one of `latest`, whatever it points to by now."""
        self._seen.pop(path, None)

    def latest(self) -> list[str]:
        """Real paths, most recently noted first."""
        return sorted(self._seen.copy(), key=lambda path: -self._order.get(path, 0))

    def holds(self, path: str, data: bytes) -> bool:
        """Whether this is the content the model last saw. `path` is one of `latest`."""
        return self._seen.get(path) == _digest(data)

    def check(self, path: str, data: bytes, hint: str = "") -> None:
        """Raises `FileRefusedError` unless the model has seen exactly this content. `hint` ends the message about a
        file that was never read.

        The content decides, not the modification time: a file that was only touched is unchanged, and one that was
        changed within the clock's resolution is not.
        """
        seen = self._seen.get(resolve_or_keep(path))
        if seen is None:
            raise FileRefusedError(
                f"{path} exists and has not been read since this session was started or resumed. Read it first: call "
                f"Read with {json.dumps({'file_path': path}, ensure_ascii=False)}, then make this call again.{hint}"
            )
        if seen != _digest(data):
            raise FileRefusedError(f"{path} has changed since it was read. Read it again, then try again.")


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def read_bytes(path: str, seen: Seen | None = None) -> bytes:
    """The content of a regular file. Raises `FileRefusedError`, also if it is not the file that was `seen`."""
    try:
        seen = seen or look(path)
        descriptor = open_file(seen.real)
    except FileNotFoundError:
        raise FileRefusedError(missing(path)) from None
    except IsADirectoryError:
        raise FileRefusedError(_not_regular(path, stat.S_IFDIR)) from None
    except NotADirectoryError:
        raise FileRefusedError(missing(path)) from None
    except OSError as error:
        raise _unreadable(path, error) from None
    return _content(descriptor, path, seen)


def _content(descriptor: int, path: str, seen: Seen) -> bytes:
    """Closes the descriptor."""
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise FileRefusedError(_not_regular(path, facts.st_mode))
        seen.check_file(facts)
        data, complete = read_at_most(descriptor, SIZE_LIMIT)
    except OSError as error:
        raise _unreadable(path, error) from None
    finally:
        os.close(descriptor)
    if not complete:
        size = f"{max(facts.st_size, SIZE_LIMIT):,} bytes"
        raise FileRefusedError(f"{path} is too large ({size}). Use Grep, or read a part with Bash: sed -n, tail.")
    return data


def _unreadable(path: str, error: OSError) -> FileRefusedError:
    if error.errno == errno.ELOOP:
        return FileRefusedError(f"{path} is a symbolic link that leads back to itself.")
    return FileRefusedError(f"{path} cannot be read: {error.strerror or error}")


def _not_regular(path: str, mode: int) -> str:
    if stat.S_ISDIR(mode):
        return f"{path} is a directory. List its files with Glob."
    return f"{path} is not a regular file."


def missing(path: str) -> str:
    """A message that it does not exist, with the nearest existing name."""
    parent, name = os.path.split(path)
    while parent != "/" and not os.path.isdir(parent):
        parent, name = os.path.split(parent)
    try:
        close = nearest(name, os.listdir(parent or "."))
    except OSError:
        close = None
    hint = f" Did you mean {os.path.join(parent, close)}?" if close else ""
    what = "" if os.path.join(parent, name) == path else f": there is no {name} in {parent}"
    return f"{path} does not exist{what}.{hint}"


def existing(path: str, seen: Seen | None = None) -> bytes | None:
    """The content of the file to be written, None if it does not exist yet. Raises `FileRefusedError`, also if it is
    not the file that was `seen`."""
    try:
        seen = seen or look(path)
        with opened_directory(os.path.dirname(seen.real)) as parent:
            seen.check_parent(os.fstat(parent))
            descriptor = open_in(parent, seen.real)
            writable = os.access(os.path.basename(seen.real), os.W_OK, dir_fd=parent)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(path, error) from None
    data = _content(descriptor, path, seen)
    if not writable:
        raise FileRefusedError(f"{path} is read-only.")
    return data


def replace(path: str, data: bytes, seen: Seen | None = None) -> None:
    """Writes the file atomically: a symlink's target, keeping its mode. Raises `FileRefusedError`.

    The directory is the one that was `seen`: the file is created and renamed in it through its descriptor.
    """
    try:
        seen = seen or look(path)
        with opened_directory(os.path.dirname(seen.real), make=True) as parent:
            seen.check_parent(os.fstat(parent))
            _swap(parent, os.path.basename(seen.real), data)
    except (FileExistsError, NotADirectoryError):
        raise FileRefusedError(f"{path} cannot be written: a part of its path is a file, not a directory.") from None
    except OSError as error:
        raise FileRefusedError(f"{path} cannot be written: {error.strerror or error}") from None


def _swap(parent: int, name: str, data: bytes) -> None:
    before: os.stat_result | None = None
    with suppress(FileNotFoundError):
        before = os.stat(name, dir_fd=parent, follow_symlinks=False)
    temporary = f".wave-{os.urandom(6).hex()}.tmp"
    # A new file gets its mode from the umask; the copy of a private file is private from the start.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600 if before else 0o666, dir_fd=parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            if before is not None and not stat.S_ISLNK(before.st_mode):
                with suppress(PermissionError):  # Only root may give files away.
                    os.fchown(descriptor, before.st_uid, before.st_gid)
                os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
            file.flush()
            os.fsync(descriptor)  # Otherwise a crash might leave the new name with no content.
        os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=parent)
        raise
