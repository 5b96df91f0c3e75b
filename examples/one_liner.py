"""One prompt, one answer: the synchronous API.

To use a real model, remove `model_client` and set WAVE_BASE_URL, WAVE_MODEL and (if the server needs one) WAVE_API_KEY.
"""

import wave_agent
from wave_agent.testing import ScriptedModel

model = ScriptedModel(["Forty-two."])
result = wave_agent.run("What is six times seven?", model_client=model)

print(result.text)
print(result.status)

# Output:
# Forty-two.
# completed
