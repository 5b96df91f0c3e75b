"""An interrupt ends what runs, wherever the turn is; every call has a result, and the next prompt works."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.spec.world import (
    DONE,
    World,
    is_gone,
    make,
    notices,
    records,
    results_in,
    roles,
    said_in,
    tools,
    transcript,
    users,
    work,
)
from tests.waiting import number_in, until
from wave_agent import Agent, Allow, PermissionRequest, Result
from wave_agent.testing import Reply, call

# Tells that it has begun, and then never ends by itself.
HANGS = "sleep 600 & echo $! > child.pid; echo $$ > hook.pid; wait"
INTERRUPTED = "Interrupted by the user before it was done."
NOT_BEGUN = "Not run: the turn was interrupted before this call began."


async def interrupted(agent: Agent, begun: Any, prompt: str = "First.") -> Result:
    """The result of a turn that is interrupted as soon as `begun` says so."""
    turn = asyncio.create_task(agent.send_message(prompt))
    await begun
    agent.interrupt()
    return await turn


async def processes(world: World, *names: str) -> list[int]:
    return [await number_in(world.project / name) for name in names]


async def test_an_interrupt_ends_the_answer_of_the_model_and_keeps_what_has_come(world: World) -> None:
    never = asyncio.Event()
    agent = await world.agent([Reply("too late", gate=never), DONE])

    result = await interrupted(agent, until(lambda: world.requests == 1))

    assert (result.status, result.text) == ("interrupted", None)
    assert notices(agent) == ["Interrupted."]
    assert [line["content"] for line in records(agent, "notice")] == ["Interrupted."]
    after = await agent.send_message("Second.")
    assert [message["content"] for message in world.request(1)] == ["First.", "Second."]
    assert after.status == "completed"


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "Stop"])
async def test_an_interrupt_ends_a_hook_and_all_that_it_started(world: World, event: str) -> None:
    world.settings({event: [world.hook("slow", f"[ -e hook.pid ] && exit 0; {HANGS}")]})
    agent = await world.agent([*work(), *work()])

    result = await interrupted(agent, number_in(world.project / "hook.pid"))

    assert world.requests == (2 if event == "Stop" else 1)
    assert all(is_gone(process) for process in await processes(world, "hook.pid", "child.pid"))
    assert world.exists() is (event != "PreToolUse")
    assert [block.result is not None for block in tools(agent)] == [True]
    assert result.status == "interrupted"
    after = await agent.send_message("Second.")
    assert after.status == "completed"
    assert roles(world.request(world.requests - 1))[:3] == ["user", "assistant", "tool"]


@pytest.mark.parametrize("times", [1, 8000], ids=["short", "long"])
async def test_a_result_that_no_hook_has_judged_is_not_kept(world: World, times: int) -> None:
    """The hook might have taken the password out of it."""
    (world.project / "secret.txt").write_text("hunter2 " * times)
    world.settings({"PostToolUse": [world.hook("redact", f"[ -e hook.pid ] && exit 0; {HANGS}")]})
    agent = await world.agent([*work(call("Bash", command="cat secret.txt"))])

    await interrupted(agent, number_in(world.project / "hook.pid"))
    await agent.send_message("Second.")

    assert not world.model_saw("hunter2")
    assert world.files_with("hunter2") == []
    assert [(block.result, block.success) for block in tools(agent)] == [(INTERRUPTED, False)]
    assert results_in(transcript(agent))[0]["content"] == INTERRUPTED


async def test_a_prompt_that_no_hook_has_judged_never_reaches_the_model_or_the_disk(world: World) -> None:
    """The hook was about to refuse it: an interrupt must not be the way around the guard."""
    world.settings({"UserPromptSubmit": [world.hook("guard", f"[ -e hook.pid ] && exit 0; {HANGS}")]})
    agent = await world.agent([DONE])

    result = await interrupted(agent, number_in(world.project / "hook.pid"), "The password is hunter2.")
    after = await agent.send_message("Second.")

    assert not world.model_saw("hunter2")
    assert world.log("guard")[0]["prompt"] == "The password is hunter2."
    assert all(is_gone(process) for process in await processes(world, "hook.pid", "child.pid"))
    assert world.files_with("hunter2") == []
    assert [message.text for message in users(agent)] == ["Second."]
    assert (result.status, after.status) == ("interrupted", "completed")


async def test_a_prompt_whose_caller_gives_up_before_a_hook_has_judged_it_is_gone(world: World) -> None:
    world.settings({"UserPromptSubmit": [world.hook("guard", f"[ -e hook.pid ] && exit 0; {HANGS}")]})
    agent = await world.agent([DONE])
    turn = asyncio.create_task(agent.send_message("The password is hunter2."))
    await number_in(world.project / "hook.pid")
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn

    after = await agent.send_message("Second.")

    assert world.request(0) == [{"role": "user", "content": "Second."}]
    assert world.files_with("hunter2") == []
    assert after.status == "completed"


@pytest.mark.parametrize("resumes", [False, True], ids=["the same agent", "a resumed one"])
async def test_context_that_waits_survives_a_prompt_that_was_interrupted_before_it_was_judged(
    world: World, resumes: bool
) -> None:
    waits = '{"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "Two tests are red."}}'
    stop = world.hook("tests", f"[ -e told ] || echo '{waits}'; touch told", **{"async": True})
    guard = world.hook("guard", f'case "$1" in Second*) {HANGS};; esac')
    world.settings({"UserPromptSubmit": [guard], "Stop": [stop]})
    agent, _ = await world.run([DONE, DONE], "First.")
    await world.finished("tests")
    await interrupted(agent, number_in(world.project / "hook.pid"), "Second.")
    if resumes:
        await agent.close()
        agent = await world.agent([DONE], resume=agent.session_id)

    await agent.send_message("Third.")

    assert "Two tests are red." in world.request(-1)[-1]["content"]
    assert [message.text for message in users(agent)] == ["First.", "Third.", "Two tests are red."]


async def test_an_interrupt_ends_a_tool_and_all_that_it_started(world: World) -> None:
    world.settings({"PostToolUse": [world.hook("after", "exit 0")], "Stop": [world.hook("complete", "exit 0")]})
    agent = await world.agent([Reply(tool_calls=[call("Bash", command=HANGS), make()]), DONE])

    result = await interrupted(agent, number_in(world.project / "hook.pid"))

    assert world.requests == 1
    assert (world.log("after"), world.log("complete")) == ([], [])
    assert all(is_gone(process) for process in await processes(world, "hook.pid", "child.pid"))
    assert not world.exists()
    assert [(block.result, block.success) for block in tools(agent)] == [(INTERRUPTED, False), (NOT_BEGUN, False)]
    assert [one["content"] for one in results_in(transcript(agent))] == [INTERRUPTED, NOT_BEGUN]
    assert result.status == "interrupted"
    after = await agent.send_message("Second.")
    assert roles(world.request(1)) == ["user", "assistant", "tool", "tool", "user"]
    assert after.status == "completed"


async def test_calls_that_were_done_before_the_interrupt_keep_their_results(world: World) -> None:
    agent = await world.agent([Reply(tool_calls=[make(), call("Bash", command=HANGS)]), DONE])

    await interrupted(agent, number_in(world.project / "hook.pid"))

    assert world.exists()
    assert [block.success for block in tools(agent)] == [True, False]


async def test_an_interrupt_ends_the_wait_for_an_approver(world: World) -> None:
    asked = asyncio.Event()

    async def user(request: PermissionRequest) -> Allow:
        asked.set()
        await asyncio.Event().wait()
        return Allow()

    agent = await world.agent(work(), permission_mode="default", can_use_tool=user)

    result = await interrupted(agent, asked.wait())

    assert not world.exists()
    assert [block.success for block in tools(agent)] == [False]
    assert result.status == "interrupted"


async def test_an_interrupt_while_nothing_runs_does_nothing(world: World) -> None:
    agent = await world.agent([DONE])
    agent.interrupt()

    result = await agent.send_message("First.")

    assert result.status == "completed"


async def test_a_caller_who_gives_up_ends_the_turn(world: World) -> None:
    world.settings({"PreToolUse": [world.hook("slow", f"[ -e hook.pid ] && exit 0; {HANGS}")]})
    agent = await world.agent([*work(), DONE])
    turn = asyncio.create_task(agent.send_message("First."))
    await number_in(world.project / "hook.pid")

    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn

    assert all(is_gone(process) for process in await processes(world, "hook.pid", "child.pid"))
    assert not world.exists()
    assert [(block.result, block.success) for block in tools(agent)] == [(NOT_BEGUN, False)]
    after = await agent.send_message("Second.")
    assert after.status == "completed"
    assert said_in(transcript(agent), "user")[0] == "First."


async def test_an_interrupted_session_can_be_resumed(world: World) -> None:
    first = await world.agent([Reply(tool_calls=[call("Bash", command=HANGS)])])
    await interrupted(first, number_in(world.project / "hook.pid"))
    await first.close()

    agent = await world.agent([DONE], resume=first.session_id)
    assert agent.messages == first.messages
    result = await agent.send_message("Second.")

    assert roles(world.request(0)) == ["user", "assistant", "tool", "user"]
    assert result.status == "completed"


async def test_a_session_whose_process_died_in_the_middle_of_a_call_can_be_resumed(world: World) -> None:
    first, _ = await world.run(work())
    await first.close()
    file = Path(first.transcript_path)
    lines = file.read_text().splitlines(keepends=True)
    called = next(number for number, line in enumerate(lines) if '"tool_use"' in line)
    file.write_text("".join(lines[: called + 1]))

    agent = await world.agent([DONE], resume=first.session_id)
    result = await agent.send_message("Second.")

    assert roles(world.request(0)) == ["user", "assistant", "tool", "user"]
    assert "interrupted" in world.request(0)[2]["content"]
    assert result.status == "completed"


async def test_what_an_interrupted_hook_did_to_a_file_is_taken_back_and_not_taken_as_read(world: World) -> None:
    world.settings({"PostToolUse": [world.hook("slow", f"[ -e hook.pid ] && exit 0; echo more >> a.txt; {HANGS}")]})
    edit = call("Edit", file_path="a.txt", old_string="one", new_string="two")
    agent = await world.agent([Reply(tool_calls=[call("Write", file_path="a.txt", content="one\n")]), *work(edit)])

    await interrupted(agent, number_in(world.project / "hook.pid"))
    await agent.send_message("Second.")

    assert "has not been read" in world.request(-1)[-1]["content"]
    assert (world.project / "a.txt").read_text() == "one\nmore\n"
    assert (await agent.undo()).removed == (str(world.project / "a.txt"),)
