"""One transcript, written by one agent at a time, one whole record at a time.

The lock is on the transcript itself: a process that dies cannot leave it behind, and it cannot be deleted separately
from the file it protects. It is held from the first record, or the resumption, until the agent closes. Readers need
no lock.
"""

import fcntl
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Protocol

from wave_agent.errors import SessionError
from wave_agent.sessions.transcript import Record, Resumed, encode, load_session
from wave_agent.system.private_files import make_private, open_private, unwritten


class SessionStore(Protocol):
    """The interface between the agent and the disk."""

    def append(self, record: Record) -> None:
        """Returns when the record is in the file. Raises `SessionError` if it cannot be written; it is then kept, and
        written before the next one."""
        ...

    def sync(self) -> None:
        """Returns when all records would survive a power cut. May be called in another thread than `append`, at the
        same time. Raises `SessionError`."""
        ...


class FileSessionStore:
    """One file, private to the user, opened at the first record."""

    def __init__(self, path: Path, *, holder: Callable[[Path], int | None] = lambda _: None) -> None:
        """`holder` returns the process that has locked a transcript, if known."""
        self.path = path
        self._holder = holder
        self._descriptor: int | None = None
        self._unwritten: deque[bytes] = deque()
        self._written = self._synced = 0
        """Records in the file, and how many of them would survive a power cut."""
        self._writing, self._syncing = Lock(), Lock()
        """A sync may run in another thread while records are written."""
        self._named = False
        """The directory entry is on disk too."""

    @property
    def is_open(self) -> bool:
        """The session is this agent's."""
        return self._descriptor is not None

    def open(self, *, resumed: bool = False) -> None:
        """Claims the session for this agent. Raises `SessionError` if another one has it, or if there is none to
        resume."""
        if self._descriptor is not None:
            return
        try:
            if not resumed:
                make_private(self.path.parent)
            descriptor = open_private(self.path, os.O_RDWR | os.O_APPEND | (0 if resumed else os.O_CREAT))
        except OSError as error:
            if resumed and isinstance(error, FileNotFoundError):
                raise SessionError(f"There is no session {self.path.stem} in this project.") from None
            raise self._failure(error) from error
        try:
            self._lock(descriptor)
            _seal(descriptor)
        except OSError as error:
            os.close(descriptor)
            raise self._failure(error) from error
        except SessionError:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def resume(self) -> Resumed:
        """The session, read once no one else can write to it: this agent continues from exactly that state."""
        self.open(resumed=True)
        try:
            return load_session(self.path)
        except SessionError:
            self.close()
            raise

    def append(self, record: Record) -> None:
        self._unwritten.append(encode(record) + b"\n")
        self.flush()

    def flush(self) -> None:
        """Writes records that could not be written before. If it fails again, raises `SessionError` and keeps them."""
        with self._writing:
            while self._unwritten:
                self.open()
                assert self._descriptor is not None
                try:
                    _write(self._descriptor, self._unwritten[0])
                except OSError as error:
                    raise self._failure(error) from error
                self._unwritten.popleft()
                self._written += 1

    def sync(self) -> None:
        """From any thread."""
        self.flush()
        with self._syncing:
            written = self._written
            if self._descriptor is None or self._synced == written:
                return
            try:
                _to_disk(self._descriptor)
                self._named = self._named or _name_to_disk(self.path.parent)
            except OSError as error:
                raise self._failure(error) from error
            self._synced = written

    def close(self) -> None:
        """Releases the session for other agents."""
        with self._syncing:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def _lock(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise in_use(self.path, self._holder(self.path)) from None
        except OSError:
            pass  # A file system without locks: one write per record still keeps two agents from mixing their lines.

    def _failure(self, error: OSError) -> SessionError:
        return SessionError(unwritten(f"The transcript {self.path}", error))


def in_use(path: Path, holder: int | None) -> SessionError:
    if holder == os.getpid():
        return SessionError(f"The session {path.stem} is in use in this process: close the agent that has it first.")
    who = "another process" if holder is None else f"process {holder}"
    return SessionError(f"The session {path.stem} is in use by {who}: end that first.")


def _write(descriptor: int, line: bytes) -> None:
    """Writes the whole line, in one call if the system allows it, or nothing."""
    written = 0
    try:
        while written < len(line):
            # After a short write, the next one reports the reason.
            written += os.write(descriptor, line[written:])
    except OSError:
        if written:
            with suppress(OSError):  # Then the next agent to open the file terminates the torn line.
                os.ftruncate(descriptor, os.fstat(descriptor).st_size - written)
        raise


def _seal(descriptor: int) -> None:
    """Terminates a line torn by a crash, so that the next record does not become part of it."""
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        os.write(descriptor, b"\n")


def _to_disk(descriptor: int) -> None:
    full: int | None = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:  # macOS, where fsync stops at the drive's cache.
        with suppress(OSError):  # Not every file system there supports it.
            fcntl.fcntl(descriptor, full)
            return
    getattr(os, "fdatasync", os.fsync)(descriptor)


def _name_to_disk(directory: Path) -> bool:
    """A new file's name belongs to its directory. False if that must be tried again."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # Out of descriptors. The records themselves are safe.
        return False
    try:
        with suppress(OSError):  # Some file systems cannot, and need not.
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return True
