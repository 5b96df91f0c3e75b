"""Looks up details in an agent's conversation that events do not carry."""

from wave_agent.agent.agent import Agent
from wave_agent.events import HookRun
from wave_agent.messages import TextBlock


def find_context(agent: Agent, run: HookRun) -> list[str]:
    """Context the hook added for the model on these events, latest first."""
    blocks = [block for message in reversed(agent.messages) for block in message.blocks]
    said = [(block.content, block.origin) for block in blocks if isinstance(block, TextBlock)]
    return [text for text, by in said if by is not None and (by.event, by.hook) == (run.event, run.name)]
