"""Which files a call would really touch: links are followed, and patterns compared with the files that exist.

`grep -r x .` reads `.env` if there is one, and `cat notes` does if `notes` is a link to it. So before rules are
compared with the effects of a call, the paths that the disk adds are added to them.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.effects.values import Effects
from wave_agent.lazy_regex import lazy_regex
from wave_agent.permissions.hard_links import other_names, places_of
from wave_agent.rules.path_patterns import path_glob
from wave_agent.rules.rule import Places, Rule, path_expression
from wave_agent.rules.touched import an_instance, literal
from wave_agent.shell.values import escape
from wave_agent.system.real_files import is_below, resolve_or_keep

MOST = 200_000
"""Directory entries looked at for one call."""
_MOST_ELSEWHERE = 5000
"""Those looked at in search of links, below directories in which rules cover nothing."""
_DEEP = "**"
_NOTHING = lazy_regex(r"(?!)")

_Wanted = Callable[[str], object]


class OnDisk(Struct, frozen=True):
    """The effects of a call, with the paths that the disk adds."""

    effects: Effects
    unsure: str | None = None
    """A path or pattern that could not be compared with all the files that rules cover."""


def on_disk(effects: Effects, rules: Iterable[Rule], places: Places, *, most: int = MOST) -> OnDisk:
    """Adds to the effects: the targets of links, other names of the same file (hard links) and, of the existing files
    that a pattern matches, the first that one of these rules covers. Blocks while it looks."""
    rules = [rule for rule in rules if rule.is_about_effects and rule.pattern is not None]
    reading = _Addition([rule for rule in rules if rule.tool == "read"], places, most)
    editing = [rule for rule in rules if rule.tool != "read"]
    writing, deleting = _Addition(editing, places, most), _Addition(editing, places, most, follows=False)
    found = replace(
        effects,
        reads=reading.to(effects.reads),
        writes=writing.to(effects.writes),
        deletes=deleting.to(effects.deletes),
    )
    return OnDisk(found, reading.unsure or writing.unsure or deleting.unsure)


def leads_outside(patterns: Iterable[str], directories: Sequence[str], *, most: int = MOST) -> str | None:
    """A path that these patterns match, or may match, outside the directories. Those are real paths."""
    search = _Search(lambda real: not any(is_below(real, base) for base in directories), (), most, links=True)
    for pattern in patterns:
        path = literal(pattern)
        found = resolve_or_keep(path) if path is not None else _outermost(pattern)
        if search.wanted(found):
            return found
        if path is None and (found := next(search.matching(pattern), None)):
            return found
        if search.exhausted:
            return pattern
    return None


class _Addition:
    """What the disk adds to the paths of one kind of effect."""

    def __init__(self, rules: Sequence[Rule], places: Places, most: int, *, follows: bool = True) -> None:
        """`follows`: a link stands for its target. Who deletes a link does not delete the target."""
        self._rules, self._places, self._most, self._follows = rules, places, most, follows
        self.unsure: str | None = None

    def to(self, patterns: tuple[str, ...]) -> tuple[str, ...]:
        if not self._rules or not patterns:
            return patterns
        more: dict[str, None] = {}
        search = None
        for pattern in patterns:
            path = literal(pattern)
            if path is not None:
                more |= dict.fromkeys(map(escape, self._other_names(path)))
                continue
            search = search or self._search()
            if not search.wanted(an_instance(pattern)) and (found := next(search.matching(pattern), None)):
                more[escape(found)] = None
            if search.exhausted:
                self.unsure = pattern
        return tuple(dict.fromkeys((*patterns, *more)))

    def _search(self) -> "_Search":
        covered = _covered(tuple(one for rule in self._rules for one in (rule.pattern, rule.also)), self._places)
        return _Search(covered.fullmatch, places_of(self._rules, self._places), self._most)

    def _other_names(self, path: str) -> Iterator[str]:
        real = resolve_or_keep(path) if self._follows else _real_parent(path)
        yield real
        try:
            facts = os.lstat(real)
        except (OSError, ValueError):
            return
        if facts.st_nlink > 1 and stat.S_ISREG(facts.st_mode):
            found = other_names(facts, places_of(self._rules, self._places))
            yield from found.names
            if not found.complete:
                self.unsure = path


class _Search:
    """Finds wanted files among those that a pattern matches."""

    def __init__(self, wanted: _Wanted, places: Sequence[str], most: int, *, links: bool = False) -> None:
        """`places` contain all wanted files. `links`: every file that a link leads to may be one."""
        self.wanted = wanted
        self._places, self._links = places, links
        self._left = most
        """Entries that may still be looked at."""
        self._left_elsewhere = most if links else _MOST_ELSEWHERE
        self.exhausted = False

    def matching(self, pattern: str) -> Iterator[str]:
        """The real paths of wanted files that the pattern matches, those behind links included."""
        yield from self._below("/", pattern.split("/")[1:])

    def _below(self, place: str, steps: Sequence[str]) -> Iterator[str]:
        step, rest = steps[0], steps[1:]
        if step == _DEEP:
            matches = _expression("/".join(("", *steps)))
            base = resolve_or_keep(place)
            yield from self._deep(base, lambda path: matches.fullmatch(path[len(base.rstrip("/")) :]))
            return
        name = literal(step)
        for path in [os.path.join(place, name)] if name is not None else self._entries(place, step):
            real = resolve_or_keep(path)
            if rest and (name is not None or os.path.isdir(real)):
                yield from self._below(real, rest)
            elif not rest and (self.wanted(real) or self.wanted(path)) and (self._links or _is_file(real)):
                yield real

    def _entries(self, directory: str, step: str) -> Iterator[str]:
        matches = _expression(f"/{step}")
        for entry in _listed(directory):
            self._left -= 1
            if self._left < 0:
                self.exhausted = True
                return
            if matches.fullmatch(f"/{entry.name}"):
                yield entry.path

    def _deep(self, base: str, matches: _Wanted) -> Iterator[str]:
        """Whatever is below a directory. `base` is a real path."""
        starts = [place for place in self._places if is_below(place, base)]
        if any(is_below(base, place) for place in self._places):
            starts = [base]
        followed = {base}
        for start in starts:
            if _is_file(start) and matches(start) and self.wanted(start):
                yield start
            yield from self._walk(start, start, matches, followed, elsewhere=False)
        if base not in starts:
            yield from self._walk(base, base, matches, followed, elsewhere=True)

    def _walk(
        self, start: str, written: str, matches: _Wanted, followed: set[str], *, elsewhere: bool
    ) -> Iterator[str]:
        """`written` is the path of the start as the pattern sees it. `elsewhere`: only links are of interest."""
        pending, linked = [start], start != written
        while pending:
            for entry in _listed(pending.pop()):
                if self._is_exhausted(elsewhere=elsewhere):
                    return
                path = written + entry.path[len(start) :] if linked else entry.path
                if entry.is_symlink():
                    yield from self._behind(entry.path, path, matches, followed)
                elif entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                elif elsewhere:
                    continue
                elif (self.wanted(entry.path) or (linked and self.wanted(path))) and matches(path):
                    yield entry.path

    def _is_exhausted(self, *, elsewhere: bool) -> bool:
        if elsewhere:
            self._left_elsewhere -= 1
            self.exhausted |= self._links and self._left_elsewhere < 0
            return self._left_elsewhere < 0
        self._left -= 1
        self.exhausted |= self._left < 0
        return self._left < 0

    def _behind(self, link: str, path: str, matches: _Wanted, followed: set[str]) -> Iterator[str]:
        """What a link leads to."""
        real = resolve_or_keep(link)
        if not os.path.isdir(real):
            if (self.wanted(real) or self.wanted(path)) and matches(path):
                yield real
        elif self._links and self.wanted(real):
            yield real
        elif real not in followed and not is_below(link, real) and (self._links or self._has_wanted(real)):
            followed.add(real)
            yield from self._walk(real, path, matches, followed, elsewhere=self._links)

    def _has_wanted(self, directory: str) -> bool:
        """Wanted files may be below it."""
        return any(is_below(directory, place) or is_below(place, directory) for place in self._places)


def _listed(directory: str) -> Iterator[os.DirEntry[str]]:
    """The entries of a directory; none if it cannot be listed: then no pattern finds anything in it either."""
    try:
        with os.scandir(directory) as entries:
            yield from entries
    except OSError:
        return


def _is_file(path: str) -> bool:
    return os.path.lexists(path) and not os.path.isdir(path)


def _real_parent(path: str) -> str:
    return os.path.join(resolve_or_keep(os.path.dirname(path)), os.path.basename(path))


def _outermost(pattern: str) -> str:
    """The real path of the directory before the first wildcard."""
    steps = pattern.split("/")
    first = next(at for at, step in enumerate(steps) if literal(step) is None)
    return resolve_or_keep("/".join(literal(step) or "" for step in steps[:first]) or "/")


@lru_cache(maxsize=256)
def _expression(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(path_glob(pattern, ends=r"\Z", dots=False), re.DOTALL)
    except re.error:
        return _NOTHING  # a set such as [z-a] has no members


@lru_cache(maxsize=16)
def _covered(patterns: tuple[str | None, ...], places: Places) -> re.Pattern[str]:
    """Whatever one of these patterns of rules matches, at once: it is compared with every file of a project."""
    return re.compile("|".join(f"(?:{path_expression(one, places)})" for one in patterns if one is not None), re.DOTALL)
