"""A line that is too long to be read is refused, and the model learns why."""

from pathlib import Path

import pytest

from wave_agent import Agent
from wave_agent.testing import Reply, ScriptedModel, call


@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
async def test_a_line_that_is_too_long_to_be_checked_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    line = "touch ran; echo " + " ".join(f"$word{at}" for at in range(6000))
    model = ScriptedModel([Reply(tool_calls=[call("Bash", command=line)]), "Done."])
    project = tmp_path / "project"
    project.mkdir()
    settings = {"permissions": {"defaultMode": mode}}

    async with await Agent.create(workdir=project, model_client=model, setting_sources=[], settings=settings) as agent:
        await agent.send_message("go")

    told = model.requests[1].messages[-1]["content"]
    assert "the line, which is too long to be checked (6,003 words): put it into a file with Write and run that" in told
    assert "settings.json" not in told
    assert not (project / "ran").exists()
