"""Git commands that can remove a guard: whether one in a line changes an existing protected file.

`git stash -u`, `git checkout HEAD~1` and the like name no file, so git is asked what they would change: outside the
decision, within a fifth of a second, and only to avoid an unnecessary question. If git does not answer in time, or the
question cannot be asked precisely, the answer is yes.
"""

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from wave_agent.lazy_regex import lazy_regex
from wave_agent.permissions.git.arguments import Arguments
from wave_agent.permissions.git.questions import (
    MAGIC,
    NoSuchCommitError,
    brought,
    changed,
    covered,
    differing,
    moves,
    resolved,
    untracked,
)
from wave_agent.permissions.git.repository import MOST, Git, GitUnknownError, Repository
from wave_agent.permissions.git.sequences import am, apply, bisect, merge, picks, pull, rebase
from wave_agent.shell.git_runs import GIT
from wave_agent.shell.options import Option, read, value_of
from wave_agent.shell.values import Placed, Reach, Word, WriteTarget
from wave_agent.system.real_files import is_below

PATIENCE = 0.2
"""Seconds for all questions to git about one line."""
_MOST_ALIASES = 5
_DIRECTS = lazy_regex(r"-C|--git-dir|--work-tree")
_HARMLESS_SETTINGS = lazy_regex(
    r"(?:advice|user|author|committer|color|http|init|gc|fetch|push|protocol)\."
    r"|(?:core|sequence)\.editor=(?::|true|cat)$",
    re.IGNORECASE,
)
_ASTRAY = lazy_regex(
    r"GIT_(?:DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|NAMESPACE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|CONFIG\w*"
    r"|EXEC_PATH|SEQUENCE_EDITOR|REPLACE_REF_BASE|ATTR_SOURCE|\w+_PATHSPECS)"
)
"""Variables that change what git does."""
_HARMLESS_VARIABLES = lazy_regex(
    r"GIT_(?:EDITOR|PAGER|TERMINAL_PROMPT|MERGE_AUTOEDIT|(?:AUTHOR|COMMITTER)_\w+|SSH_COMMAND|ASKPASS|TRACE\w*|LFS_\w+"
    r"|OPTIONAL_LOCKS|ADVICE|PROGRESS_DELAY)"
)


class GitLine(Struct, frozen=True, kw_only=True):
    """How a line uses git."""

    runs: tuple[Placed, ...]
    """Its git commands, in order."""
    assigned: tuple[str, ...] = ()
    """Names of the variables it sets, except editors that change nothing."""
    meddles: bool = False
    """It writes to git's own directory."""


def changed_by_git(
    question: GitLine,
    protected: Iterable[str],
    directories: Iterable[str],
    *,
    beside: Iterable[str] = (),
    program: str | None,
    environment: Mapping[str, str],
    seconds: float = PATIENCE,
) -> str | None:
    """An existing protected path that the line would change, if that can be known; None if there is none.

    `directories` are protected with everything in them; no file may be restored into those in `beside`. `program` is
    the git to ask. Blocks while git answers.
    """
    names = [_subcommand(run) for run in question.runs]
    if all(name in HARMLESS or name in BLURS for name in names):
        return None
    given = [name for name in question.assigned if name.startswith("GIT_")]
    astray = not all(map(_HARMLESS_VARIABLES.fullmatch, given)) or any(map(_ASTRAY.fullmatch, environment))
    judge = _GitJudge(Git(program, environment, seconds), tuple(protected), tuple(directories), tuple(beside), astray)
    judge.blurred = question.meddles
    judge.todo_is_known = not {"GIT_EDITOR", "EDITOR", "VISUAL"} & set(question.assigned)
    judge.home_is_known = not {"HOME", "XDG_CONFIG_HOME"} & set(question.assigned)
    for run, name in zip(question.runs, names, strict=True):
        for directory in run.directories if name not in HARMLESS else ():
            found = judge.run(run, directory)
            if found is not None:
                return found
    return None


def meddles(writes: Iterable[WriteTarget]) -> bool:
    """Whether one of these writes into git's own directory: git's answer now may then not match what it finds later.
    Removing a lock is harmless."""
    own = (write.pattern for write in writes if write.reach is not Reach.NAMED)
    return any("/.git/" in f"{pattern}/" and not pattern.endswith(".lock") for pattern in own)


def _subcommand(run: Placed) -> str:
    """ "" if it is unknown, or there is none."""
    _, operands = read(run.words, GIT)
    if not operands:
        return "version"
    return operands[0].text if operands[0].static else ""


_RESTORING = ("checkout", "restore")
"""They can restore missing files."""


