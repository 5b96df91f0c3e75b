"""What a line of Bash runs and writes, as far as it can be seen without running it."""

from wave_agent.shell.reader import read_line, read_writes
from wave_agent.shell.values import Command, Line, Reach, Word, Write

__all__ = ["Command", "Line", "Reach", "Word", "Write", "read_line", "read_writes"]
