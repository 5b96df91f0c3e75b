"""What the user and the project tell every agent: AGENTS.md and CLAUDE.md.

The user's own come first, then those from the root of the project down to where the agent was started.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from wave_agent.system.project import Project
from wave_agent.system.project_files import Denied, NotReadError, nothing_denied, read_project_file
from wave_agent.text import clip

NAMES = ("AGENTS.md", "CLAUDE.md")
LIMIT = 40_000
"""Characters of one file."""
TOTAL = 60_000
"""Characters of all together: the outermost give way first."""
_BYTES = 4 * LIMIT
"""Of one file that are read: no character takes more than four."""
_SMALLEST = 200
"""Fewer characters of a file than these are of no use."""


class Instruction(Struct, frozen=True):
    heading: str
    text: str


def instructions(
    project: Project,
    home: Path,
    claude_home: Path | None = None,
    *,
    denied: Denied = nothing_denied,
    tell: Callable[[str], None] = lambda _: None,
) -> list[str]:
    """The texts, each once. `home` is the agent's own directory; `claude_home` counts only if it is given.

    `denied` says why a file of the project must not be read, and `tell` hears of what was left out.
    """
    found: dict[str, Instruction] = {}
    for one in _of_the_user(home, claude_home):
        found.setdefault(one.text, one)
    for one in _of_the_project(project, denied, tell):
        found.setdefault(one.text, one)
    kept: list[str] = []
    left = TOTAL
    for one in reversed(found.values()):
        room = min(LIMIT, left)
        short = clip(one.text, room) if room >= _SMALLEST else "[left out: the instructions are too long together]"
        left -= min(len(one.text), room)
        kept.append(f"{one.heading}\n\n{short}")
    return kept[::-1]


def _of_the_user(home: Path, claude_home: Path | None) -> Iterator[Instruction]:
    """These may be links to wherever the user keeps such files."""
    for file in (home / "AGENTS.md", *([claude_home / "CLAUDE.md"] if claude_home is not None else [])):
        with suppress(NotReadError):
            if text := _text(read_project_file(str(file), "/", _BYTES, whole=False)):
                yield Instruction(f"Instructions of the user for all projects ({file.name}):", text)


def _of_the_project(project: Project, denied: Denied, tell: Callable[[str], None]) -> Iterator[Instruction]:
    for directory in project.path:
        for name in NAMES:
            file = os.path.join(directory, name)
            try:
                text = _text(read_project_file(file, project.root, _BYTES, denied=denied, whole=False))
            except NotReadError as error:
                tell(f"{file} is not given to the model: it {error}.")
                continue
            if text:
                where = os.path.relpath(file, project.root)
                yield Instruction(f"Instructions of this project ({where}):", text)


def _text(data: bytes | None) -> str:
    return "" if data is None else data.decode(errors="replace").strip()
