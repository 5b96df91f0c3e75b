"""Which git to run for the agent itself: never one that the project has put first on PATH."""

import os
import stat


def find_git(path: str, project: str) -> str | None:
    """The git to ask: the first that neither the project nor any other user could have put there."""
    roots = (f"{os.path.realpath(project)}/", f"{os.path.normpath(project)}/")
    for directory in path.split(os.pathsep):
        program = os.path.join(directory, "git")
        if directory.startswith("/") and os.access(program, os.X_OK) and os.path.isfile(program):
            forms = (os.path.normpath(program), os.path.realpath(program))
            if not any(form.startswith(roots) or _anyone_can_write(os.path.dirname(form)) for form in forms):
                return program
    return None


def _anyone_can_write(directory: str) -> bool:
    try:
        return bool(os.stat(directory).st_mode & stat.S_IWOTH)
    except OSError:
        return True