def _forms(path: str) -> tuple[str, str]:
    return os.path.normpath(path), os.path.realpath(path)


class _GitJudge:
    """Walks through the git commands of one line."""

    def __init__(
        self, git: Git, files: Sequence[str], directories: Sequence[str], beside: Sequence[str], astray: bool
    ) -> None:
        self.home_is_known = self.todo_is_known = True
        self._git = git
        self._files, self._directories, self._beside = files, directories, beside
        self._astray = astray
        """Variables may point git to another repository."""
        self._repositories: dict[tuple[str, ...], Repository] = {}
        self._ran = False
        """An earlier command may have created commits or refs."""
        self.blurred = False
        """An earlier command changed the state that a later one would find."""

    def run(self, run: Placed, directory: str) -> str | None:
        options, operands = read(run.words, GIT)
        if not operands:
            return None
        name, words = operands[0].text, operands[1:]
        place: list[str] = []
        exact = not self._astray and all(word.static and word.glob is None for word in run.words)
        for option in options:
            value = option.value.text if option.value is not None else ""
            if _DIRECTS.fullmatch(option.name):
                place += [option.name, value] if option.name == "-C" else [f"{option.name}={value}"]
            elif option.name in ("-c", "--config-env", "--exec-path", "--attr-source", "--namespace"):
                exact = exact and option.name == "-c" and _HARMLESS_SETTINGS.match(value) is not None
        try:
            repository = self._repository(directory, place)
            if not repository.files and name not in _RESTORING:
                return None
            if not exact or len(repository.files) > MOST:
                raise GitUnknownError
            touched = self._judge(repository, name, [word.text for word in words])
        except NoSuchCommitError:
            return None if not self._ran else self._any(directory, options, operands)
        except GitUnknownError:
            if name in BLURS:
                self.blurred = True
                return None
            return self._any(directory, options, operands)
        finally:
            self._ran = True
        return os.path.join(repository.top, touched) if touched is not None else None

    def _any(self, directory: str, options: Sequence[Option], operands: Sequence[Word]) -> str | None:
        """A protected file that a command could change if only its directory is known."""
        for key, repository in self._repositories.items():
            if key[0] == directory and repository.files and not self._astray:
                return os.path.join(repository.top, repository.files[0])
        elsewhere = value_of(options, "-C", "--work-tree") is not None
        below = "" if self._astray or elsewhere else f"{os.path.realpath(directory)}/"
        there = (path for path in (*self._files, *self._directories) if path.startswith(below) and "/.git/" not in path)
        found = next((path for path in there if os.path.lexists(path)), None)
        return found or self._restored(value_of(options, "-C"), directory, operands)

    def _restored(self, below: Word | None, directory: str, operands: Sequence[Word]) -> str | None:
        """A protected path, existing or not, at or below the paths to be restored."""
        if operands[0].text not in _RESTORING:
            return None
        texts = [word.text for word in operands]
        begin = 1 if texts[0] == "restore" else texts.index("--") + 1 if "--" in texts else len(texts)
        named = [word.text for word in operands[begin:] if word.static and not word.text.startswith("-")]
        base = directory if below is None else os.path.join(directory, below.text)
        places = {form for text in named for form in _forms(os.path.join(base, text))}
        known = (path for path in (*self._files, *self._directories) if "/.git/" not in path)
        anywhere = any(map(MAGIC.search, named))
        return next((path for path in known if anywhere or any(is_below(path, place) for place in places)), None)

    def _repository(self, directory: str, place: Sequence[str]) -> Repository:
        key = (directory, *place)
        if key not in self._repositories:
            found = Repository(self._git, directory, place)
            found.look_for(self._files, self._directories, self._beside)
            self._repositories[key] = found
        return self._repositories[key]

    def _judge(self, repository: Repository, name: str, words: Sequence[str], depth: int = 0) -> str | None:
        if name in BLURS:
            self.blurred |= BLURS[name](repository, Arguments(words))
            repository.moved = True
            return None
        if name in EFFECTS:
            effect = EFFECTS[name]
            given = Arguments(words, effect.values, effect.longs)
            # An editor can put any commit into the todo list of a rebase.
            edited = name == "rebase" and not self.todo_is_known and given.may("i", "--interactive", "--edit-todo")
            if self.blurred or edited:
                raise GitUnknownError
            found = effect.judge(repository, given)
            self.blurred |= _blurs(effect, repository, given)
            repository.begun.add(name)
            repository.moved = True
            return found
        alias = repository.config(rf"^alias\.{re.escape(name.lower())}$") if self.home_is_known else []
        if not alias or alias[-1].startswith("!") or depth > _MOST_ALIASES:
            raise GitUnknownError
        try:
            first, *rest = shlex.split(alias[-1])
        except ValueError:
            raise GitUnknownError from None
        return None if first in HARMLESS else self._judge(repository, first, [*rest, *words], depth + 1)


