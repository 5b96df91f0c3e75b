"""An agent whose user says yes to every question: shows that an attempt works once the guard lets it.

Protected paths cannot be switched off, and commands that carry others may touch one, so this is the unguarded side of
the classes that run commands.
"""

import asyncio
import json

from wave_agent import Agent, Allow


async def main() -> None:
    async with await Agent.create(
        permission_mode="bypassPermissions", can_use_tool=lambda _: Allow(), trust=True, max_turns=1000
    ) as agent:
        await agent.send_message("Go.")
        result = agent.last_result
    print(json.dumps({"status": result.status if result else None}))


asyncio.run(main())
