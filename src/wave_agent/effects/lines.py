"""The effects of a line of Bash, and of the project's scripts that it runs."""

from collections.abc import Collection

from msgspec.structs import replace

from wave_agent.effects.gathering import Command, Gathering
from wave_agent.effects.network import names_a_host, proxies_in
from wave_agent.effects.programs import PROGRAMS, matters, note
from wave_agent.effects.project_scripts import run_file
from wave_agent.effects.surroundings import Surroundings
from wave_agent.effects.values import Effects
from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.patterns import glob_pattern
from wave_agent.shell.reader import read_placed
from wave_agent.shell.values import Placed, Word
from wave_agent.shell.words import Pattern

_DEEPEST = 3
"""Levels of scripts that are looked into."""
_LONGEST = 256 * 1024
"""Characters of scripts, all together."""
_SYSTEM = lazy_regex(r"/(?:usr/(?:local/)?|opt/homebrew/)?s?bin/[^/]+")


def line_effects(line: str, surroundings: Surroundings) -> Effects:
    """What a line of Bash would do. Never fails, in bounded time."""
    reading = _Reading(surroundings)
    reading.line(line, surroundings.directory)
    return reading.gathering.effects()


def _changes_wildcards(placed: Placed) -> bool:
    """`shopt -s dotglob`, `bash -O extglob`"""
    name = placed.words[0].text
    named = name in ("shopt", "bash") and any(word.text in _WILDCARD_OPTIONS for word in placed.words[1:])
    return named or (name == "shopt" and not all(word.static for word in placed.words))


def _unquoted(placed: Placed) -> Placed:
    """In a line that is not understood, any wildcard may be one."""
    return replace(placed, words=tuple(map(_pattern, placed.words)))


def _pattern(word: Word) -> Word:
    wild = word.glob is None and word.static and any(sign in word.text for sign in "*?[")
    return replace(word, glob=glob_pattern([(word.text, False, True)])) if wild else word


_EXTENDED = lazy_regex(r"[@?*+!]\(")
_WILDCARD_OPTIONS = frozenset({"dotglob", "extglob", "globstar", "nocaseglob", "nocasematch", "globasciiranges"})


class _Reading:
    """One call: its line, and the scripts below it."""

    def __init__(self, surroundings: Surroundings) -> None:
        self.gathering = Gathering(surroundings)
        self._variables = surroundings.variables
        self._above: list[str] = []
        """The scripts that this one is run by."""
        self._seen: set[tuple[str, str, str]] = set()
        self._length = 0

    def line(self, text: str, directory: str) -> None:
        parsed = read_placed(text, self._variables, directory)
        unsure = not parsed.understood or parsed.anything or parsed.unresolved
        if unsure or any(map(matters, parsed.assignments)):
            self.gathering.complete = False
        if "GLOBIGNORE" in parsed.assignments or any(map(_changes_wildcards, parsed.placed)):
            self.gathering.any_wildcard = True
            self.gathering.complete = False
        if self.gathering.any_wildcard and _EXTENDED.search(text):
            self.gathering.read("/**")
            self.gathering.write("/**")
        self.gathering.assigned.update(parsed.assignments)
        self.gathering.kept.update(parsed.kept)
        if any(map(names_a_host, parsed.assignments)):
            for host in proxies_in(text):
                self.gathering.host(host)
        for pattern in parsed.redirected_from:
            self.gathering.read(pattern)
        for pattern in parsed.redirected_to:
            self.gathering.write(pattern)
        for placed in parsed.placed:
            self._command(placed if parsed.understood else _unquoted(placed), parsed.functions)

    def script(self, text: str, source: str, directory: str) -> None:
        """Text from a file of the project, or from an alias."""
        key = (source, text, directory)
        if source in self._above or len(self._above) >= _DEEPEST or isinstance(directory, Pattern):
            self.gathering.complete = False
            return
        if key in self._seen:
            return
        self._seen.add(key)
        self._length += len(text)
        if self._length > _LONGEST:
            self.gathering.complete = False
            return
        self._above.append(source)
        self.line(text, directory)
        self._above.pop()

    def _command(self, placed: Placed, functions: Collection[str]) -> None:
        name = placed.words[0]
        if any(word.anything for word in placed.words):
            # An alias of git is looked up with the command itself.
            self.gathering.complete &= len(placed.words) > 1 and placed.words[:1] == (Word("git"),)
            return
        if placed.shortened or (placed.guessed and name.text not in PROGRAMS):
            return
        if name.text != "set":
            self.gathering.run(placed.words)
        if _SYSTEM.fullmatch(name.text):
            name = Word(name.text.rpartition("/")[2], name.static)
            placed = Placed((name, *placed.words[1:]), placed.directories, placed.stdin)
        command = Command(placed, self.gathering, self.script)
        if not name.static or name.glob is not None:
            self.gathering.complete = False
        elif "/" in name.text:
            run_file(command)
        elif name.text in PROGRAMS or name.text not in functions:
            note(command)
