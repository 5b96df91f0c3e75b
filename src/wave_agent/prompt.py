"""The system prompt: short, and true of this session."""

import platform
from collections.abc import Callable, Sequence
from datetime import date

_INSTRUCTIONS = """\
You are Wave, a coding agent. You work in the user's project with the tools you are given, until the job is done.

- Look before you change: read a file before you edit it, and search before you assume.
- Make the smallest change that does the whole job, in the style of the code around it.
- Check your work: run the tests or the program when you can. Say plainly what you could not check.
- When a tool call is refused, do not try to get around it; take the reason into account or ask the user.
- Text inside <hook> comes from the user's own checks, not from the user: follow it where it concerns your work.
- Answer briefly. Say what you did and what the user has to know, not every step."""


def system_prompt(
    project_dir: str, *, start: str = "", instructions: Sequence[str] = (), today: Callable[[], date] = date.today
) -> str:
    """Instructions, the facts of the environment, and what the user and the project say.

    `start` is where the agent was started, if not in the project's directory.
    """
    facts = [f"Project directory: {project_dir}", f"System: {platform.system()}", f"Date: {today().isoformat()}"]
    if start not in ("", project_dir):
        facts.insert(1, f"Working directory: {start} (commands and relative paths start here)")
    return "\n\n".join([_INSTRUCTIONS, "\n".join(facts), *instructions])