# ----------------------------------------------------------------------------------------------------- the subcommands


def _checkout(repository: Repository, given: Arguments) -> str | None:
    force = given.may("f", "--force", "--discard-changes")
    if given.may("", "--pathspec-from-file") or given.may("p", "--patch"):
        raise GitUnknownError
    new = given.value("bBcC", "--create", "--force-create")
    if given.may("", "--orphan"):
        # `git switch --orphan` removes tracked files.
        return next((file for file in repository.files if file in repository.index), None)
    names, paths = given.operands, given.paths
    if paths is None and names and new is None and not _is_commit(repository, names[0]):
        remote = repository.refs(f"refs/remotes/*/{names[0]}") if len(names) == 1 else []
        if remote:
            return next((found for ref in remote if (found := moves(repository, ref, force=force))), None)
        names, paths = [], names
    elif paths is None and len(names) > 1:
        names, paths = names[:1], names[1:]
    if paths:
        return brought(repository, names[0] if names else None, paths)
    found = _enters(repository, names, force=force)
    if new is not None:
        repository.made[new], repository.branch = repository.head, ""
    return found


def _is_commit(repository: Repository, name: str) -> bool:
    try:
        resolved(repository, name)
    except NoSuchCommitError:
        return False
    return True


def _enters(repository: Repository, names: Sequence[str], *, force: bool) -> str | None:
    """Of one commit, or of none: then the work tree stays as it is."""
    if not names:
        return changed(repository, repository.files) if force else None
    found = moves(repository, resolved(repository, names[0]), force=force)
    repository.head = resolved(repository, names[0])
    repository.branch = "" if names[0] == "-" else names[0]
    return found


def _restore(repository: Repository, given: Arguments) -> str | None:
    if given.may("", "--pathspec-from-file") or given.may("p", "--patch"):
        raise GitUnknownError
    if given.surely("S", "--staged") and not given.may("W", "--worktree"):
        return None
    paths = [*given.operands, *(given.paths or ())]
    return brought(repository, given.value("s", "--source"), paths)


def _reset(repository: Repository, given: Arguments) -> str | None:
    if not given.may("", "--hard", "--merge", "--keep"):
        return None
    if given.paths is not None or len(given.operands) > 1:
        raise GitUnknownError
    target = resolved(repository, given.operands[0] if given.operands else repository.head)
    found = moves(repository, target, force=True)
    repository.head = target
    return found


def _stash(repository: Repository, given: Arguments) -> str | None:
    name, *rest = given.operands or ["push"]
    if name in ("list", "show", "create"):
        return None
    if name in ("drop", "clear", "store"):
        repository.begun.add(_RENUMBERED)
        return None
    if name in ("pop", "apply", "branch"):
        return _unstashed(repository, name, rest)
    if name not in ("push", "save") or given.may("", "--pathspec-from-file"):
        raise GitUnknownError
    paths = [*rest, *(given.paths or ())] if name == "push" else []
    files = covered(repository, paths)
    found = changed(repository, files)
    if found is None and given.may("ua", "--include-untracked", "--all"):
        found = untracked(repository, files, ignored=False)
    if found is None and given.may("a", "--all"):
        found = untracked(repository, files, ignored=True)
    return found


_RENUMBERED = "stash drop"


def _unstashed(repository: Repository, name: str, words: Sequence[str]) -> str | None:
    branch, words = (words[0], words[1:]) if name == "branch" and words else (None, words)
    ref = words[0] if words else "stash@{0}"
    commit = repository.commit(f"stash@{{{ref}}}" if ref.isdigit() else ref)
    if _RENUMBERED in repository.begun:
        raise GitUnknownError
    if name != "apply":
        repository.begun.add(_RENUMBERED)
    if commit is None:
        return None
    base, *others = repository.parents(commit)
    found = differing(repository, base, commit)
    for files in others[1:]:
        found = found or next(iter(repository.tree(files)), None)
    if branch is not None:
        found = found or moves(repository, base, force=False)
        repository.head = repository.made[branch] = base
    return found


def _clean(repository: Repository, given: Arguments) -> str | None:
    if given.surely("n", "--dry-run"):
        return None
    files = covered(repository, [*given.operands, *(given.paths or ())])
    found = None if given.surely("X") else untracked(repository, files, ignored=False)
    return found or (untracked(repository, files, ignored=True) if given.may("xX") else None)


