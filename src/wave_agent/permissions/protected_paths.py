"""Files that would let the agent rewrite its own guards: writing to one of them asks in every mode."""

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.execution import HookKind
from wave_agent.hooks.named_files import hook_files
from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.values import Reach, Splitting, WriteTarget, escape
from wave_agent.system.project_files import NotReadError, read_project_file
from wave_agent.system.real_files import identity, is_below, resolve_or_keep

PROJECT_FILES = (
    *(".wave/settings.json", ".wave/settings.local.json", ".claude/settings.json", ".claude/settings.local.json"),
    ".codex/hooks.json",
)
EXTENSION_DIRECTORIES = ("agents", "skills", "commands")
"""They steer the agent and may run commands."""
PROJECT_DIRECTORIES = (
    *(".wave/hooks", ".claude/hooks", ".codex/hooks"),
    *(f"{base}/{name}" for base in (".wave", ".claude") for name in EXTENSION_DIRECTORIES),
)
GIT_FILES = ("config", "config.worktree")
GIT_DIRECTORIES = ("hooks",)
STATE_FILES = ("settings.json", "settings.local.json", "trust.json", "keys.json", "mcp.json", "mcp-tokens.json")
STATE_DIRECTORIES = (
    *("hooks", "pycache", "guard", "mcp-cache", "outbox", "exports", "budgets"),
    *EXTENSION_DIRECTORIES,
)
START_UP_FILES = (
    *(
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".profile",
        ".zshrc",
        ".zshenv",
        ".zprofile",
        ".zlogin",
        ".zlogout",
        ".bash_aliases",
        ".inputrc",
        ".pam_environment",
    ),
    *(".config/fish/config.fish", ".gitconfig", ".config/git/config", ".ssh/rc", ".jq"),
)
START_UP_DIRECTORIES = (
    *(".config/fish/conf.d", ".config/git", ".jq"),
    # The user's Python packages, for any version that runs a hook: `usercustomize` and `.pth` files run there.
    *(".local/lib", "Library/Python"),
)
_SITE_DIRECTORIES = ("site-packages", "dist-packages")
_SHARED_DIRECTORIES = ("/bin", "/sbin", "/usr", "/nix", "/tmp", "/var/tmp", "/dev/shm")
_PACKAGE_RUNNERS = {
    **dict.fromkeys(("npx", "npm", "pnpm", "yarn", "bun", "bunx"), "node_modules/.bin"),
    **dict.fromkeys(("uv", "poetry", "pipenv", "hatch", "pdm", "rye"), ".venv/bin"),
}
"""Where each of these looks for programs."""
_INTERPRETERS = lazy_regex(
    r"(?:ba|da|z|k|a)?sh|fish|(?:python|pypy)[\d.]*|node|deno|bun|tsx|ruby|perl|php|lua|source|\."
)


