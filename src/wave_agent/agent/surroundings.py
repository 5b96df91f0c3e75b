"""What surrounds the agent at the first request: the branch, the number of changed files, the top level.

Nothing here is worth waiting for, and nothing here may run code from the repository.
"""

import os
import re
import subprocess
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.lazy_regex import lazy_regex
from wave_agent.system.credentials import without_credentials
from wave_agent.system.project_files import NotReadError, read_project_file
from wave_agent.system.real_files import resolve_or_keep
from wave_agent.text import strip_controls
from wave_agent.tools.search.walk import Walk

NAMES = 40
"""Maximum number of top-level names listed."""
_NAMES_SIZE = 600
"""Maximum length of all of them, in characters."""
_BRANCH_SIZE = 100
_ENTRIES = 2000
"""Maximum number of directory entries examined: some directories have hundreds of thousands."""
_DEPTH = 3
"""Levels of directories below the project in which notebooks are looked for."""
PATIENCE = 0.1
"""Seconds that git may take to count the changes."""

# A repository's own configuration can name programs: filters, and anything in included files. A partial clone fetches.
_RUNS_SOMETHING = lazy_regex(rb"\[\s*(?:filter|include)|promisor|partialclone", re.IGNORECASE)
_CONFIG_SIZE = 1 << 18
_LINE_SIZE = 4096
_HEAD = lazy_regex(r"ref: *refs/.+|[0-9a-f]{40,64}", re.DOTALL)
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE")
"""Set inside git's own hooks, and possibly for another repository."""


class ProjectSurroundings(Struct, frozen=True, kw_only=True):
    """Fields are empty if unknown."""

    branch: str = ""
    changed: int | None = None
    """Changed, added and removed files. None: not in a repository, or counting took too long."""
    names: tuple[str, ...] = ()
    """The entries of the project directory; directories end in a slash."""
    more: str = ""
    """How many are not listed: `12 more`."""
    has_notebooks: bool = False


def look_around(project: str, environment: Mapping[str, str], *, patience: float = PATIENCE) -> ProjectSurroundings:
    """Blocks while git runs, for little more than `patience` seconds."""
    names, more = top_level(project)
    around = ProjectSurroundings(names=names, more=more, has_notebooks=find_notebooks(project))
    git = git_directory(project)
    if git is None:
        return around
    return replace(around, branch=_branch(git), changed=count_changes(project, git, environment, patience))


def find_notebooks(project: str) -> bool:
    """Whether there is a notebook not far below the project directory, among its first entries."""
    seen, directories = 0, deque([(project, 0)])
    while directories:
        directory, depth = directories.popleft()
        with suppress(OSError), os.scandir(directory) as entries:
            for entry in islice(entries, _ENTRIES - seen):
                seen += 1
                if entry.name.endswith(".ipynb"):
                    return True
                hidden = entry.name.startswith((".", "node_modules", "venv"))
                if depth < _DEPTH and not hidden and entry.is_dir(follow_symlinks=False):
                    directories.append((entry.path, depth + 1))
    return False


# ------------------------------------------------------------------------------------------------------------------ git


def git_directory(project: str) -> Path | None:
    """Git's directory for this project; None outside a repository."""
    directory = Path(project)
    for place in (directory, *directory.parents):
        git = place / ".git"
        if not os.path.lexists(git):
            continue
        if git.is_dir():
            return git
        pointed = _line(place, ".git").partition("gitdir:")[2].strip()  # a worktree or submodule: the file says where
        return place / pointed if pointed and "\0" not in pointed else None
    return None


def _line(directory: Path, name: str, limit: int = _LINE_SIZE) -> str:
    """The text of one of git's short files; empty if missing or not a regular file."""
    try:
        data = read_project_file(str(directory / name), resolve_or_keep(str(directory)), limit)
    except NotReadError:
        return ""
    return (data or b"").decode(errors="replace").strip()


def git_branch(project: str) -> str:
    """The checked-out branch, read from git's own files; "" outside a repository."""
    git = git_directory(project)
    return "" if git is None else _branch(git)


def _branch(git: Path) -> str:
    head = _line(git, "HEAD")
    if not _HEAD.fullmatch(head):
        return ""  # anything unexpected is not shown to the model
    branch = head.removeprefix("ref: refs/heads/") if head.startswith("ref:") else head[:8]
    return " ".join(strip_controls(branch).split())[:_BRANCH_SIZE]


def count_changes(project: str, git: Path, environment: Mapping[str, str], patience: float = PATIENCE) -> int | None:
    """The number of files in `git status`. None if git is missing, slow, or would run a program of the repository."""
    from wave_agent.system.trusted_git import find_git  # lazy: not every project is a repository

    program = find_git(environment.get("PATH", ""), project)
    if program is None or _runs_something(git):
        return None
    quiet = ("--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
    what = ("status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=all", "--untracked-files=normal")
    kept = {name: value for name, value in without_credentials(environment).items() if name not in _ELSEWHERE}
    try:
        done = subprocess.run(
            [program, *quiet, *what],
            cwd=project,
            env={**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=patience,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return done.stdout.count(b"\0") if done.returncode == 0 else None


def _runs_something(git: Path) -> bool:
    """True if that cannot be determined."""
    try:
        pointed = _line(git, "commondir")  # in a worktree
        common = git / pointed if pointed and "\0" not in pointed else git
        texts = [_config(common, "config"), _config(git, "config.worktree")]
    except NotReadError:
        return True
    return any(_RUNS_SOMETHING.search(text) for text in texts)


def _config(git: Path, name: str) -> bytes:
    return read_project_file(str(git / name), resolve_or_keep(str(git)), _CONFIG_SIZE) or b""


# ------------------------------------------------------------------------------------------------------------ top level


def top_level(project: str) -> tuple[tuple[str, ...], str]:
    """Names not excluded by `.gitignore`, and how many more there are. Directories first, hidden entries last."""
    found = list(islice(Walk(project, project).top_level(), _ENTRIES))
    found.sort(key=lambda entry: (entry[0].startswith("."), not entry[1], entry[0]))
    names = [_shown(name) + ("/" if is_directory else "") for name, is_directory in found]
    listed, room = list[str](), _NAMES_SIZE
    for name in names[:NAMES]:
        room -= len(name) + 2
        if room < 0:
            break
        listed.append(name)
    left_out, over = len(names) - len(listed), "over " if len(found) == _ENTRIES else ""
    return tuple(listed), f"{over}{left_out:,} more" if left_out else ""


def _shown(name: str) -> str:
    """On one line. A name can contain anything but a slash."""
    readable = os.fsencode(name).decode(errors="replace")
    return " ".join(strip_controls(readable).split())
