"""Sessions as slash commands list them, and a session as a Markdown file."""

import asyncio
import os

from wave_agent.agent.agent import Agent
from wave_agent.errors import SessionError
from wave_agent.sessions.index import SessionSummary, as_markdown, list_sessions
from wave_agent.sessions.masking import masked
from wave_agent.text import one_line

LISTED = 50
"""Sessions in a list."""


async def latest_sessions(agent: Agent) -> list[SessionSummary]:
    """Of this project, one more than are listed."""
    return await asyncio.to_thread(list_sessions, agent.home, agent.project, LISTED + 1)


def when(session: SessionSummary) -> str:
    return session.modified.astimezone().strftime("%Y-%m-%d %H:%M")


def first_prompt(session: SessionSummary) -> str:
    return one_line(session.first_prompt, 60) or "(no prompt)"


async def export(agent: Agent, name: str) -> str:
    """The file that was written. Raises `SessionError`, among others if there is one of that name."""
    file = _absolute(name or f"wave-{agent.session_id[:8]}.md", agent.cwd)
    text = as_markdown(masked(tuple(agent.messages)), f"Session {agent.session_id}")
    try:
        await asyncio.to_thread(_write_new, file, text)
    except FileExistsError:
        raise SessionError(f"{file} already exists; choose another name: /export FILE") from None
    except OSError as error:
        raise SessionError(f"{file} cannot be written: {error.strerror}") from None
    return file


def _absolute(path: str, project: str) -> str:
    return os.path.join(project, os.path.expanduser(path))


def _write_new(file: str, text: str) -> None:
    with open(file, "x", encoding="utf-8", errors="replace") as opened:
        opened.write(text)
