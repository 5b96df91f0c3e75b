"""Git commands that can take a guard away: whether one of a line changes a protected file that exists.

`git stash -u`, `git checkout HEAD~1` and the like name no file, so what they would change is asked of git: outside of
the decision, within a fifth of a second, and only to spare a needless question. Where git does not answer in time, or
the question cannot be put exactly, the answer is that they do.
"""

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from wave_agent.git_repository import MOST, Git, GitUnknownError, Repository
from wave_agent.shell.git_runs import GIT
from wave_agent.shell.options import read, value_of
from wave_agent.shell.values import Placed

PATIENCE = 0.2
"""Seconds for all that git is asked about one line."""
_MOST_ALIASES = 5
_DIRECTS = re.compile(r"-C|--git-dir|--work-tree")
_HARMLESS_SETTINGS = re.compile(r"(?:advice|user|author|committer|color|http|init|gc|fetch|push|protocol)\.", re.I)
_ASTRAY = re.compile(
    r"GIT_(?:DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|NAMESPACE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|CONFIG\w*"
    r"|EXEC_PATH|SEQUENCE_EDITOR|REPLACE_REF_BASE|ATTR_SOURCE|\w+_PATHSPECS)"
)
"""Variables by which git does something else than it would without."""
_HARMLESS_VARIABLES = re.compile(
    r"GIT_(?:EDITOR|PAGER|TERMINAL_PROMPT|MERGE_AUTOEDIT|(?:AUTHOR|COMMITTER)_\w+|SSH_COMMAND|ASKPASS|TRACE\w*|LFS_\w+"
    r"|OPTIONAL_LOCKS|ADVICE|PROGRESS_DELAY)"
)
_MAGIC = re.compile(r"^:|[*?\[\\]")


class Question(Struct, frozen=True, kw_only=True):
    """What a line does with git."""

    runs: tuple[Placed, ...]
    """Its git commands, in order."""
    assigned: tuple[str, ...] = ()
    """Names of the variables that it sets."""


def changed_by_git(
    question: Question,
    protected: Iterable[str],
    directories: Iterable[str],
    *,
    program: str | None,
    environment: Mapping[str, str],
    seconds: float = PATIENCE,
) -> str | None:
    """A protected path that exists and that the line would change, as far as is known; None if there is none.

    `directories` are protected with all that is in them. `program` is the git to ask. Blocks while git answers.
    """
    names = [_subcommand(run) for run in question.runs]
    if all(name in HARMLESS or name in BLURS for name in names):
        return None
    given = [name for name in question.assigned if name.startswith("GIT_")]
    astray = not all(map(_HARMLESS_VARIABLES.fullmatch, given)) or any(map(_ASTRAY.fullmatch, environment))
    judge = _Judge(Git(program, environment, seconds), tuple(protected), tuple(directories), astray)
    judge.home_is_known = not {"HOME", "XDG_CONFIG_HOME"} & set(question.assigned)
    for run, name in zip(question.runs, names, strict=True):
        for directory in run.directories if name not in HARMLESS else ():
            found = judge.run(run, directory)
            if found is not None:
                return found
    return None


def _subcommand(run: Placed) -> str:
    """ "" if it is not known, or there is none."""
    _, operands = read(run.words, GIT)
    if not operands:
        return "version"
    return operands[0].text if operands[0].static else ""


def find_git(path: str, project: str) -> str | None:
    """The git to ask: none that a project could have put there."""
    root = f"{os.path.realpath(project)}/"
    for directory in path.split(os.pathsep):
        program = os.path.join(directory, "git")
        if directory.startswith("/") and os.access(program, os.X_OK) and os.path.isfile(program):
            return None if os.path.realpath(program).startswith(root) or program.startswith(root) else program
    return None


