"""The existing files that deny rules name: what a sandbox has to mask or make read-only.

A pattern such as `.env` means a file of that name anywhere in the project, so the project is searched before every
command. What was found in a directory is remembered until the directory changes.
"""

import os
import stat
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from re import DOTALL, Pattern, compile, sub

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.errors import SandboxError
from wave_agent.permissions.hard_links import place_of
from wave_agent.rules.rule import Places, Rule, path_expression
from wave_agent.system.real_files import Identity, identity, is_below, resolve_or_keep

MOST_ENTRIES = 200_000
"""Directory entries looked at before a command. Directories left over are treated as denied as a whole."""
MOST_PATHS = 100
"""Paths that are mounted one by one: the time that mounts take grows with the square of their number. With more, whole
directories are mounted instead."""
_MOST_BEHIND_LINKS = 5000
"""Entries looked at behind links to directories."""
_MOST_LINKS = 3
"""Links to directories on the way to a file."""
_SETTLED = 200_000_000
"""Nanoseconds after which a change of a directory is certain to show in its timestamps."""
_MOST_CHECKED_FOR_LINKS = 2000
"""Denied files whose number of names is looked at."""
_MOST_SEARCHED_FOR_LINKS = 50_000
"""Entries among which their other names are looked for."""
_NOT_SEARCHED = ("/proc", "/sys", "/dev", "/run", "/var/run")
"""The sandbox has its own, or shows nothing in them that a rule could name."""


class Denied(Struct, frozen=True):
    """What rules deny now."""

    paths: tuple[str, ...] = ()
    """Real paths of files and directories, none below another one."""
    notes: tuple[str, ...] = ()
    """What is restricted more, or less, than the rules say."""


class _Listing(Struct, frozen=True):
    """What is of interest in a directory."""

    stamp: tuple[int, ...]
    count: int
    directories: tuple[str, ...] = ()
    covered: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


