"""Where the repository of a project keeps its data."""

import os
from contextlib import suppress
from pathlib import Path

_POINTER = "gitdir:"


def repository_outside(project: str) -> str | None:
    """The directory with a repository's data, if it is not below the project: the project is a worktree or a submodule,
    or a part of a repository. A hook that calls git there changes what is outside the project."""
    found = next((path for one in (Path(project), *Path(project).parents) if (path := one / ".git").exists()), None)
    if found is None:
        return None
    own = found if found.is_dir() else _pointed_to(found)
    if own is None:
        return None
    with suppress(OSError):
        own = own / (own / "commondir").read_text().strip()
    real = os.path.realpath(own)
    inside = real.startswith(os.path.realpath(project).rstrip("/") + "/")
    return None if inside or not os.path.isdir(real) else real


def _pointed_to(file: Path) -> Path | None:
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError):
        return None
    return file.parent / text.removeprefix(_POINTER).strip() if text.startswith(_POINTER) else None
