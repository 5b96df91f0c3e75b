"""What a hook runs besides its own files: the programs it names, and the Python modules next to it.

Every word of its command and its scripts may be the name of a program. The file that a name resolves to on the hooks'
PATH is part of what is trusted: if a `jq` appears in `.venv/bin`, a guard that calls `jq` is a different hook. The same
goes for modules that Python would find next to a script before its own, such as `json.py` or an imported helper.
"""

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.execution import HookKind
from wave_agent.lazy_regex import lazy_regex
from wave_agent.system.real_files import is_below

if TYPE_CHECKING:
    from wave_agent.hooks.python_modules import ImportPlace

Digest = Callable[[str], str | None]
Stamp = tuple[int, ...] | None
"""Changes whenever a file or directory does; None if it does not exist."""

_WORD = lazy_regex(r"(?<![\w./~$-])[A-Za-z_][\w.+-]{0,63}(?![\w/])")
_COMMENT = lazy_regex(r"^[ \t]*(?:#(?!!)|//).*$", re.MULTILINE)
_RACY = 100_000_000
"""Nanoseconds within which two changes may get the same timestamp."""


class Programs(Struct, frozen=True):
    """What the names in one hook resolve to."""

    found: Mapping[str, str] = {}
    """Name → path; for files inside the project, with a digest of the content."""
    names: frozenset[str] = frozenset()
    """All names that were looked up."""
    watched: Mapping[str, Stamp] = {}
    """While these stamps are unchanged, the rest is too."""

    @property
    def is_fresh(self) -> bool:
        return bool(self.watched) and all(_stamp(path) == stamp for path, stamp in self.watched.items())


def programs_of(hook: HookDefinition, project: str, root: str, path: str, digest: Digest) -> Programs:
    """`root` is the project or its repository, `path` the hooks' PATH."""
    if hook.kind not in (HookKind.COMMAND, HookKind.PYTHON):
        return Programs()
    from wave_agent.hooks.named_files import hook_files  # lazy: as below
    from wave_agent.hooks.python_modules import python_of, text_of
    from wave_agent.hooks.runners.without_shell import BUILTINS  # lazy: most projects have no hooks

    look = _ProgramSearch(project, root, path, digest)
    scripts = [file for file in hook_files(hook, project) if file.startswith(f"{root}/")]
    texts = {file: _COMMENT.sub("", text_of(file)) for file in scripts}
    line = " ".join((hook.command, *(hook.args or ()))) if hook.kind is HookKind.COMMAND else ""
    look.programs({word for text in (line, *texts.values()) for word in _WORD.findall(text)} - BUILTINS)
    for place in python_of(hook, project).places:
        if is_below(place.directory, root):
            look.modules(place)
    return look.result()


def describe_moves(names: Iterable[str], now: Mapping[str, str], before: Mapping[str, Sequence[str]]) -> str:
    """How the locations of these programs changed. Says so if a word need not have meant the program that it names."""
    moves: list[str] = []
    is_word = False
    for name in names:
        here, known = now.get(name, ""), before.get(name, ("",))
        where = f"is now {here}" if here else "is no longer found"
        moves.append(f"{name} {where} (trusted: {' or '.join(one or 'not found' for one in known)})")
        is_word |= f"/{name}" in here and not any(known)
    why = ". A word in the hook or its script is now also the name of a program" if is_word else ""
    return f"{', '.join(moves)}{why}"


class _ProgramSearch:
    def __init__(self, project: str, root: str, path: str, digest: Digest) -> None:
        self._project, self._root, self._digest = project, root, digest
        self._directories = [one for one in path.split(os.pathsep) if one.startswith("/")]
        self._found: dict[str, str] = {}
        self._names: set[str] = set()
        self._watched: dict[str, Stamp] = {}
        self._began = time.time_ns()

    def programs(self, words: set[str]) -> None:
        self._names |= words
        for directory in self._directories:
            for name in sorted(words & _names_in(directory, self._watch(directory)) - self._found.keys()):
                file = os.path.join(directory, name)
                if os.path.isfile(file) and os.access(file, os.X_OK):
                    self._found[name] = self._place(file)

    def modules(self, place: "ImportPlace") -> None:
        """Modules Python would take from a directory: those the hook imports, and those that shadow its library."""
        from wave_agent.hooks.python_modules import packages, shadows  # lazy: see above

        for directory in (place.directory, *packages(place)):
            self._watch(directory)
        for file in shadows(place):
            key = os.path.relpath(file, self._project)
            self._names.add(key)
            self._found[key] = self._module(file)

    def _module(self, file: str) -> str:
        if not os.path.isdir(file):
            return self._place(file)
        return self._place(os.path.join(file, "__init__.py"))

    def _place(self, file: str) -> str:
        """Outside the project the path is enough: the project cannot change the file, and updates are expected."""
        self._watch(file)
        real = os.path.realpath(file)
        self._watch(real)
        if real.startswith(f"{self._root}/"):
            return f"{os.path.relpath(file, self._project)} {self._digest(real)}"
        return f"{file} -> {real}" if file.startswith(f"{self._root}/") else file

    def _watch(self, path: str) -> Stamp:
        if path not in self._watched:
            self._watched[path] = _stamp(path)
        return self._watched[path]

    def result(self) -> Programs:
        newest = max((max(stamp[-2:]) for stamp in self._watched.values() if stamp), default=0)
        settled = newest < self._began - _RACY
        return Programs(self._found, frozenset(self._names), self._watched if settled else {})


def _stamp(path: str) -> Stamp:
    try:
        facts = os.stat(path)
    except (OSError, ValueError):
        return None
    return (facts.st_dev, facts.st_ino, facts.st_mode, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)


@lru_cache(maxsize=128)
def _names_in(directory: str, _: Stamp) -> frozenset[str]:
    """`_` is part of the cache key, so a changed directory is read again."""
    try:
        return frozenset(os.listdir(directory))
    except OSError:
        return frozenset()
