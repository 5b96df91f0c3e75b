"""What the effects of commands depend on, in a session: scripts of the project, settings of git, programs.

Nothing is looked up before someone asks, and nothing that the project configures is run.
"""

import glob
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.effects.surroundings import Surroundings
from wave_agent.permissions.git.repository import Git, GitUnknownError
from wave_agent.permissions.git.ruled_files import PATIENCE, RuledFiles
from wave_agent.permissions.split_names import names_that_split
from wave_agent.rules.rule import Places, Rule
from wave_agent.rules.touched import literal
from wave_agent.shell.values import escape
from wave_agent.system.real_files import is_below, open_file, read_at_most, resolve, resolve_or_keep

LONGEST = 256 * 1024
"""Bytes of a script that is looked into."""
_MOST_KEPT = 64
_MOST_BEHIND = 200
_MOST_NAMES = 50_000
_CHANGING = ("include.", "includeif.", "extensions.worktreeconfig")
"""Settings with which others depend on more than the files they are in."""

_Signature = tuple[tuple[str, tuple[int, ...] | None], ...]


class _Kept(Struct, frozen=True):
    """Settings, as long as the files they come from are the same."""

    settings: Mapping[str, str]
    signature: _Signature


class CommandSurroundings:
    """Answers for the commands of one session."""

    def __init__(self, project: str, git: str | None, *, patience: float = PATIENCE) -> None:
        """`git` is the program to ask; None: there is none that can be trusted. `patience` is how many seconds it may
        take for one answer."""
        self._patience = patience
        self._project = project
        self._real_project = resolve_or_keep(project)
        self._git = git
        self._settings: dict[tuple[str, str, str], _Kept] = {}

    def at(self, directory: str, variables: Mapping[str, str]) -> Surroundings:
        """Those of a command that starts in this directory, with this environment."""
        return Surroundings(
            directory=directory,
            project=self._project,
            variables=variables,
            read_text=self.read_text,
            git_alias=lambda name, place: self._alias(name, place, variables),
            git_remote=lambda name, place: self._remote(name, place, variables),
            git_settings=lambda place: self.settings(place, variables),
            is_there=os.path.lexists,
            behind=behind,
            option_names=option_names,
            splits=splits,
            find_program=lambda name: find_program(name, variables),
        )

    def for_rules(self, surroundings: Surroundings, rules: Sequence[Rule], places: Places) -> Surroundings:
        """The same, with what git knows about the files that these rules are about."""
        files = RuledFiles(self._git, rules, places, patience=self._patience)

        def known(directory: str, scope: str) -> Sequence[str] | None:
            return files.of(directory, scope, surroundings.variables)

        return replace(surroundings, git_files=known)

    def read_text(self, path: str) -> str | None:
        """The text of one of the project's own files, if it is not too long."""
        try:
            real = resolve(path)
            if not is_below(real, self._real_project):
                return None
            descriptor = open_file(real)
        except OSError:
            return None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            data, complete = read_at_most(descriptor, LONGEST)
        except OSError:
            return None
        finally:
            os.close(descriptor)
        return data.decode(errors="replace") if complete and b"\0" not in data else None

    def settings(self, directory: str, variables: Mapping[str, str]) -> Mapping[str, str] | None:
        """All settings of git in a directory. None if git does not answer."""
        home = variables.get("HOME", "")
        key = (directory, home, variables.get("XDG_CONFIG_HOME", ""))
        kept = self._settings.get(key)
        if kept is not None and kept.signature == _signature(path for path, _ in kept.signature):
            return kept.settings
        try:
            listed = self._asked(directory, variables, "config", "--list", "--show-origin", "--null")
        except GitUnknownError:
            return None
        settings, files = _settings(listed)
        tops = _ancestors(directory)  # git names files from the top of the work tree
        paths = [next((path for top in tops if os.path.exists(path := os.path.join(top, file))), "") for file in files]
        if all(paths) and not any(name.startswith(_CHANGING) for name in settings):
            own = (key[2] or os.path.join(home, ".config"), "git/config")
            others = (
                os.path.join(home, ".gitconfig"),
                os.path.join(*own),
                *(os.path.join(top, ".git") for top in tops),
            )
            if len(self._settings) >= _MOST_KEPT:
                self._settings.clear()
            self._settings[key] = _Kept(settings, _signature(dict.fromkeys((*others, *paths))))
        return settings

    def _alias(self, name: str, directory: str, variables: Mapping[str, str]) -> str | None:
        settings = self.settings(directory, variables)
        return None if settings is None else settings.get(f"alias.{name.lower()}")

    def _remote(self, name: str, directory: str, variables: Mapping[str, str]) -> str | None:
        settings = self.settings(directory, variables)
        # With another address for pushing, there is no single answer.
        if settings is None or any(key.endswith((".pushurl", ".pushinsteadof")) for key in settings):
            return None
        try:
            named = [name] if name else []
            url = self._asked(directory, variables, "ls-remote", "--get-url", "--end-of-options", *named)
        except GitUnknownError:
            return None
        found = url.decode(errors="replace").strip()
        return found if f"remote.{name or found}.url".lower() in settings or found != (name or "origin") else None

    def _asked(self, directory: str, variables: Mapping[str, str], *arguments: str) -> bytes:
        return Git(self._git, variables, self._patience).ask(directory, *arguments)