def _remove(repository: Repository, given: Arguments) -> str | None:
    if given.surely("n", "--dry-run") or given.surely("", "--cached"):
        return None
    if given.may("", "--pathspec-from-file"):
        raise GitUnknownError
    files = covered(repository, [*given.operands, *(given.paths or ())])
    return next((file for file in files if file in repository.index), None)


def _named(repository: Repository, given: Arguments) -> str | None:
    """`mv`, `merge-file`: every operand is a path that may be written, moved or removed."""
    if given.surely("n", "--dry-run"):
        return None
    return next(iter(covered(repository, [*given.operands, *(given.paths or ())])), None)


def _read_tree(repository: Repository, given: Arguments) -> str | None:
    if not given.may("u"):
        return None
    if len(given.operands) != 1 or given.longs[1:] or given.may("", "--prefix"):
        raise GitUnknownError
    return moves(repository, resolved(repository, given.operands[0]), force=True)


def _checkout_index(repository: Repository, given: Arguments) -> str | None:
    if given.may("", "--prefix", "--temp", "--stage"):
        raise GitUnknownError
    return changed(repository, repository.files, index=False)


class _Only:
    """Some of its subcommands need no question, and none can be asked for the others."""

    def __init__(self, *harmless: str) -> None:
        self._harmless = harmless

    def __call__(self, repository: Repository, given: Arguments) -> str | None:
        if given.operands[:1] and given.operands[0] in self._harmless:
            return None
        raise GitUnknownError


def _submodule(repository: Repository, given: Arguments) -> str | None:
    """A submodule has its own repository, in its own directory."""
    if not given.operands or given.operands[0] in ("status", "summary", "init"):
        return None

    def parents(file: str) -> Iterator[str]:
        while file := os.path.dirname(file):
            yield file

    inside = (file for file in repository.files for one in parents(file) if _is_repository(repository.top, one))
    return next(inside, None)


def _is_repository(top: str, directory: str) -> bool:
    return os.path.lexists(os.path.join(top, directory, ".git"))


def _worktree(repository: Repository, given: Arguments) -> str | None:
    name, *rest = given.operands or ["list"]
    if name not in ("remove", "move") or not rest:
        return None
    return next(iter(covered(repository, rest)), None)


# --------------------------------------------------------------------------------------------------------------- tables


def _blurs(effect: "Effect", repository: Repository, given: Arguments) -> bool:
    try:
        return effect.blurs(repository, given)
    except GitUnknownError:
        return True


def _never(*_: object) -> bool:
    return False


def _always(*_: object) -> bool:
    return True


def _resets_the_index(repository: Repository, given: Arguments) -> bool:
    """`reset` without `--hard`."""
    if given.may("", "--hard", "--merge", "--keep"):
        return False
    if given.may("p", "--patch", "--pathspec-from-file"):
        return True
    operands = given.operands
    named = bool(operands) and (len(operands) == 1 or given.paths is None) and _is_commit(repository, operands[0])
    commit = resolved(repository, operands[0]) if named else repository.head
    paths = [*operands[named:], *(given.paths or ())]
    moved = not paths and differing(repository, repository.head, commit) is not None
    return moved or _moves_the_index(repository, commit, paths)


def _restores_the_index(repository: Repository, given: Arguments) -> bool:
    """`restore --staged`."""
    if not given.may("S", "--staged"):
        return False
    if given.may("p", "--patch", "--pathspec-from-file"):
        return True
    source = resolved(repository, given.value("s", "--source") or repository.head)
    return _moves_the_index(repository, source, [*given.operands, *(given.paths or ())])


def _moves_the_index(repository: Repository, commit: str, paths: Sequence[str]) -> bool:
    """Protected files may become untracked, or enter the index, from which another command could restore them."""
    now, then = repository.kept(None), repository.kept(commit)
    return any(now.get(path) != then.get(path) for path in covered(repository, paths, {**now, **then}))


class Effect(Struct, frozen=True):
    """A subcommand that can change files in the work tree."""

    judge: Callable[[Repository, Arguments], str | None]
    values: str = ""
    """Its short options that take a value."""
    longs: tuple[str, ...] = ()
    """Its long ones."""
    blurs: Callable[[Repository, Arguments], bool] = _never
    """Nothing precise can be said about later commands on the line."""


