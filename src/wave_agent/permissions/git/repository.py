"""What a repository says about a few of its files, asked without running anything it configures.

A repository's configuration can name programs: a file system monitor, hooks, filters, an ssh command. Only trees, the
index and refs are read, which need none of them; files on disk are hashed here, since git would run a filter.
"""

import hashlib
import os
import stat
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from time import monotonic

from wave_agent.system.credentials import without_credentials

_QUIET = (
    *("--no-pager", "--no-optional-locks"),
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.sshCommand=false"),
    *("-c", "protocol.allow=never", "-c", "core.untrackedCache=false", "-c", "submodule.recurse=false"),
)
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
}
_LARGEST = 16 << 20
"""Bytes of a file to hash."""

_LARGEST_STATE = 1 << 16
_SUBMODULE = "160000"
_CONFLICT = ("conflict", "")
MOST = 4000
"""Protected files per repository that are checked."""

Entries = Mapping[str, tuple[str, str]]
"""Path, relative to the work tree → mode and object id."""


class GitUnknownError(Exception):
    """Git did not answer, was too slow, or did not say enough."""


class Git:
    """Runs git, for one decision and within one deadline."""

    def __init__(self, program: str | None, environment: Mapping[str, str], seconds: float) -> None:
        """`program` is an absolute path; None: no trustworthy git was found."""
        self._program = program
        kept = {name: value for name, value in without_credentials(environment).items() if name[:4] != "GIT_"}
        self._environment = {**kept, **_ENVIRONMENT}
        self._ends = monotonic() + seconds

    def ask(
        self,
        directory: str,
        *arguments: str,
        place: Sequence[str] = (),
        expected: Sequence[int] = (0,),
        given: bytes = b"",
    ) -> bytes:
        """Its output; `given` is its input. Raises `GitUnknownError`, also for a status that is not `expected`."""
        left = self._ends - monotonic()
        if self._program is None or left <= 0:
            raise GitUnknownError
        try:
            done = subprocess.run(
                [self._program, *place, *_QUIET, *arguments],
                cwd=directory,
                env=self._environment,
                input=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=left,
                check=False,
            )
        except (OSError, ValueError, subprocess.TimeoutExpired):
            raise GitUnknownError from None
        if done.returncode not in expected:
            raise GitUnknownError
        return done.stdout


