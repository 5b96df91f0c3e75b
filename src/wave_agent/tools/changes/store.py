"""Former contents of files: in a file without a name, which vanishes with the process."""

import os
import tempfile
import threading
from collections import deque
from pathlib import Path
from weakref import WeakValueDictionary

from wave_agent.system.private_files import keep_private
from wave_agent.tools.changes.versions import NotKeptError, digest_of


class StoredContent:
    """In a store. Its room there is free once nothing refers to it."""

    __slots__ = ("__weakref__", "_store", "digest", "length", "offset")
    size = 0

    def __init__(self, store: "ContentStore", digest: bytes, offset: int, length: int) -> None:
        self._store = store
        self.digest = digest
        self.offset = offset
        self.length = length

    def __del__(self) -> None:
        self._store.freed.append(self.length)

    def read(self) -> bytes:
        return self._store.read(self)

    def equals(self, data: bytes) -> bool | None:
        return len(data) == self.length and digest_of(data) == self.digest


class ContentStore:
    """Contents in an unnamed file of a private directory, each once. Bounded."""

    def __init__(self, directory: Path, limit: int) -> None:
        self._directory = directory
        self._limit = limit
        self._file: int | None = None
        self._end = 0
        self._live = 0
        """Bytes that something refers to, or did until recently."""
        self.freed: deque[int] = deque()
        """Lengths of contents that nothing refers to any more. Appended to at any moment, in any thread."""
        self._lock = threading.Lock()
        self._contents: WeakValueDictionary[bytes, StoredContent] = WeakValueDictionary()

    def add(self, data: bytes, room: int | None = None) -> StoredContent | None:
        """None: it is full, or the disk is. `room`: the limit for this content, instead of the store's."""
        with self._lock:
            return self._add(data, self._limit if room is None else min(room, self._limit))

    def _add(self, data: bytes, room: int) -> StoredContent | None:
        while self.freed:
            self._live -= self.freed.popleft()
        digest = digest_of(data)
        known = self._contents.get(digest)
        if known is not None:
            return known
        if self._live + len(data) > room:
            return None
        try:
            if self._end + len(data) > 2 * self._limit:
                self._compact()
            _write(self._opened(), data, self._end)
        except OSError:
            return None
        content = StoredContent(self, digest, self._end, len(data))
        self._end += len(data)
        self._live += len(data)
        self._contents[digest] = content
        return content

    def read(self, content: StoredContent) -> bytes:
        """Raises `NotKeptError`."""
        try:
            with self._lock:
                data = _read(self._opened(), content.offset, content.length)
        except OSError as error:
            raise NotKeptError(f"cannot be read any more: {error.strerror}") from None
        if digest_of(data) != content.digest:
            raise NotKeptError("was kept, but is damaged")
        return data

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
        self._file = None
        self._contents.clear()

    def _opened(self) -> int:
        if self._file is None:
            self._file = self._unnamed()
        return self._file

    def _unnamed(self) -> int:
        keep_private(self._directory)
        descriptor, name = tempfile.mkstemp(dir=self._directory)
        os.unlink(name)
        return descriptor

    def _compact(self) -> None:
        """Moves what is still referred to into a new file."""
        old, new, end = self._opened(), self._unnamed(), 0
        contents = sorted(self._contents.values(), key=lambda content: content.offset)
        moved: list[int] = []
        try:
            for content in contents:
                _write(new, _read(old, content.offset, content.length), end)
                moved.append(end)
                end += content.length
        except OSError:
            os.close(new)
            raise
        for content, offset in zip(contents, moved, strict=True):
            content.offset = offset
        os.close(old)
        self._file, self._end = new, end


def _write(descriptor: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


def _read(descriptor: int, offset: int, length: int) -> bytes:
    pieces: list[bytes] = []
    while length and (piece := os.pread(descriptor, length, offset)):
        pieces.append(piece)
        offset, length = offset + len(piece), length - len(piece)
    return b"".join(pieces)
