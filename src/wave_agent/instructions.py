"""What the user and the project tell every agent: AGENTS.md and CLAUDE.md.

The user's own come first, then those from the root of the project down to where the agent was started.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from wave_agent.project import Project
from wave_agent.text import clip

NAMES = ("AGENTS.md", "CLAUDE.md")
LIMIT = 40_000
"""Characters of one file."""
TOTAL = 60_000
"""Characters of all together: the outermost give way first."""
_SMALLEST = 200
"""Fewer characters of a file than these are of no use."""


class Instruction(Struct, frozen=True):
    heading: str
    text: str


def instructions(project: Project, home: Path, claude_home: Path | None = None) -> list[str]:
    """The texts, each once. `home` is the agent's own directory; `claude_home` counts only if it is given."""
    found: dict[str, Instruction] = {}
    for one in _found(project, home, claude_home):
        found.setdefault(one.text, one)
    kept: list[str] = []
    left = TOTAL
    for one in reversed(found.values()):
        room = min(LIMIT, left)
        short = clip(one.text, room) if room >= _SMALLEST else "[left out: the instructions are too long together]"
        left -= min(len(one.text), room)
        kept.append(f"{one.heading}\n\n{short}")
    return kept[::-1]


def _found(project: Project, home: Path, claude_home: Path | None) -> Iterator[Instruction]:
    own = [home / "AGENTS.md", *([claude_home / "CLAUDE.md"] if claude_home is not None else [])]
    for file in own:
        if text := _read(file):
            yield Instruction(f"Instructions of the user for all projects ({file.name}):", text)
    for directory in project.path:
        for name in NAMES:
            if text := _read(Path(directory, name)):
                where = os.path.relpath(os.path.join(directory, name), project.root)
                yield Instruction(f"Instructions of this project ({where}):", text)


def _read(file: Path) -> str:
    """Empty if there is nothing to read: a regular file, and no more of it than can be shown."""
    try:
        with open(file, "rb", opener=_without_waiting) as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                return ""
            return opened.read(4 * LIMIT).decode(errors="replace").strip()
    except OSError:
        return ""


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)  # nobody may ever write to a FIFO
