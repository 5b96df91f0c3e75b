"""A path that a command writes to, before it is known where the command runs."""

from msgspec import Struct

from wave_agent.shell.values import Reach, Word, WriteTarget


class Target(Struct, frozen=True):
    """A word that names a path which is written, and the directory that it is relative to, if not the current one."""

    word: Word
    reach: Reach = Reach.FILE
    names: tuple[str, ...] = ()
    below: Word | None = None
    upwards: bool = False
    """It is searched in the directories around as well."""
    existing: bool = False
    """Only what is there is changed."""
    removes: bool = False
    """It is removed, and nothing else."""

    guessed: bool = False
    """A word that may be a path, or a subcommand as well."""

    def write(self, pattern: str) -> WriteTarget:
        return WriteTarget(pattern, self.reach, self.names, self.existing, self.removes)
