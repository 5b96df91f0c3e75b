"""Questions about the protected files of a repository: whether they are the same in commits, in the index, on disk."""

import os
import re
from collections.abc import Sequence

from wave_agent.git_repository import GitUnknownError, Repository

_MAGIC = re.compile(r"^:|[*?\[\\]")


def covered(repository: Repository, paths: Sequence[str] | None) -> tuple[str, ...]:
    """The files at or below these paths. A pattern may be for any of them."""
    if not paths or any(map(_MAGIC.search, paths)):
        return repository.files
    places = [os.path.normpath(os.path.join(repository.directory, path)) for path in paths]
    forms = [os.path.relpath(form, repository.top) for one in places for form in (one, os.path.realpath(one))]
    return tuple(
        file for file in repository.files if any(one in (".", file) or file.startswith(f"{one}/") for one in forms)
    )


def differing(repository: Repository, *trees: str) -> str | None:
    """A file that is not the same in all of these."""
    first, *others = (repository.tree(one) for one in trees)
    return next((file for other in others for file in repository.files if first.get(file) != other.get(file)), None)


def resolved(repository: Repository, name: str) -> str:
    if name == "HEAD":
        return name
    found = repository.commit(previous(name))
    if found is None:
        raise NoSuchCommitError
    return found


class NoSuchCommitError(GitUnknownError):
    """Git would refuse, unless an earlier command of the line makes such a commit or ref."""


def changed(repository: Repository, files: Sequence[str], *, index: bool = True) -> str | None:
    """A tracked file that is not as it was committed; without `index`, one that is not as it was added."""
    head = repository.tree(resolved(repository, repository.head)) if index else repository.index
    for file in files:
        known = repository.index.get(file)
        if (known is not None or file in head) and (known != head.get(file) or known != repository.disk[file]):
            return file
    return None


def untracked(repository: Repository, files: Sequence[str], *, ignored: bool) -> str | None:
    there = (file for file in files if file not in repository.index)
    return next((file for file in there if ignored == (file in repository.ignored)), None)


def moves(repository: Repository, target: str, *, force: bool) -> str | None:
    """The work tree becomes that of another commit."""
    found = differing(repository, resolved(repository, repository.head), target)
    return found or (changed(repository, repository.files) if force else None)


def previous(name: str) -> str:
    return "@{-1}" if name == "-" else name
