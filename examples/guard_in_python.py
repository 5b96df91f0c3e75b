"""A guard as a Python function: it checks every Bash call before it runs, and denies some.

To use a real model, remove `model_client` and set WAVE_BASE_URL, WAVE_MODEL and (if the server needs one) WAVE_API_KEY.
"""

import asyncio

from wave_agent import Agent
from wave_agent.hooks import Answer, HookCall, allow, deny
from wave_agent.testing import Reply, ScriptedModel, call

model = ScriptedModel([
    Reply(tool_calls=[call("Bash", command="git push --force")]),
    Reply(tool_calls=[call("Bash", command="echo git status")]),
    "I did not push: force-pushing is not allowed.",
])  # fmt: skip


def no_force(hook_call: HookCall) -> Answer:
    if "--force" in hook_call.input["command"]:
        return deny("Force-pushing is not allowed here.")
    return allow()  # without this, the permission mode would ask, and there is no one to ask


async def main() -> None:
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [no_force]}]}
    async with await Agent.create(hooks=hooks, model_client=model) as agent:
        result = await agent.send_message("Publish my branch.")
    for run in result.hooks:
        print(f"{run.name}: {run.outcome}. {run.reason}".strip())
    print(result.text)


asyncio.run(main())

# Output:
# no_force: deny. Force-pushing is not allowed here.
# no_force: allow.
# I did not push: force-pushing is not allowed.
