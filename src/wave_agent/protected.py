"""Files by which the agent could rewrite its own guards: a write to one of them asks in every mode."""

import glob
import os
import re
import stat
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from msgspec import Struct

from wave_agent.hooks.definitions import HookDefinition
from wave_agent.named_files import hook_files
from wave_agent.project_files import NotReadError, read_project_file
from wave_agent.real_files import identity, resolve_or_keep
from wave_agent.shell.values import Reach, Write, escape

PROJECT_FILES = (
    *(".wave/settings.json", ".wave/settings.local.json", ".claude/settings.json", ".claude/settings.local.json"),
    ".codex/hooks.json",
)
GIT_FILES = ("config", "config.worktree")
GIT_DIRECTORIES = ("hooks",)
STATE_FILES = ("settings.json", "settings.local.json", "trust.json")
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
    *(".config/fish/config.fish", ".gitconfig", ".config/git/config", ".ssh/rc"),
)
START_UP_DIRECTORIES = (".config/fish/conf.d",)


class ProtectedPaths(Struct, frozen=True):
    """The files, and the directories with all that is in them. Each as it is written and as links resolve it."""

    files: frozenset[str]
    directories: tuple[str, ...]

    def find(self, path: str) -> str | None:
        """The path, if writing to it is a matter for the user."""
        for form in (os.path.normpath(path), os.path.realpath(path)):
            if form in self.files or any(form.startswith(f"{directory}/") for directory in self.directories):
                return path
        return path if self._is_linked(path) else None

    def _is_linked(self, path: str) -> bool:
        """Another name of a protected file: a hard link, through which a command would write to it."""
        try:
            facts = os.stat(path)
        except (OSError, ValueError):
            return False
        if facts.st_nlink < 2 or not stat.S_ISREG(facts.st_mode):
            return False
        inside = (
            entry for one in self.directories for entry in islice(glob.iglob(f"{glob.escape(one)}/*"), _MOST_MATCHES)
        )
        return any(_identity(one) == identity(facts) for one in (*self.files, *inside))

    def touched(self, write: Write) -> str | None:
        """What of it a command would change, whether the file is there or not."""
        if "\0" in write.pattern:
            return None
        plain = _plain(write.pattern)
        if write.names and plain is not None and os.path.isdir(plain):
            inside = (Write(f"{write.pattern}/{name}", write.reach) for name in write.names)
            return next((found for one in inside if (found := self.touched(one)) is not None), None)
        if plain is None:
            return self._matching(write)
        return self.find(plain) or self._around(plain, write.reach)

    def _around(self, path: str, reach: Reach) -> str | None:
        """A protected path in the directory that is written to, or anywhere below what is moved or removed."""
        if reach is Reach.FILE:
            return None
        for form in dict.fromkeys((os.path.normpath(path), os.path.realpath(path))):
            below = f"{form.rstrip('/')}/"
            for one in (*sorted(self.files), *self.directories):
                if one == form or (one.startswith(below) and (reach is Reach.TREE or "/" not in one[len(below) :])):
                    return one
        return None

    def _matching(self, write: Write) -> str | None:
        """By the pattern, so that a file that is not there yet counts; and by what is there, through links."""
        directory, rest = _directory(write.pattern)
        for base in dict.fromkeys((directory, os.path.realpath(directory))):
            expression = _compiled(f"{escape(base.rstrip('/'))}/{rest}")
            for one in (*sorted(self.files), *self.directories):
                steps = one.split("/")
                above = (
                    ["/".join(steps[:end]) for end in range(2, len(steps) + 1)] if write.reach is Reach.TREE else [one]
                )
                if any(expression.fullmatch(path) for path in above):
                    return one
            if any(expression.fullmatch(f"{one}/x") for one in self.directories):
                return write.pattern
        there = islice(glob.iglob(write.pattern), _MOST_MATCHES) if "**" not in write.pattern else ()
        found = (self.find(path) or self._around(path, write.reach) for path in there)
        return next((path for path in found if path is not None), None)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        return identity(os.lstat(path))
    except OSError:
        return None


_MOST_MATCHES = 1000
_LARGEST_POINTER = 4096
"""Bytes of a file of git that names a directory."""
_NO_PATH = re.compile(r"(?!)")
_QUOTED = re.compile(r"\[([*?\[])\]")


def _plain(pattern: str) -> str | None:
    """The path, if the pattern stands for one."""
    return None if re.search(r"[*?\[]", _QUOTED.sub("", pattern)) else _QUOTED.sub(r"\1", pattern)


def _directory(pattern: str) -> tuple[str, str]:
    """The directory in front of the first wildcard, and the rest."""
    steps = os.path.normpath(pattern).split("/")
    first = next(at for at, step in enumerate(steps) if _plain(step) is None)
    return _plain("/".join(steps[:first])) or "/", "/".join(steps[first:])


_GLOB_TOKEN = re.compile(
    r"(?P<deep>(?<=/)\*\*(?:/|$))|(?P<start>(?<=/)(?=[*?\[]))?(?:(?P<many>\*+)|(?P<one>\?)|\[(?P<not>[!^]?)(?P<set>\]?[^\]]*)\])"
)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(_expression(pattern), re.DOTALL)
    except re.error:
        return _NO_PATH  # a set such as [z-a] has no members


def _expression(pattern: str) -> str:
    """The regular expression of a shell's pattern: no wildcard stands for the dot that a name begins with."""
    out, at = "", 0
    for token in _GLOB_TOKEN.finditer(pattern):
        out += re.escape(pattern[at : token.start()])
        at = token.end()
        if token["deep"] is not None:
            out += "(?:.*/)?" if at < len(pattern) else ".*"
            continue
        out += "" if token["start"] is None or token["many"] == "**" else r"(?!\.)"
        if token["set"] is not None:
            members = re.sub(r"[\\\[\]^&~|]", r"\\\g<0>", token["set"])
            out += f"[{'^' if token['not'] else ''}{members}]"
        else:
            out += "[^/]*" if token["many"] else "[^/]"
    return out + re.escape(pattern[at:])


def protected_paths(
    project: str,
    state: Path,
    hooks: Iterable[HookDefinition],
    home: Path | None = None,
    *,
    settings: Iterable[str] = (),
    start: str = "",
) -> ProtectedPaths:
    """What is protected in this project, whether it exists yet or not. `state` is the agent's own directory.

    `settings` are the files that this session's settings may come from; it begins in `start`, if not where the project
    does.
    """
    git = list(dict.fromkeys((*_git_directories(Path(project)), *_git_directories(Path(start or project)))))
    files = [os.path.join(project, name) for name in PROJECT_FILES]
    files += [str(directory / name) for directory in git for name in GIT_FILES]
    files += [str(state / name) for name in STATE_FILES]
    files += [str((home or Path.home()) / name) for name in START_UP_FILES]
    files += [script for hook in hooks for script in hook_files(hook, project)]
    files += settings
    directories = [str(directory / name) for directory in git for name in GIT_DIRECTORIES]
    directories += [str((home or Path.home()) / name) for name in START_UP_DIRECTORIES]
    return ProtectedPaths(
        frozenset(form for file in files for form in (os.path.normpath(file), os.path.realpath(file))),
        tuple(dict.fromkeys(form for one in directories for form in (os.path.normpath(one), os.path.realpath(one)))),
    )


def _git_directories(project: Path) -> list[Path]:
    """Where git keeps what it runs: `.git`, of the project or around it, and what it points to in a worktree."""
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