class _Judge:
    """Goes through the git commands of one line."""

    def __init__(self, git: Git, files: Sequence[str], directories: Sequence[str], astray: bool) -> None:
        self.home_is_known = True
        self._git = git
        self._files, self._directories = files, directories
        self._astray = astray
        """Variables may lead git to another repository."""
        self._repositories: dict[tuple[str, ...], Repository] = {}
        self._ran = False
        """Something that may have made commits or refs was before."""
        self._blurred = False
        """A command before has changed what a later one would find."""

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
            if not repository.files:
                return None
            if not exact or len(repository.files) > MOST:
                raise GitUnknownError
            touched = self._judge(repository, name, [word.text for word in words])
        except _NoSuchCommitError:
            return None if not self._ran else self._any(directory, value_of(options, "-C", "--work-tree"))
        except GitUnknownError:
            if name in BLURS:
                self._blurred = True
                return None
            return self._any(directory, value_of(options, "-C", "--work-tree"))
        finally:
            self._ran = True
        return os.path.join(repository.top, touched) if touched is not None else None

    def _any(self, directory: str, elsewhere: object) -> str | None:
        """A protected file that a command could change of which no more is known than where it runs."""
        for key, repository in self._repositories.items():
            if key[0] == directory and repository.files and not self._astray:
                return os.path.join(repository.top, repository.files[0])
        below = "" if self._astray or elsewhere is not None else f"{os.path.realpath(directory)}/"
        there = (path for path in (*self._files, *self._directories) if path.startswith(below) and "/.git/" not in path)
        return next((path for path in there if os.path.lexists(path)), None)

    def _repository(self, directory: str, place: Sequence[str]) -> Repository:
        key = (directory, *place)
        if key not in self._repositories:
            found = Repository(self._git, directory, place)
            found.look_for(self._files, self._directories)
            self._repositories[key] = found
        return self._repositories[key]

    def _judge(self, repository: Repository, name: str, words: Sequence[str], depth: int = 0) -> str | None:
        if name in BLURS:
            self._blurred |= BLURS[name](repository, Arguments(words))
            return None
        if name in EFFECTS:
            if self._blurred:
                raise GitUnknownError
            effect = EFFECTS[name]
            found = effect.judge(repository, Arguments(words, effect.values, effect.longs))
            self._blurred |= effect.blurs(repository, Arguments(words, effect.values, effect.longs))
            return found
        alias = repository.config(rf"^alias\.{re.escape(name.lower())}$") if self.home_is_known else []
        if not alias or alias[-1].startswith("!") or depth > _MOST_ALIASES:
            raise GitUnknownError
        try:
            first, *rest = shlex.split(alias[-1])
        except ValueError:
            raise GitUnknownError from None
        return None if first in HARMLESS else self._judge(repository, first, [*rest, *words], depth + 1)


# ------------------------------------------------------------------------------------------------------------ arguments


class Arguments:
    """The words after a subcommand. Git takes any beginning of a long option that is unambiguous."""

    def __init__(self, words: Sequence[str], values: str = "", longs: Sequence[str] = ()) -> None:
        """`values` are short options with a value, `longs` long ones."""
        self.longs: list[tuple[str, str]] = []
        self.letters: list[tuple[str, str]] = []
        self.operands: list[str] = []
        self.paths: list[str] | None = None
        """What stands behind `--`."""
        rest = list(words)
        while rest:
            word = rest.pop(0)
            if word == "--":
                self.paths = rest
                return
            if word.startswith("--"):
                name, equals, value = word.partition("=")
                if not equals and rest and any(long.startswith(name) for long in longs):
                    value = rest.pop(0)
                self.longs.append((name, value))
            elif word.startswith("-") and len(word) > 1:
                self._short(word, values, rest)
            else:
                self.operands.append(word)

    def _short(self, word: str, values: str, rest: list[str]) -> None:
        for at, letter in enumerate(word[1:], 2):
            if letter in values:
                self.letters.append((letter, word[at:] or (rest.pop(0) if rest else "")))
                return
            self.letters.append((letter, ""))

    def may(self, letters: str, *names: str) -> bool:
        """One of these options may be meant."""
        return self.value(letters, *names) is not None

    def value(self, letters: str, *names: str) -> str | None:
        """What it is set to; "" for a flag."""
        short = [value for letter, value in self.letters if letter in letters]
        long = [value for given, value in self.longs if any(name.startswith(given) for name in names)]
        return next(iter([*short, *long]), None)

    def surely(self, letters: str, *names: str) -> bool:
        """One of these options is there, written out."""
        return any(letter in letters for letter, _ in self.letters) or any(given in names for given, _ in self.longs)


# ------------------------------------------------------------------------------------------- questions about the files


def _covered(repository: Repository, paths: Sequence[str] | None) -> tuple[str, ...]:
    """The files at or below these paths. A pattern may be for any of them."""
    if not paths or any(map(_MAGIC.search, paths)):
        return repository.files
    places = [os.path.normpath(os.path.join(repository.directory, path)) for path in paths]
    forms = [os.path.relpath(form, repository.top) for one in places for form in (one, os.path.realpath(one))]
    return tuple(
        file for file in repository.files if any(one in (".", file) or file.startswith(f"{one}/") for one in forms)
    )


