"""A Python function as a tool: the model sees its name, types and docstring.

To use a real model, remove `model_client` and set WAVE_BASE_URL, WAVE_MODEL and (if the server needs one) WAVE_API_KEY.
"""

import asyncio

from wave_agent import Agent, tool
from wave_agent.testing import Reply, ScriptedModel, call

STOCK = {"apples": 7, "pears": 0}


@tool(reads_only=True)  # it changes nothing, so it runs without asking
def stock(fruit: str) -> int:
    """How many of a fruit are in stock."""
    return STOCK[fruit]


model = ScriptedModel([
    Reply(tool_calls=[call("stock", fruit="apples"), call("stock", fruit="plums")]),
    "There are seven apples left. We do not stock plums.",
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
# There are seven apples left. We do not stock plums.
