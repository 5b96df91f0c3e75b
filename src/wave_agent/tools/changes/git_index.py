"""Git's index: which files were tracked and unmodified, so that git has their content.

The index is read directly: git would compare every file, and might run a filter or a file system monitor for that.
"""

import hashlib
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from wave_agent.lazy_regex import lazy_regex
from wave_agent.system.credentials import without_credentials
from wave_agent.system.real_files import open_file, read_at_most, resolve
from wave_agent.tools.changes.signatures import packed_facts

_LARGEST = 64 << 20
_SECONDS = 20.0
"""For reading a batch of objects."""

_HEAD = struct.Struct(">4sII")
_ENTRY = struct.Struct(">IIIIIIIIII20sH")
"""ctime, mtime, device, inode, mode, owner, group, size, object id, flags."""
_ASSUMED_VALID, _EXTENDED, _STAGE = 0x8000, 0x4000, 0x3000

_CONVERTS = lazy_regex(rb"\bfilter=(?!lfs\b)|working-tree-encoding=")
"""Attributes that can give a file another content of the same size than git stores."""


class CleanFile(NamedTuple):
    """A tracked file as it was when git last compared it."""

    path: str
    """Relative to the work tree."""
    facts: bytes
    """Modification and change time, inode, size; as at the start of a signature."""
    name: bytes
    """The object with its content."""


class WorkTree(NamedTuple):
    top: str
    git: str
    """Git's directory for this work tree."""


def find_work_tree(root: str) -> WorkTree | None:
    """The work tree that this real path is in."""
    top = root
    while not os.path.lexists(os.path.join(top, ".git")):
        if top == os.path.dirname(top):
            return None
        top = os.path.dirname(top)
    git = os.path.join(top, ".git")
    if os.path.isdir(git):
        return WorkTree(top, git)
    text = _read(git, 1 << 12) or b""  # a worktree or submodule: the file says where
    pointed = os.fsdecode(text.partition(b"gitdir:")[2].strip())
    return WorkTree(top, os.path.join(top, pointed)) if pointed and "\0" not in pointed else None


def clean_files(tree: WorkTree) -> Iterator[CleanFile]:
    """None at all if the index cannot be read, or is of a kind that git seldom writes."""
    path = os.path.join(tree.git, "index")
    data = _read(path, _LARGEST)
    try:
        written = os.stat(path).st_mtime_ns
    except OSError:
        return
    if data is None or len(data) < _HEAD.size + 20 or not _is_whole(data):
        return
    kind, version, count = _HEAD.unpack_from(data)
    if kind != b"DIRC" or version not in (2, 3, 4):
        return
    entries = _Entries(data, version, count)
    try:
        for file, modified in entries.clean():
            if modified < written:  # else it may have been changed in the same tick of the clock
                yield file
    except (struct.error, ValueError):
        return


def _is_whole(data: bytes) -> bool:
    """The checksum also tells an index with other object ids. Git can be set up to write zeros instead."""
    return data[-20:] in (hashlib.sha1(data[:-20], usedforsecurity=False).digest(), bytes(20))


class _Entries:
    def __init__(self, data: bytes, version: int, count: int) -> None:
        self._data = data
        self._version = version
        self._count = count

    def clean(self) -> Iterator[tuple[CleanFile, int]]:
        """With their modification times."""
        at, path = _HEAD.size, b""
        for _ in range(self._count):
            ctime, ctime_ns, mtime, mtime_ns, _, inode, mode, _, _, size, name, flags = _ENTRY.unpack_from(
                self._data, at
            )
            start, at = at, at + _ENTRY.size + (2 if flags & _EXTENDED else 0)
            path, at = self._path(start, at, path)
            # In an index that was split, an entry without a path replaces one of the other file.
            if path and mode & 0o170000 in (0o100000, 0o120000) and not flags & (_ASSUMED_VALID | _EXTENDED | _STAGE):
                modified = mtime * 1_000_000_000 + mtime_ns
                facts = packed_facts(modified, ctime * 1_000_000_000 + ctime_ns, inode, size)
                yield CleanFile(os.fsdecode(path), facts, name), modified

    def _path(self, start: int, at: int, before: bytes) -> tuple[bytes, int]:
        """The path, and where the next entry starts."""
        if self._version < 4:
            end = self._data.index(b"\0", at)
            return self._data[at:end], start + (end - start + 8) // 8 * 8
        cut, at = _variable_number(self._data, at)
        end = self._data.index(b"\0", at)
        return before[: len(before) - cut] + self._data[at:end], end + 1


def _variable_number(data: bytes, at: int) -> tuple[int, int]:
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = (value + 1) << 7 | data[at] & 0x7F
    return value, at + 1


def converts(tree: WorkTree, attributes: Sequence[str], home: str | None) -> bool:
    """Whether files may have another content on disk than in git that their size does not show. `attributes` are the
    `.gitattributes` files of the project."""
    places = [*attributes, os.path.join(tree.top, ".gitattributes"), os.path.join(tree.git, "info", "attributes")]
    places.append("/etc/gitattributes")
    if home is not None:
        places.append(os.path.join(home, ".config", "git", "attributes"))
    return any(_CONVERTS.search(_read(place, 1 << 20) or b"") for place in places)


class GitObjects:
    """Reads objects of one repository, without running anything that it configures."""

    def __init__(self, root: str, environment: Mapping[str, str]) -> None:
        self._root = root
        self._environment = without_credentials(environment)

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        """Those that git has. What it returns is checked against the name: a replaced object is not used."""
        from wave_agent.permissions.git.repository import Git, GitUnknownError
        from wave_agent.system.trusted_git import find_git  # lazy: few sessions undo a command

        program = find_git(self._environment.get("PATH", ""), self._root)
        given = "".join(f"{name}\n" for name in names).encode()
        try:
            git = Git(program, self._environment, _SECONDS)
            output = git.ask(self._root, "--no-replace-objects", "cat-file", "--batch", given=given)
        except GitUnknownError:
            return {}
        found: dict[str, bytes] = {}
        at = 0
        while at < len(output):
            end = output.find(b"\n", at)
            words = output[at:end].split()
            at = end + 1
            if len(words) != 3 or not words[2].isdigit():  # missing
                continue
            data = output[at : at + int(words[2])]
            at += len(data) + 1
            name = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
            found[name] = data
        return found


def _read(path: str, limit: int) -> bytes | None:
    try:
        descriptor = open_file(resolve(path))
    except OSError:
        return None
    try:
        data, complete = read_at_most(descriptor, limit)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return data if complete else None