def _differing(repository: Repository, *trees: str) -> str | None:
    """A file that is not the same in all of these."""
    first, *others = (repository.tree(one) for one in trees)
    return next((file for other in others for file in repository.files if first.get(file) != other.get(file)), None)


def _resolved(repository: Repository, name: str) -> str:
    if name == "HEAD":
        return name
    found = repository.commit(_previous(name))
    if found is None:
        raise _NoSuchCommitError
    return found


class _NoSuchCommitError(GitUnknownError):
    """Git would refuse, unless an earlier command of the line makes such a commit or ref."""


def _changed(repository: Repository, files: Sequence[str], *, index: bool = True) -> str | None:
    """A tracked file that is not as it was committed; without `index`, one that is not as it was added."""
    head = repository.tree(_resolved(repository, repository.head)) if index else repository.index
    for file in files:
        known = repository.index.get(file)
        if (known is not None or file in head) and (known != head.get(file) or known != repository.disk[file]):
            return file
    return None


def _untracked(repository: Repository, files: Sequence[str], *, ignored: bool) -> str | None:
    there = (file for file in files if file not in repository.index)
    return next((file for file in there if ignored == (file in repository.ignored)), None)


def _moves(repository: Repository, target: str, *, force: bool) -> str | None:
    """The work tree becomes that of another commit."""
    found = _differing(repository, _resolved(repository, repository.head), target)
    return found or (_changed(repository, repository.files) if force else None)


# ----------------------------------------------------------------------------------------------------- the subcommands


def _checkout(repository: Repository, given: Arguments) -> str | None:
    force = given.may("f", "--force", "--discard-changes")
    if given.may("", "--pathspec-from-file") or given.may("p", "--patch"):
        raise GitUnknownError
    new = given.may("bBcC", "--create", "--force-create")
    if given.may("", "--orphan"):
        # `git switch --orphan` removes what is tracked.
        return next((file for file in repository.files if file in repository.index), None)
    names, paths = given.operands, given.paths
    if paths is None and names and not new and repository.commit(_previous(names[0])) is None:
        remote = repository.refs(f"refs/remotes/*/{names[0]}") if len(names) == 1 else []
        if remote:
            return next((found for ref in remote if (found := _moves(repository, ref, force=force))), None)
        names, paths = [], names
    elif paths is None and len(names) > 1:
        names, paths = names[:1], names[1:]
    if paths:
        return _brought_back(repository, names[0] if names else None, _covered(repository, paths))
    if not names:
        return _changed(repository, repository.files) if force else None
    found = _moves(repository, _resolved(repository, names[0]), force=force)
    repository.head = _resolved(repository, names[0])
    repository.branch = "" if new or names[0] == "-" else names[0]
    return found


def _previous(name: str) -> str:
    return "@{-1}" if name == "-" else name


def _brought_back(repository: Repository, source: str | None, files: Sequence[str]) -> str | None:
    """Files as the index or a commit has them."""
    kept = repository.index if source is None else repository.tree(_resolved(repository, source))
    return next((file for file in files if file in kept and kept[file] != repository.disk[file]), None) or next(
        (file for file in files if file in repository.index and file not in kept), None
    )


def _restore(repository: Repository, given: Arguments) -> str | None:
    if given.may("", "--pathspec-from-file") or given.may("p", "--patch"):
        raise GitUnknownError
    if given.surely("S", "--staged") and not given.may("W", "--worktree"):
        return None
    paths = [*given.operands, *(given.paths or ())]
    return _brought_back(repository, given.value("s", "--source"), _covered(repository, paths))


def _reset(repository: Repository, given: Arguments) -> str | None:
    if not given.may("", "--hard", "--merge", "--keep"):
        return None
    if given.paths is not None or len(given.operands) > 1:
        raise GitUnknownError
    target = _resolved(repository, given.operands[0] if given.operands else repository.head)
    found = _moves(repository, target, force=True)
    repository.head = target
    return found


