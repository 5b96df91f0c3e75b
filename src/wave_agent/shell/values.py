"""What a line of Bash says, as values."""

from enum import Enum, IntEnum

from msgspec import Struct


class ValueOrigin(IntEnum):
    """Where the part of a word comes from that is not known."""

    ENVIRONMENT = 0
    """A variable that the line does not set."""
    ELSEWHERE = 1
    """A file, a search, another program's report: nothing that the line itself could put together."""
    MADE = 2
    """The line may put it together as it likes: a decoded text, a slice, an indirection."""


class Word(Struct, frozen=True):
    """One word, as the command would get it."""

    text: str
    static: bool = True
    """False: some of it is known only when the line runs; that part stands in `text` as it was written."""
    glob: str | None = None
    """The word as a pattern, if it is one. What was quoted stands in brackets: `[*]`."""
    prints: str | None = None
    """What can be read from it, if it is a process substitution with a known output."""
    paths: tuple[str, ...] = ()
    """Patterns of the paths in it, if it is the output of a search."""
    anything: bool = False
    """It may be any words, in any number: from here on, nobody can tell what is run."""
    origin: ValueOrigin = ValueOrigin.ENVIRONMENT
    """Of what is not static."""
    base: str | None = None
    """What stands behind the last slash, if that much is known of a word that is not static."""

    @property
    def pattern(self) -> str:
        """The word as a pattern, whether it is one or not."""
        return escape(self.text) if self.glob is None else self.glob


class Reach(Enum):
    """How far a command that writes to a path reaches."""

    FILE = "the file itself"
    INSIDE = "files directly in that directory, of any name"
    TREE = "the path, and all that is below it"
    NAMED = "the path is handed to a program of which nobody knows what it does with it"


class WriteTarget(Struct, frozen=True):
    """A path that a line visibly writes to, moves away or removes."""

    pattern: str
    """A glob in which `**` spans directories. Without wildcards it is one path; brackets quote: `[*]`."""
    reach: Reach = Reach.FILE
    names: tuple[str, ...] = ()
    """If the path is a directory, it is these in it that are written."""
    existing: bool = False
    """Only what is there is changed: nothing is made."""
    removes: bool = False
    """It is removed, and nothing else."""


class ShellCommand(Struct, frozen=True):
    """One simple command."""

    words: tuple[Word, ...]

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @property
    def quoted(self) -> str:
        """The text with blanks inside of words kept apart from those between them."""
        return " ".join(f"'{word.text}'" if _needs_quotes(word.text) else word.text for word in self.words)


class Placed(Struct, frozen=True):
    """A command, and the directories that it may run in."""

    words: tuple[Word, ...]
    directories: tuple[str, ...]


class ParsedLine(Struct, frozen=True, kw_only=True):
    """What a line was found to say."""

    commands: tuple[ShellCommand, ...]
    """Every simple command in it, also those inside of others: `sudo x` is `sudo x` and `x`."""
    statements: tuple[str, ...] = ()
    """Commands and pipelines as they are written."""
    understood: bool
    """False: a part of it cannot be parsed, or runs what only the running line knows. There may be more commands."""
    parsed: bool = False
    """It has no syntax that is unknown."""
    plain: tuple[ShellCommand, ...] = ()
    """Its commands, if the line is nothing but commands in a row, whose every word is as good as literal."""
    assignments: tuple[str, ...] = ()
    """Names of the variables that it sets."""
    writes: tuple[WriteTarget, ...] = ()
    git: tuple[Placed, ...] = ()
    """Its git commands, in order."""
    anything: bool = False
    """It runs what it puts together itself. That may be any command."""
    doubtful: tuple[str, ...] = ()
    """If it is not understood: the texts in it that a shell would read, without quotes, in several forms."""
    texts: tuple[str, ...] = ()
    """Text that is handed to other languages than the shell's: `python3 -c '…'`."""
    handed: tuple[str, ...] = ()
    """Such text that runs programs, with what it may make their words of: arguments, input, variables."""


UNSEEN = Word("…", static=False, anything=True)
"""Stands for words that cannot be seen in the line."""


def escape(text: str) -> str:
    """The pattern that stands for this text alone."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in text)


def _needs_quotes(text: str) -> bool:
    return not text or any(character.isspace() for character in text)
