"""Git commands that replay or merge commits or apply patches, in one go or step by step: what they change along the
way."""

import os
import re
from collections.abc import Sequence

from wave_agent.lazy_regex import lazy_regex
from wave_agent.permissions.git.arguments import Arguments
from wave_agent.permissions.git.questions import NoSuchCommitError, changed, differing, moves, resolved, staged
from wave_agent.permissions.git.repository import GitUnknownError, Repository

_STRATEGIES = ("", "ort", "recursive", "resolve", "ours", "theirs", "octopus")
STEPS = ("--continue", "--abort", "--skip", "--quit")


def _require_plain_strategy(given: Arguments) -> None:
    """Other strategies, `-X subtree=DIR` above all, put files elsewhere."""
    chosen = [value for letter, value in given.letters if letter in "sX"]
    chosen += [value for name, value in given.longs if any(long.startswith(name) for long in _STRATEGY_LONGS)]
    if not all(one in _STRATEGIES for one in chosen):
        raise GitUnknownError


_STRATEGY_LONGS = ("--strategy", "--strategy-option")


def _require_no_autostash(repository: Repository, given: Arguments) -> None:
    if changed(repository, repository.files) is not None:
        settings = repository.config(r"^(rebase|merge)\.autostash$")
        if given.may("", "--autostash") or any(one.lower() not in ("false", "no", "off", "0") for one in settings):
            raise GitUnknownError


def _joins(repository: Repository, target: str) -> str | None:
    """Changes on the other side since the branches diverged are added to this one."""
    head = resolved(repository, repository.head)
    bases = repository.bases(head, target)
    if differing(repository, head, target) is None:
        return None
    if not bases:
        raise GitUnknownError
    return differing(repository, target, *bases)


def merge(repository: Repository, given: Arguments) -> str | None:
    _require_plain_strategy(given)
    if given.may("", "--abort", "--continue"):
        return changed(repository, repository.files)
    if given.surely("", "--quit"):
        return None
    _require_no_autostash(repository, given)
    names = given.operands or [_upstream(repository)]
    return next((found for name in names if (found := _joins(repository, resolved(repository, name)))), None)


def _upstream(repository: Repository) -> str:
    return f"{repository.branch}@{{upstream}}"


def pull(repository: Repository, given: Arguments) -> str | None:
    """Judged by what was already fetched: what else arrives is only known afterwards."""
    _require_plain_strategy(given)
    _require_no_autostash(repository, given)
    name, *branches = given.operands or [""]
    if name and not repository.config(rf"^remote\.{re.escape(name)}\.url$"):
        if re.fullmatch(r"\w[\w-]*", name) and not os.path.lexists(os.path.join(repository.directory, name)):
            raise NoSuchCommitError  # and there is no remote of this name
        raise GitUnknownError  # a path or a URL
    if any(re.search(r"[:+^]", branch) for branch in branches):
        raise GitUnknownError
    targets = [f"refs/remotes/{name}/{branch}" for branch in branches] or [_upstream(repository)]
    rebases = given.value("r", "--rebase") not in (None, "false") or any(
        one.lower() != "false" for one in repository.config(r"^(pull|branch\..*)\.rebase$")
    )
    for target in targets:
        commit = resolved(repository, target)
        found = _joins(repository, commit) or (_replays(repository, commit) if rebases else None)
        if found is not None:
            return found
    return None


def _replays(repository: Repository, onto: str) -> str | None:
    """Commits are replayed on top of another one: along the way, the work tree is that of each of them."""
    head = resolved(repository, repository.head)
    found = differing(repository, head, onto)
    return found or (repository.files[0] if repository.has_commits(f"{onto}...{head}") else None)


