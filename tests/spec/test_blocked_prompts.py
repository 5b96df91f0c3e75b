"""A prompt that a hook has blocked is gone: from the conversation, from the disk, and from the model's sight."""

import pytest

from tests.spec.world import (
    DONE,
    World,
    errors,
    notices,
    records,
    said_in,
    shape,
    transcript,
    users,
    work,
    wrapped,
)
from tests.waiting import until
from wave_agent import ErrorBlock, Message
from wave_agent.events import HookFinished

SECRET = "The password is hunter2, keep it."
BLOCK = "echo 'Not like this.' >&2; exit 2"
REASON = "Not like this."
STOP = {"continue": False, "stopReason": "Enough for today."}


async def test_a_blocked_prompt_leaves_the_conversation_before_it_untouched(world: World) -> None:
    world.settings({"UserPromptSubmit": [world.hook("guard", 'case "$1" in *hunter2*) exit 2;; esac')]})
    agent, _ = await world.run([DONE, DONE], "First.")
    await agent.send_message(SECRET)

    await agent.send_message("Third.")

    assert [message["content"] for message in world.request(1)] == ["First.", DONE, "Third."]
    assert [message.text for message in users(agent)] == ["First.", "Third."]
    assert said_in(transcript(agent), "user") == ["First.", "Third."]


async def test_all_reasons_for_a_blocked_prompt_are_in_one_error_block_in_configured_order(world: World) -> None:
    """The first hook ends last."""
    slow = world.hook("first", "until [ -e go ]; do sleep 0.01; done; echo one >&2; exit 2")
    quick = world.hook("second", "echo two >&2; touch go; exit 2")
    world.settings({"UserPromptSubmit": [slow, quick]})

    agent, _ = await world.run([DONE])

    assert shape(agent) == [("assistant", "error")]
    assert errors(agent) == ["one\ntwo"]
    assert records(agent, "prompt_blocked")[0]["reason"] == "one\ntwo"


QUOTING = {
    "stderr": 'echo "No: $1" >&2; exit 2',
    "a reason": """printf '{"decision": "block", "reason": "No: %s"}' "$1" """,
    "a system message": """printf '{"decision": "block", "reason": "No.", "systemMessage": "%s"}' "$1" """,
    "a stop reason": """printf '{"continue": false, "stopReason": "%s", "decision": "block"}' "$1" """,
    "context beside the block": """printf '{"decision": "block", "additionalContext": "%s"}' "$1" """,
    "stdout beside exit 2": 'echo "$1"; exit 2',
}


@pytest.mark.parametrize("body", QUOTING.values(), ids=QUOTING.keys())
async def test_a_hook_that_quotes_the_prompt_it_blocks_does_not_bring_it_to_the_disk(world: World, body: str) -> None:
    world.settings({"UserPromptSubmit": [world.hook("guard", body)]})

    agent, _ = await world.run([DONE], SECRET)

    assert world.requests == 0
    assert world.log("guard")[0]["prompt"] == SECRET
    assert world.files_with("hunter2") == []
    assert users(agent) == []
    assert len(records(agent, "prompt_blocked")) == 1


OTHERS = {
    "its context": 'echo "You said: $1"',
    "its failure": 'echo "Cannot read: $1" >&2; exit 1',
    "its broken JSON": 'echo "{$1"',
    "its system message": """printf '{"systemMessage": "%s"}' "$1" """,
}


@pytest.mark.parametrize("body", OTHERS.values(), ids=OTHERS.keys())
async def test_a_hook_that_quotes_a_prompt_blocked_by_another_does_not_bring_it_to_the_disk(
    world: World, body: str
) -> None:
    world.settings({"UserPromptSubmit": [world.hook("other", body), world.hook("guard", BLOCK)]})

    agent, result = await world.run([DONE], SECRET)

    assert world.requests == 0
    assert world.log("other")[0]["prompt"] == SECRET
    assert world.files_with("hunter2") == []
    assert users(agent) == []
    assert result.status == "blocked"


