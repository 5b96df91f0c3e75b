"""The effects of a call whose tool is not known: the paths and hosts that its arguments name.

What the tool does with them is not known either, so each path counts as read and as written. All of this can only
restrict: it is used for deny and ask rules, protected paths and hooks, and it is never complete.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, permutations
from posixpath import isabs, join, normpath
from typing import Any

from msgspec import Struct

from wave_agent.effects.argument_commands import line_effects_in
from wave_agent.effects.argument_globs import as_patterns, is_glob, says_something
from wave_agent.effects.argument_hosts import bare_hosts_in, hosts_in
from wave_agent.effects.argument_texts import SHORT, ArgumentText, Texts, texts_in
from wave_agent.effects.argument_words import path_words, spellings
from wave_agent.effects.surroundings import Surroundings
from wave_agent.effects.values import ANY_HOST, Effects
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
_EVERYTHING_IN = "[*]"
"""A name that only those rules match which are about every name in a directory."""


class ArgumentPaths(Struct, frozen=True):
    """What the arguments of a call name."""

    paths: tuple[str, ...]
    """Absolute, as they are."""
    patterns: tuple[str, ...]
    """What they name by wildcards, as `Effects` has it."""


def argument_effects(tool_input: Mapping[str, Any], surroundings: Surroundings, bases: Sequence[str] = ()) -> Effects:
    """Total: any input has effects. `bases` are further directories that relative paths may start from."""
    texts = texts_in(tool_input)
    home = surroundings.variables.get("HOME", "")
    starts = (surroundings.directory, surroundings.project, *bases)
    named = _Naming(texts, starts, home).named()
    entire, inside = _directories(named.paths, _roots(starts, home), surroundings.is_there)
    places = dict.fromkeys(starts[:2])
    lines = line_effects_in(_short_first(texts.texts), places, {"HOME": home} if home else {})
    bare = bare_hosts_in(texts)
    both = (*map(escape, named.paths), *named.patterns, *inside)
    return Effects(
        reads=tuple(dict.fromkeys((*both, *lines.reads))),
        writes=tuple(dict.fromkeys((*both, *entire, *lines.writes))),
        hosts=tuple(dict.fromkeys((*hosts_in(texts), *lines.hosts, *(one for one in bare if one == ANY_HOST)))),
        complete=False,
        bare_hosts=bare,
    )


def named_paths(tool_input: Mapping[str, Any], bases: Sequence[str], home: str) -> ArgumentPaths:
    """Every path that some text in the input may name. Relative ones start in the bases, and in every directory that
    another argument names: `{"repo": "/src", "files": [".env"]}`."""
    return _Naming(texts_in(tool_input), bases, home).named()


def named_hosts(tool_input: Mapping[str, Any]) -> tuple[str, ...]:
    """See `hosts_in`."""
    return hosts_in(texts_in(tool_input))


# -------------------------------------------------------------------------------------------------------- directories


def _directories(
    paths: Iterable[str], roots: Sequence[str], is_there: Callable[[str], bool | None]
) -> tuple[list[str], list[str]]:
    """Patterns for paths that may be directories: all that is below them, and whatever each has.

    Who names a directory may delete or move it. The places where all work happens are left out: every call of a git
    server names the project.
    """
    there = [path for path in paths if is_there(join(path, ".")) is not False]  # a file contains no such entry
    entire = [join(escape(path), "**") for path in there if not any(_is_below(root, path) for root in roots)]
    return entire, [join(escape(path), _EVERYTHING_IN) for path in there]


def _roots(starts: Sequence[str], home: str) -> list[str]:
    return [path for one in (*starts, home) if (path := _absolute(one, home)) is not None]


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory.rstrip('/')}/")


# -------------------------------------------------------------------------------------------------------------- paths


class _Naming:
    """The texts of one call, as paths."""

    def __init__(self, texts: Texts, bases: Sequence[str], home: str) -> None:
        self._home = home
        self._places = list(dict.fromkeys(path for one in bases if (path := _absolute(one, home)) is not None))
        self._places = self._places[:_MOST_BASES]
        self._texts = _short_first(texts.texts)
        self._paths: dict[str, None] = {}
        self._patterns: dict[str, None] = {}
        self._complete = texts.complete

    def named(self) -> ArgumentPaths:
        words = self._words()
        for word in words:
            self._add(word)
        self._add_pairs(words)
        self._add_chains()
        if not self._complete:
            self._patterns |= dict.fromkeys(join(escape(place), "**") for place in self._places)
        return ArgumentPaths(tuple(self._paths), tuple(self._patterns))

    def _words(self) -> dict[str, tuple[str, ...]]:
        """Each with the field where it was found first."""
        found: dict[str, tuple[str, ...]] = {}
        for text in self._texts:
            for word in path_words(text.text):
                found.setdefault(word, text.fields)
                if len(found) > _MOST_WORDS:
                    self._complete = False
                    return found
            self._add_globs(text)
        return found

    def _add(self, word: str, starts: Iterable[str] | None = None) -> None:
        absolute = _absolute(word, self._home)
        if absolute is not None:
            self._paths[absolute] = None
            return
        for start in self._places if starts is None else starts:
            self._paths[_normal(join(start, word))] = None

    def _add_globs(self, text: ArgumentText) -> None:
        whole = text.text.strip()
        if len(whole) > SHORT:
            return
        candidates = [whole, *whole.split()] if not whole.isspace() else []
        for word in dict.fromkeys(candidates):
            if is_glob(word) and (says_something(word) or word == whole):
                for form in dict.fromkeys((word, *spellings(word))):
                    self._add_patterns(form)

    def _add_patterns(self, word: str) -> None:
        for pattern in as_patterns(word) if is_glob(word) else ():
            absolute = _absolute(pattern, self._home)
            found = [absolute] if absolute else [_normal(join(escape(start), pattern)) for start in self._places]
            self._patterns |= dict.fromkeys(found)
            if len(self._patterns) > _MOST_PATTERNS:
                self._complete = False

    def _values(self) -> list[tuple[str, tuple[str, ...]]]:
        """Texts that may be a directory as a whole, each with its field."""
        found: dict[tuple[str, tuple[str, ...]], None] = {}
        for text in self._texts:
            if text.may_be_name:
                first = next(spellings(text.text.replace("\0", "").strip()), "")
                found |= {(first, text.fields): None} if first else {}
        return list(found)

    def _add_pairs(self, words: Mapping[str, tuple[str, ...]]) -> None:
        """A directory in one argument, and a name in another."""
        relative: dict[tuple[str, ...], list[str]] = {}
        for word, fields in words.items():
            if _absolute(word, self._home) is None:
                relative.setdefault(fields, []).append(word)
        values = [one for one in self._values() if _absolute(one[0], self._home) not in self._places]
        pairs = (
            (one, name) for one, field in values for other in relative if other != field for name in relative[other]
        )
        for directory, name in islice(pairs, _MOST_PAIRS):
            self._add(join(directory, name), self._places[:2])
        if next(pairs, None) is not None:  # any of the directories may be meant, and anything below it
            for directory, _ in values[:_MOST_PAIRS]:
                for start in self._places[:2]:
                    self._patterns[join(escape(_normal(join(start, directory))), "**")] = None

    def _add_chains(self) -> None:
        """`{"root": "a", "directory": "b", "file": "c"}`"""
        values = [one for one, _ in self._values()]
        for steps in permutations(values, 3) if 2 < len(values) <= _MOST_CHAINED else ():
            self._add(join(*steps), self._places[:2])


def _short_first(texts: Sequence[ArgumentText]) -> Sequence[ArgumentText]:
    """What is cut off is then the content of files, rather than their names."""
    return sorted(texts, key=lambda one: len(one.text) > SHORT)


def _absolute(word: str, home: str) -> str | None:
    """None: it is relative."""
    if home and (word == "~" or word.startswith("~/")):
        word = home + word[1:]
    elif home:
        word = _HOME_VARIABLE.sub(lambda _: home, word)
    return _normal(word) if isabs(word) else None


def _normal(path: str) -> str:
    path = normpath(path)
    return path[1:] if path.startswith("//") else path
