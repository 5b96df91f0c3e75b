"""Finds a program like `shutil.which`, whose module loads three libraries for archives."""

import os


def which(name: str, path: str | None = None) -> str | None:
    """The file of a program, looked up in `path` (default: this process's PATH)."""
    if os.path.dirname(name):
        return name if _runs(name) else None
    if path is None:
        path = os.environ.get("PATH", os.defpath)
    directories = dict.fromkeys(path.split(os.pathsep)) if path else {}
    files = (os.path.join(directory, name) for directory in directories)
    return next(filter(_runs, files), None)


def _runs(file: str) -> bool:
    return os.access(file, os.F_OK | os.X_OK) and not os.path.isdir(file)
