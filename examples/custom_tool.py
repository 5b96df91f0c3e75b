"""A Python function as a tool: its name, types and docstring are what the model is told.

With a real model: leave out `model_client`, and set WAVE_BASE_URL, WAVE_MODEL and (where it wants one) WAVE_API_KEY.
"""

import asyncio

from wave_agent import Agent, tool
from wave_agent.testing import Reply, ScriptedModel, call

STOCK = {"apples": 7, "pears": 0}


@tool(reads_only=True)  # it changes nothing, so it runs without a question
def stock(fruit: str) -> int:
    """How many pieces of a fruit are left."""
    return STOCK[fruit]


model = ScriptedModel([
    Reply(tool_calls=[call("stock", fruit="apples"), call("stock", fruit="plums")]),
    "Seven apples are left; plums we do not have.",
])  # fmt: skip


async def main() -> None:
    async with await Agent.create(tools=[stock], model_client=model) as agent:
        result = await agent.send_message("How many apples and plums are left?")
    for message in model.requests[-1].messages:
        if message["role"] == "tool":
            print("the tool says", message["content"])
    print(result.text)


asyncio.run(main())

# Output:
# the tool says 7
# the tool says stock failed: KeyError: 'plums'
# Seven apples are left; plums we do not have.
