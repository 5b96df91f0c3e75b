"""Files that a command printed whole: the model has read them, as if by the Read tool."""

import os
import shlex
from collections.abc import Sequence

from wave_agent.tools.files import FileRefusedError, KnownFiles, read_bytes

_PROGRAMS = ("cat", "head", "tail", "sed")
_LONGEST = 1000
_NOT_IN_NAMES = frozenset("|&;<>()$`*?[]{}~#!\\\n")


def printed_paths(command: str, directory: str) -> Sequence[str]:
    """The files that a command may print whole; what it did print decides. None for anything but a simple command."""
    if len(command) > _LONGEST:
        return ()
    try:
        program, *words = shlex.split(command)
    except ValueError:  # unclosed quote
        return ()
    # In quotes, as in `sed -n '1,$p'`, these signs mean themselves, but then the word is not a name.
    names = [word for word in words if not word.startswith("-") and not _NOT_IN_NAMES.intersection(word)]
    paths = [path for path in (os.path.join(directory, name) for name in names) if os.path.isfile(path)]
    return paths if program in _PROGRAMS and (program == "cat" or len(paths) == 1) else ()


def note_printed(known: KnownFiles, paths: Sequence[str], printed: str) -> None:
    """Notes the files if they are exactly what was printed."""
    try:
        contents = [read_bytes(path) for path in paths]
        whole = b"".join(contents).decode()
    except (FileRefusedError, UnicodeDecodeError):
        return
    if whole == printed:
        for path, data in zip(paths, contents, strict=True):
            known.note(path, data)