def rebase(repository: Repository, given: Arguments) -> str | None:
    _require_plain_strategy(given)
    if given.surely("", "--quit", "--edit-todo", "--show-current-patch"):
        return None
    if given.may("", "--continue", "--abort", "--skip"):
        if not repository.has_state("rebase-merge", "rebase-apply"):
            return _begun(repository, "rebase", "pull")
        before = repository.state("rebase-merge/orig-head", "rebase-apply/orig-head")
        onto = repository.state("rebase-merge/onto", "rebase-apply/onto")
        found = changed(repository, repository.files) or _replays_between(repository, before, onto)
        return found or (
            _waiting(repository, "rebase-merge/git-rebase-todo") if not given.surely("", "--abort") else None
        )
    if given.may("", "--root"):
        raise GitUnknownError
    _require_no_autostash(repository, given)
    if len(given.operands) > 1:
        found = moves(repository, resolved(repository, given.operands[1]), force=False)
        if found is not None:
            return found
        repository.head = resolved(repository, given.operands[1])
    upstream = given.operands[0] if given.operands else _upstream(repository)
    onto = given.value("", "--onto")
    return _replays(repository, resolved(repository, onto or upstream))


def _replays_between(repository: Repository, before: str, onto: str) -> str | None:
    head = resolved(repository, repository.head)
    one, other = resolved(repository, before), resolved(repository, onto)
    found = differing(repository, head, one, other)
    return found or (repository.files[0] if repository.has_commits(f"{other}...{one}") else None)


def picks(repository: Repository, given: Arguments) -> str | None:
    """`cherry-pick` and `revert`: what these commits change."""
    _require_plain_strategy(given)
    if given.surely("", "--quit"):
        return None
    if given.may("", *STEPS):
        return _next_pick(repository)
    if not given.operands or given.may("", "--stdin"):
        raise GitUnknownError
    if any(".." in name or name.startswith("^") or "^!" in name or "^@" in name for name in given.operands):
        if repository.moved:
            raise GitUnknownError
        return repository.files[0] if repository.has_commits("--end-of-options", *given.operands) else None
    for name in given.operands:
        commit = resolved(repository, name)
        parents = repository.parents(commit)
        if not parents:
            raise GitUnknownError
        found = differing(repository, commit, *parents)
        if found is not None:
            return found
    return None


def _begun(repository: Repository, *names: str) -> str | None:
    """A step while nothing is in progress: git only says so, unless the line has started it. In that case all of it was
    judged, and only what it would reset is left."""
    return staged(repository) if repository.begun.intersection(names) else None


def _next_pick(repository: Repository) -> str | None:
    """`--continue`, `--skip` and `--abort` of `cherry-pick` and `revert`. A single commit leaves no todo list."""
    if not repository.has_state("CHERRY_PICK_HEAD", "REVERT_HEAD", "sequencer"):
        return _begun(repository, "cherry-pick", "revert")
    found = staged(repository)
    if found is not None or not repository.has_state("sequencer"):
        return found
    if repository.has_state("sequencer/opts"):
        chosen = re.findall(r"strategy(?:-option)?\s*=\s*(.*)", repository.state("sequencer/opts"))
        if not all(one.strip() in _STRATEGIES for one in chosen):
            raise GitUnknownError
    before = resolved(repository, repository.state("sequencer/head"))
    return differing(repository, resolved(repository, repository.head), before) or _waiting(
        repository, "sequencer/todo"
    )


_WAITING = lazy_regex(
    r"^\s*(?:pick|p|revert|reword|r|edit|e|squash|s|fixup|f)\s+(?:-[cC]\s+)?([0-9a-f]{4,64})\b", re.MULTILINE
)
_MOST_WAITING = 1000


def _waiting(repository: Repository, name: str) -> str | None:
    """Changes in the commits that are still to be replayed."""
    if not repository.has_state(name):
        return None
    commits = _WAITING.findall(repository.state(name))
    if len(commits) > _MOST_WAITING:
        raise GitUnknownError
    return repository.files[0] if repository.changes_any(commits) else None


_MOST_MARKED = 12
_LOOKING = ("start", "good", "old", "bad", "new", "skip", "next", "run")


