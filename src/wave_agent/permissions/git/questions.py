"""Questions about the protected files of a repository: whether they are the same in commits, in the index, on disk."""

import os
import re
from collections.abc import Iterable, Sequence

from wave_agent.lazy_regex import lazy_regex
from wave_agent.permissions.git.repository import GitUnknownError, Repository

MAGIC = lazy_regex(r"^:|[*?\[\\]")


def covered(repository: Repository, paths: Sequence[str] | None, files: Iterable[str] | None = None) -> tuple[str, ...]:
    """The protected files, or these ones, at or below these paths. A pattern may match any of them."""
    among = repository.files if files is None else tuple(files)
    if not paths or any(map(MAGIC.search, paths)):
        return among
    places = [os.path.normpath(os.path.join(repository.directory, path)) for path in paths]
    forms = [os.path.relpath(form, repository.top) for one in places for form in (one, os.path.realpath(one))]
    return tuple(file for file in among if any(one in (".", file) or file.startswith(f"{one}/") for one in forms))


def differing(repository: Repository, *trees: str) -> str | None:
    """A file that is not the same in all of these trees."""
    first, *others = (repository.tree(one) for one in trees)
    return next((file for other in others for file in repository.files if first.get(file) != other.get(file)), None)


def resolved(repository: Repository, name: str) -> str:
    """The commit of this name, given the line so far. One that the line itself creates is represented by the commit it
    started from: until a question is asked, they have the same protected files."""
    base, relative = _parted(name)
    if name == "-" and repository.moved:
        return "HEAD"  # wherever the line has been: it was judged, or is where it started
    if base in ("HEAD", "@"):
        name = f"{repository.head}{relative}"
    elif base in repository.made:
        name = f"{repository.made[base]}{relative}"
    elif repository.moved and (base == "FETCH_HEAD" or (relative and not _ID.fullmatch(base))):
        raise GitUnknownError
    if name == "HEAD":
        return name
    found = repository.commit("@{-1}" if name == "-" else name)
    if found is None:
        raise NoSuchCommitError
    if repository.moved and relative:
        # `git commit && git reset HEAD~2`: one of the commits in between.
        head = repository.head
        if differing(repository, found, head) or repository.has_commits(f"{found}...{head}"):
            raise GitUnknownError
    return found


_ID = lazy_regex(r"[0-9a-f]{7,64}")
_RELATIVE = lazy_regex(r"[~^:]|@\{")


def _parted(name: str) -> tuple[str, str]:
    """A name, and the relative part: `main~1`, `HEAD@{2}`, `:/text`."""
    found = None if name.endswith("@{upstream}") else _RELATIVE.search(name)
    base, relative = (name, "") if found is None else (name[: found.start()], name[found.start() :])
    return re.sub(r"^(?:refs/)?heads/", "", base), relative


class NoSuchCommitError(GitUnknownError):
    """Git would fail, unless an earlier command of the line creates this commit or ref."""


def changed(repository: Repository, files: Sequence[str], *, index: bool = True) -> str | None:
    """A tracked file that differs from the commit; without `index`, one that differs from the index."""
    head = repository.tree(resolved(repository, repository.head)) if index else repository.index
    for file in files:
        known = repository.index.get(file)
        if (known is not None or file in head) and (known != head.get(file) or known != repository.disk[file]):
            return file
    return None


def brought(repository: Repository, source: str | None, paths: Sequence[str]) -> str | None:
    """A protected file that differs on disk from the commit or index; one that hooks may load; or one that is tracked
    but missing in the commit. Everything at or below these paths is restored from there."""
    commit = None if source is None else resolved(repository, source)
    kept = repository.kept(commit)
    new = (path for path in covered(repository, paths, kept) if not repository.is_on_disk(path, kept[path]))
    found = next(new, None)
    if found is not None or commit is None:
        return found
    gone = (path for path in covered(repository, paths, repository.kept(None)) if path not in kept)
    return next((path for path in gone if os.path.lexists(os.path.join(repository.top, path))), None)


def staged(repository: Repository) -> str | None:
    """A file staged with changes: undoing a merge or a cherry-pick resets it."""
    head = repository.tree(resolved(repository, repository.head))
    return next((file for file in repository.files if repository.index.get(file) != head.get(file)), None)


def untracked(repository: Repository, files: Sequence[str], *, ignored: bool) -> str | None:
    there = (file for file in files if file not in repository.index)
    return next((file for file in there if ignored == (file in repository.ignored)), None)


def moves(repository: Repository, target: str, *, force: bool) -> str | None:
    """The work tree is switched to another commit."""
    found = differing(repository, resolved(repository, repository.head), target)
    return found or (changed(repository, repository.files) if force else None)
