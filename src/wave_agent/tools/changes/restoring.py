"""Puts a file back as it was.

Everything is done in the file's directory, opened by its real path without following a link: whatever a command has
put in the way, no file elsewhere is written or removed.
"""

import errno
import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct

from wave_agent.system.private_files import keep_private
from wave_agent.system.real_files import is_below, open_in, opened_directory, read_at_most
from wave_agent.tools.changes.found import FileChange
from wave_agent.tools.changes.signatures import signature
from wave_agent.tools.changes.versions import Content, FileVersion, NotKeptError, read_all
from wave_agent.tools.files import SIZE_LIMIT

CHANGED_SINCE = "it has changed since"


class NotRestoredError(Exception):
    """Why a file is left as it is."""


class RestoredFile(Struct, frozen=True, kw_only=True):
    """What became of one change."""

    path: str
    outcome: Literal["restored", "removed", "refused"]
    """`removed`: it was created, and has been moved away."""
    displaced: str | None = None
    """Where the changed version is now."""
    why: str = ""
    """Why it was left as it is."""


def restore(changes: Sequence[FileChange], root: str, private: Path) -> tuple[RestoredFile, ...]:
    """Undoes changes that rules deny. The changed versions are moved to the directory `private`. A file that has
    changed again since, or whose former content was not kept, is left as it is.

    `root` is the real path of the project: nothing outside it is touched. Blocks: call it in a thread.
    """
    # What is in the way of a deleted file, such as a link instead of its directory, goes first.
    ordered = sorted(changes, key=lambda change: (change.after is None, change.path))
    wanted: list[Content] = [change.before.content for change in ordered if change.before is not None]
    contents = read_all(wanted)
    done: list[RestoredFile] = []
    for change in ordered:
        data = None if change.before is None else next(contents)
        try:
            if not is_below(os.path.dirname(change.path), root):
                raise NotRestoredError("it is outside the project")
            if isinstance(data, NotKeptError):
                raise NotRestoredError(f"its former content {data}")
            displaced = _restore(change, data, root, private)
        except NotRestoredError as refusal:
            done.append(RestoredFile(path=change.path, outcome="refused", why=str(refusal)))
        except OSError as error:
            done.append(RestoredFile(path=change.path, outcome="refused", why=error.strerror or str(error)))
        else:
            outcome = "removed" if change.before is None else "restored"
            done.append(RestoredFile(path=change.path, outcome=outcome, displaced=displaced))
    return tuple(done)


def _restore(change: FileChange, data: bytes | None, root: str, private: Path) -> str | None:
    """Where the changed version is now, or what was in its way."""
    parent_path, name = os.path.split(change.path)
    cleared = _clear_way(parent_path, root, private) if change.after is None else None
    with opened_directory(parent_path, make=change.before is not None) as parent:
        in_the_way = change.after is None and _is_in_the_way(parent, name)
        if change.after is not None and not is_as(parent, name, change.after):
            raise NotRestoredError(CHANGED_SINCE)
        if change.before is None or data is None:
            return _remove(parent, name, private)
        # Written first: if the disk is full, nothing has been moved away yet.
        with _prepared(parent, change.before, data) as temporary:
            displaced = _move_away(parent, name, private) if change.after is not None or in_the_way else None
            _put(parent, temporary, name)
            return displaced or cleared


def _clear_way(directory: str, root: str, private: Path) -> str | None:
    """A link or a file in the place of a directory that had a deleted file is moved away. Where it is now."""
    path = root
    for name in filter(None, directory[len(root) :].split("/")):
        with opened_directory(path) as parent:
            try:
                mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
            except FileNotFoundError:
                return None
            if not stat.S_ISDIR(mode):
                return _move_away(parent, name, private)
        path = f"{path}/{name}"
    return None


