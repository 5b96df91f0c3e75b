"""Versions of files: what they contained, and how to get that back. Light: every session loads it."""

import hashlib
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

_BATCH = 200
"""Objects of git that are read with one process."""


class NotKeptError(Exception):
    """Why a former content is not known: a phrase that follows "its former content"."""


class Content(Protocol):
    """The content of a file at some moment; for a symlink, its target."""

    @property
    def size(self) -> int:
        """Bytes of memory that it takes."""
        ...

    def read(self) -> bytes:
        """Raises `NotKeptError`."""
        ...

    def equals(self, data: bytes) -> bool | None:
        """None: unknown."""
        ...


def digest_of(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


class HeldContent:
    """In memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def size(self) -> int:
        return len(self._data)

    def read(self) -> bytes:
        return self._data

    def equals(self, data: bytes) -> bool | None:
        return data == self._data


class ContentDigest:
    """Only compared, never restored."""

    size = 0

    def __init__(self, data: bytes) -> None:
        self._digest = digest_of(data)

    def read(self) -> bytes:
        raise NotKeptError("was not kept")

    def equals(self, data: bytes) -> bool | None:
        return digest_of(data) == self._digest


class LostContent:
    """Not kept."""

    size = 0

    def __init__(self, why: str) -> None:
        self.why = why

    def read(self) -> bytes:
        raise NotKeptError(self.why)

    def equals(self, data: bytes) -> bool | None:
        return None


class BlobContent:
    """In git's objects: the file was tracked and unmodified."""

    size = 0

    def __init__(self, objects: "ObjectReader", name: bytes, length: int) -> None:
        """`length` is that of the file on disk, modulo 4 GiB."""
        self._objects = objects
        self._name = name
        self._length = length

    @property
    def name(self) -> str:
        return self._name.hex()

    def read(self) -> bytes:
        return self.checked(self._objects([self.name]).get(self.name))

    def fetched(self, names: Sequence[str]) -> Mapping[str, bytes]:
        """Several objects of the same repository, as far as they can be had."""
        return self._objects(names)

    def checked(self, data: bytes | None) -> bytes:
        """Raises `NotKeptError` if this is not what the file contained."""
        if data is None:
            raise NotKeptError("cannot be read from git")
        if len(data) & 0xFFFFFFFF != self._length:  # line endings or a filter
            raise NotKeptError("is stored differently in git")
        return data

    def equals(self, data: bytes) -> bool | None:
        return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).digest() == self._name


class ObjectReader(Protocol):
    def __call__(self, names: Sequence[str], /) -> Mapping[str, bytes]:
        """From names of git's objects to their contents, as far as they can be had."""
        ...


def read_all(contents: Iterable[Content]) -> Iterator[bytes | NotKeptError]:
    """The same as reading each, but git runs once for many of them."""
    batch: list[Content] = []
    for content in contents:
        batch.append(content)
        if len(batch) == _BATCH:
            yield from _read_batch(batch)
            batch = []
    yield from _read_batch(batch)


def _read_batch(batch: Sequence[Content]) -> Iterator[bytes | NotKeptError]:
    blobs = [content for content in batch if isinstance(content, BlobContent)]
    fetched: Mapping[str, bytes] = blobs[0].fetched([blob.name for blob in blobs]) if blobs else {}
    for content in batch:
        try:
            if isinstance(content, BlobContent):
                yield content.checked(fetched.get(content.name))
            else:
                yield content.read()
        except NotKeptError as error:
            yield error


def same_content(one: Content, other: Content) -> bool | None:
    """None: unknown."""
    if one is other:
        return True
    if isinstance(one, BlobContent) and isinstance(other, BlobContent):
        return one.name == other.name
    for this, that in ((one, other), (other, one)):
        if isinstance(this, BlobContent):  # reading it runs git; the other one can be compared with it
            continue
        try:
            return that.equals(this.read())
        except NotKeptError:
            continue
    return None


class FileVersion(Struct, frozen=True):
    """A file, or a symlink, at one moment."""

    mode: int | None
    """Type and permissions; None: a regular file whose permissions are unknown."""
    content: Content
    signature: bytes = b""
    """Values that differ after any later change; empty: unknown."""

    @property
    def is_link(self) -> bool:
        return self.mode is not None and stat.S_ISLNK(self.mode)
