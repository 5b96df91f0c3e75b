"""Linux's inotify: which entries of watched directories were touched.

The kernel queues an event while the change is made. So once a command has ended, everything it did in watched
directories can be read at once, without a thread and without waiting. Packages that watch from a thread were slower to
arm, and missed changes that had not reached their thread yet.
"""

import ctypes
import os
import select
import struct
import sys
from typing import NamedTuple


class Mask:
    """Bits of an event, from `linux/inotify.h`."""

    MODIFY = 0x2
    ATTRIB = 0x4
    CLOSE_WRITE = 0x8
    MOVED_FROM = 0x40
    MOVED_TO = 0x80
    CREATE = 0x100
    DELETE = 0x200
    OVERFLOW = 0x4000
    IGNORED = 0x8000
    """The watch is gone: its directory was deleted or unmounted."""
    ONLY_DIRECTORIES = 0x01000000
    NO_LINKS = 0x02000000
    IS_DIRECTORY = 0x40000000


# Changes through a memory map are not reported, but closing the file afterwards is.
_CHANGES = Mask.MODIFY | Mask.CLOSE_WRITE | Mask.ATTRIB | Mask.MOVED_FROM | Mask.MOVED_TO | Mask.CREATE | Mask.DELETE
_FILE = _CHANGES | Mask.NO_LINKS
_DIRECTORY = _FILE | Mask.ONLY_DIRECTORIES
_HEAD = struct.Struct("iIII")
_BUFFER = 1 << 18
_LIMIT = "/proc/sys/fs/inotify/max_user_watches"


class TouchedEntry(NamedTuple):
    watch: int
    mask: int
    name: str
    """Empty: the watched directory itself."""


class Inotify:
    """One queue of events. Raises `OSError` where the system has no inotify, or no more of it."""

    def __init__(self) -> None:
        if sys.platform != "linux":
            raise OSError("inotify is a part of Linux")
        library = ctypes.CDLL(None, use_errno=True)
        self._add = library.inotify_add_watch
        self._remove = library.inotify_rm_watch
        self._queue: int = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._queue < 0:
            raise _last_error()

    def watch(self, directory: str) -> int:
        """The number of the watch; the same one for the same directory. Raises `OSError`."""
        return self._watch(directory, _DIRECTORY)

    def watch_file(self, path: str) -> int:
        """The same for a file: by whatever name it is changed."""
        return self._watch(path, _FILE)

    def _watch(self, path: str, what: int) -> int:
        number: int = self._add(self._queue, os.fsencode(path), what)
        if number < 0:
            raise _last_error()
        return number

    def forget(self, watch: int) -> None:
        """A watch that is already gone is fine."""
        self._remove(self._queue, watch)

    def has_news(self) -> bool:
        """Whether `read` would return anything."""
        waiting = select.poll()
        waiting.register(self._queue, select.POLLIN)
        return bool(waiting.poll(0))

    def read(self) -> list[TouchedEntry]:
        """Everything touched since the last call, in order."""
        found: list[TouchedEntry] = []
        while True:
            try:
                data = os.read(self._queue, _BUFFER)
            except BlockingIOError:
                return found
            at = 0
            while at < len(data):
                watch, mask, _, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size
                name = data[at : at + length].rstrip(b"\0")
                found.append(TouchedEntry(watch, mask, os.fsdecode(name)))
                at += length

    def close(self) -> None:
        os.close(self._queue)


def watches_allowed() -> int:
    """How many directories to watch at most: half of what the system allows a user, who has an editor too."""
    try:
        with open(_LIMIT, encoding="ascii") as file:
            return int(file.read()) // 2
    except (OSError, ValueError):
        return 0


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