def bisect(repository: Repository, given: Arguments) -> str | None:
    """Checks out commits between the marked ones. What `run` starts is judged as a separate command."""
    name, *rest = given.operands or ["help"]
    started = repository.has_state("BISECT_START")
    if name in ("log", "terms", "help", "view", "visualize"):
        return None
    before = [repository.state("BISECT_START")] if started else []
    if name == "reset":
        targets = [resolved(repository, one) for one in rest[:1] or before]
        going = started or "bisect" in repository.begun
        return (
            next((found for one in targets if (found := moves(repository, one, force=False))), None) if going else None
        )
    if name not in _LOOKING:
        raise GitUnknownError
    if name not in ("skip", "next", "run"):
        repository.marked += _commits(repository, rest or (["HEAD"] if name != "start" else []))
    marked = list(dict.fromkeys((*repository.marked, *before, *repository.refs("refs/bisect"))))
    if len(marked) > _MOST_MARKED:
        raise GitUnknownError
    return next((found for one in marked if (found := _replays(repository, resolved(repository, one)))), None)


def _commits(repository: Repository, names: Sequence[str]) -> list[str]:
    """The leading commits: the first word that is not a commit is a path, and so are all that follow."""
    found: list[str] = []
    for name in names:
        try:
            found.append(resolved(repository, name))
        except NoSuchCommitError:
            break
    return found


_LARGEST_PATCH = 8 << 20
_HEADER = lazy_regex(rb"^(?:diff |---|\+\+\+|rename |copy |Index:|=== )(.*)$", re.MULTILINE | re.IGNORECASE)
_ENCODED = lazy_regex(rb"^content-transfer-encoding:\s*(?!7bit|8bit|binary)", re.MULTILINE | re.IGNORECASE)


def apply(repository: Repository, given: Arguments) -> str | None:
    """By the file names in the patch: `-p` and `--directory` only change the leading directories."""
    only_looks = given.surely("", "--check", "--stat", "--numstat", "--summary") and not given.may("", "--apply")
    if only_looks or (given.surely("", "--cached") and not given.may("", "--index")):
        return None
    if not given.operands:  # from stdin
        raise GitUnknownError
    return _patched(repository, [os.path.join(repository.directory, name) for name in given.operands])


def am(repository: Repository, given: Arguments) -> str | None:
    """Like `apply`, one patch after the other."""
    if given.surely("", "--quit", "--show-current-patch"):
        return None
    if not given.may("", *STEPS, "--resolved", "--retry") and not given.surely("r"):
        return apply(repository, given)
    if not repository.has_state("rebase-apply"):
        return _begun(repository, "am")
    if (found := staged(repository)) is not None:
        return found
    if given.surely("", "--abort"):
        return differing(repository, resolved(repository, repository.head), resolved(repository, "ORIG_HEAD"))
    waiting = os.path.join(repository.git_dir, "rebase-apply")
    try:
        names = [name for name in os.listdir(waiting) if name.isdigit()]
    except OSError:
        raise GitUnknownError from None
    if len(names) > _MOST_PATCHES:
        raise GitUnknownError
    return _patched(repository, [os.path.join(waiting, name) for name in names])


_MOST_PATCHES = 100


def _patched(repository: Repository, files: Sequence[str]) -> str | None:
    text = b"".join(map(_read_patch, files))
    headers = b"\n".join(_HEADER.findall(text)).lower()
    if _ENCODED.search(text) or b"\\" in headers or not headers:
        raise GitUnknownError
    names = ((file, os.fsencode(os.path.basename(file)).lower()) for file in repository.files)
    return next((file for file, name in names if name in headers), None)


def _read_patch(path: str) -> bytes:
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            text = file.read(_LARGEST_PATCH + 1)
    except OSError:
        raise GitUnknownError from None
    if text is None or len(text) > _LARGEST_PATCH:  # pyright: ignore[reportUnnecessaryComparison] - a FIFO
        raise GitUnknownError
    return text