class ProtectedPaths(Struct, frozen=True):
    """The files, and the directories with everything in them. Each as written and with links resolved."""

    files: frozenset[str]
    directories: tuple[str, ...]
    beside: tuple[str, ...] = ()
    """Directories in which a write needs the user's consent, but in which a program may be given a file to work with,
    and which may be removed along with their parent: those that hooks run from."""
    roots: tuple[str, ...] = ()
    """Naming these, or a parent of them, means nothing: the project, the user's home and `~/.local`."""

    modules: tuple[tuple[str, frozenset[str]], ...] = ()
    """Directories that a hook's Python searches for modules before its own, and the names it looks for."""

    def find(self, path: str) -> str | None:
        """The path, if writing to it needs the user's consent."""
        held = self._holds(path, (*self.directories, *self.beside)) or self._is_linked(path)
        return path if held or self._is_module(path) else None

    def _is_module(self, path: str) -> bool:
        """`json.py`, `json.so`, `json/__init__.py`, in a place where a hook would load them."""
        for form in (os.path.normpath(path), os.path.realpath(path)) if self.modules else ():
            file = os.path.dirname(form) if os.path.basename(form).startswith("__init__.") else form
            directory, name = os.path.split(file)
            if file is not form or name.endswith((".py", ".pyc", ".so", ".pyd")):
                module = name.partition(".")[0]
                if any(directory == one and module in names for one, names in self.modules):
                    return True
        return False

    def _holds(self, path: str, directories: tuple[str, ...]) -> bool:
        forms = (os.path.normpath(path), os.path.realpath(path))
        return any(
            form in self.files or any(form.startswith(f"{directory}/") for directory in directories) for form in forms
        )

    def _is_linked(self, path: str) -> bool:
        """Another name of a protected file: a hard link through which a command would write to it."""
        try:
            facts = os.stat(path)
        except (OSError, ValueError):
            return False
        if facts.st_nlink < 2 or not stat.S_ISREG(facts.st_mode):
            return False
        inside = (entry for one in self.directories for entry in _inside(one))
        return any(_identity(one) == identity(facts) for one in (*self.files, *inside))

    def touched(self, write: WriteTarget) -> str | None:
        """The protected path that a command would change, existing or not."""
        if write.splits is not None and (found := self._from_words(write, write.splits)) is not None:
            return found
        if "\0" in write.pattern or (write.removes and self._is_cache(write.pattern)):
            return None
        plain = _plain(write.pattern)
        if write.names and plain is not None and os.path.isdir(plain):
            inside = (
                WriteTarget(f"{write.pattern}/{name}", write.reach, existing=write.existing) for name in write.names
            )
            return next((found for one in inside if (found := self.touched(one)) is not None), None)
        if plain is None:
            inside = (WriteTarget(f"{write.pattern}/{name}", write.reach) for name in write.names)
            return next((found for one in (write, *inside) if (found := self._matching(one)) is not None), None)
        if write.reach is Reach.NAMED:
            return self._named(plain)
        return self.find(plain) or self._around(plain, write) or self._package(plain, write.reach)

    def _from_words(self, write: WriteTarget, splits: Splitting) -> str | None:
        """A protected path that is a part of an existing file's name: `xargs` splits names at blanks."""
        from wave_agent.permissions.split_names import names_that_split  # lazy: few lines need it

        names = names_that_split([write.pattern], splits.expression, most=_MOST_SPLIT)
        if names is None:
            return write.pattern
        for name in names:
            inside = os.path.relpath(name, splits.directory)
            if re.search(r"['\"\\]", name) or not os.path.isabs(splits.directory):
                return name
            for word in inside.split():
                one = replace(write, pattern=escape(os.path.join(splits.directory, word)), splits=None)
                if (found := self.touched(one)) is not None:
                    return found
        return None

    def _is_cache(self, pattern: str) -> bool:
        """Python's compiled files, which it recreates: without them a hook runs as before."""
        steps = pattern.rstrip("/").split("/")
        guards = (*self.files, *self.directories, *self.beside)
        if not (steps[-1].endswith(_COMPILED) or _CACHE in steps[-2:]) or any(
            _CACHE in one.split("/") for one in guards
        ):
            return False
        plain = _plain(pattern)
        if plain is not None:
            return _is_compiled(plain)
        if steps[-1] == _CACHE:
            return True
        there = None if "**" in pattern else _there(pattern)
        return there is not None and len(there) < _MOST_MATCHES and all(map(_is_compiled, there))

    def _named(self, path: str) -> str | None:
        """A program that may do anything gets this path as an argument: it, or something below it, is protected."""
        if self._holds(path, self.directories):
            return path
        for form in dict.fromkeys((os.path.normpath(path), os.path.realpath(path))):
            below = f"{form.rstrip('/')}/"
            if any(root == form or root.startswith(below) for root in self.roots):
                continue
            for one in (*sorted(self.files), *self.directories):
                if one == form or one.startswith(below):
                    return one
        return None

    def _around(self, path: str, write: WriteTarget) -> str | None:
        """A protected path in the directory that is written to, or anywhere below one that is moved or removed."""
        reach = write.reach
        if reach is Reach.FILE:
            return None
        for form in dict.fromkeys((os.path.normpath(path), os.path.realpath(path))):
            below = f"{form.rstrip('/')}/"
            for one in (*sorted(self.files), *self.directories):
                inside = one.startswith(below) and (reach is Reach.TREE or "/" not in one[len(below) :])
                if one == form or (inside and _counts(one, write)):
                    return one
            if form in self.beside:
                return form
        return None

    def _package(self, path: str, reach: Reach) -> str | None:
        """A directory is created where a hook would take it for a package."""
        new = reach is Reach.TREE and not os.path.lexists(path)
        return path if new and self._is_module(f"{path}/__init__.py") else None

    def _matching(self, write: WriteTarget) -> str | None:
        """By the pattern, to include files that do not exist yet; and by existing files, through links."""
        directory, rest = _directory(write.pattern)
        for base in dict.fromkeys((directory, os.path.realpath(directory))):
            expression = _compiled(f"{escape(base.rstrip('/'))}/{rest}")
            for one in (*sorted(self.files), *self.directories):
                steps = one.split("/")
                above = (
                    ["/".join(steps[:end]) for end in range(2, len(steps) + 1)] if write.reach is Reach.TREE else [one]
                )
                if any(expression.fullmatch(path) for path in above) and _counts(one, write):
                    return one
            entered = self.directories if write.reach is Reach.NAMED else (*self.directories, *self.beside)
            inside = (path for one in entered if _counts(one, write) for path in (f"{one}/x", *_inside(one)))
            if base in entered or self._holds(base, entered) or any(map(expression.fullmatch, inside)):
                return write.pattern
        there = _there(os.path.normpath(write.pattern)) if "**" not in write.pattern else []
        if there is None:
            return write.pattern
        found = (
            self._named(path) if write.reach is Reach.NAMED else self.find(path) or self._around(path, write)
            for path in there
        )
        return next((path for path in found if path is not None), None)


