"""Remove secrets from tool results before they reach the model or the transcript.

To use a real model, remove `model_client` and set WAVE_BASE_URL, WAVE_MODEL and (if the server needs one) WAVE_API_KEY.
"""

import asyncio
import re
import tempfile
from pathlib import Path

from wave_agent import Agent, Result
from wave_agent.hooks import Answer, HookCall, replace_output
from wave_agent.testing import Reply, ScriptedModel, call

SECRET = re.compile(r"(?<=token=)\w+")
model = ScriptedModel([Reply(tool_calls=[call("Read", file_path="config")]), "The host is example."])


def redact(hook_call: HookCall) -> Answer | None:
    """With `onFailure: block`, the result is withheld if this function fails."""
    clean, found = SECRET.subn("[secret]", hook_call.response["content"])
    return replace_output(clean) if found else None


async def main(project: Path) -> Result:
    hooks = {"PostToolUse": [{"hooks": [{"function": redact, "onFailure": "block"}]}]}
    async with await Agent.create(workdir=project, hooks=hooks, model_client=model) as agent:
        return await agent.send_message("Which host is configured?")


with tempfile.TemporaryDirectory() as directory:
    Path(directory, "config").write_text("host=example token=abc123\n")
    result = asyncio.run(main(Path(directory)))

print(" ".join(model.requests[-1].messages[-1]["content"].split()))
print("abc123 is in the transcript:", "abc123" in Path(result.transcript_path).read_text())
print(result.text)

# Output:
# <hook event="PostToolUse" name="redact"> 1 host=example token=[secret] </hook>
# abc123 is in the transcript: False
# The host is example.
