"""Instructions that the user and the project give to every agent: AGENTS.md and CLAUDE.md.

The user's own come first, then those from the project root down to the directory the agent was started in.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct

from wave_agent.system.project import Project
from wave_agent.system.project_files import Denied, NotReadError, nothing_denied, read_project_file
from wave_agent.text import clip

NAMES = ("AGENTS.md", "CLAUDE.md")
LIMIT = 40_000
"""Limit for one file, in characters."""
TOTAL = 60_000
"""Limit for all files together, in characters: the outermost are dropped first."""
_BYTES = 4 * LIMIT
"""Bytes read from one file: no character takes more than four."""
_SMALLEST = 200
"""A shorter excerpt of a file is useless."""


class LoadedInstructions(Struct, frozen=True):
    """A file whose text is passed to the model."""

    file_path: str
    memory_type: Literal["User", "Project"]


class Instruction(Struct, frozen=True):
    heading: str
    text: str
    file: LoadedInstructions


def instructions(
    project: Project,
    home: Path,
    claude_home: Path | None = None,
    *,
    denied: Denied = nothing_denied,
    tell: Callable[[str], None] = lambda _: None,
    loaded: Callable[[LoadedInstructions], None] = lambda _: None,
) -> dict[str, str]:
    """The texts by heading, without duplicates. `home` is the agent's own directory; `claude_home` is read only if
    passed.

    `denied` says why a file of the project must not be read; `tell` is called with what was omitted, and `loaded` with
    each file that was not.
    """
    found: dict[str, Instruction] = {}
    for one in _of_the_user(home, claude_home):
        found.setdefault(one.text, one)
    for one in _of_the_project(project, denied, tell):
        found.setdefault(one.text, one)
    kept: list[tuple[str, str]] = []
    files: list[LoadedInstructions] = []
    left = TOTAL
    for one in reversed(found.values()):
        room = min(LIMIT, left)
        short = clip(one.text, room) if room >= _SMALLEST else "[omitted: all instructions together are too long]"
        left -= min(len(one.text), room)
        kept.append((one.heading, short))
        files += [one.file] if room >= _SMALLEST else []
    for file in reversed(files):
        loaded(file)
    return dict(reversed(kept))


def _of_the_user(home: Path, claude_home: Path | None) -> Iterator[Instruction]:
    """These may be symlinks to anywhere."""
    for file in (home / "AGENTS.md", *([claude_home / "CLAUDE.md"] if claude_home is not None else [])):
        with suppress(NotReadError):
            if text := _text(read_project_file(str(file), "/", _BYTES, whole=False)):
                heading = f"The user's instructions for all projects ({file.name})"
                yield Instruction(heading, text, LoadedInstructions(str(file), "User"))


def _of_the_project(project: Project, denied: Denied, tell: Callable[[str], None]) -> Iterator[Instruction]:
    for directory in project.path:
        for name in NAMES:
            file = os.path.join(directory, name)
            try:
                text = _text(read_project_file(file, project.root, _BYTES, denied=denied, whole=False))
            except NotReadError as error:
                tell(f"{file} is not passed to the model: it {error}.")
                continue
            if text:
                where = os.path.relpath(file, project.root)
                heading = f"Instructions of this project ({where})"
                yield Instruction(heading, text, LoadedInstructions(file, "Project"))


def _text(data: bytes | None) -> str:
    return "" if data is None else data.decode(errors="replace").strip()
