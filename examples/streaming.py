"""Stream events as they happen: text, tool calls, hooks, the end of the turn.

To use a real model, remove `model_client` and set WAVE_BASE_URL, WAVE_MODEL and (if the server needs one) WAVE_API_KEY.
"""

import asyncio

from wave_agent import Agent
from wave_agent.events import TextDelta, ToolFinished, ToolStarted, TurnEnded
from wave_agent.testing import Reply, ScriptedModel, call

model = ScriptedModel([
    Reply("Let me look. ", [call("Glob", pattern="no-such-file-*")]),
    "There is no such file.",
])  # fmt: skip


async def main() -> None:
    async with await Agent.create(model_client=model) as agent:
        async for event in agent.stream("Is there a file called no-such-file-1?"):
            match event:
                case TextDelta(text=text):
                    print(text, end="", flush=True)
                case ToolStarted(name=name, parameters=parameters):
                    print(f"\n- {name} for {parameters['pattern']}", end="")
                case ToolFinished(success=success):
                    print(" is done" if success else " has failed")
                case TurnEnded(status=status):
                    print(f"\n- the turn is {status}")
                case _:
                    pass


asyncio.run(main())

# Output:
# Let me look.
# - Glob for no-such-file-* is done
# There is no such file.
# - the turn is completed