_JOINING = ("--strategy", "--strategy-option", "--message", "--file", "--into-name", "--onto", "--exec", "--cleanup")
EFFECTS: Mapping[str, Effect] = {
    "am": Effect(am, "pC", ("--directory", "--exclude", "--include", "--patch-format")),
    "apply": Effect(apply, "pC", ("--directory", "--exclude", "--include", "--build-fake-ancestor")),
    "bisect": Effect(bisect, "", ("--term-old", "--term-new", "--term-good", "--term-bad")),
    "checkout": Effect(_checkout, "bB", ("--conflict", "--pathspec-from-file", "--orphan")),
    "checkout-index": Effect(_checkout_index),
    "cherry-pick": Effect(picks, "mXs", ("--mainline", *_JOINING)),
    "clean": Effect(_clean, "e", ("--exclude",)),
    "merge": Effect(merge, "mFsX", _JOINING),
    "merge-file": Effect(_named, "L", ("--marker-size",)),
    "mv": Effect(_named),
    "pull": Effect(pull, "sXjo", (*_JOINING, "--depth", "--deepen", "--jobs", "--upload-pack")),
    "read-tree": Effect(_read_tree, blurs=_always),
    "rebase": Effect(rebase, "sXxC", (*_JOINING, "--whitespace", "--empty")),
    "reset": Effect(_reset, "", ("--pathspec-from-file",), blurs=_resets_the_index),
    "restore": Effect(_restore, "s", ("--source", "--conflict", "--pathspec-from-file"), blurs=_restores_the_index),
    "revert": Effect(picks, "mXs", ("--mainline", *_JOINING)),
    "rm": Effect(_remove, "", ("--pathspec-from-file",), blurs=_always),
    "sparse-checkout": Effect(_Only("list", "check-rules", "disable")),
    "stash": Effect(_stash, "m", ("--message", "--pathspec-from-file")),
    "submodule": Effect(_submodule),
    "switch": Effect(_checkout, "cC", ("--create", "--force-create", "--conflict", "--orphan")),
    "worktree": Effect(_worktree, "bB", ("--reason",)),
}
"""Commands that can change the work tree. A name in no table here is looked up as an alias, else unknown."""


def _adds(repository: Repository, given: Arguments) -> bool:
    """Untracked or changed files may afterwards be tracked, and match the index."""
    if changed(repository, repository.files) or untracked(repository, repository.files, ignored=False):
        return True
    return given.may("f", "--force") and untracked(repository, repository.files, ignored=True) is not None


def _commits(repository: Repository, _: Arguments) -> bool:
    return changed(repository, repository.files) is not None


def _branches(repository: Repository, given: Arguments) -> bool:
    """Remembers where a new or moved branch points to."""
    if given.operands and given.may("MCmcd", "--move", "--copy"):
        return True
    force = given.may("f", "--force")
    if not 1 <= len(given.operands) <= 2 or given.may("ul", "--set-upstream-to", "--list", "--contains", "--merged"):
        return force and bool(given.operands)
    name, start = given.operands[0], given.operands[-1] if len(given.operands) > 1 else "HEAD"
    try:
        commit = resolved(repository, start)
    except GitUnknownError:
        return force
    if force or repository.commit(f"refs/heads/{name}") is None:
        repository.made[name] = commit
    return False


BLURS: Mapping[str, Callable[[Repository, Arguments], bool]] = {
    "add": _adds,
    "stage": _adds,
    "commit": _commits,
    **dict.fromkeys(
        ("update-index", "update-ref", "symbolic-ref", "replace", "config", "init", "fast-import"), _always
    ),
    "branch": _branches,
    "tag": lambda _, given: given.may("fd", "--force"),
    "fetch": lambda _, given: any(":" in name for name in given.operands),
}
"""Commands that change no file, but change the effect of later commands on the line."""

HARMLESS = frozenset([
    "annotate", "archive", "blame", "bugreport", "bundle", "cat-file", "check-attr", "check-ignore", "check-mailmap",
    "check-ref-format", "cherry", "clone", "column", "commit-graph", "commit-tree", "count-objects", "describe", "diff",
    "diff-files", "diff-index", "diff-tree", "difftool", "fast-export", "for-each-ref", "format-patch", "fsck", "gc",
    "grep", "hash-object", "help", "interpret-trailers", "log", "ls-files", "ls-remote", "ls-tree", "maintenance",
    "merge-base", "merge-tree", "mergetool", "mktag", "mktree", "name-rev", "notes", "pack-objects", "pack-refs",
    "patch-id", "prune", "push", "range-diff", "reflog", "remote", "repack", "request-pull", "rev-list", "rev-parse",
    "shortlog", "show", "show-branch", "show-index", "show-ref", "status", "stripspace", "var", "verify-commit",
    "verify-pack", "verify-tag", "version", "whatchanged", "write-tree",
])  # fmt: skip
"""Commands that leave the work tree, the index and branches as they are. Programs and files that some of these run or
write through an option are found when the line is read."""
