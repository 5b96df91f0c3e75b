"""Thousands of calls in one answer: each costs as much as it does in an answer with a few."""

import asyncio
import sys
from pathlib import Path

from wave_agent import Agent
from wave_agent.messages import MessageManager, ToolBlock
from wave_agent.testing import Reply, ScriptedModel, call


def steps_of(project: Path, calls: int) -> int:
    """Function calls that one answer with this many tool calls takes, after a first one."""
    steps = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal steps
        steps += event in ("call", "c_call")

    async def run() -> None:
        answers = [
            Reply(tool_calls=[call("Glob", pattern="a", path=f"missing-{at}") for at in range(many)])
            for many in (2, calls)
        ]
        async with await Agent.create(
            workdir=project,
            model_client=ScriptedModel([answers[0], "Yes.", answers[1], "Done."]),
            model="many",
            settings={"models": {"many": {"maxCalls": 10_000}}},
        ) as agent:
            await agent.send_message("Once.")
            sys.setprofile(count)
            try:
                done = await agent.send_message("Much.")
            finally:
                sys.setprofile(None)
        assert done.status == "completed"
        assert sum(isinstance(block, ToolBlock) for message in done.messages for block in message.blocks) == calls + 2

    asyncio.run(run())
    return steps


def test_eight_times_the_calls_take_eight_times_the_work(tmp_path: Path) -> None:
    assert steps_of(tmp_path, 400) < 8.2 * steps_of(tmp_path, 50)


def test_a_result_does_not_copy_the_other_calls_until_somebody_looks() -> None:
    manager = MessageManager()
    manager.add_assistant_message(*(ToolBlock(str(at), "Read", {}) for at in range(3)))
    (before,) = manager.messages
    manager.update_tool_block("1", result="one", success=True)
    manager.update_tool_block("2", result="two", success=True)
    assert [call.id for call in manager.open_calls()] == ["0"]
    assert manager.results() == ["one", "two"]
    assert manager.call("2").result == "two"
    (after,) = manager.messages
    assert [block.result for block in before.blocks if isinstance(block, ToolBlock)] == [None, None, None]
    assert [block.result for block in after.blocks if isinstance(block, ToolBlock)] == [None, "one", "two"]
    assert manager.messages[0] is after
