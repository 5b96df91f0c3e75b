"""Hooks that hang, and hooks that print far too much."""

from pathlib import Path

import pytest

from tests.spec.covering import covers
from tests.spec.world import EVENTS, World, errors, is_gone, records, tools, work
from tests.waiting import number_in

LONG = 60_000


@covers("011 edge: a hook that hangs")
@pytest.mark.parametrize("event", EVENTS)
async def test_a_hook_that_hangs_is_ended_with_its_children_and_blocks_nothing(world: World, event: str) -> None:
    hanging = "echo 'half a fact'; sleep 600 & echo $! > child.pid; echo $$ > hook.pid; wait"
    world.settings({event: [world.hook("slow", hanging, timeout=1.5)]})

    agent, result = await world.run(work())

    assert not world.model_saw("half a fact")
    assert is_gone(await number_in(world.project / "hook.pid"))
    assert is_gone(await number_in(world.project / "child.pid"))
    assert world.exists()
    assert len(errors(agent)) == 1
    assert "slow timed out" in errors(agent)[0]
    assert [(run["exit_code"], run["failure"]) for run in records(agent, "hook_run")] == [(None, "timeout")]
    assert (result.status, result.hooks_failed_open) == ("completed", 1)


@covers("011 edge: a hook that hangs")
async def test_a_hook_that_hangs_and_must_not_fail_blocks(world: World) -> None:
    world.settings({"PreToolUse": [world.hook("slow", "sleep 600", timeout=0.3, onFailure="block")]})

    agent, result = await world.run(work())

    assert "timed out" in world.request(1)[2]["content"]
    assert not world.exists()
    assert tools(agent)[0].error == "Hook blocked tool execution"
    assert result.hooks_failed_open == 0


@covers("011 edge: very large output")
async def test_a_long_reason_is_cut_for_the_model_and_kept_whole_in_a_file(world: World) -> None:
    world.settings({"PreToolUse": [world.hook("guard", f"head -c {LONG} /dev/zero | tr '\\0' x >&2; exit 2")]})

    agent, _ = await world.run(work())

    told = world.request(1)[2]["content"]
    assert 10_000 < len(told) < 10_500
    assert f"10,000 of {LONG:,} characters; the whole is in " in told
    assert not world.exists()
    kept = tools(agent)[0].result or ""
    whole = Path(kept.rpartition("the whole is in ")[2].rstrip("]"))
    assert whole.read_text() == "x" * LONG
    assert world.home in whole.parents


@covers("011 edge: very large output")
async def test_a_hook_that_prints_more_than_is_kept_still_blocks(world: World) -> None:
    flood = "head -c 3000000 /dev/zero | tr '\\0' x"
    world.settings({"PreToolUse": [world.hook("guard", f"{flood}; {flood} >&2; exit 2")]})

    agent, _ = await world.run(work())

    assert len(world.request(1)[2]["content"]) < 10_500
    assert not world.exists()
    assert tools(agent)[0].success is False
