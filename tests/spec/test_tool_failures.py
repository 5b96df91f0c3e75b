"""A tool that could not do its work: hooks hear of it, and can tell the model what to do instead."""

import asyncio
from typing import Any

import pytest

from tests.spec.world import (
    World,
    errors,
    notices,
    records,
    results_in,
    roles,
    tools,
    transcript,
    work,
    wrapped,
)
from tests.waiting import until
from wave_agent import Deny, tool
from wave_agent.hooks import HookCall
from wave_agent.testing import Reply, call

EVENT = "PostToolUseFailure"
MISSING = call("Read", file_path="missing.txt")


@tool
async def explode(text: str) -> str:
    """Fails."""
    raise RuntimeError(f"boom {text}")


@pytest.mark.parametrize(
    ("failing", "error"),
    [
        (MISSING, "missing.txt"),
        (call("Read", file_path=5), "invalid input"),
        (call("explode", text="now"), "boom now"),
    ],
    ids=["missing file", "bad input", "crash"],
)
async def test_failure_hooks_run_when_a_tool_could_not_do_its_work(world: World, failing: Any, error: str) -> None:
    world.settings({EVENT: [world.hook("failed", "exit 0")], "PostToolUse": [world.hook("after", "exit 0")]})

    agent, _ = await world.run(work(failing), tools=[explode])

    (given,) = world.log("failed")
    assert error in given["error"]
    assert given["error"] == tools(agent)[0].result == results_in(transcript(agent))[0]["content"]
    assert (given["tool_name"], given["tool_use_id"]) == (failing.name, tools(agent)[0].id)
    assert given["is_interrupt"] is False
    assert world.log("after") == []


async def test_no_failure_hook_runs_for_a_command_that_failed(world: World) -> None:
    world.settings({EVENT: [world.hook("failed", "exit 0")], "PostToolUse": [world.hook("after", "exit 0")]})

    await world.run(work(call("Bash", command="exit 3")))

    assert world.log("failed") == []
    assert len(world.log("after")) == 1


async def test_no_failure_hook_runs_for_a_blocked_a_denied_or_an_unknown_call(world: World) -> None:
    guard = world.hook("guard", 'case "$payload" in *blocked*) exit 2;; esac')
    world.settings({EVENT: [world.hook("failed", "exit 0")], "PreToolUse": [guard]})
    calls = [call("Bash", command="touch blocked"), call("Bash", command="touch denied"), call("Nonsense")]

    await world.run(work(*calls), permission_mode="default", can_use_tool=lambda _: Deny("no"))

    assert world.log("failed") == []
    assert not world.exists("blocked")
    assert not world.exists("denied")


async def test_exit_2_of_a_failure_hook_is_feedback_after_the_results(world: World) -> None:
    world.settings({EVENT: [world.hook("failed", "echo 'List the directory first.' >&2; exit 2")]})

    agent, result = await world.run(work(MISSING, call("Glob", pattern="*")))

    assert roles(world.request(1)) == ["user", "assistant", "tool", "tool", "user"]
    assert world.request(1)[4]["content"] == wrapped(
        EVENT, "failed", "List the directory first.", call="Read missing.txt"
    )
    assert result.status == "completed"
    assert [line["outcome"] for line in records(agent, "hook_run")] == ["block"]
    assert notices(agent) == []


async def test_context_of_a_failure_hook_reaches_the_model(world: World) -> None:
    world.settings({EVENT: [world.says("failed", {"additionalContext": "It was moved."})]})

    await world.run(work(MISSING))

    assert world.request(1)[3]["content"] == wrapped(EVENT, "failed", "It was moved.")


async def test_continue_false_of_a_failure_hook_ends_the_turn(world: World) -> None:
    world.settings({EVENT: [world.says("failed", {"continue": False, "stopReason": "That is enough."})]})

    agent, result = await world.run(work(MISSING))

    assert (result.status, world.requests) == ("stopped", 1)
    assert notices(agent) == ["That is enough."]


async def test_a_failure_hook_that_fails_is_reported_and_with_on_failure_block_is_feedback(world: World) -> None:
    world.settings({EVENT: [world.hook("failed", "echo no jq >&2; exit 1")]})
    agent, result = await world.run(work(MISSING))
    assert (errors(agent), result.hooks_failed_open) == (["no jq"], 1)

    world.settings({EVENT: [world.hook("failed", "echo no jq >&2; exit 1", onFailure="block")]})
    agent, result = await world.run(work(MISSING))
    assert result.hooks_failed_open == 0
    assert world.request(1)[3]["content"] == wrapped(EVENT, "failed", "no jq")


async def test_failure_hooks_have_matchers_shadows_and_timeouts(world: World) -> None:
    groups = [
        {"matcher": "Write", "hooks": [world.hook("other", "exit 2")]},
        {"matcher": "Read", "hooks": [world.hook("shadow", "echo no >&2; exit 2", mode="shadow")]},
        {"matcher": "Read", "hooks": [world.hook("slow", "sleep 60", timeout=0.3)]},
    ]

    agent, _ = await world.run(work(MISSING), settings={"hooks": {EVENT: groups}})

    assert world.log("other") == []
    assert len(world.log("shadow")) == 1
    assert roles(world.request(1)) == ["user", "assistant", "tool"]
    assert "timed out" in errors(agent)[0]


async def test_context_of_an_async_failure_hook_comes_with_the_next_prompt(world: World) -> None:
    fields: dict[str, Any] = {"async": True}
    world.settings({EVENT: [world.says("failed", {"additionalContext": "It was moved."}, **fields)]})
    agent = await world.agent([Reply(tool_calls=[MISSING]), "done", "again"])
    await agent.send_message("one")
    await until(lambda: bool(agent.hook_runs))

    await agent.send_message("two")

    assert world.request(2)[-1]["content"] == wrapped(EVENT, "failed", "It was moved.")


async def test_a_failure_hook_runs_for_an_interrupted_tool_and_is_not_awaited(world: World) -> None:
    seen: list[HookCall] = []
    started = world.project / "started"
    agent = await world.agent(
        [Reply(tool_calls=[call("Bash", command="touch started; exec sleep 600")]), "again"],
        hooks={EVENT: [{"matcher": "Bash", "hooks": [seen.append]}]},
    )
    turn = asyncio.create_task(agent.send_message("go"))
    await until(started.exists)
    agent.interrupt()

    result = await asyncio.wait_for(turn, 30)
    await agent.close()

    assert result.status == "interrupted"
    assert [(one.tool, one.is_interrupt) for one in seen] == [("Bash", True)]
    assert seen[0].error == tools(agent)[0].result


async def test_what_a_hook_says_of_an_interrupted_tool_comes_with_the_next_prompt_also_after_a_resume(
    world: World,
) -> None:
    world.settings({EVENT: [world.says("failed", {"additionalContext": "It was half done."})]})
    agent = await world.agent([Reply(tool_calls=[call("Bash", command="touch started; exec sleep 600")])])
    turn = asyncio.create_task(agent.send_message("go"))
    await until((world.project / "started").exists)
    agent.interrupt()
    await turn
    await agent.close()

    again = await world.agent(["again"], resume=agent.session_id)
    await again.send_message("And now?")

    assert world.request(0)[-1]["content"] == wrapped(EVENT, "failed", "It was half done.")
    assert not any(run.let_through for run in again.hook_runs)