def behind(pattern: str) -> Sequence[str] | None:
    """The real paths of what a pattern matches, as patterns. None: too many to follow."""
    path = literal(pattern)
    if path is not None:
        return (escape(resolve_or_keep(path)),)
    if "**" in pattern:
        return None
    matching = list(islice(glob.iglob(pattern), _MOST_BEHIND + 1))
    return None if len(matching) > _MOST_BEHIND else [escape(resolve_or_keep(one)) for one in matching]


def splits(patterns: Sequence[str], expression: str) -> bool | None:
    """Whether the name of an existing file becomes several words. None: too many to look at."""
    found = names_that_split(patterns, expression)
    return None if found is None else bool(found)


def option_names(directory: str) -> Sequence[str]:
    """Names in a directory that start with `-`, among the first of very many."""
    try:
        with os.scandir(directory) as entries:
            return [entry.name for entry in islice(entries, _MOST_NAMES) if entry.name.startswith("-")]
    except (OSError, ValueError):
        return ()


def find_program(name: str, variables: Mapping[str, str]) -> str | None:
    """The program that a command runs by this name, with links resolved. None if that depends on its directory."""
    for directory in variables.get("PATH", "").split(os.pathsep):
        if not directory.startswith("/"):
            return None
        program = os.path.join(directory, name)
        if os.access(program, os.X_OK) and os.path.isfile(program):
            return resolve_or_keep(program)
    return None


def _settings(listed: bytes) -> tuple[dict[str, str], list[str]]:
    """Settings by name, and the files they are in."""
    fields = listed.decode(errors="replace").split("\0")
    settings: dict[str, str] = {}
    files: dict[str, None] = {}
    for origin, entry in zip(fields[::2], fields[1::2], strict=False):
        if origin.startswith("file:"):  # the others are our own, on its command line
            name, _, value = entry.partition("\n")
            settings[name.lower()] = value
            files[origin.removeprefix("file:")] = None
    return settings, list(files)


def _ancestors(directory: str) -> list[str]:
    """The directory, and those above it."""
    found = [directory]
    while (above := os.path.dirname(found[-1])) != found[-1]:
        found.append(above)
    return found


def _signature(paths: Iterable[str]) -> _Signature:
    """Equal as long as none of these files has changed, appeared or vanished. Of a directory, only whether it is the
    same one: git changes its own at every step."""
    found: list[tuple[str, tuple[int, ...] | None]] = []
    for path in paths:
        try:
            facts = os.stat(path)
        except OSError:
            found.append((path, None))
            continue
        own = (facts.st_dev, facts.st_ino)
        changed = (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
        found.append((path, own if stat.S_ISDIR(facts.st_mode) else (*own, *changed)))
    return tuple(found)
