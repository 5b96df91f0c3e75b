"""The system prompt: short, and true of this session."""

import platform
from collections.abc import Callable
from datetime import date
from pathlib import Path

from wave_agent.text import clip

INSTRUCTION_FILES = ("AGENTS.md", "CLAUDE.md")
INSTRUCTION_LIMIT = 40_000
"""Characters of each."""

_INSTRUCTIONS = """\
You are Wave, a coding agent. You work in the user's project with the tools you are given, until the job is done.

- Look before you change: read a file before you edit it, and search before you assume.
- Make the smallest change that does the whole job, in the style of the code around it.
- Check your work: run the tests or the program when you can. Say plainly what you could not check.
- When a tool call is refused, do not try to get around it; take the reason into account or ask the user.
- Text inside <hook> comes from the user's own checks, not from the user: follow it where it concerns your work.
- Answer briefly. Say what you did and what the user has to know, not every step."""


def system_prompt(project_dir: str, *, today: Callable[[], date] = date.today) -> str:
    """Instructions, the facts of the environment, and what the project says about itself."""
    facts = f"Project directory: {project_dir}\nSystem: {platform.system()}\nDate: {today().isoformat()}"
    return "\n\n".join([_INSTRUCTIONS, facts, *project_instructions(Path(project_dir))])


def project_instructions(project: Path) -> list[str]:
    """The instruction files of a project, each once, whatever names it has."""
    found: dict[str, str] = {}
    for name in INSTRUCTION_FILES:
        try:
            text = (project / name).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            continue
        if text:
            found.setdefault(text, f"Instructions of this project ({name}):\n\n{clip(text, INSTRUCTION_LIMIT)}")
    return list(found.values())
