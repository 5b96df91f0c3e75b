"""The synchronous one-liner."""

import asyncio
from typing import Any

from wave_agent.agent import Agent
from wave_agent.result import Result


def run(prompt: str, **options: Any) -> Result:
    """Runs one prompt with an agent of its own and closes it. `options` are those of `Agent.create`."""

    async def once() -> Result:
        async with await Agent.create(**options) as agent:
            return await agent.send_message(prompt)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(once())
    raise RuntimeError("wave_agent.run is for programs without an event loop: here, await Agent.create(…) instead.")
