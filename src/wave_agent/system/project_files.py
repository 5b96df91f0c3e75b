"""The only way to read project files that the user did not name: instructions, settings, ignore files.

A freshly cloned project controls what these names refer to. So only regular files inside the project are read, never
more of them than needed, and reading never waits.

Imports nothing slow: the search program uses it too.
"""

import os
import stat
from collections.abc import Callable

from wave_agent.system.real_files import is_below, open_file, read_at_most, resolve

Denied = Callable[[str, os.stat_result], str | None]
"""Why the rules deny reading a file, if they do: by its path and the stat result of the opened file."""


NO_FILE = "is not a regular file"


class NotReadError(Exception):
    """Why a file is not read: a phrase that follows "it" or the file's name."""


def nothing_denied(_path: str, _facts: os.stat_result) -> None:
    return None


def read_project_file(
    path: str, root: str, limit: int, *, denied: Denied = nothing_denied, whole: bool = True
) -> bytes | None:
    """The content of a file of the project whose real path is `root`; None if it does not exist.

    Raises `NotReadError` if it is not a regular file in there, cannot be read, is `denied`, or is larger than `limit`
    bytes. Unless the `whole` file is required, the part that fits is returned.
    """
    try:
        real = resolve(path)
        if not is_below(real, root):
            raise NotReadError(f"leads out of the project, to {real}")
        descriptor = open_file(real)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise NotReadError(f"cannot be read: {error.strerror}") from None
    try:
        facts = os.fstat(descriptor)
        if stat.S_ISDIR(facts.st_mode):
            raise NotReadError("cannot be read: Is a directory")
        if not stat.S_ISREG(facts.st_mode):
            raise NotReadError(NO_FILE)
        if why := next((why for name in dict.fromkeys((real, path)) if (why := denied(name, facts))), None):
            raise NotReadError(why)
        data, complete = read_at_most(descriptor, limit)
    except OSError as error:
        raise NotReadError(f"cannot be read: {error.strerror}") from None
    finally:
        os.close(descriptor)
    if whole and not complete:
        raise NotReadError(f"is larger than {_shown(limit)}")
    return data


def _shown(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
