"""Plan mode on the screen: the model ends with a plan, the user accepts it, and the work goes on."""

from pathlib import Path
from typing import Any

from tests.screen.stage import Stage, stage
from wave_agent.screen.dialogs import GO_ON
from wave_agent.screen.permission import PermissionDialog
from wave_agent.screen.plan import PlanQuestion
from wave_agent.screen.tool_card import ToolCard
from wave_agent.testing import Reply, call

PLAN = "1. Write note.txt."
WRITE = Reply(tool_calls=[call("Write", file_path="note.txt", content="Hi.\n")])


async def question(on: Stage) -> str:
    await on.until(lambda: on.asks(PlanQuestion) is not None)
    return on.screen


def told(on: Stage, request: int) -> list[tuple[str, Any]]:
    """What the model got after its plan."""
    messages = on.model.requests[request].messages
    at = next(at for at, message in enumerate(messages) if message["content"] == PLAN)
    return [(message["role"], message["content"]) for message in messages[at + 1 :]]


async def test_an_accepted_plan_is_carried_out_in_the_mode_that_the_user_chose(project: Path):
    async with stage(project, [PLAN, WRITE, "Done."], permission_mode="plan") as on:
        await on.send("Plan it.")
        shown = await question(on)
        assert "Accept this plan?" in shown
        assert PLAN in shown
        assert "Working" not in shown
        await on.press("a")
        await on.idle()
        (prompt_role, prompt), (mode_role, mode) = told(on, 1)
        assert (prompt_role, prompt, mode_role) == ("user", GO_ON, "user")
        assert mode.startswith("[From Wave, not from the user] The permission mode is now acceptEdits. ")
        assert len(on.model.requests) == 3
        assert on.agent.permission_mode == "acceptEdits"
        assert "acceptEdits" in on.status
    assert (project / "note.txt").read_text() == "Hi.\n"


async def test_an_accepted_plan_can_be_carried_out_with_a_question_before_each_change(project: Path):
    async with stage(project, [PLAN, WRITE, "Done."], permission_mode="plan") as on:
        await on.send("Plan it.")
        await question(on)
        await on.press("y")
        await on.until(lambda: on.asks(PermissionDialog) is not None)
        assert on.agent.permission_mode == "default"
        await on.press("y")
        await on.idle()
    assert (project / "note.txt").exists()


async def test_planning_goes_on_with_what_the_user_says(project: Path):
    async with stage(project, [PLAN, "2. Another plan."], permission_mode="plan") as on:
        await on.send("Plan it.")
        for key in ("n", "escape"):
            await question(on)
            await on.press(key)
            await on.idle()
            assert on.agent.permission_mode == "plan"
            if key == "n":
                assert on.box.input.has_focus
                await on.send("Smaller.")
        assert told(on, 1) == [("user", "Smaller.")]
        assert len(on.model.requests) == 2


async def test_a_plan_is_offered_only_after_a_turn_that_planned(project: Path):
    async with stage(project, ["One.", "Two.", "Three."]) as on:
        await on.say("Not in plan mode.")
        assert on.asks(PlanQuestion) is None
        on.agent.permission_mode = "plan"
        await on.send("Plan it.")
        await question(on)
        await on.press("escape")
        await on.idle()
        on.agent.permission_mode = "default"
        await on.say("Again without.")
        assert on.asks(PlanQuestion) is None
        assert ToolCard not in [type(entry) for entry in on.entries]


async def test_a_mode_that_may_not_be_left_keeps_the_agent_planning(project: Path, tmp_path: Path):
    managed = tmp_path / "managed.json"
    managed.write_text('{"permissions": {"defaultMode": "plan"}}')
    async with stage(project, [PLAN], managed_file=managed) as on:
        await on.send("Plan it.")
        await question(on)
        await on.press("y")
        await on.idle()
        assert on.agent.permission_mode == "plan"
        assert "The permission mode is plan, not default: limited by managed settings." in on.screen
        assert len(on.model.requests) == 1
