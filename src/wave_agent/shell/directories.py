"""The directory that a command runs in, as far as a line says where that is.

A directory is a path, or a `Pattern` of the paths that it may have.
"""

from posixpath import join, normpath

from wave_agent.shell.values import Word, escape
from wave_agent.shell.words import Pattern

ANYWHERE = Pattern("/**")
"""A directory of which nothing is known."""


def below(directory: str, word: Word) -> str:
    """The directory that a word names, for a command that runs in another one."""
    if word.glob is not None:
        return Pattern(normpath(join(as_pattern(directory), word.glob)))
    if not word.static:
        return ANYWHERE
    if isinstance(directory, Pattern):
        return Pattern(normpath(join(directory, escape(word.text))))
    return normpath(join(directory, word.text))


def as_pattern(directory: str) -> str:
    return directory if isinstance(directory, Pattern) else escape(directory)