def _stash(repository: Repository, given: Arguments) -> str | None:
    name, *rest = given.operands or ["push"]
    if name in ("list", "show", "drop", "clear", "create", "store"):
        return None
    if name in ("pop", "apply"):
        ref = rest[0] if rest else "stash@{0}"
        commit = repository.commit(f"stash@{{{ref}}}" if ref.isdigit() else ref)
        return None if commit is None else _unstashed(repository, commit)
    if name not in ("push", "save") or given.may("", "--pathspec-from-file"):
        raise GitUnknownError
    paths = [*rest, *(given.paths or ())] if name == "push" else []
    files = _covered(repository, paths)
    found = _changed(repository, files)
    if found is None and given.may("ua", "--include-untracked", "--all"):
        found = _untracked(repository, files, ignored=False)
    if found is None and given.may("a", "--all"):
        found = _untracked(repository, files, ignored=True)
    return found


def _unstashed(repository: Repository, commit: str) -> str | None:
    base, *others = repository.parents(commit)
    found = _differing(repository, base, commit)
    for untracked in others[1:]:
        found = found or next(iter(repository.tree(untracked)), None)
    return found


def _clean(repository: Repository, given: Arguments) -> str | None:
    if given.surely("n", "--dry-run"):
        return None
    files = _covered(repository, [*given.operands, *(given.paths or ())])
    found = None if given.surely("X") else _untracked(repository, files, ignored=False)
    return found or (_untracked(repository, files, ignored=True) if given.may("xX") else None)


_STRATEGIES = ("", "ort", "recursive", "resolve", "ours", "theirs", "octopus")
_STEPS = ("--continue", "--abort", "--skip", "--quit")


def _require_plain_strategy(given: Arguments) -> None:
    """Others, `-X subtree=DIR` above all, put files elsewhere."""
    chosen = [value for letter, value in given.letters if letter in "sX"]
    chosen += [value for name, value in given.longs if any(long.startswith(name) for long in _STRATEGY_LONGS)]
    if not all(one in _STRATEGIES for one in chosen):
        raise GitUnknownError


_STRATEGY_LONGS = ("--strategy", "--strategy-option")


def _require_no_autostash(repository: Repository, given: Arguments) -> None:
    if _changed(repository, repository.files) is not None:
        settings = repository.config(r"^(rebase|merge)\.autostash$")
        if given.may("", "--autostash") or any(one.lower() not in ("false", "no", "off", "0") for one in settings):
            raise GitUnknownError


def _joins(repository: Repository, target: str) -> str | None:
    """What came to be on the other side since the two parted is added to this one."""
    head = _resolved(repository, repository.head)
    bases = repository.bases(head, target)
    if _differing(repository, head, target) is None:
        return None
    if not bases:
        raise GitUnknownError
    return _differing(repository, target, *bases)


def _merge(repository: Repository, given: Arguments) -> str | None:
    _require_plain_strategy(given)
    if given.may("", "--abort", "--continue"):
        return _changed(repository, repository.files)
    if given.surely("", "--quit"):
        return None
    _require_no_autostash(repository, given)
    names = given.operands or [_upstream(repository)]
    return next((found for name in names if (found := _joins(repository, _resolved(repository, name)))), None)


def _upstream(repository: Repository) -> str:
    return f"{repository.branch}@{{upstream}}"


def _pull(repository: Repository, given: Arguments) -> str | None:
    """By what was fetched before: what else comes with it is known only when it is here."""
    _require_plain_strategy(given)
    _require_no_autostash(repository, given)
    name, *branches = given.operands or [""]
    if name and not repository.config(rf"^remote\.{re.escape(name)}\.url$"):
        if re.fullmatch(r"\w[\w-]*", name) and not os.path.lexists(os.path.join(repository.directory, name)):
            raise _NoSuchCommitError  # nor is there such a remote
        raise GitUnknownError  # a path or a URL
    if any(re.search(r"[:+^]", branch) for branch in branches):
        raise GitUnknownError
    targets = [f"refs/remotes/{name}/{branch}" for branch in branches] or [_upstream(repository)]
    rebases = given.value("r", "--rebase") not in (None, "false") or any(
        one.lower() != "false" for one in repository.config(r"^(pull|branch\..*)\.rebase$")
    )
    for target in targets:
        commit = _resolved(repository, target)
        found = _joins(repository, commit) or (_replays(repository, commit) if rebases else None)
        if found is not None:
            return found
    return None


def _replays(repository: Repository, onto: str) -> str | None:
    """Commits are made again on top of another one: on the way, the work tree is that of each of them."""
    head = _resolved(repository, repository.head)
    found = _differing(repository, head, onto)
    return found or (repository.files[0] if repository.has_commits(f"{onto}...{head}") else None)


