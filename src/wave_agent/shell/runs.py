"""What a command runs besides itself."""

from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct

from wave_agent.shell.values import UNSEEN, Word


class Tail(Struct, frozen=True):
    """Words that are run as a command."""

    words: tuple[Word, ...]
    directory: Word | None = None
    """The directory, if not that of the command itself."""
    assignments: tuple[Word, ...] = ()
    shortened: bool = False
    """It is the command itself, without the directory of its program or git's first options."""


class ShellText(Struct, frozen=True):
    """Text that a shell reads."""

    text: Word
    arguments: tuple[Word, ...] = ()
    """`$0`, `$1` and so on."""


class ForeignCode(Struct, frozen=True):
    """Text in another language. It is not parsed, only searched for the words of a rule and for protected paths."""

    text: Word
    data: Word | None = None
    """The data that the line gives it."""


Inner: TypeAlias = Tail | ShellText | ForeignCode

ANY_COMMAND = Tail((UNSEEN,))
"""Something is run, but the line does not say what."""


def joined(words: Iterable[Word]) -> Word:
    words = list(words)
    return Word(" ".join(word.text for word in words), static=all(word.static for word in words))