class Repository:
    """One work tree, and the protected files in it."""

    def __init__(self, git: Git, directory: str, place: Sequence[str] = ()) -> None:
        """`place` are git options that lead elsewhere: `-C`, `--git-dir`, `--work-tree`. Raises `GitUnknownError`
        outside a work tree."""
        self._git, self._directory, self._place = git, directory, tuple(place)
        found = self._ask("rev-parse", "--show-toplevel", "--absolute-git-dir", "--show-prefix")
        lines = found.decode(errors="surrogateescape").split("\n")
        if len(lines) != 4:  # a line break in a name
            raise GitUnknownError
        self.top, self.git_dir = os.path.realpath(lines[0]), lines[1]
        self.directory = os.path.join(self.top, lines[2])
        """The directory that paths on the command line are relative to."""
        self.files: tuple[str, ...] = ()
        """The existing protected files, relative to the work tree."""
        self.guarded: tuple[str, ...] = ()
        """The protected files and directories in it, existing or not, and those that hooks run from."""
        self.head, self.branch = "HEAD", ""
        """Where the line being judged has moved to so far."""
        self.made: dict[str, str] = {}
        """Branches it has created or moved, and the commits they point to."""
        self.moved = False
        """It may have created commits, or moved branches."""
        self.begun: set[str] = set()
        """Its commands that may leave something in progress."""
        self.marked: list[str] = []
        """Commits to search for a change."""
        self._commits: dict[str, str | None] = {}
        self._trees: dict[str, Entries] = {}
        self._index: Entries | None = None
        self._disk: Entries | None = None
        self._ignored: frozenset[str] | None = None

    def _ask(self, *arguments: str, expected: Sequence[int] = (0,)) -> bytes:
        return self._git.ask(self._directory, *arguments, place=self._place, expected=expected)

    def look_for(self, files: Iterable[str], directories: Iterable[str], beside: Iterable[str] = ()) -> None:
        """Adds those of these files, and of the files in these directories, that exist in the work tree. `beside` are
        further directories that nothing may be restored into."""
        inside, git = f"{self.top}/", f"{os.path.realpath(self.git_dir)}/"
        files, directories = tuple(files), tuple(directories)
        guarded = (form for one in (*files, *directories, *beside) for form in (one, _real_parent(one)))
        kept = {one for one in guarded if one.startswith(inside) and not one.startswith((git, f"{inside}.git/"))}
        self.guarded = tuple(sorted(one[len(inside) :] for one in kept))
        places = {form for one in directories for form in (one, os.path.realpath(one)) if form.startswith(inside)}
        walked = (os.path.join(at, name) for place in places for at, _, names in os.walk(place) for name in names)
        # By the directory's real path and the literal name: a link is a file of the repository too.
        forms = (form for path in chain(files, walked) for form in (path, _real_parent(path)))
        own = (form for form in forms if form.startswith(inside) and not form.startswith((git, f"{inside}.git/")))
        self.files = tuple(sorted({path[len(inside) :] for path in islice(own, 2 * MOST) if os.path.lexists(path)}))

    # -------------------------------------------------------------------------------------------------- what git knows

    @property
    def index(self) -> Entries:
        if self._index is None:
            self._index = _settled(self._listed(None, self.files))
        return self._index

    def tree(self, commit: str) -> Entries:
        if commit not in self._trees:
            self._trees[commit] = self._listed(commit, self.files)
        return self._trees[commit]

    def _listed(self, commit: str | None, paths: Sequence[str]) -> Entries:
        """The entries at or below these paths. Without a commit, those of the index."""
        if not paths:
            return {}  # git would take no path to mean every path
        # From the top: paths are relative to where git runs.
        if commit is None:
            return _entries(self._at_top("--literal-pathspecs", "ls-files", "--stage", "-z", "--", *paths), stage=True)
        return _entries(self._at_top("ls-tree", "-r", "-z", "--full-tree", commit, "--", *paths), stage=False)

    def kept(self, commit: str | None) -> Entries:
        """The entries of the commit, or the index, at or below a protected path, or in place of a parent directory:
        with a link there, the protected path would be another file."""
        above = {path[:at] for path in self.guarded for at, sign in enumerate(path) if sign == "/"}
        listed = self._listed(commit, sorted({*self.guarded, *above}))
        below = tuple(f"{path}/" for path in self.guarded)
        own = {*self.guarded, *above}
        found = {path: entry for path, entry in listed.items() if path in own or path.startswith(below)}
        if len(found) > MOST:
            raise GitUnknownError
        return _settled(found)

    def is_on_disk(self, path: str, entry: tuple[str, str]) -> bool:
        """Whether the file on disk matches this entry. An entry that is not a file restores none."""
        if entry[0] == _SUBMODULE:
            return True
        try:
            return _on_disk(os.path.join(self.top, path), "sha256" if len(entry[1]) == 64 else "sha1") == entry
        except GitUnknownError:
            return False

    def commit(self, name: str) -> str | None:
        """The id of the commit of this name; None if it is not a commit."""
        if name.startswith("-"):
            return None
        if name not in self._commits:
            self._commits[name] = self._commit(name)
        return self._commits[name]

    def _commit(self, name: str) -> str | None:
        asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        refusals = (0, 1, 128) if name.endswith("@{upstream}") else (0, 1)  # 128: the branch has none
        return self._ask(*asked, expected=refusals).decode().strip() or None

    def parents(self, commit: str) -> list[str]:
        return self._ask("rev-list", "--parents", "-n", "1", commit).decode().split()[1:]

    def bases(self, one: str, other: str) -> list[str]:
        return self._ask("merge-base", "--all", one, other, expected=(0, 1)).decode().split()

    def has_commits(self, *ranges: str) -> bool:
        """Whether a commit in these ranges changes one of the files."""
        if not self.files:
            return False
        asked = ("--literal-pathspecs", "rev-list", "--full-history", "-n", "1", *ranges, "--", *self.files)
        return bool(self._at_top(*asked).strip())

    def config(self, pattern: str) -> list[str]:
        """The values of all settings whose names match."""
        listed = self._ask("config", "--null", "--get-regexp", pattern, expected=(0, 1)).decode(errors="replace")
        return [entry.partition("\n")[2] for entry in listed.split("\0") if entry]

    def refs(self, *patterns: str) -> list[str]:
        return self._ask("for-each-ref", "--format=%(refname)", *patterns).decode(errors="replace").split()

    def changes_any(self, commits: Sequence[str]) -> bool:
        """Whether one of these commits changes one of the files."""
        if not self.files or not commits:
            return False
        ids = self._ask("rev-parse", *(f"{one}^{{commit}}" for one in commits))
        asked = ("--literal-pathspecs", "diff-tree", "--stdin", "-r", "-m", "--root", "--no-commit-id", "--name-only")
        return bool(self._at_top(*asked, "--", *self.files, given=ids).strip())

    def has_state(self, *names: str) -> bool:
        """Whether one of these exists in git's own directory."""
        return any(os.path.lexists(os.path.join(self.git_dir, name)) for name in names)

    def state(self, *names: str) -> str:
        """The first of these small files that exists in git's own directory."""
        for name in names:
            try:
                with open(os.path.join(self.git_dir, name), encoding="utf-8") as file:
                    text = file.read(_LARGEST_STATE + 1)
            except (OSError, ValueError):
                continue
            if len(text) <= _LARGEST_STATE:
                return text.strip()
        raise GitUnknownError

    @property
    def ignored(self) -> frozenset[str]:
        """Untracked files that `.gitignore` excludes."""
        if self._ignored is None:
            untracked = "\0".join(path for path in self.files if path not in self.index)
            asked = ("check-ignore", "-z", "--stdin")
            listed = self._at_top(*asked, expected=(0, 1), given=os.fsencode(untracked)) if untracked else b""
            self._ignored = frozenset(map(os.fsdecode, listed.split(b"\0")))
        return self._ignored

    def _at_top(self, *arguments: str, expected: Sequence[int] = (0,), given: bytes = b"") -> bytes:
        place = (f"--git-dir={self.git_dir}", f"--work-tree={self.top}")
        return self._git.ask(self.top, *arguments, place=place, expected=expected, given=given)

    # ------------------------------------------------------------------------------------------------ what is on disk

    @property
    def disk(self) -> Entries:
        if self._disk is None:
            kind = "sha256" if any(len(one) == 64 for _, one in self.index.values()) else "sha1"
            self._disk = {path: _on_disk(os.path.join(self.top, path), kind) for path in self.files}
        return self._disk