def _rebase(repository: Repository, given: Arguments) -> str | None:
    _require_plain_strategy(given)
    if given.surely("", "--quit", "--edit-todo", "--show-current-patch"):
        return None
    if given.may("", "--continue", "--abort", "--skip"):
        before = repository.state("rebase-merge/orig-head", "rebase-apply/orig-head")
        onto = repository.state("rebase-merge/onto", "rebase-apply/onto")
        return _changed(repository, repository.files) or _replays_between(repository, before, onto)
    if given.may("", "--root"):
        raise GitUnknownError
    _require_no_autostash(repository, given)
    if len(given.operands) > 1:
        found = _moves(repository, _resolved(repository, given.operands[1]), force=False)
        if found is not None:
            return found
        repository.head = _resolved(repository, given.operands[1])
    upstream = given.operands[0] if given.operands else _upstream(repository)
    onto = given.value("", "--onto")
    return _replays(repository, _resolved(repository, onto or upstream))


def _replays_between(repository: Repository, before: str, onto: str) -> str | None:
    head = _resolved(repository, repository.head)
    one, other = _resolved(repository, before), _resolved(repository, onto)
    found = _differing(repository, head, one, other)
    return found or (repository.files[0] if repository.has_commits(f"{other}...{one}") else None)


def _picks(repository: Repository, given: Arguments) -> str | None:
    """`cherry-pick` and `revert`: what these commits change."""
    _require_plain_strategy(given)
    if given.surely("", "--quit"):
        return None
    if given.may("", *_STEPS) or not given.operands or given.may("", "--stdin"):
        raise GitUnknownError
    if any(".." in name or name.startswith("^") or "^!" in name or "^@" in name for name in given.operands):
        return repository.files[0] if repository.has_commits("--end-of-options", *given.operands) else None
    for name in given.operands:
        commit = _resolved(repository, name)
        parents = repository.parents(commit)
        if not parents:
            raise GitUnknownError
        found = _differing(repository, commit, *parents)
        if found is not None:
            return found
    return None


_LARGEST_PATCH = 8 << 20
_HEADER = re.compile(rb"^(?:diff |---|\+\+\+|rename |copy |Index:|=== )(.*)$", re.MULTILINE | re.IGNORECASE)
_ENCODED = re.compile(rb"^content-transfer-encoding:\s*(?!7bit|8bit|binary)", re.MULTILINE | re.IGNORECASE)


def _apply(repository: Repository, given: Arguments) -> str | None:
    """By the names in the patch: `-p` and `--directory` change what stands in front of the last one."""
    only_looks = given.surely("", "--check", "--stat", "--numstat", "--summary") and not given.may("", "--apply")
    if only_looks or (given.surely("", "--cached") and not given.may("", "--index")):
        return None
    if given.may("", *_STEPS, "--resolved", "--retry") or not given.operands:  # from stdin
        raise GitUnknownError
    text = b"".join(_read_patch(os.path.join(repository.directory, name)) for name in given.operands)
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


def _remove(repository: Repository, given: Arguments) -> str | None:
    if given.surely("n", "--dry-run") or given.surely("", "--cached"):
        return None
    if given.may("", "--pathspec-from-file"):
        raise GitUnknownError
    files = _covered(repository, [*given.operands, *(given.paths or ())])
    return next((file for file in files if file in repository.index), None)


def _named(repository: Repository, given: Arguments) -> str | None:
    """`mv`, `merge-file`: every operand is a path that may be written, moved or removed."""
    if given.surely("n", "--dry-run"):
        return None
    return next(iter(_covered(repository, [*given.operands, *(given.paths or ())])), None)


def _read_tree(repository: Repository, given: Arguments) -> str | None:
    if not given.may("u"):
        return None
    if len(given.operands) != 1 or given.longs[1:] or given.may("", "--prefix"):
        raise GitUnknownError
    return _moves(repository, _resolved(repository, given.operands[0]), force=True)


def _checkout_index(repository: Repository, given: Arguments) -> str | None:
    if given.may("", "--prefix", "--temp", "--stage"):
        raise GitUnknownError
    return _changed(repository, repository.files, index=False)


class _Only:
    """No question is needed for some of its own subcommands, and none can be put for the others."""

    def __init__(self, *harmless: str) -> None:
        self._harmless = harmless

    def __call__(self, repository: Repository, given: Arguments) -> str | None:
        if given.operands[:1] and given.operands[0] in self._harmless:
            return None
        raise GitUnknownError


