"""The directory a command runs in, if the line says so.

A directory is a path, or a `Pattern` of possible paths.
"""

from collections.abc import Iterator
from posixpath import join, normpath

from wave_agent.lazy_regex import lazy_regex
from wave_agent.shell.values import Word, escape
from wave_agent.shell.words import Pattern

ANYWHERE = Pattern("/**")
"""A directory about which nothing is known."""


def below(directory: str, word: Word) -> str:
    """The directory named by a word, for a command that runs in another one."""
    if word.glob is not None:
        return Pattern(normpath(join(as_pattern(directory), word.glob)))
    if not word.static:
        return ANYWHERE
    if isinstance(directory, Pattern):
        return Pattern(normpath(join(directory, escape(word.text))))
    return normpath(join(directory, word.text))


def possible(directory: str, word: Word) -> Iterator[str]:
    """The same for a program, to which `link/..` is the directory that contains the link's target: that may be any."""
    yield below(directory, word)
    if leaves_a_name(word.text):
        yield ANYWHERE


def leaves_a_name(text: str) -> bool:
    """`a/..`"""
    return _LEAVING.search(text) is not None


_LEAVING = lazy_regex(r"(?:^|/)(?!\.{0,2}/)[^/]+/(?:\.?/)*\.\.(?:/|$)")


def as_pattern(directory: str) -> str:
    return directory if isinstance(directory, Pattern) else escape(directory)