class DeniedFiles:
    """The files of some rules. Searching blocks; it must not be done in two threads at once."""

    def __init__(
        self,
        rules: Iterable[Rule],
        places: Places,
        *,
        kept: Sequence[str],
        most_entries: int = MOST_ENTRIES,
        most_paths: int = MOST_PATHS,
        now: Callable[[], int] = time.time_ns,
    ) -> None:
        """`kept` are the directories that commands work in: none of them, or around them, is ever denied instead of the
        files in it."""
        self._rules = tuple(rule for rule in rules if rule.pattern is not None)
        self._kept = tuple(kept)
        self._home = resolve_or_keep(places.home)
        self._most_entries, self._most_paths, self._now = most_entries, most_paths, now
        real = replace(places, project=resolve_or_keep(places.project), home=self._home)
        patterns = [one for rule in self._rules for text in (rule.pattern, rule.also) if text for one in _whole(text)]
        forms = list(dict.fromkeys((places, real)))
        self._roots = tuple(dict.fromkeys(place_of(one, form) for one in patterns for form in forms))
        together = "|".join(f"(?:{path_expression(one, form)})" for one in patterns for form in forms)
        self._covers: Pattern[str] = compile(together or r"(?!)", DOTALL)
        self._known: dict[str, _Listing] = {}

    def __bool__(self) -> bool:
        return bool(self._rules)

    def find(self) -> Denied:
        """Raises `SandboxError` if there are too many to restrict them one by one, or directory by directory."""
        if not self._rules:
            return Denied()
        search = _DeniedSearch(self._covers, self._known, self._most_entries, self._now)
        search.run(self._roots)
        self._known = search.known
        notes: list[str] = []
        found = dict.fromkeys(search.found)
        if search.unsearched:
            self._require_replaceable(search.unsearched)
            found |= dict.fromkeys(search.unsearched)
            notes.append(
                f"{self._texts} cover more files than can be searched for (the limit is {self._most_entries:,}); "
                f"restricted as a whole: {_some(search.unsearched)}"
            )
        if search.links_left:
            notes.append(f"Links to directories were not all followed in search of files that {self._texts} deny")
        found |= dict.fromkeys(self._other_names(list(found), notes))
        around = [path for path in found if path not in search.named and any(is_below(one, path) for one in self._kept)]
        for path in around:
            notes.append(f"{path}, which a link leads to, is not restricted as a whole: commands work in it")
            del found[path]
        return Denied(self._few_enough(_outermost(found), notes), tuple(notes))

    @property
    def _texts(self) -> str:
        return " and ".join(rule.text for rule in self._rules[:3]) + (" and others" if len(self._rules) > 3 else "")

    def _other_names(self, paths: Sequence[str], notes: list[str]) -> Iterator[str]:
        """Hard links elsewhere to files that are denied."""
        sought, complete = _linked_files(paths)
        if sought:
            where = _outermost([*map(resolve_or_keep, self._roots), *self._kept])
            for name in _names_of(sought, where, paths):
                if name is None:
                    complete = False
                else:
                    yield name
        if not complete:
            notes.append(f"Hard links to files that {self._texts} deny were not all searched for")

    def _few_enough(self, paths: Sequence[str], notes: list[str]) -> tuple[str, ...]:
        before, replaced = paths, dict[str, None]()
        while len(paths) > self._most_paths:
            parents = Counter(os.path.dirname(path) for path in paths if self._is_replaceable(os.path.dirname(path)))
            crowded = parents.most_common(1)
            if not crowded:
                raise SandboxError(
                    f"the sandbox cannot restrict {len(before):,} files one by one (the limit is {self._most_paths}), "
                    f"and they are not in directories of their own. Ask the user to name directories in {self._texts}"
                )
            deepest = max(parent.count("/") for parent in parents)
            alone = crowded[0][1] == 1
            chosen = [one for one in parents if one.count("/") == deepest] if alone else [crowded[0][0]]
            replaced |= dict.fromkeys(chosen)
            paths = _outermost((*paths, *chosen))
        if replaced:
            shown = [path for path in paths if path in replaced]
            notes.append(
                f"{self._texts} cover {len(before):,} files, more than can be restricted one by one (the limit is "
                f"{self._most_paths}); restricted as a whole: {_some(shown)}"
            )
        return tuple(paths)

    def _is_replaceable(self, directory: str) -> bool:
        """Denying all of it leaves commands something to work with."""
        inside = any(is_below(directory, one) for one in (*self._kept, self._home))
        return inside and directory != self._home and not any(is_below(one, directory) for one in self._kept)

    def _require_replaceable(self, directories: Iterable[str]) -> None:
        wrong = next((one for one in directories if not self._is_replaceable(one)), None)
        if wrong is not None:
            raise SandboxError(
                f"{self._texts} cover more files than the sandbox can search for (the limit is "
                f"{self._most_entries:,} entries; {wrong} is still left). Ask the user to narrow these rules"
            )


