"""A call of a tool that there is not: the advice fits who makes it."""

from pathlib import Path

import pytest

from wave_agent import Agent
from wave_agent.testing import Reply, ScriptedModel, call


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAVE_HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


async def results(project: Path, model: ScriptedModel, request: int, mode: str = "default") -> list[str]:
    """What a request has as the results of calls."""
    agent = await Agent.create(
        workdir=project, model_client=model, setting_sources=[], settings={"permissions": {"defaultMode": mode}}
    )
    async with agent:
        await agent.send_message("go")
    return [one["content"] for one in model.requests[request].messages if one["role"] == "tool"]


async def test_a_subagent_that_cannot_edit_is_told_to_report(project: Path) -> None:
    task = call("Task", description="d", prompt="p", subagent_type="explore")
    edit = call("Edit", file_path="a.py", old_string="a", new_string="b")
    model = ScriptedModel([Reply(tool_calls=[task]), Reply(tool_calls=[edit]), "Report.", "Done."])

    [told] = await results(project, model, 2)

    assert told == (
        'There is no tool "Edit". You have no tool that edits files: describe the change in your report instead. '
        "The tools are Read, Glob, Grep."
    )


async def test_in_plan_mode_the_plan_ends_the_turn_and_a_second_wrong_name_gets_less(project: Path) -> None:
    wrong = [Reply(tool_calls=[call("exit_plan_mode", plan="x")]), Reply(tool_calls=[call("read_file", path="a.py")])]
    model = ScriptedModel([*wrong, "A plan."])

    assert await results(project, model, 2, mode="plan") == [
        'There is no tool "exit_plan_mode". End your turn with the plan.',
        'There is no tool "read_file". The likeliest is Read, which needs file_path.',
    ]