def _remove(parent: int, name: str, private: Path) -> str | None:
    """Where the created file is now. A named pipe or a socket has no content to keep."""
    if _is_file(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
        return _move_away(parent, name, private)
    os.unlink(name, dir_fd=parent)
    return None


def _is_in_the_way(parent: int, name: str) -> bool:
    """Something that is not a file has the name of a deleted file. An empty directory is removed."""
    try:
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return False
    if _is_file(mode):  # it was not there at the last look
        raise NotRestoredError(CHANGED_SINCE)
    with suppress(OSError):
        os.rmdir(name, dir_fd=parent)
        return False
    return True


def _is_file(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def take_back(path: str, before: FileVersion | None, after: FileVersion | None, data: bytes | None) -> None:
    """Makes the file what it was `before`, with `data` as its content, if it is what it was `after`. The latter
    version is lost. Raises `NotRestoredError` and `OSError`."""
    parent_path, name = os.path.split(path)
    with opened_directory(parent_path, make=before is not None) as parent:
        if not is_as(parent, name, after):
            raise NotRestoredError(CHANGED_SINCE)
        if before is None or data is None:
            os.unlink(name, dir_fd=parent)
            return
        facts = None if after is None else os.stat(name, dir_fd=parent, follow_symlinks=False)
        if after is not None and after.mode is None and not os.access(name, os.W_OK, dir_fd=parent):
            raise NotRestoredError("it is read-only")
        with _prepared(parent, before, data, facts) as temporary:
            if facts is None:
                _put(parent, temporary, name)
            else:
                os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)


def is_as(parent: int, name: str, version: FileVersion | None) -> bool:
    """Whether the entry of an open directory is this version. None: it does not exist."""
    try:
        facts = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return version is None
    if version is None:
        return False
    if version.signature == signature(facts):
        return True
    mode = stat.S_IFREG if version.mode is None else version.mode
    if stat.S_IFMT(mode) != stat.S_IFMT(facts.st_mode) or (version.mode is not None and mode != facts.st_mode):
        return False
    data = os.fsencode(os.readlink(name, dir_fd=parent)) if version.is_link else _content(parent, name)
    return data is not None and version.content.equals(data) is True


def _content(parent: int, name: str) -> bytes | None:
    descriptor = open_in(parent, name)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        data, complete = read_at_most(descriptor, SIZE_LIMIT)
    finally:
        os.close(descriptor)
    if not complete:
        raise NotRestoredError("it is too large by now to see whether it has changed since")
    return data


@contextmanager
def _prepared(
    parent: int, version: FileVersion, data: bytes, instead_of: os.stat_result | None = None
) -> Generator[str]:
    """The name of a new file in the directory with this version. Removed if it has not been moved."""
    temporary = f".wave-{os.urandom(6).hex()}.tmp"
    try:
        if version.is_link:
            os.symlink(data, temporary, dir_fd=parent)
        else:
            _write(parent, temporary, version, data, instead_of)
        yield temporary
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=parent)


def _write(parent: int, name: str, version: FileVersion, data: bytes, instead_of: os.stat_result | None) -> None:
    mode = version.mode
    if mode is None and instead_of is not None:
        mode = instead_of.st_mode
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o666 if mode is None else 0o600, dir_fd=parent)
    with open(descriptor, "wb") as file:
        file.write(data)
        if instead_of is not None:
            with suppress(PermissionError):  # Only root may give files away.
                os.fchown(descriptor, instead_of.st_uid, instead_of.st_gid)
        if mode is not None:
            os.fchmod(descriptor, stat.S_IMODE(mode))
        file.flush()
        os.fsync(descriptor)


def _put(parent: int, temporary: str, name: str) -> None:
    """Gives the file its name, unless something has it by now."""
    try:
        os.link(temporary, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
    except FileExistsError:
        raise NotRestoredError(CHANGED_SINCE) from None
    except OSError:  # a file system without hard links
        os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)


def _move_away(parent: int, name: str, private: Path) -> str:
    """Where it is now. Renamed, not copied: whatever is there at this moment is kept."""
    keep_private(private)
    target = private / f"{os.urandom(4).hex()}-{name[-40:]}"
    try:
        os.rename(name, target, src_dir_fd=parent)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        if not _is_file(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise NotRestoredError("its name is now that of something that is not a file") from None
    else:
        return str(target)
    aside = f".wave-{os.urandom(6).hex()}.tmp"
    os.rename(name, aside, src_dir_fd=parent, dst_dir_fd=parent)
    if stat.S_ISLNK(os.stat(aside, dir_fd=parent, follow_symlinks=False).st_mode):
        os.symlink(os.readlink(aside, dir_fd=parent), target)
    else:
        from shutil import copyfileobj  # lazy: rare

        with open(open_in(parent, aside), "rb") as source, open(target, "xb") as file:
            copyfileobj(source, file)
    os.unlink(aside, dir_fd=parent)
    return str(target)