def _submodule(repository: Repository, given: Arguments) -> str | None:
    """A submodule has a repository of its own, in a directory of its own."""
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
    return next(iter(_covered(repository, rest)), None)


# --------------------------------------------------------------------------------------------------------------- tables


def _never(*_: object) -> bool:
    return False


def _always(*_: object) -> bool:
    return True


def _moves_the_index(_: Repository, given: Arguments) -> bool:
    """`reset` without `--hard`, `rm --cached`, `restore --staged` and `read-tree` without `-u`: files may become
    untracked."""
    return not given.may("", "--hard", "--merge", "--keep")


class Effect(Struct, frozen=True):
    """A subcommand that can change files of the work tree."""

    judge: Callable[[Repository, Arguments], str | None]
    values: str = ""
    """Its short options with a value."""
    longs: tuple[str, ...] = ()
    """Its long ones."""
    blurs: Callable[[Repository, Arguments], bool] = _never
    """Nothing exact can be said about commands behind it on the line."""


_JOINING = ("--strategy", "--strategy-option", "--message", "--file", "--into-name", "--onto", "--exec", "--cleanup")
EFFECTS: Mapping[str, Effect] = {
    "am": Effect(_apply, "pC", ("--directory", "--exclude", "--include", "--patch-format")),
    "apply": Effect(_apply, "pC", ("--directory", "--exclude", "--include", "--build-fake-ancestor")),
    "bisect": Effect(_Only("log", "terms", "help", "view", "visualize")),
    "checkout": Effect(_checkout, "bB", ("--conflict", "--pathspec-from-file", "--orphan")),
    "checkout-index": Effect(_checkout_index),
    "cherry-pick": Effect(_picks, "mXs", ("--mainline", *_JOINING)),
    "clean": Effect(_clean, "e", ("--exclude",)),
    "merge": Effect(_merge, "mFsX", _JOINING),
    "merge-file": Effect(_named, "L", ("--marker-size",)),
    "mv": Effect(_named),
    "pull": Effect(_pull, "sXjo", (*_JOINING, "--depth", "--deepen", "--jobs", "--upload-pack")),
    "read-tree": Effect(_read_tree, blurs=_always),
    "rebase": Effect(_rebase, "sXxC", (*_JOINING, "--whitespace", "--empty")),
    "reset": Effect(_reset, "", ("--pathspec-from-file",), blurs=_moves_the_index),
    "restore": Effect(_restore, "s", ("--source", "--conflict", "--pathspec-from-file"), blurs=_moves_the_index),
    "revert": Effect(_picks, "mXs", ("--mainline", *_JOINING)),
    "rm": Effect(_remove, "", ("--pathspec-from-file",), blurs=_always),
    "sparse-checkout": Effect(_Only("list", "check-rules", "disable")),
    "stash": Effect(_stash, "m", ("--message", "--pathspec-from-file")),
    "submodule": Effect(_submodule),
    "switch": Effect(_checkout, "cC", ("--create", "--force-create", "--conflict", "--orphan")),
    "worktree": Effect(_worktree, "bB", ("--reason",)),
}
"""What can change the work tree. A name that is in no table here is looked up as an alias, and else not known."""


def _adds(repository: Repository, given: Arguments) -> bool:
    """What was untracked or changed may be tracked, and as it should be, afterwards."""
    if _changed(repository, repository.files) or _untracked(repository, repository.files, ignored=False):
        return True
    return given.may("f", "--force") and _untracked(repository, repository.files, ignored=True) is not None


def _commits(repository: Repository, _: Arguments) -> bool:
    return _changed(repository, repository.files) is not None


BLURS: Mapping[str, Callable[[Repository, Arguments], bool]] = {
    "add": _adds,
    "stage": _adds,
    "commit": _commits,
    **dict.fromkeys(
        ("update-index", "update-ref", "symbolic-ref", "replace", "config", "init", "fast-import"), _always
    ),
    "branch": lambda _, given: bool(given.operands) and given.may("fMCmcd", "--force", "--move", "--copy"),
    "tag": lambda _, given: given.may("fd", "--force"),
    "fetch": lambda _, given: any(":" in name for name in given.operands),
}
"""What changes no file, but what later commands of the same line would do."""

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
"""What leaves files of the work tree, the index and branches as they are. What some of these run or write by an option
is found where the line is read."""