def _real_parent(path: str) -> str:
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def _on_disk(path: str, algorithm: str) -> tuple[str, str]:
    try:
        facts = os.lstat(path)
        if stat.S_ISLNK(facts.st_mode):
            mode, content = "120000", os.fsencode(os.readlink(path))
        elif stat.S_ISREG(facts.st_mode) and facts.st_size <= _LARGEST:
            mode = "100755" if facts.st_mode & stat.S_IXUSR else "100644"
            with open(path, "rb") as file:
                content = file.read(_LARGEST + 1)
        else:
            raise GitUnknownError
    except OSError:
        raise GitUnknownError from None
    return mode, hashlib.new(algorithm, b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _entries(listed: bytes, *, stage: bool) -> Entries:
    """`MODE ID STAGE\\tPATH` of the index, `MODE TYPE ID\\tPATH` of a tree."""
    found: dict[str, tuple[str, str]] = {}
    for entry in listed.split(b"\0"):
        facts, tab, path = entry.partition(b"\t")
        if not tab:
            continue
        first, second, third = facts.decode().split()
        conflict = stage and third != "0"
        found[os.fsdecode(path)] = _CONFLICT if conflict else (first, second if stage else third)
    return found


def _settled(entries: Entries) -> Entries:
    """Raises `GitUnknownError` for a file in conflict: it has several entries."""
    if _CONFLICT in entries.values():
        raise GitUnknownError
    return entries
