"""Which of the files that rules are about a repository has: in its index, in its history, or soon.

`git diff` shows tracked files only, so that a denied `.env` which was never added cannot be among them.
"""

import os
import re
from collections.abc import Mapping, Sequence

from wave_agent.lazy_regex import lazy_regex
from wave_agent.permissions.git.repository import Git, GitUnknownError
from wave_agent.rules.rule import Places, Rule, anchored
from wave_agent.shell.values import escape
from wave_agent.system.real_files import is_below, resolve_or_keep

PATIENCE = 0.2
"""Seconds for one question to git."""
_MOST = 200
"""Files. With more of them, any may be meant."""
_HISTORY = ("log", "--all", "--reflog", "--full-history", "--no-show-signature", "--format=", "--name-only", "-m", "-z")
_ELSEWHERE = lazy_regex(r"GIT_(?:DIR|WORK_TREE|INDEX|COMMON|OBJECT|ALTERNATE|CONFIG|NAMESPACE|EXTERNAL|.*PATHSPECS)")
"""Variables with which git looks somewhere else than our question, which goes without them."""
_LISTED = ("ls-files", "-z", "--full-name")
_NEW = ("--cached", "--others", "--exclude-standard")


class RuledFiles:
    """Asks git about the files that some rules about reading cover."""

    def __init__(self, git: str | None, rules: Sequence[Rule], places: Places, *, patience: float = PATIENCE) -> None:
        self._git, self._places, self._patience = git, places, patience
        self._rules = [rule for rule in rules if rule.tool == "read" and rule.is_about_effects]

    def of(self, directory: str, scope: str, variables: Mapping[str, str]) -> Sequence[str] | None:
        """Their absolute paths: `tracked` files, those in any commit as well (`history`), or those that git would add
        as well (`new`). None if git does not say, or says too much."""
        real = resolve_or_keep(directory)
        # Another work tree may show the same history by other paths.
        top = _top(real) if is_below(real, resolve_or_keep(self._places.project)) else None
        if top is None or any(map(_ELSEWHERE.match, variables)):
            return None
        specs = [spec for rule in self._rules for spec in self._specs(rule, top)]
        if None in specs:
            return None
        paths = [one for one in specs if one is not None]
        if not paths:
            return ()
        try:
            found = self._asked(top, variables, *_LISTED, *(_NEW if scope == "new" else ()), "--", *paths)
            if scope == "history":
                found += self._asked(top, variables, *_HISTORY, "--", *paths)
        except GitUnknownError:
            return None
        names = dict.fromkeys(name for name in found.decode(errors="surrogateescape").split("\0") if name.strip("\n"))
        return [self._as_named(os.path.join(top, name.lstrip("\n"))) for name in names] if len(names) <= _MOST else None

    def _as_named(self, path: str) -> str:
        """The path, as rules name it: the project's directory may be behind a link."""
        real = resolve_or_keep(self._places.project)
        if not is_below(path, real):
            return path
        return os.path.normpath(os.path.join(self._places.project, os.path.relpath(path, real)))

    def _asked(self, top: str, variables: Mapping[str, str], *arguments: str) -> bytes:
        return Git(self._git, variables, self._patience).ask(top, *arguments)

    def _specs(self, rule: Rule, top: str) -> list[str | None]:
        """What git would call the files of a rule. None: it depends on more than the repository."""
        return [
            spec
            for pattern in (rule.pattern, rule.also)
            if pattern is not None
            for spec in _specs(pattern, top, self._places)
        ]


def _specs(pattern: str, top: str, places: Places) -> list[str | None]:
    base, inside = anchored(pattern, places)
    steps = inside.strip("/").split("/")
    while len(steps) > 1 and not re.search(r"[*?\[]", steps[0]):
        base = os.path.join(base, steps.pop(0))
    base, inside = resolve_or_keep(base), "/".join(steps)
    if is_below(base, top):
        below = escape(os.path.relpath(base, top))
        start = "" if below == "." else f"{below}/"
    elif is_below(top, base) and inside.startswith("**/"):
        start = ""
    elif is_below(top, base):
        return [None]
    else:
        return []
    return [f":(top,glob){start}{inside}", f":(top,glob){start}{inside}/**"]


def _top(directory: str) -> str | None:
    """The top of the work tree that a directory is in."""
    while not os.path.lexists(os.path.join(directory, ".git")):
        if directory == "/":
            return None
        directory = os.path.dirname(directory)
    return directory
