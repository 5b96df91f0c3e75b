"""The one door to files of a project that are read without anybody asking for it: instructions, settings, ignore files.

A project that was just cloned decides what lies under these names. So only a regular file inside the project is read,
never more of it than its purpose needs, and nothing is waited for.

Imports nothing that is slow to import: the search program uses it too.
"""

import os
import stat
from collections.abc import Callable

from wave_agent.system.real_files import is_below, open_file, read_at_most, resolve

Denied = Callable[[str, os.stat_result], str | None]
"""Why the rules do not let this be read, if they do not: a path of it, and the facts about the opened file."""


NO_FILE = "is not a regular file"


class NotReadError(Exception):
    """Why a file is not read: what follows "it" or the file's name."""


def nothing_denied(_path: str, _facts: os.stat_result) -> None:
    return None


def read_project_file(
    path: str, root: str, limit: int, *, denied: Denied = nothing_denied, whole: bool = True
) -> bytes | None:
    """The content of a file of the project whose real path is `root`; None if there is no such file.

    Raises `NotReadError` for whatever is no regular file in there, cannot be read, is `denied`, or is larger than
    `limit` bytes. If it need not be read `whole`, what fits is returned.
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
