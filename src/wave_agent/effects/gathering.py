"""Collects the effects of one call, and turns the words of a command into paths and hosts."""

import re
from collections.abc import Callable, Iterable, Sequence
from posixpath import basename, dirname, join, normpath

from wave_agent.effects.hosts import normal_host
from wave_agent.effects.overlap import may_meet
from wave_agent.effects.surroundings import Surroundings
from wave_agent.effects.values import Effects
from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.directories import ANYWHERE, as_pattern, below
from wave_agent.shell.options import Option, OptionTable, read
from wave_agent.shell.patterns import as_written
from wave_agent.shell.targets import Target
from wave_agent.shell.values import Placed, Reach, Word, escape

_MOST = 1000
"""Entries of each kind. A call with more is not complete."""
_LONGEST = 4096
_MOST_PLACES = 64
_NO_FILE = lazy_regex(
    r"/dev/(?:null|zero|full|random|urandom|tty|stdin|stdout|stderr|fd/\d+|pts/\d+)|/proc/(?:self|thread-self)/fd/\d+"
)
_SOCKET = lazy_regex(r"/dev/(?:tcp|udp)/([^/]+)/[^/]+")
"""Bash connects, if a redirection names one of these."""
_BY_PROCESS = lazy_regex(r"^/proc/(?:self|thread-self|\$\$|\d+)/(?:cwd|root(?=(/)))")
"""Another name of the current directory, or of `/`."""
_INPUT = ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
_SUBSTITUTED = ("<(", ">(")
_ADDRESS = lazy_regex(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/@\s]*@)?(\[[0-9A-Fa-f:.]+\]|[^/:?#\s'\"]+)")
_DIRECTORIES = ("/", "/.", "/..")
_OPTIONAL = ("$", "`")
"""A word that starts like this may turn out to be an option."""


_WILD_NAME = lazy_regex(r"/(?:\[[*?\[]\]|[^/*?\[])*(?![^/*?\[])(?!/|\[[*?\[]\]).")
"""The first name with a wildcard that is not quoted."""


class Gathering:
    """The effects found so far."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.surroundings = surroundings
        self.complete = True
        self.any_wildcard = False
        """A wildcard may match more than it says: the line changes how Bash reads them."""
        self.assigned: set[str] = set()
        """Names of the variables that the line sets."""
        self.remotes: dict[str, list[Word]] = {}
        """Remotes that the line defines for git, and their addresses."""
        self.kept: dict[str, str] = {}
        """What the line has written to files, by name."""
        self._not_split: set[tuple[tuple[str, ...], str]] = set()
        """Patterns, and expressions at which names of files become words. The line itself must make no such name."""
        self._reads: dict[str, None] = {}
        self._writes: dict[str, None] = {}
        self._deletes: dict[str, None] = {}
        self._hosts: dict[str, None] = {}
        self._runs: dict[tuple[str, ...], None] = {}

    def effects(self) -> Effects:
        made = any(re.search(one, basename(path)) for _, one in self._not_split for path in self._writes)
        return Effects(
            tuple(self._reads),
            tuple(self._writes),
            tuple(self._deletes),
            tuple(self._runs),
            tuple(self._hosts),
            self.complete and not made,
        )

    def not_split(self, word: Word, directories: Sequence[str]) -> None:
        """A path that `xargs` may split stands for what it matches if no existing file has such a name."""
        patterns = tuple(join(as_pattern(directory), word.pattern) for directory in directories)
        if (patterns, word.splits) not in self._not_split:
            self._not_split.add((patterns, word.splits))
            self.complete &= self.surroundings.splits(patterns, word.splits) is False

    def read(self, pattern: str) -> None:
        self._path(self._reads, pattern)

    def write(self, pattern: str) -> None:
        self._path(self._writes, pattern)

    def delete(self, pattern: str) -> None:
        self._path(self._deletes, pattern)

    def writes_one_of(self, names: tuple[str, ...]) -> bool:
        """Whether a file of such a name is written so far."""
        return any(pattern.endswith(names) for pattern in self._writes)

    def run(self, words: Sequence[Word]) -> None:
        if len(self._runs) < _MOST:
            self._runs[tuple(word.text[:_LONGEST] for word in words[:_MOST])] = None
        else:
            self.complete = False

    def host(self, name: str) -> None:
        if len(self._hosts) < _MOST:
            self._hosts[normal_host(name)] = None
        else:
            self.complete = False

    def _path(self, found: dict[str, None], pattern: str) -> None:
        self._one_path(found, pattern)
        if "/.." in pattern:
            for path in self._as_the_system_sees_it(pattern):
                self._one_path(found, path)

    def _as_the_system_sees_it(self, pattern: str) -> Sequence[str]:
        """The path with links followed before each `..`."""
        places: list[str] = ["/"]
        for step in pattern.split("/"):
            if step == "..":
                reals = [self.surroundings.behind(place) for place in places]
                self.complete &= None not in reals
                places = list(dict.fromkeys(dirname(real) for one in reals if one is not None for real in one))
                self.complete &= len(places) <= _MOST_PLACES
                places = places[:_MOST_PLACES]
            elif step not in ("", "."):
                places = [join(place, step) for place in places]
        return places

    def _one_path(self, found: dict[str, None], pattern: str) -> None:
        path = normpath(pattern)
        if path.startswith("//"):
            path = path[1:]
        if self.any_wildcard and (wild := _WILD_NAME.search(path)):
            path = f"{path[: wild.start()]}/**"
        if socket := _SOCKET.fullmatch(path):
            self.host(socket[1])
        elif _NO_FILE.fullmatch(path):
            return
        elif len(found) < _MOST and len(path) <= _LONGEST and "\0" not in path:
            found[path] = None
        else:
            self.complete = False


class Command:
    """One command of a line, and where its effects are collected."""

    def __init__(self, placed: Placed, gathering: Gathering, script: Callable[[str, str, str], None]) -> None:
        self.words = placed.words
        self.name = placed.words[0].text
        self.arguments = placed.words[1:]
        self.texts = [word.text for word in placed.words[1:]]
        self.directories = placed.directories
        self.stdin = placed.stdin
        self.guessed = placed.guessed
        self.gathering = gathering
        self.surroundings = gathering.surroundings
        self.script = script
        """Takes in the effects of shell text: the text, where it comes from, and the directory it runs in."""

    def unknown(self) -> None:
        """It may do more than what is found."""
        self.gathering.complete = False

    def options(self, table: OptionTable, *, mixed: bool = True) -> tuple[list[Option], list[Word]]:
        """Options and operands. A word that may be an option or not makes the effects incomplete."""
        if any(_may_be_option(word) or self._finds_option(word) for word in _before_end(self.arguments)):
            self.unknown()
        return read(self.words, table, mixed=mixed)

    def _finds_option(self, word: Word) -> bool:
        """A wildcard that matches a file which is named like an option, such as `-r`."""
        if word.glob is None or word.glob[0] not in "*?[-":
            return False
        first = f"/{word.glob.partition('/')[0]}"
        names = (name for place in self.directories for name in self.surroundings.option_names(place))
        return any(may_meet(f"/{escape(name)}", first) for name in names)

    def reads(self, words: Iterable[Word], *, tree: bool = False) -> None:
        for pattern in self.paths(words):
            self.gathering.read(pattern)
            if tree:
                self.gathering.read(f"{pattern}/**")

    def writes(self, words: Iterable[Word]) -> None:
        for pattern in self.paths(words):
            self.gathering.write(pattern)

    def deletes(self, words: Iterable[Word]) -> None:
        for pattern in self.paths(words):
            self.gathering.delete(pattern)
            self.gathering.delete(f"{pattern}/**")

    def reads_like_paths(self, words: Iterable[Word]) -> None:
        """What an unknown program probably reads: everything that looks like a path, attached to an option or not."""
        for word in words:
            if word.static:
                self.hosts_in(word.text)
                value = word.text.partition("=")[2]
                self.reads([Word(part[1:]) for part in (word.text, value) if part.startswith("@")])
                for part in (word.text, value):
                    if looks_like_path(part):
                        self.reads([Word(part) if part is not word.text else word])

    def listed(self, lists: Iterable[Word], separator: str) -> list[Word]:
        """The words in a file that names others: in the input, or in a file that can be looked into."""
        found: list[str] = []
        for one in lists:
            if one.text in _INPUT:
                stdin = self.stdin
                found += stdin.text.split(separator) if stdin is not None and stdin.static else ()
            elif one.prints is not None:
                found += one.prints.split(separator)
            else:
                texts = [*map(self.surroundings.read_text, list(self.paths([one])))]
                texts.append(self.gathering.kept.get(basename(one.text)))
                found += (name for text in texts if text is not None for name in text.split(separator))
        stdin = self.stdin
        patterns = stdin.paths if stdin is not None and any(one.text in _INPUT for one in lists) else ()
        names = (name.strip("\n") for name in found[:_MOST])
        return [*(Word(name) for name in names if name), *(Word(path, glob=path) for path in patterns)]

    def hosts_in(self, text: str) -> None:
        for found in _ADDRESS.finditer(text):
            self.gathering.host(found[1])

    def host(self, name: str) -> None:
        self.gathering.host(name)

    def targets(self, targets: Iterable[Target]) -> None:
        """What the table of writing commands says."""
        for target in targets:
            note = self.gathering.delete if target.removes else self.gathering.write
            words = [target.word] if target.reach is not Reach.NAMED else []
            for pattern in self.paths(words, target.below):
                inside = [join(pattern, name) for name in target.names]
                each = inside if inside and is_directory(target.word.text) else [pattern, *inside]
                for one in each if target.reach is not Reach.INSIDE else ():
                    note(one)
                for one in each if target.reach is not Reach.FILE else ():
                    note(f"{one}/**")

    def paths(self, words: Iterable[Word], inside: Word | None = None) -> Iterable[str]:
        """The files that words name, as absolute patterns."""
        for word in _as_they_may_be(words):
            if word.text in ("", "-") or word.text.startswith(_SUBSTITUTED):
                continue
            if not word.static and not word.exact:
                self.unknown()
            if not word.static and word.glob is None:
                continue
            if word.splits and word.exact:
                self.gathering.not_split(word, self.directories)
            if word.text.startswith("~"):
                self.unknown()  # the reader of the line replaces those that it knows
            pattern = _BY_PROCESS.sub(lambda found: found[1] or ".", word.pattern)
            for directory in self.directories:
                place = directory if inside is None else below(directory, inside)
                if place == ANYWHERE and not pattern.startswith("/"):
                    self.unknown()
                if inside is not None and place != ANYWHERE and ".." in inside.text:
                    yield join(as_pattern(directory), inside.pattern, pattern)
                yield join(as_pattern(place), pattern)


def _as_they_may_be(words: Iterable[Word]) -> Iterable[Word]:
    """Words, also as they are written if no file has a matching name."""
    for word in words:
        yield word
        if (written := as_written(word)) is not None:
            yield written


def is_directory(text: str) -> bool:
    """Whether the word can only be a directory."""
    return text in (".", "..") or text.endswith(_DIRECTORIES)


def looks_like_path(text: str) -> bool:
    return ("/" in text or "." in text[:-1] or text in (".", "..")) and "://" not in text and not text.startswith("-")


def _before_end(words: Sequence[Word]) -> Iterable[Word]:
    for word in words:
        if word.text == "--":
            return
        yield word


def _may_be_option(word: Word) -> bool:
    return not word.static and word.text.startswith(_OPTIONAL)
