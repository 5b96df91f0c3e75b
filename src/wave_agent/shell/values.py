"""What a line of Bash says, as values."""

from enum import Enum, IntEnum

from msgspec import Struct


class ValueOrigin(IntEnum):
    """Where the unknown part of a word comes from."""

    ENVIRONMENT = 0
    """A variable that the line does not set."""
    ELSEWHERE = 1
    """A file, a search, another program's report: nothing that the line itself could build."""
    MADE = 2
    """The line may build it freely: a decoded text, a slice, an indirection."""


class Word(Struct, frozen=True):
    """One word, as the command would receive it."""

    text: str
    static: bool = True
    """False: some of it is only known at run time; that part is in `text` as written."""
    glob: str | None = None
    """The word as a pattern, if it is one. Quoted characters are in brackets: `[*]`."""
    prints: str | None = None
    """What can be read from it, if it is a process substitution with known output."""
    paths: tuple[str, ...] = ()
    """Patterns of the paths in it, if it is the output of a search."""
    anything: bool = False
    """It may be any number of any words: from here on, it is unknown what is run."""
    origin: ValueOrigin = ValueOrigin.ENVIRONMENT
    """For a word that is not static."""
    base: str | None = None
    """The part after the last slash, if it is known in a word that is not static."""
    exact: bool = False
    """Of the output of a search: it is nothing but `paths`, each on a line of its own or ended by a zero byte. Of a
    word that is not static: it is one word, and something that its pattern matches."""
    splits: str = ""
    """It is a path that comes from such an output: an expression for what separates words in it."""

    @property
    def pattern(self) -> str:
        """The word as a pattern, even if it is not one."""
        return escape(self.text) if self.glob is None else self.glob


class Reach(Enum):
    """How far a write to a path reaches."""

    FILE = "the file itself"
    INSIDE = "files directly in that directory, of any name"
    TREE = "the path, and everything below it"
    NAMED = "the path is passed to a program with unknown effects"


class Splitting(Struct, frozen=True):
    """How a path becomes several words, and the directory they start from."""

    expression: str
    directory: str


class WriteTarget(Struct, frozen=True):
    """A path that a line visibly writes to, moves away or removes."""

    pattern: str
    """A glob in which `**` spans directories. Without wildcards it is one path; brackets quote: `[*]`."""
    reach: Reach = Reach.FILE
    names: tuple[str, ...] = ()
    """If the path is a directory, these entries in it are written."""
    existing: bool = False
    """Only existing files are changed: nothing is created."""
    removes: bool = False
    """It is only removed."""
    splits: Splitting | None = None
    """Names of existing files are split into words: each of those is written."""


class ShellCommand(Struct, frozen=True):
    """One simple command."""

    words: tuple[Word, ...]

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)

    @property
    def quoted(self) -> str:
        """The text, with blanks inside words distinguished from those between them."""
        return " ".join(f"'{word.text}'" if _needs_quotes(word.text) else word.text for word in self.words)


class Placed(Struct, frozen=True):
    """A command, and the directories it may run in."""

    words: tuple[Word, ...]
    directories: tuple[str, ...]
    stdin: Word | None = None
    """What the line says about its input."""
    shortened: bool = False
    """It is another one in a shorter form: `./x` as `x`, `git -C a push` as `git push`."""
    guessed: bool = False
    """One of several words may start the command, and this is one of them."""


class ParsedLine(Struct, frozen=True, kw_only=True):
    """What was found in a line."""

    commands: tuple[ShellCommand, ...]
    """Every simple command in it, including nested ones: `sudo x` is `sudo x` and `x`."""
    statements: tuple[str, ...] = ()
    """Commands and pipelines as written."""
    understood: bool
    """False: a part of it cannot be parsed, or runs something known only at run time. There may be more commands."""
    parsed: bool = False
    """It has no unknown syntax."""
    plain: tuple[ShellCommand, ...] = ()
    """Its commands, if the line is just a sequence of commands with practically literal words."""
    assignments: tuple[str, ...] = ()
    """Names of the variables it sets."""
    writes: tuple[WriteTarget, ...] = ()
    git: tuple[Placed, ...] = ()
    """Its git commands, in order."""
    placed: tuple[Placed, ...] = ()
    """Every command, with the directories it may run in: patterns, if they contain wildcards."""
    redirected_from: tuple[str, ...] = ()
    """Files that redirections read, as patterns."""
    redirected_to: tuple[str, ...] = ()
    """Files that redirections write, as patterns."""
    functions: tuple[str, ...] = ()
    """Names of the functions it defines."""
    kept: tuple[tuple[str, str], ...] = ()
    """Files that it writes, by their last name, and what is written to them."""
    unresolved: bool = False
    """A redirection reads or writes a file whose name is unknown."""
    anything: bool = False
    """It runs something it builds itself. That may be any command."""
    too_much: bool = False
    """It takes too much work to read, so nothing is known about it."""
    doubtful: tuple[str, ...] = ()
    """If it is not understood: the texts in it that a shell would read, without quotes, in several forms."""
    texts: tuple[str, ...] = ()
    """Text passed to languages other than the shell's: `python3 -c '…'`."""
    handed: tuple[str, ...] = ()
    """Text of that kind that runs programs, with possible sources of their words: arguments, input, variables."""


UNSEEN = Word("…", static=False, anything=True)
"""Placeholder for words that are not visible in the line."""


def escape(text: str) -> str:
    """The pattern that matches only this text."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in text)


def _needs_quotes(text: str) -> bool:
    return not text or any(character.isspace() for character in text)
