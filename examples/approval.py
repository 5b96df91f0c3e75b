"""Answer the agent's permission questions in your program: allow the call, change it, or deny it.

To use a real model, remove `model_client` and set WAVE_BASE_URL, WAVE_MODEL and (if the server needs one) WAVE_API_KEY.
"""

import asyncio

from wave_agent import Agent, Allow, Deny, PermissionRequest
from wave_agent.testing import Reply, ScriptedModel, call

model = ScriptedModel([
    Reply(tool_calls=[call("Bash", command=f"python3 -c 'print({number})'") for number in (1, 2)]),
    Reply(tool_calls=[call("Bash", command="git push")]),
    "I ran the commands I was allowed to run.",
])  # fmt: skip


async def can_use_tool(request: PermissionRequest) -> Allow | Deny:
    command = request.tool_input["command"]
    print(f"asked: {command} ({request.reason})")
    if "print(2)" in command:
        return Allow(updated_input={"command": "python3 -c 'print(1 + 1)'"})
    return Allow() if command.startswith("python3 ") else Deny("Only Python may be run.")


async def main() -> None:
    async with await Agent.create(can_use_tool=can_use_tool, model_client=model) as agent:
        result = await agent.send_message("Try these three commands.")
    for message in model.requests[-1].messages:
        if message["role"] == "tool":
            print("model saw:", message["content"].strip())
    print(result.text)


asyncio.run(main())

# Output:
# asked: python3 -c 'print(1)' (Bash needs your consent)
# asked: python3 -c 'print(2)' (Bash needs your consent)
# asked: git push (Bash needs your consent)
# model saw: 1
# model saw: 2
# model saw: Not run: Only Python may be run.
# I ran the commands I was allowed to run.
