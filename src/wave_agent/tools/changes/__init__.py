"""Changes to files of the project: which a tool or command made, undoing them, and restoring what rules protect."""

from wave_agent.tools.changes.turns import MEMORY, FileChanges, TakenBack

__all__ = ["MEMORY", "FileChanges", "TakenBack"]