def _is_compiled(path: str) -> bool:
    """The path is Python's cache, or in it, or is a compiled file next to its source."""
    for form in (os.path.normpath(path), os.path.realpath(path)):
        beside = form.endswith(_COMPILED) and os.path.isfile(f"{form[:-1]}")
        if _CACHE not in form.split("/")[-2:] and not beside:
            return False
    return True


def _counts(path: str, write: WriteTarget) -> bool:
    """A write that creates no file cannot create this one."""
    return not write.existing or os.path.lexists(path)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        return identity(os.lstat(path))
    except OSError:
        return None


def _inside(directory: str) -> list[str]:
    """The entries of a directory, if it is readable."""
    try:
        with os.scandir(directory) as entries:
            return [entry.path for entry in islice(entries, _MOST_MATCHES)]
    except OSError:
        return []


_MOST_MATCHES = 1000
_MOST_ENTRIES = 10_000
"""Limit on the directories a pattern is compared with."""
_MOST_SPLIT = 500_000
"""Limit on the entries among which names that are split are looked for."""
_CACHE = "__pycache__"
_COMPILED = (".pyc", ".pyo")
_LARGEST_POINTER = 4096
"""Bytes of a git file that names a directory."""
_NO_PATH = lazy_regex(r"(?!)")
_QUOTED = lazy_regex(r"\[([*?\[])\]")


def _plain(pattern: str) -> str | None:
    """The path, if the pattern is a single one."""
    return None if re.search(r"[*?\[]", _QUOTED.sub("", pattern)) else _QUOTED.sub(r"\1", pattern)


def _directory(pattern: str) -> tuple[str, str]:
    """The directory before the first wildcard, and the rest."""
    steps = os.path.normpath(pattern).split("/")
    # In `*/../x`, the only wildcard is gone.
    first = next((at for at, step in enumerate(steps) if _plain(step) is None), len(steps) - 1)
    return _plain("/".join(steps[:first])) or "/", "/".join(steps[first:])


def _compiled(pattern: str) -> re.Pattern[str]:
    """From a shell pattern."""
    from wave_agent.rules.path_patterns import path_glob  # lazy: few lines have a pattern

    try:
        return re.compile(path_glob(pattern, ends=r"\Z", dots=False), re.DOTALL)
    except re.error:
        return _NO_PATH  # a set such as [z-a] has no members


def _there(pattern: str) -> list[str] | None:
    """The existing paths that a pattern matches. None: too many to check."""
    found, looked = [""], 0
    for step in pattern.split("/")[1:]:
        plain = _plain(step)
        if plain is not None:
            found = [f"{path}/{plain}" for path in found]
            continue
        expression, parents, found = _compiled(f"/{step}"), found, list[str]()
        for parent in parents:
            for name in _names(parent or "/"):
                looked += 1
                found += [f"{parent}/{name}"] if expression.fullmatch(f"/{name}") else []
            looked += 1
            if looked > _MOST_ENTRIES:
                return None
    return [path for path in found[:_MOST_MATCHES] if os.path.lexists(path)]


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def protected_paths(
    project: str,
    state: Path,
    hooks: Iterable[HookDefinition],
    home: Path | None = None,
    *,
    settings: Iterable[str] = (),
    drop_ins: Iterable[str] = (),
    extended_by: Iterable[str] = (),
    start: str = "",
) -> ProtectedPaths:
    """The protected paths of this project, existing or not. `state` is the agent's own directory.

    `settings` are the files that this session's settings may come from, `drop_ins` directories of such files,
    `extended_by` further directories that its agents, skills and commands may come from; `start` is where it starts, if
    not in the project's root.
    """
    home = home or Path.home()
    hooks = list(hooks)
    git = list(dict.fromkeys((*_git_directories(Path(project)), *_git_directories(Path(start or project)))))
    files = [os.path.join(project, name) for name in PROJECT_FILES]
    files += [str(directory / name) for directory in git for name in GIT_FILES]
    files += [str(state / name) for name in STATE_FILES]
    files += [str(home / name) for name in START_UP_FILES]
    files += [script for hook in hooks for script in hook_files(hook, project)]
    files += settings
    directories = [os.path.join(project, name) for name in PROJECT_DIRECTORIES]
    directories += [str(directory / name) for directory in git for name in GIT_DIRECTORIES]
    directories += [str(state / name) for name in STATE_DIRECTORIES]
    directories += [str(home / name) for name in START_UP_DIRECTORIES]
    directories += [os.path.join(base, name) for base in extended_by for name in EXTENSION_DIRECTORIES]
    directories += drop_ins
    own_files, own_directories = _installation((project, start or project))
    roots = _forms((project, start or project, str(home), str(home / ".local")))
    beside = [one for hook in hooks for one in _runs_from(hook, project)]
    beside += _searched_for_programs(project) if hooks else []
    return ProtectedPaths(
        frozenset(_forms((*files, *own_files))),
        _forms((*directories, *own_directories)),
        tuple(one for one in _forms(beside) if not _is_at_or_above(one, roots) and not _is_shared(one)),
        roots,
        tuple(_imported_from(hooks, project)),
    )


