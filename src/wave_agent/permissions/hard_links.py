"""Other names of a file: hard links, which could be used to dodge a rule."""

import os
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from wave_agent.lazy_regex import lazy_regex
from wave_agent.permissions.decision import Rules
from wave_agent.rules.rule import Places, Rule, anchored
from wave_agent.system.real_files import identity, resolve_or_keep

MOST = 50_000
"""Directory entries checked for one file."""

_WILDCARD = lazy_regex(r"[*?\[]")


class OtherNames(Struct, frozen=True):
    names: tuple[str, ...] = ()
    complete: bool = True
    """False: there may be more, in places that rules cover."""


def places_of(rules: Iterable[Rule], places: Places) -> tuple[str, ...]:
    """Real paths of the directories and files that contain everything these rules' patterns can match."""
    patterns = (pattern for rule in rules for pattern in (rule.pattern, rule.also) if pattern is not None)
    return tuple(dict.fromkeys(resolve_or_keep(place_of(pattern, places)) for pattern in patterns))


def place_of(pattern: str, places: Places) -> str:
    """The part before the first wildcard."""
    base, pattern = anchored(pattern, places)
    steps = pattern.strip("/").split("/")
    first = next((at for at, step in enumerate(steps) if _WILDCARD.search(step)), len(steps))
    return os.path.join(base, *steps[:first])


def why_unread(rules: Rules, places: Places, real: str, facts: os.stat_result) -> str | None:
    """Why a file must not be read unprompted: a `Read` rule for this path, or for another name of the same file, denies
    or asks."""
    speaking = [rule for rule in (*rules.deny, *rules.ask) if rule.tool == "read" and rule.pattern is not None]
    found = other_names(facts, places_of(speaking, places) if speaking else ())
    for rule in speaking:
        if any(rule.matches("Read", {"file_path": name}, places) for name in (real, *found.names)):
            return f"is blocked from being read by the permission rule {rule.text}"
    return None if found.complete else "has other names (hard links); too many files to check against the rules"


def other_names(facts: os.stat_result, where: Sequence[str], *, most: int = MOST) -> OtherNames:
    """Paths in these places that are the same file. Symlinks are not followed: their targets are in one of the places,
    or no rule covers them."""
    if facts.st_nlink < 2:
        return OtherNames()
    walk = _LinkSearch(facts, most)
    names: list[str] = []
    for name in walk.names(where):
        names.append(name)
        if len(names) == facts.st_nlink:
            break
    return OtherNames(tuple(names), complete=walk.left >= 0)


class _LinkSearch:
    def __init__(self, facts: os.stat_result, most: int) -> None:
        self._sought = identity(facts)
        self.left = most
        """Below zero: the search was abandoned."""

    def names(self, where: Sequence[str]) -> Iterator[str]:
        outermost = [one for one in where if not any(one.startswith(f"{other.rstrip('/')}/") for other in where)]
        for place in outermost:
            if _identity(place) == self._sought:
                yield place
            yield from self._below(place)

    def _below(self, place: str) -> Iterator[str]:
        pending = [place] if os.path.isdir(place) else []
        while pending:
            directory = pending.pop()
            for entry in self._entries(directory):
                self.left -= 1
                if self.left < 0:
                    return
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                # The inode number in the entry is cheap, but may be from another device, so stat the file as well.
                elif entry.inode() == self._sought[1] and _identity(entry.path) == self._sought:
                    yield entry.path

    def _entries(self, directory: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(directory) as entries:
                yield from entries
        except OSError:
            if os.access(directory, os.X_OK):  # a file in it can still be read by anyone who knows its name
                self.left = -1


def _identity(path: str) -> tuple[int, int] | None:
    try:
        return identity(os.lstat(path))
    except OSError:
        return None
