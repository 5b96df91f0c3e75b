"""A path that a command writes to, before the command's directory is known."""

from msgspec import Struct

from wave_agent.shell.values import Reach, Word, WriteTarget


class Target(Struct, frozen=True):
    """A word that names a written path, and the directory it is relative to, if not the current one."""

    word: Word
    reach: Reach = Reach.FILE
    names: tuple[str, ...] = ()
    below: Word | None = None
    upwards: bool = False
    """It is searched for in the parent directories as well."""
    existing: bool = False
    """Only existing files are changed."""
    removes: bool = False
    """It is only removed."""

    guessed: bool = False
    """A word that may be a path or a subcommand."""

    def write(self, pattern: str) -> WriteTarget:
        return WriteTarget(pattern, self.reach, self.names, self.existing, self.removes)
