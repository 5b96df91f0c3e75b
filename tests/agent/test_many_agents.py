"""Agents that are created at the same moment leave the event loop to others in between."""

import asyncio
from pathlib import Path

from wave_agent import Agent
from wave_agent.testing import ScriptedModel

AGENTS = 60


async def test_others_have_their_turn_while_many_agents_are_created(tmp_path: Path) -> None:
    created: list[Agent] = []
    seen: list[int] = []

    async def create() -> None:
        created.append(await Agent.create(workdir=tmp_path, model_client=ScriptedModel(["Hi."])))

    async def look() -> None:
        while True:
            seen.append(len(created))
            await asyncio.sleep(0)

    other = asyncio.create_task(look())
    await asyncio.gather(*(create() for _ in range(AGENTS)))
    other.cancel()
    for agent in created:
        await agent.close()
    assert any(0 < count < AGENTS for count in seen)
