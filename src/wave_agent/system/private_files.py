"""Directories and files that only the user can access, whatever the umask."""

import errno
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_DIRECTORY = 0o700
_FILE = 0o600
_NO_PLACE = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR})
STORED_KEYS = "keys.json"
"""In the agent's own directory, if there are any. `settings.stored_keys` reads and writes it."""
STORED_LOGINS = "mcp-tokens.json"
"""Beside it, if there are any: tokens for MCP servers. `mcp.sdk.tokens` reads and writes it."""


def wave_home(environment: Mapping[str, str]) -> Path:
    """The directory for the agent's own state."""
    return Path(environment.get("WAVE_HOME") or Path.home() / ".wave").absolute()


def unwritten(what: object, error: OSError) -> str:
    """What to say of a file there that cannot be written, and what to do if another directory would help."""
    problem = f"{what} cannot be written: {error.strerror or error}"
    return f"{problem}. Set WAVE_HOME to a directory that you can write to." if error.errno in _NO_PLACE else problem


def make_private(directory: Path) -> None:
    """Creates the directory with all parents. New ones are accessible only to their owner; others are unchanged."""
    if not directory.is_dir():
        make_private(directory.parent)
        with suppress(FileExistsError):
            directory.mkdir(mode=_DIRECTORY)
            directory.chmod(_DIRECTORY)  # The umask affects mkdir, not chmod.


def keep_private(directory: Path) -> None:
    """The same, but an existing directory is closed to others. Only for directories used by the agent alone, never for
    an arbitrary path."""
    make_private(directory)
    if stat.S_IMODE(directory.stat().st_mode) & 0o077:
        with suppress(PermissionError):  # Another user's directory: leave it alone.
            directory.chmod(_DIRECTORY)


def open_private(path: Path, flags: int) -> int:
    """A non-inheritable descriptor of a file that only its owner can access, even if it existed before."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, _FILE)
    facts = os.fstat(descriptor)
    if stat.S_ISREG(facts.st_mode) and stat.S_IMODE(facts.st_mode) != _FILE:
        with suppress(PermissionError):
            os.fchmod(descriptor, _FILE)
    return descriptor


def write_private(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Creates or replaces the file in one step. Its content is at no time in a file that others can read.

    Without `sync`, it may be lost in a crash of the system: for what can be found out again.
    """
    temporary = path.with_name(f".{path.name}-{os.urandom(6).hex()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, _FILE)
    try:
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, _FILE)  # The umask may have removed the owner's own permissions.
            file.write(data)
            file.flush()
            if sync:
                os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