async def test_where_a_reason_quotes_the_blocked_prompt_the_transcript_says_so(world: World) -> None:
    world.settings({"UserPromptSubmit": [world.hook("guard", 'echo "No: $1" >&2; exit 2')]})

    agent, _ = await world.run([DONE], SECRET)

    assert errors(agent) == [f"No: {SECRET}"]
    assert records(agent, "prompt_blocked")[0]["reason"] == "No: [prompt]"
    assert records(agent, "error")[0]["content"] == "No: [prompt]"
    assert records(agent, "hook_run")[0]["reason"] == "No: [prompt]"


SHAPES = {
    "several lines": "Hello there,\nthe password is hunter2.\nThank you.",
    "blanks around it": "  \n the password is hunter2 \n\n",
    "marks that JSON escapes": 'The "password" is\thunter2 \\ or so.',
    "other scripts": "Пароль — hunter2, так?",
    "longer than what anybody is shown": "the password is hunter2 " + "and so on " * 2000,
}


@pytest.mark.parametrize("prompt", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize("quote", ['"$1"', '"$payload"'], ids=["as text", "as JSON"])
async def test_a_blocked_prompt_of_any_shape_that_a_hook_quotes_stays_off_the_disk(
    world: World, prompt: str, quote: str
) -> None:
    world.settings({"UserPromptSubmit": [world.hook("guard", f"printf '%s' {quote} >&2; exit 2")]})

    agent, result = await world.run([DONE], prompt)

    assert world.log("guard")[0]["prompt"] == prompt
    assert world.files_with("hunter2") == []
    assert records(agent, "prompt_blocked")[0]["length"] == len(prompt)
    assert result.status == "blocked"


@pytest.mark.parametrize("prompt", ["error", "system", "block", "e"])
async def test_a_blocked_prompt_of_one_word_leaves_a_transcript_that_can_be_read(world: World, prompt: str) -> None:
    """The word may be one that the transcript itself is written with."""
    world.settings({"UserPromptSubmit": [world.hook("guard", BLOCK)]})
    first, _ = await world.run([], prompt)
    await first.close()

    agent = await world.agent([], resume=first.session_id)

    assert shape(agent) == [("assistant", "error")]
    assert [line["length"] for line in records(first, "prompt_blocked")] == [len(prompt)]
    assert [(run.event, run.outcome) for run in agent.hook_runs] == [("UserPromptSubmit", "block")]


async def test_what_the_user_says_again_after_a_block_is_saved_as_it_was_said(world: World) -> None:
    """Whoever sends a refused prompt again without its one bad line wants the rest on record."""
    world.settings({"UserPromptSubmit": [world.hook("guard", 'case "$1" in *hunter2*) exit 2;; esac')]})
    first, _ = await world.run([DONE], "Please make the file.\nThe password is hunter2.")
    await first.send_message("Please make the file.")
    await first.close()

    agent = await world.agent([], resume=first.session_id)

    assert said_in(transcript(agent), "user") == ["Please make the file."]
    assert agent.messages == first.messages
    assert world.files_with("hunter2") == []


async def test_a_hook_that_works_on_in_the_background_does_not_bring_back_a_blocked_prompt(world: World) -> None:
    """Its context comes with the next prompt, but not that of a prompt which was erased."""
    late = world.hook("late", 'until [ -e go ]; do sleep 0.01; done; echo "You said: $1"', **{"async": True})
    guard = world.hook("guard", f"[ -e asked ] && exit 0; touch asked; {BLOCK}")
    world.settings({"UserPromptSubmit": [late, guard]})
    agent, _ = await world.run([DONE], SECRET)
    (world.project / "go").touch()
    await until(lambda: any(isinstance(one, HookFinished) and one.run.name == "late" for one in world.events))

    await agent.send_message("Say hello.")

    assert not world.model_saw("hunter2")
    assert world.files_with("hunter2") == []
    assert "hunter2" not in str(agent.messages)


async def test_a_hook_of_a_blocked_prompt_that_ends_during_the_next_one_keeps_it_off_the_disk(world: World) -> None:
    late = world.hook("late", 'until [ -e go ]; do sleep 0.01; done; echo "You said: $1"', **{"async": True})
    guard = world.hook("guard", f"[ -e asked ] && exit 0; touch asked; {BLOCK}")
    world.settings({"UserPromptSubmit": [late, guard]})
    agent, _ = await world.run([DONE], SECRET)
    await agent.send_message("Say hello.")

    (world.project / "go").touch()
    await agent.close()

    assert len(world.log("late")) == 2
    assert world.files_with("hunter2") == []


async def test_a_hook_that_must_not_fail_and_fails_erases_the_prompt(world: World) -> None:
    world.settings({"UserPromptSubmit": [world.hook("guard", "echo 'Out of order.' >&2; exit 1", onFailure="block")]})

    agent, result = await world.run([DONE], SECRET)

    assert world.requests == 0
    assert world.files_with("hunter2") == []
    assert agent.messages == [Message("assistant", (ErrorBlock("Out of order."),))]
    assert (result.status, result.hooks_failed_open) == ("blocked", 0)


async def test_the_error_of_another_hook_is_a_notice_beside_a_blocked_prompt(world: World) -> None:
    broken = world.hook("broken", "echo 'Out of order.' >&2; exit 1")
    world.settings({"UserPromptSubmit": [broken, world.hook("guard", BLOCK)]})

    agent, result = await world.run([DONE])

    assert (errors(agent), notices(agent)) == ([REASON], ["Out of order."])
    assert [message.role for message in agent.messages] == ["assistant"]
    assert (result.status, result.hooks_failed_open) == ("blocked", 1)


async def test_a_prompt_whose_turn_a_hook_stops_is_kept(world: World) -> None:
    guard = world.hook("guard", """[ -e asked ] && exit 0; touch asked; echo '{"continue": false}'""")
    world.settings({"UserPromptSubmit": [guard]})
    agent, result = await world.run([DONE], "First.")

    await agent.send_message("Second.")

    assert [message["content"] for message in world.request(0)] == ["First.", "Second."]
    assert notices(agent) == ["Stopped by hook guard"]
    assert [message.text for message in users(agent)] == ["First.", "Second."]
    assert said_in(transcript(agent), "user") == ["First.", "Second."]
    assert result.status == "stopped"


async def test_a_prompt_whose_turn_a_hook_stops_is_erased_if_exit_2_blocks_it_too(world: World) -> None:
    world.settings({"UserPromptSubmit": [world.says("guard", STOP, BLOCK)]})

    agent, result = await world.run([DONE], SECRET)

    assert world.requests == 0
    assert world.files_with("hunter2") == []
    assert users(agent) == []
    assert (errors(agent), notices(agent)) == ([REASON], ["Enough for today."])
    assert result.status == "stopped"


async def test_a_blocked_prompt_is_not_back_after_a_resume(world: World) -> None:
    world.settings({"UserPromptSubmit": [world.hook("guard", f"[ -e asked ] && exit 0; touch asked; {BLOCK}")]})
    first, _ = await world.run([], SECRET)
    await first.close()

    agent = await world.agent([DONE], resume=first.session_id)
    assert agent.messages == first.messages
    await agent.send_message("Say hello.")

    assert world.request(0) == [{"role": "user", "content": "Say hello."}]
    assert world.files_with("hunter2") == []


async def test_context_that_waited_comes_with_the_next_prompt_that_passes(world: World) -> None:
    """A blocked prompt does not use it up."""
    waits = '{"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "Two tests are red."}}'
    stop = world.hook("tests", f"[ -e told ] || echo '{waits}'; touch told", **{"async": True})
    guard = world.hook("guard", 'case "$1" in *hunter2*) exit 2;; esac')
    world.settings({"UserPromptSubmit": [guard], "Stop": [stop]})
    agent, _ = await world.run([*work(), DONE], "First.")
    await world.finished("tests")
    await agent.send_message(SECRET)

    await agent.send_message("Third.")

    assert world.request(2)[-2:] == [
        {"role": "user", "content": "Third."},
        {"role": "user", "content": wrapped("Stop", "tests", "Two tests are red.")},
    ]
