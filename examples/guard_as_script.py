"""A guard as a shell script, configured as in a settings file. The script is `guard.sh`, next to this file.

To use a real model, remove `model_client` and set WAVE_BASE_URL, WAVE_MODEL and (if the server needs one) WAVE_API_KEY.
"""

import asyncio
from pathlib import Path

from wave_agent import Agent
from wave_agent.testing import Reply, ScriptedModel, call

model = ScriptedModel([
    Reply(tool_calls=[call("Bash", command="rm -rf build")]),
    "I left build alone.",
])  # fmt: skip

# With "args", the program is started without a shell, so the path may contain any character.
guard = {"command": str(Path(__file__).with_name("guard.sh")), "args": [], "timeout": 10, "onFailure": "block"}


async def main() -> None:
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [guard]}]}
    async with await Agent.create(hooks=hooks, model_client=model) as agent:
        result = await agent.send_message("Tidy up.")
    (run,) = result.hooks
    print(f"{run.name} on {run.event}: exit {run.exit_code}, {run.outcome}")
    print(model.requests[-1].messages[-1]["content"])  # what the model got instead of the command's output
    print(result.text)


asyncio.run(main())

# Output:
# guard.sh on PreToolUse: exit 2, deny
# Not run: <hook event="PreToolUse" name="guard.sh">
# rm -rf is not allowed here
# </hook>
# I left build alone.
