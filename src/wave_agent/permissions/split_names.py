"""Existing files whose names become several words, or an option, on their way from one program to another.

`find . -name key | xargs cat` reads the files of that name. But if a directory is called `a /tmp`, it reads others.
"""

import os
import re
from collections.abc import Sequence

from wave_agent.lazy_regex import lazy_regex
from wave_agent.rules.path_patterns import path_glob
from wave_agent.rules.touched import literal
from wave_agent.system.real_files import resolve_or_keep

MOST = 200_000
"""Directory entries looked at for one command."""
_MOST_FOUND = 50
_NOTHING = lazy_regex(r"(?!)")


def names_that_split(patterns: Sequence[str], expression: str, *, most: int = MOST) -> list[str] | None:
    """Existing paths among those that these absolute patterns match, in whose names something matches the expression,
    or whose first name after the fixed part starts with `-`. None: too many to look at."""
    splits = re.compile(expression)
    found: list[str] = []
    for base, rests in _by_directory(patterns).items():
        walk = _NamesBelow(base, rests, splits, most)
        found += walk.found()
        most = walk.left
        if most < 0 or len(found) > _MOST_FOUND:
            return None
    return found


def _by_directory(patterns: Sequence[str]) -> dict[str, list[str]]:
    """The parts with wildcards, by the directory that they are in."""
    found: dict[str, list[str]] = {}
    for pattern in patterns:
        steps = os.path.normpath(pattern).split("/")[1:]
        fixed = next((at for at, step in enumerate(steps) if literal(step) is None), len(steps) - 1)
        base = "/" + "/".join(literal(step) or "" for step in steps[:fixed])
        found.setdefault(base, []).append("/".join(steps[fixed:]))
    return found


class _NamesBelow:
    """One walk below a directory."""

    def __init__(self, base: str, rests: Sequence[str], splits: re.Pattern[str], most: int) -> None:
        self._base, self._splits = base, splits
        self._wanted = [_expression(f"/{rest}") for rest in rests]
        self._first = [_expression(f"/{rest.partition('/')[0]}") for rest in rests]
        self._deepest = None if any("**" in rest for rest in rests) else max(rest.count("/") for rest in rests)
        self.left = most

    def found(self) -> list[str]:
        found: list[str] = []
        followed = {resolve_or_keep(self._base)}
        pending = [("", 0, False)]
        while pending and len(found) <= _MOST_FOUND:
            below, depth, above_splits = pending.pop()
            for entry in _listed(self._base + below):
                self.left -= 1
                if self.left < 0:
                    return found
                path = f"{below}/{entry.name}"
                splits = above_splits or self._splits.search(entry.name) or (depth == 0 and entry.name[0] == "-")
                if splits and any(one.fullmatch(path) for one in self._wanted):
                    found.append(self._base.rstrip("/") + path)
                if depth == self._deepest or (depth == 0 and not any(one.fullmatch(path) for one in self._first)):
                    continue
                if _is_new_directory(entry, followed):
                    pending.append((path, depth + 1, bool(splits)))
        return found


def _is_new_directory(entry: "os.DirEntry[str]", followed: set[str]) -> bool:
    """A directory, also behind a link, that was not walked yet."""
    try:
        if not entry.is_symlink():
            return entry.is_dir()
        real = resolve_or_keep(entry.path) if entry.is_dir() else None
    except OSError:
        return False
    if real is None or real in followed:
        return False
    followed.add(real)
    return True


def _listed(directory: str) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except (OSError, ValueError):
        return []


def _expression(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(path_glob(pattern, ends=r"\Z", dots=False), re.DOTALL)
    except re.error:
        return _NOTHING  # a set such as [z-a] has no members
