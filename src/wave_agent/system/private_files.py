"""Directories and files that are the user's alone, whatever the umask."""

import os
import stat
from contextlib import suppress
from pathlib import Path

_DIRECTORY = 0o700
_FILE = 0o600


def make_private(directory: Path) -> None:
    """The directory with all parents. Those that are new are their owner's alone; one that is there stays as it is."""
    if not directory.is_dir():
        make_private(directory.parent)
        with suppress(FileExistsError):
            directory.mkdir(mode=_DIRECTORY)
            directory.chmod(_DIRECTORY)  # A umask takes bits away from mkdir, not from chmod.


def keep_private(directory: Path) -> None:
    """The same, and one that is there is closed to others. Only for directories that nobody but the agent fills, never
    for whatever a path may happen to lead to."""
    make_private(directory)
    if stat.S_IMODE(directory.stat().st_mode) & 0o077:
        with suppress(PermissionError):  # Somebody else's: theirs to open and to close.
            directory.chmod(_DIRECTORY)


def open_private(path: Path, flags: int) -> int:
    """A descriptor that no child inherits, of a file that is its owner's alone, also where it was there before."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, _FILE)
    facts = os.fstat(descriptor)
    if stat.S_ISREG(facts.st_mode) and stat.S_IMODE(facts.st_mode) != _FILE:
        with suppress(PermissionError):
            os.fchmod(descriptor, _FILE)
    return descriptor
