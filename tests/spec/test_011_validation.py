"""Specification 011, FR-016 to FR-021 and the success criteria: what `agent.messages` shows of each behaviour."""

import pytest

from tests.spec.world import (
    DONE,
    EVENTS,
    PROMPT,
    World,
    errors,
    notices,
    records,
    refused,
    results_in,
    roles,
    said_in,
    shape,
    tools,
    transcript,
    users,
    work,
    wrapped,
)
from wave_agent import ErrorBlock, Message, NoticeBlock, TextBlock, ToolBlock, convert_messages_for_api

REASON = "Not like this."
BLOCK = f"echo '{REASON}' >&2; exit 2"
ONCE = f"[ -e asked ] && exit 0; touch asked; {BLOCK}"


async def test_011_fr_016_a_prompt_with_context_leaves_two_messages_of_the_user(world: World) -> None:
    world.settings({"UserPromptSubmit": [world.hook("facts", "echo 'context data'")]})

    agent, _ = await world.run([DONE])

    assert roles(world.request(0)) == ["user", "user"]
    assert len(world.log("facts")) == 1
    assert agent.messages == [
        Message("user", (TextBlock(PROMPT, "user"),)),
        Message("user", (users(agent)[1].blocks[0],)),
        Message("assistant", (TextBlock(DONE, "model"),)),
    ]
    added = users(agent)[1].blocks[0]
    assert isinstance(added, TextBlock)
    assert (added.content, added.source) == ("context data", "hook")
    assert [(line["message"]["content"], line["source"]) for line in transcript(agent) if line["type"] == "user"] == [
        (PROMPT, "user"),
        ("context data", "hook"),
    ]


async def test_011_fr_017_a_blocked_call_has_the_reason_as_its_result(world: World) -> None:
    world.settings({"PreToolUse": [world.hook("guard", BLOCK)]})

    agent, _ = await world.run(work())

    assert REASON in world.request(1)[2]["content"]
    assert len(world.log("guard")) == 1
    assert not world.exists()
    block = tools(agent)[0]
    assert (block.name, block.result, block.success) == ("Bash", REASON, False)
    assert results_in(transcript(agent)) == [
        {"type": "tool_result", "tool_use_id": block.id, "content": REASON, "is_error": True}
    ]


async def test_011_fr_018_feedback_after_a_tool_is_a_message_of_the_users_role(world: World) -> None:
    world.settings({"PostToolUse": [world.hook("review", BLOCK)]})

    agent, _ = await world.run(work())

    assert world.request(1)[-1]["role"] == "user"
    assert len(world.log("review")) == 1
    assert world.exists()
    added = users(agent)[-1].blocks[0]
    assert isinstance(added, TextBlock)
    assert (added.content, added.source) == (REASON, "hook")
    assert said_in(transcript(agent), "user")[-1] == REASON


async def test_011_fr_019_a_blocked_prompt_leaves_one_error_block_in_an_assistant_message(world: World) -> None:
    world.settings({"UserPromptSubmit": [world.hook("guard", BLOCK)]})

    agent, _ = await world.run([DONE])

    assert world.requests == 0
    assert len(world.log("guard")) == 1
    assert agent.messages == [Message("assistant", (ErrorBlock(REASON),))]
    assert users(agent) == []
    assert [(line["reason"], line["length"]) for line in records(agent, "prompt_blocked")] == [(REASON, len(PROMPT))]


async def test_011_fr_020_error_blocks_are_left_out_of_what_the_model_is_sent(world: World) -> None:
    failing = world.hook("failing", "echo 'for the user' >&2; exit 1")
    world.settings({event: [failing] for event in EVENTS})
    agent, _ = await world.run([*work(), DONE])

    await agent.send_message("And now?")

    assert not world.model_saw("for the user")
    assert len(world.log("failing")) == 6
    assert world.exists()
    assert errors(agent) == ["for the user"] * 6
    assert len(records(agent, "error")) == 6
    assert "for the user" not in str(convert_messages_for_api(agent.messages))


def test_011_fr_020_a_message_of_nothing_but_blocks_for_the_user_is_left_out_whole() -> None:
    call = ToolBlock("call_1", "Bash", {"command": "ls"}, "made.txt", success=True)
    messages = [
        Message("user", (TextBlock("Hello", "user"),)),
        Message("assistant", (ErrorBlock("secret one"), NoticeBlock("secret two"))),
        Message("assistant", (ErrorBlock("secret three"), TextBlock("Hi", "model"), call, NoticeBlock("secret four"))),
    ]

    sent = convert_messages_for_api(messages)

    assert roles(sent) == ["user", "assistant", "tool"]
    assert "secret" not in str(sent)