def _imported_from(hooks: Iterable[HookDefinition], project: str) -> Iterator[tuple[str, frozenset[str]]]:
    for hook in hooks:
        from wave_agent.hooks.python_modules import python_of  # lazy: most projects have no hooks

        for place in python_of(hook, project).places:
            yield from ((directory, place.names) for directory in _forms((place.directory,)))


def _forms(paths: Iterable[str]) -> tuple[str, ...]:
    """As written, and with links resolved."""
    return tuple(dict.fromkeys(form for path in paths for form in (os.path.normpath(path), os.path.realpath(path))))


def _is_at_or_above(path: str, roots: Iterable[str]) -> bool:
    return any(is_below(root, path) for root in roots)


def _is_shared(path: str) -> bool:
    """A system-wide directory: it does not matter that a hook's program is there."""
    return path in _SHARED_DIRECTORIES or path.startswith(tuple(f"{one}/" for one in _SHARED_DIRECTORIES[:4]))


def _installation(projects: Iterable[str]) -> tuple[list[str], list[str]]:
    """Files and directories of the agent's own program. None if the project is its source: developing it there would
    ask about every edit."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parent = os.path.dirname(package)
    installed = os.path.basename(parent) in _SITE_DIRECTORIES
    if not installed and any(_is_at_or_above(form, (package,)) for form in _forms(projects)):
        return [], []
    programs = os.path.dirname(sys.executable)
    return [os.path.join(programs, "wave"), os.path.join(sys.prefix, "pyvenv.cfg")], [parent if installed else package]


def _runs_from(hook: HookDefinition, project: str) -> list[str]:
    """Directories of the files a hook runs, and those in which the runners it calls look for programs.

    A file that is only an argument, such as the tests in `pytest tests/test_x.py`, does not protect its directory.
    """
    files = hook_files(hook, project)
    if hook.kind is not HookKind.COMMAND:
        return [os.path.dirname(file) for file in files]
    words = re.split(r"[\s;&|()'\"]+", hook.command) if hook.args is None else [hook.command, *hook.args]
    named = [word.rsplit("/", 1)[-1] for word in words]
    started = {
        name for before, name in zip(["sh", *named], named, strict=False) if _INTERPRETERS.fullmatch(before) and name
    }
    run = [file for file in files if os.path.basename(file) in started or os.access(file, os.X_OK)]
    found = [os.path.join(project, _PACKAGE_RUNNERS[name]) for name in named if name in _PACKAGE_RUNNERS]
    return [*(os.path.dirname(file) for file in run), *found]


def _searched_for_programs(project: str) -> list[str]:
    """Project directories in which the shell, and so hooks, look for programs."""
    entries = os.environ.get("PATH", "").split(os.pathsep)
    roots = _forms((project,))
    return [one for one in entries if one and any(one.startswith(f"{root}/") for root in roots)]


def _git_directories(project: Path) -> list[Path]:
    """Where git stores what it runs: `.git` of the project or around it, and what it points to in a worktree."""
    found = [project / ".git"]
    found += [one for one in (parent / ".git" for parent in project.parents) if one.exists()][:1]
    for one in list(found):
        if one.is_file() and (pointed := _pointer(one, "gitdir:")) is not None:
            found.append(pointed)
            common = _pointer(pointed / "commondir", "")
            found += [] if common is None else [common]
    return found


def _pointer(file: Path, label: str) -> Path | None:
    try:
        data = read_project_file(str(file), resolve_or_keep(str(file.parent)), _LARGEST_POINTER)
    except NotReadError:
        return None
    text = (data or b"").decode(errors="replace").strip()
    path = text.removeprefix(label).strip()
    usable = text.startswith(label) and path and "\0" not in path
    return Path(os.path.normpath(file.parent / path)) if usable else None