class _DeniedSearch:
    """One search."""

    def __init__(self, covers: Pattern[str], known: dict[str, _Listing], most: int, now: Callable[[], int]) -> None:
        self._covers, self._before, self._left, self._now = covers, known, most, now
        self._left_behind_links = _MOST_BEHIND_LINKS
        self._pending: deque[tuple[str, str, int]] = deque()
        """Directories: the real path, the path that leads there, and how many links that has."""
        self._entered: set[tuple[str, str]] = set()
        self.known: dict[str, _Listing] = {}
        self.found: dict[str, None] = {}
        self.named: set[str] = set()
        """Those whose real path a rule names."""
        self.unsearched: list[str] = []
        self.links_left = False

    def run(self, roots: Iterable[str]) -> None:
        """Outer directories first, so that a limit leaves out what is deepest."""
        for root in roots:
            real = resolve_or_keep(root)
            if self._is_covered(real, root):
                self._add(real)
            else:
                self._enter(real, root, 0)
        while self._pending:
            real, written, links = self._pending.popleft()
            if self._left < 0:
                self.unsearched += [real] if not links else []
                continue
            if links and self._left_behind_links < 0:
                self.links_left = True
                continue
            self._look(real, written, links)

    def _enter(self, real: str, written: str, links: int) -> None:
        if (real, written) in self._entered or real in _NOT_SEARCHED or not os.path.isdir(real):
            return
        self._entered.add((real, written))
        self._pending.append((real, written, links))

    def _look(self, real: str, written: str, links: int) -> None:
        listing = self._list(real, written)
        if links:
            self._left_behind_links -= listing.count
        for path in listing.covered:
            self._add(path)
        for path in listing.directories:
            if path not in _NOT_SEARCHED and (path, written + path[len(real) :]) not in self._entered:
                self._pending.append((path, written + path[len(real) :], links))
        for path in listing.links:
            target, shown = resolve_or_keep(path), written + path[len(real) :]
            if self._is_covered(path, shown) or self._is_covered(target, target):
                self._add(target)
            elif links < _MOST_LINKS and not is_below(path, target):
                self._enter(target, shown, links + 1)

    def _list(self, real: str, written: str) -> _Listing:
        """From memory, if the directory has not changed since."""
        try:
            facts = os.stat(real)
        except OSError:
            return _Listing((), 0)
        stamp = (facts.st_dev, facts.st_ino, facts.st_mtime_ns, facts.st_ctime_ns)
        known = self._before.get(real) if real == written else None
        if known is None or known.stamp != stamp:
            known = self._scan(real, written, stamp)
        self._left -= 1
        if real == written and self._now() - max(facts.st_mtime_ns, facts.st_ctime_ns) > _SETTLED:
            self.known[real] = known
        return known

    def _scan(self, real: str, written: str, stamp: tuple[int, ...]) -> _Listing:
        directories: list[str] = []
        covered: list[str] = []
        links: list[str] = []
        count = 0
        try:
            with os.scandir(real) as entries:
                for entry in entries:
                    count += 1
                    if entry.is_symlink():
                        links.append(entry.path)
                    elif self._is_covered(entry.path, written + entry.path[len(real) :]):
                        covered.append(entry.path)
                    elif entry.is_dir(follow_symlinks=False):
                        directories.append(entry.path)
        except OSError:
            pass  # a command cannot list it either; what it could open by name, a rule has to name without wildcards
        self._left -= count
        return _Listing(stamp, count, tuple(directories), tuple(covered), tuple(links))

    def _is_covered(self, real: str, written: str) -> bool:
        covers = self._covers.fullmatch
        return covers(real) is not None or (written != real and covers(written) is not None)

    def _add(self, real: str) -> None:
        if os.path.lexists(real):
            self.found[real] = None
            if self._covers.fullmatch(real):
                self.named.add(real)


def _whole(pattern: str) -> Iterator[str]:
    """The pattern and, if it covers everything in a directory, that directory: what is created there is covered too."""
    yield pattern
    directory = sub(r"(?:/\*+)+$", "", pattern.removeprefix("./"))
    if directory.strip("/") in ("*", "**"):
        yield "/**"
    elif directory != pattern and directory.strip("/~"):
        yield directory if directory.startswith(("/", "~/")) else f"/{directory}"


def _linked_files(paths: Iterable[str]) -> tuple[set[Identity], bool]:
    """Files at or below these paths that have several names, and whether all were looked at."""
    sought: set[Identity] = set()
    pending, left = list(paths), _MOST_CHECKED_FOR_LINKS
    while pending and left > 0:
        left -= 1
        path = pending.pop()
        try:
            facts = os.lstat(path)
            if stat.S_ISDIR(facts.st_mode):
                pending += [os.path.join(path, name) for name in os.listdir(path)]
            elif stat.S_ISREG(facts.st_mode) and facts.st_nlink > 1:
                sought.add(identity(facts))
        except OSError:
            continue
    return sought, not pending


def _names_of(sought: set[Identity], where: Iterable[str], known: Iterable[str]) -> Iterator[str | None]:
    """Paths of these files, except at or below `known` ones. None: there may be more."""
    inodes, left, skipped = {inode for _, inode in sought}, _MOST_SEARCHED_FOR_LINKS, set(known)
    pending = list(where)
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        yield None
                        return
                    if entry.path in skipped:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    # The inode number in the entry is cheap, but may be from another device, so stat the file as well.
                    elif entry.inode() in inodes and identity(entry.stat(follow_symlinks=False)) in sought:
                        yield entry.path
        except OSError:
            continue


def _outermost(paths: Iterable[str]) -> list[str]:
    """Without those below another one."""
    kept: list[str] = []
    for path in sorted(paths, key=lambda path: path.split("/")):
        if not kept or not is_below(path, kept[-1]):
            kept.append(path)
    return kept


def _some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 3:,} more" if len(paths) > 3 else ""
    return ", ".join(paths[:3]) + more
