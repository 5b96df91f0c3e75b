"""Keep the agent working until the tests pass: a Stop hook sends it back to work with the failure.

To use a real model, remove `model_client` and set WAVE_BASE_URL, WAVE_MODEL and (if the server needs one) WAVE_API_KEY.
"""

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

from wave_agent import Agent
from wave_agent.hooks import Answer, HookCall, deny
from wave_agent.testing import Reply, ScriptedModel, call

TEST = "from double import double\nassert double(2) == 4, f'double(2) is {double(2)}'\n"
model = ScriptedModel([
    Reply(tool_calls=[call("Write", file_path="double.py", content="def double(n):\n    return n ** 3\n")]),
    "Done.",
    Reply(tool_calls=[call("Write", file_path="double.py", content="def double(n):\n    return n * 2\n")]),
    "Now it doubles.",
])  # fmt: skip


def tests_pass(hook_call: HookCall) -> Answer | None:
    command = [sys.executable, "-B", "test.py"]
    ran = subprocess.run(command, cwd=hook_call.cwd, capture_output=True, text=True, check=False)
    return deny(f"The tests fail: {ran.stderr.splitlines()[-1]}") if ran.returncode else None


async def main(project: Path) -> None:
    (project / "test.py").write_text(TEST)
    async with await Agent.create(
        workdir=project, hooks={"Stop": [tests_pass]}, permission_mode="acceptEdits", model_client=model
    ) as agent:
        result = await agent.send_message("Write double.py.")
    for run in result.hooks:
        print(f"{run.name} says {run.outcome}: {run.reason}".rstrip(": "))
    print(result.text)


with tempfile.TemporaryDirectory() as directory:
    asyncio.run(main(Path(directory)))

# Output:
# tests_pass says block: The tests fail: AssertionError: double(2) is 8
# tests_pass says none
# Now it doubles.