async def test_011_fr_021_a_blocked_stop_is_a_message_of_the_users_role(world: World) -> None:
    world.settings({"Stop": [world.hook("complete", ONCE)]})

    agent, _ = await world.run(["Ready.", DONE])

    assert world.request(1)[-1] == {"role": "user", "content": wrapped("Stop", "complete", REASON)}
    assert len(world.log("complete")) == 2
    added = users(agent)[-1].blocks[0]
    assert isinstance(added, TextBlock)
    assert (added.content, added.source) == (REASON, "hook")
    assert said_in(transcript(agent), "user") == [PROMPT, REASON]


# ---------------------------------------------------------------------------------------------------- success criteria


@pytest.mark.parametrize("length", [1, 4096, 9999])
async def test_011_sc_002_context_of_ordinary_size_arrives_whole(world: World, length: int) -> None:
    world.settings({"UserPromptSubmit": [world.hook("facts", f"printf 'x%.0s' {{1..{length}}}")]})

    agent, _ = await world.run([DONE])

    assert world.request(0)[1]["content"] == wrapped("UserPromptSubmit", "facts", "x" * length)
    assert users(agent)[1].text == "x" * length


@pytest.mark.parametrize("times", range(5))
async def test_011_sc_003_what_is_blocked_never_happens(world: World, times: int) -> None:
    """Beside hooks that succeed, fail and allow, in whatever order they end."""
    others = [
        world.hook("fine", "exit 0"),
        world.hook("broken", "echo broken >&2; exit 1"),
        world.says("allows", {"hookSpecificOutput": {"permissionDecision": "allow"}}),
    ]
    guard = world.hook("guard", BLOCK)
    at = times % 4
    world.settings({"PreToolUse": [*others[:at], guard, *others[at:]]})

    agent, _ = await world.run(work())

    assert world.request(1)[2]["content"] == refused("guard", REASON)
    assert all(len(world.log(name)) == 1 for name in ("fine", "broken", "allows", "guard"))
    assert not world.exists()
    assert tools(agent)[0].result == REASON


@pytest.mark.parametrize(
    ("event", "code", "model_reads"),
    [
        ("UserPromptSubmit", 0, False),
        ("UserPromptSubmit", 1, False),
        ("UserPromptSubmit", 2, False),
        ("PreToolUse", 0, False),
        ("PreToolUse", 1, False),
        ("PreToolUse", 2, True),
        ("PostToolUse", 0, False),
        ("PostToolUse", 1, False),
        ("PostToolUse", 2, True),
        ("Stop", 0, False),
        ("Stop", 1, False),
        ("Stop", 2, True),
    ],
)
async def test_011_sc_004_stderr_reaches_the_one_it_is_meant_for(
    world: World, event: str, code: int, model_reads: bool
) -> None:
    once = f"[ -e asked ] && exit 0; touch asked; echo 'a word' >&2; exit {code}"
    world.settings({event: [world.hook("speaker", once)]})
    agent, _ = await world.run([*work(), DONE, DONE])

    await agent.send_message("And now?")

    user_reads = code == 1 or (event == "UserPromptSubmit" and code == 2)
    assert world.model_saw("a word") is model_reads
    assert errors(agent) == (["a word"] if user_reads else [])
    assert notices(agent) == []
    assert bool(records(agent, "error")) is user_reads


async def test_011_sc_005_errors_that_block_nothing_leave_the_whole_turn_as_it_was(world: World) -> None:
    world.settings({event: [world.hook(event, f"echo {event} >&2; exit 7")] for event in EVENTS})

    agent, result = await world.run(work())

    assert [roles(world.request(number)) for number in range(2)] == [["user"], ["user", "assistant", "tool"]]
    assert world.exists()
    assert sorted(errors(agent)) == sorted(EVENTS)
    assert result.hooks_failed_open == 4
    assert (result.status, result.text) == ("completed", DONE)


async def test_011_sc_006_every_behaviour_shows_in_the_messages(world: World) -> None:
    """One conversation in which each event first refuses and then agrees."""
    names = {event: world.hook(event, f"[ -e {event} ] && exit 0; touch {event}; echo {event} >&2; exit 2")
             for event in EVENTS}  # fmt: skip
    world.settings({event: [hook] for event, hook in names.items()})
    agent, _ = await world.run([*work(), *work(), DONE], "First.")

    await agent.send_message("Second.")

    assert shape(agent) == [
        ("assistant", "error"),  # the erased prompt
        ("user", "text"),
        ("assistant", "tool"),  # denied
        ("assistant", "text"),
        ("user", "text"),  # the stop that was refused
        ("assistant", "tool"),  # run
        ("user", "text"),  # feedback on it
        ("assistant", "text"),
    ]
    assert [message.text for message in users(agent)] == ["Second.", "Stop", "PostToolUse"]
