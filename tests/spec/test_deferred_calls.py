"""A call that a hook defers waits for a decision; other outputs that begin or continue a turn without a prompt."""

from typing import Any

from tests.spec.world import World, make
from wave_agent import NoticeBlock
from wave_agent.agent.result import DeferredToolUse
from wave_agent.permissions.decision import Allow, PermissionRequest
from wave_agent.testing import Reply

DEFER = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "defer"}}


def deferring(answers: list[Any]) -> dict[str, Any]:
    """A guard that gives these answers, one after another."""

    def guard(_: Any) -> Any:
        return answers.pop(0)

    return {"PreToolUse": [{"matcher": "Bash", "hooks": [guard]}]}


async def test_a_deferred_call_waits_and_is_judged_anew_in_the_same_agent(world: World) -> None:
    one = make("one")
    agent = await world.agent([Reply(tool_calls=[one]), "Done."], hooks=deferring([DEFER, DEFER, None]))
    result = await agent.send_message("Go.")
    waiting = DeferredToolUse(id=one.id, name="Bash", input={"command": "touch one"})
    assert (result.status, result.deferred_tool_use, len(world.model.requests)) == ("stopped", waiting, 1)
    assert result.to_dict()["stop_reason"] == "tool_deferred"
    assert agent.can_continue
    again = await agent.continue_turn()
    assert (again.status, again.deferred_tool_use) == ("stopped", waiting)
    ended = await agent.continue_turn()
    assert (ended.status, ended.text, ended.deferred_tool_use) == ("completed", "Done.", None)
    assert "deferred_tool_use" not in ended.to_dict()
    assert (world.project / "one").exists()
    assert [message["role"] for message in world.model.requests[-1].messages][-2:] == ["assistant", "tool"]


async def test_a_prompt_comes_after_the_call_that_was_deferred(world: World) -> None:
    agent = await world.agent([Reply(tool_calls=[make("one")]), "Done."], hooks=deferring([DEFER, None]))
    await agent.send_message("Go.")
    await agent.send_message("Well?")
    roles = [message["role"] for message in world.model.requests[-1].messages][-4:]
    assert roles == ["user", "assistant", "tool", "user"]
    assert world.model.requests[-1].messages[-1]["content"] == "Well?"


async def test_a_prompt_that_is_blocked_leaves_the_deferred_call_waiting(world: World) -> None:
    def guard(event: Any) -> Any:
        return {"decision": "block", "reason": "no secrets"} if "secret" in event.prompt else None

    hooks = {**deferring([DEFER, None]), "UserPromptSubmit": [{"hooks": [guard]}]}
    agent = await world.agent([Reply(tool_calls=[make("one")]), "Done."], hooks=hooks)
    waiting = (await agent.send_message("Go.")).deferred_tool_use
    blocked = await agent.send_message("A secret.")
    assert (blocked.status, blocked.deferred_tool_use) == ("blocked", waiting)
    assert not (world.project / "one").exists()
    ended = await agent.send_message("Well?")
    assert (ended.status, ended.deferred_tool_use) == ("completed", None)
    assert (world.project / "one").exists()


async def test_a_prompt_stays_if_the_call_is_deferred_again_and_is_answered_after_it(world: World) -> None:
    first = await world.agent([Reply(tool_calls=[make("one")])], hooks=deferring([DEFER, DEFER]))
    await first.send_message("Go.")
    assert (await first.send_message("Well?")).deferred_tool_use is not None
    await first.close()
    resumed = await world.agent(["Done.", "Bye."], resume=first.session_id)
    assert (await resumed.continue_turn()).text == "Done."
    await resumed.close()
    roles = [message["role"] for message in world.model.requests[-1].messages][1:5]
    assert roles == ["user", "assistant", "tool", "user"]
    last = await world.agent(["Bye."], resume=first.session_id)
    await last.send_message("Thanks.")
    assert [message["role"] for message in world.model.requests[-1].messages][1:5] == roles


async def test_a_session_that_is_resumed_by_another_agent_runs_the_deferred_call(world: World) -> None:
    agent = await world.agent([Reply(tool_calls=[make("one")])], hooks=deferring([DEFER]))
    await agent.send_message("Go.")
    await agent.close()
    resumed = await world.agent(["Done."], resume=agent.session_id)
    assert (await resumed.continue_turn()).text == "Done."
    assert (world.project / "one").exists()
    await resumed.close()
    last = await world.agent(["Bye."], resume=agent.session_id)
    assert not last.can_continue


async def test_a_deferred_call_among_others_can_be_made_alone(world: World) -> None:
    agent = await world.agent(
        [Reply(tool_calls=[make("one"), make("two")]), Reply(tool_calls=[make("one")])], hooks=deferring([DEFER] * 3)
    )
    result = await agent.send_message("Go.")
    told = world.model.requests[1].messages[-1]["content"]
    assert told.endswith("Make this call alone, and it can be decided later.")
    assert result.deferred_tool_use is not None
    notices = [one.content for message in agent.messages for one in message.blocks if isinstance(one, NoticeBlock)]
    assert notices[-1].startswith("Bash (touch one) waits for a decision. After it: wave -p -r ")


async def test_where_somebody_can_be_asked_a_deferral_is_a_question(world: World) -> None:
    asked: list[str] = []

    def approve(question: PermissionRequest) -> Allow:
        asked.append(question.reason)
        return Allow()

    replies = [Reply(tool_calls=[make("one")]), "Done."]
    _, result = await world.run(replies, hooks=deferring([DEFER]), can_use_tool=approve)
    assert (result.status, result.deferred_tool_use) == ("completed", None)
    assert asked == ["Hook guard defers the decision about this call"]


async def test_with_nothing_left_to_do_there_is_no_turn_without_a_prompt(world: World) -> None:
    agent = await world.agent(["Never."])
    assert not agent.can_continue
    result = await agent.continue_turn()
    assert (result.status, len(world.model.requests)) == ("error", 0)
    assert result.error == (
        "There is nothing to continue: no call waits, no hook has reported anything, and none gave a prompt."
    )


async def test_a_session_begins_with_the_prompt_of_a_hook_and_a_blocked_one_does_not_stop_the_users(
    world: World,
) -> None:
    def begin(_: Any) -> Any:
        return {"hookSpecificOutput": {"hookEventName": "SessionStart", "initialUserMessage": "secret"}}

    def guard(event: Any) -> Any:
        return {"decision": "block", "reason": "no secrets"} if "secret" in event.prompt else None

    hooks = {"SessionStart": [{"hooks": [begin]}], "UserPromptSubmit": [{"hooks": [guard]}]}
    agent = await world.agent(["Done."], hooks=hooks)
    assert agent.can_continue
    result = await agent.send_message("Go.")
    assert (result.status, result.text) == ("completed", "Done.")
    assert "secret" not in str(world.model.requests[-1].messages)
