"""Files as the tools see them: what has been read in this session, and writing that is all or nothing."""

import asyncio
import hashlib
import os
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import TypeVar

from wave_agent.text import nearest
from wave_agent.tools.base import ToolResult

_T = TypeVar("_T")

SIZE_LIMIT = 64 << 20
"""Bytes of a file that is read or edited whole."""


class FileRefusedError(Exception):
    """Why a file cannot be read or written, and what to do instead."""

    def result(self) -> ToolResult:
        return ToolResult(content=str(self), success=False, ran=False)


async def uninterrupted(change: Callable[[], _T]) -> _T:
    """Run a change of a file beside the event loop. A cancellation waits for its end, and so does a second one: it is
    never half done, and never done later."""
    work = asyncio.ensure_future(asyncio.to_thread(change))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        while not work.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([work])
        raise


class KnownFiles:
    """What each file held when the model last saw it. Shared by the tools of one session."""

    def __init__(self) -> None:
        self._seen: dict[str, bytes] = {}
        self._order: dict[str, int] = {}
        self._count = count()
        self.lock = threading.Lock()
        """Held between looking at a file and writing it, so that parallel calls do not undo each other."""

    def note(self, path: str, data: bytes) -> None:
        target = os.path.realpath(path)
        self._seen[target] = _digest(data)
        self._order[target] = next(self._count)

    def forget(self, path: str) -> None:
        """`path` is one of `latest`, whatever it leads to by now."""
        self._seen.pop(path, None)

    def latest(self) -> list[str]:
        """Real paths, the one that was noted last first."""
        return sorted(self._seen.copy(), key=lambda path: -self._order.get(path, 0))

    def holds(self, path: str, data: bytes) -> bool:
        """Whether this is the content that the model last saw. `path` is one of `latest`."""
        return self._seen.get(path) == _digest(data)

    def check(self, path: str, data: bytes) -> None:
        """Raises `FileRefusedError` unless the model has seen this very content.

        The content decides, not its time: a file that was only touched is unchanged, and one that was changed within
        the clock's grain is not.
        """
        seen = self._seen.get(os.path.realpath(path))
        if seen is None:
            raise FileRefusedError(
                f"{path} exists and has not been read since this session was started or resumed. "
                "Read it first, then try again."
            )
        if seen != _digest(data):
            raise FileRefusedError(f"{path} has changed since it was read. Read it again, then try again.")


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def read_bytes(path: str) -> bytes:
    """The content of a regular file. Raises `FileRefusedError`."""
    try:
        # Without O_NONBLOCK, opening a named pipe waits for somebody to write.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode):
                raise FileRefusedError(_not_regular(path, facts.st_mode))
            if facts.st_size > SIZE_LIMIT:
                raise FileRefusedError(
                    f"{path} is too large ({facts.st_size:,} bytes). Use Grep, or a part of it by Bash: sed -n, tail."
                )
            return file.read()
    except FileNotFoundError:
        raise FileRefusedError(missing(path)) from None
    except IsADirectoryError:
        raise FileRefusedError(_not_regular(path, stat.S_IFDIR)) from None
    except NotADirectoryError:
        raise FileRefusedError(missing(path)) from None
    except (OSError, ValueError) as error:
        raise FileRefusedError(f"{path} cannot be read: {_reason(error)}") from None


def _not_regular(path: str, mode: int) -> str:
    if stat.S_ISDIR(mode):
        return f"{path} is a directory. Glob lists the files in it."
    return f"{path} is not a regular file."


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def missing(path: str) -> str:
    """That it does not exist, and what does."""
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


def existing(path: str) -> bytes | None:
    """The content of the file to be written, None if there is none yet. Raises `FileRefusedError`."""
    target = os.path.realpath(path)
    if os.path.islink(target):
        raise FileRefusedError(f"{path} is a symbolic link that leads back to itself.")
    if not os.path.lexists(target):
        return None
    data = read_bytes(path)
    if not os.access(target, os.W_OK):
        raise FileRefusedError(f"{path} is read-only.")
    return data


def replace(path: str, data: bytes) -> None:
    """Write the file, all or nothing: a link's target, with the mode it has. Raises `FileRefusedError`."""
    target = os.path.realpath(path)
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _swap(target, data)
    except (FileExistsError, NotADirectoryError):
        raise FileRefusedError(f"{path} cannot be written: a part of its path is a file, not a directory.") from None
    except (OSError, ValueError) as error:
        raise FileRefusedError(f"{path} cannot be written: {_reason(error)}") from None


def _swap(target: str, data: bytes) -> None:
    before: os.stat_result | None = None
    with suppress(FileNotFoundError):
        before = os.stat(target)
    temporary = os.path.join(os.path.dirname(target), f".wave-{os.urandom(6).hex()}.tmp")
    # A new file gets the mode that the umask leaves; the copy of a private one is private from the start.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600 if before else 0o666)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            if before is not None:
                with suppress(PermissionError):  # Only root may give files away.
                    os.fchown(descriptor, before.st_uid, before.st_gid)
                os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
            file.flush()
            os.fsync(descriptor)  # Or a crash might leave the new name with nothing in it.
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
