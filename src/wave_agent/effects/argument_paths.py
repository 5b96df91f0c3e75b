"""The paths that the texts of a call name, each with the argument that names it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, permutations
from posixpath import isabs, join, normpath

from msgspec import Struct

from wave_agent.effects.argument_fields import ArgumentRole, Reading, is_bare, reading_of, role_of
from wave_agent.effects.argument_globs import as_patterns, is_glob, says_something
from wave_agent.effects.argument_texts import SHORT, ArgumentText, Texts
from wave_agent.effects.argument_words import path_words, spellings
from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.values import escape

_MOST_WORDS = 4000
"""Different words. An input with more may name anything below the places it starts from."""
_MOST_PAIRS = 600
_MOST_CHAINED = 6
"""Values that are tried in every order as `a/b/c`."""
_MOST_BASES = 12
_MOST_PATTERNS = 200
_HOME_VARIABLE = lazy_regex(r"^\$(?:HOME\b|\{HOME\})")

_IsThere = Callable[[str], bool | None]


class ReadText(Struct, frozen=True):
    """A text of the input, and how it is read."""

    text: ArgumentText
    role: ArgumentRole
    reading: Reading

    @property
    def may_be_line(self) -> bool:
        """A tool may run it as a line of Bash."""
        return self.role in (ArgumentRole.PLACE, ArgumentRole.ANY, ArgumentRole.TALK)

    @property
    def may_be_directory(self) -> bool:
        """It is a place as a whole, in which other arguments may name something."""
        plain = self.role is ArgumentRole.ANY and "/" in self.text.text and not self.text.is_key
        return self.text.may_be_name and (self.role is ArgumentRole.PLACE or (plain and self.reading is Reading.WORDS))

    @property
    def may_be_below(self) -> bool:
        """Its words may be names in a directory that another argument names."""
        return self.reading is Reading.WORDS and not self.text.is_key


class Mention(Struct, frozen=True):
    """A word of an argument that names a path."""

    word: str
    fields: tuple[str, ...]
    reading: Reading = Reading.WORDS
    is_place: bool = True
    joins: bool = False

    @property
    def argument(self) -> str:
        return ".".join(name for name in self.fields if name)


class ArgumentPaths(Struct, frozen=True):
    """What the arguments of a call name."""

    paths: Mapping[str, Mention]
    """Absolute, as they are."""
    places: tuple[str, ...]
    """Those of them that may be directories, named as such."""
    patterns: Mapping[str, Mention]
    """What they name by wildcards, as `Effects` has it."""

    @classmethod
    def of(
        cls, texts: Sequence[ReadText], bases: Sequence[str], home: str, is_there: _IsThere, *, complete: bool
    ) -> "ArgumentPaths":
        """Relative paths start in the bases, and in every directory that another argument names:
        `{"path": "/src", "files": [".env"]}`."""
        return _Naming(texts, bases, home, is_there, complete=complete).named()


def read_texts(texts: Texts) -> list[ReadText]:
    """The strictest first, and of those the short ones: what is cut off is then the content of files, rather than their
    names."""
    roles = {fields: role_of(fields) for fields in dict.fromkeys(one.fields for one in texts.texts)}
    found = [ReadText(one, roles[one.fields], reading_of(one, roles[one.fields])) for one in texts.texts]
    # Only of a path are the parts of a list the steps.
    kept = [one for one in found if not one.text.is_joined or one.role is ArgumentRole.PLACE]
    return sorted(kept, key=lambda one: (one.reading, len(one.text.text) > SHORT))


class _Naming:
    """The texts of one call, as paths."""

    def __init__(
        self, texts: Sequence[ReadText], bases: Sequence[str], home: str, is_there: _IsThere, *, complete: bool
    ) -> None:
        self._home, self._is_there, self._complete = home, is_there, complete
        self._places = list(dict.fromkeys(path for one in bases if (path := absolute(one, home)) is not None))
        self._places = self._places[:_MOST_BASES]
        self._texts = [one for one in texts if one.reading is not Reading.NOTHING]
        self._paths: dict[str, Mention] = {}
        self._directories: dict[str, None] = {}
        self._patterns: dict[str, Mention] = {}

    def named(self) -> ArgumentPaths:
        words = self._words()
        for mention in words:
            self._add(mention)
        self._add_pairs(words)
        self._add_chains()
        if not self._complete:
            anything = Mention("more than can be compared", ())
            self._patterns |= {join(escape(place), "**"): anything for place in self._places}
        return ArgumentPaths(self._paths, tuple(self._directories), self._patterns)

    def _words(self) -> Sequence[Mention]:
        """Each with the field where it was found first, in the strictest reading."""
        found: dict[str, Mention] = {}
        for one in self._texts:
            is_place = one.role is ArgumentRole.PLACE
            for word in path_words(one.text.text):
                if one.reading.takes(word):
                    mention = Mention(word, one.text.fields, one.reading, is_place, one.may_be_below)
                    known = found.setdefault(word, mention)
                    if is_place and not known.is_place:
                        found[word] = mention
                if len(found) > _MOST_WORDS:
                    self._complete = False
                    return [*found.values()]
            if one.reading <= Reading.PATHS:
                self._add_globs(one)
        return [*found.values()]

    def _add(self, mention: Mention, starts: Iterable[str] | None = None) -> None:
        path = absolute(mention.word, self._home)
        found = [path] if path is not None else []
        if path is None:
            found = [_normal(join(start, mention.word)) for start in (self._places if starts is None else starts)]
        for one in found:
            self._add_path(one, mention)

    def _add_path(self, path: str, mention: Mention) -> None:
        only_file = mention.reading is Reading.FILES or (not mention.is_place and is_bare(mention.word))
        if not only_file:
            self._directories[path] = None
        elif self._is_there(join(path, ".")) or (mention.reading is Reading.FILES and self._is_there(path) is False):
            return
        self._paths.setdefault(path, mention)

    def _add_globs(self, one: ReadText) -> None:
        whole = one.text.text.strip()
        if len(whole) > SHORT:
            return
        candidates = [whole, *whole.split()] if not whole.isspace() else []
        for word in dict.fromkeys(candidates):
            if is_glob(word) and (says_something(word) or word == whole) and one.reading.takes(word):
                for form in dict.fromkeys((word, *spellings(word))):
                    self._add_patterns(form, one.text.fields)

    def _add_patterns(self, word: str, fields: tuple[str, ...]) -> None:
        for pattern in as_patterns(word) if is_glob(word) else ():
            path = absolute(pattern, self._home)
            found = [path] if path else [_normal(join(escape(start), pattern)) for start in self._places]
            self._patterns |= dict.fromkeys(found, Mention(word, fields))
            if len(self._patterns) > _MOST_PATTERNS:
                self._complete = False

    def _values(self) -> list[tuple[str, tuple[str, ...]]]:
        """Texts that may be a directory as a whole, each with its field."""
        found: dict[tuple[str, tuple[str, ...]], None] = {}
        for one in self._texts:
            if one.may_be_directory:
                first = next(spellings(one.text.text.replace("\0", "").strip()), "")
                found |= {(first, one.text.fields): None} if first else {}
        return list(found)

    def _add_pairs(self, words: Iterable[Mention]) -> None:
        """A directory in one argument, and a name in another."""
        relative: dict[tuple[str, ...], list[str]] = {}
        for one in words:
            if one.joins and absolute(one.word, self._home) is None:
                relative.setdefault(one.fields, []).append(one.word)
        values = [one for one in self._values() if absolute(one[0], self._home) not in self._places]
        pairs = (
            Mention(join(one, name), other)
            for one, field in values
            for other in relative
            if other != field
            for name in relative[other]
        )
        for mention in islice(pairs, _MOST_PAIRS):
            self._add(mention, self._places[:2])
        if next(pairs, None) is not None:  # any of the directories may be meant, and anything below it
            for directory, fields in values[:_MOST_PAIRS]:
                for start in self._places[:2]:
                    below = join(escape(_normal(join(start, directory))), "**")
                    self._patterns.setdefault(below, Mention(directory, fields))

    def _add_chains(self) -> None:
        """`{"root": "a", "directory": "b", "file": "c"}`"""
        values = self._values()
        for steps in permutations(values, 3) if 2 < len(values) <= _MOST_CHAINED else ():
            self._add(Mention(join(*(one for one, _ in steps)), steps[-1][1]), self._places[:2])


def absolute(word: str, home: str) -> str | None:
    """None: it is relative."""
    if home and (word == "~" or word.startswith("~/")):
        word = home + word[1:]
    elif home:
        word = _HOME_VARIABLE.sub(lambda _: home, word)
    return _normal(word) if isabs(word) else None


def _normal(path: str) -> str:
    path = normpath(path)
    return path[1:] if path.startswith("//") else path
