"""Telemetry of a session on the screen."""

import json
import os
from pathlib import Path

from tests.screen.stage import stage
from tests.telemetry.receiver import receiving


async def test_each_prompt_on_the_screen_is_a_trace(project: Path) -> None:
    with receiving() as receiver:
        users = Path(os.environ["WAVE_HOME"]) / "settings.json"
        users.parent.mkdir(parents=True, exist_ok=True)
        users.write_text(json.dumps({"telemetry": {"endpoint": receiver.url}}))
        async with stage(project, ["One.", "Two."]) as on:
            await on.say("first")
            await on.say("second")
    roots = [span for span in receiver.spans if span.name == "invoke_agent wave"]
    assert len({span.trace_id for span in roots}) == 2
