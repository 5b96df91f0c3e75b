"""One prompt of the user, from the front end to the agent."""

from collections.abc import Callable
from typing import NamedTuple

from wave_agent.agent.agent import Agent
from wave_agent.agent.result import Result
from wave_agent.permissions.decision import PermissionMode

MOST_WAKES = 8
"""Turns that background hooks may start between two prompts of the user."""


class SentPrompt(NamedTuple):
    result: Result
    was_accepted: bool
    """Hooks let it into the conversation. Until then it must not reach the disk."""
    has_plan: bool
    """The turn ended with a plan, which the user may accept."""


async def send_prompt(agent: Agent, text: str, complete: Callable[[str], str], *, expand: bool) -> SentPrompt:
    """`complete` adds what goes along with the prompt, after a command has been expanded."""
    before, planning = len(agent.messages), agent.permission_mode == PermissionMode.PLAN
    result = await agent.send_message(text if expand else complete(text), expand=expand, complete=complete)
    return SentPrompt(
        result,
        was_accepted=any(message.is_prompt for message in agent.messages[before:]),
        has_plan=planning and result.status == "completed" and bool(result.text),
    )
