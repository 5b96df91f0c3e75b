"""The transcript: complete before each hook runs, and enough to go on from."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.spec.world import (
    DONE,
    EVENTS,
    PROMPT,
    World,
    errors,
    make,
    notices,
    records,
    results_in,
    said_in,
    transcript,
    users,
    work,
    wrapped,
)
from wave_agent import SessionError
from wave_agent.events import Event, HookFinished
from wave_agent.testing import Reply

# Copies the transcript as the hook finds it.
COPY = """found=$(sed 's/.*"transcript_path":"\\([^"]*\\)".*/\\1/' <<< "$payload"); cp "$found" "$HOOK_EVENT.copy"\n"""


def copied(world: World, event: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (world.project / f"{event}.copy").read_text().splitlines()]


async def test_the_transcript_is_complete_up_to_the_event_before_a_hook_runs(world: World) -> None:
    world.settings({event: [world.hook(event, COPY)] for event in EVENTS})

    agent, _ = await world.run([Reply("I make it.", [make()]), DONE])

    final = transcript(agent)
    for event in EVENTS:
        assert world.log(event)[0]["transcript_path"] == agent.transcript_path
        assert copied(world, event) == final[: len(copied(world, event))]
    assert said_in(copied(world, "UserPromptSubmit"), "user") == []
    called = said_in(copied(world, "PreToolUse"), "assistant")[-1]
    assert [part["type"] for part in called] == ["text", "tool_use"]
    assert said_in(copied(world, "PreToolUse"), "user") == [PROMPT]
    assert results_in(copied(world, "PostToolUse")) == []
    assert len(results_in(copied(world, "Stop"))) == 1
    assert said_in(copied(world, "Stop"), "assistant")[-1] == [{"type": "text", "text": DONE}]


async def test_a_stop_hook_finds_what_an_earlier_one_said(world: World) -> None:
    world.settings(
        {"Stop": [world.hook("complete", f"{COPY} [ -e asked ] && exit 0; touch asked; echo no >&2; exit 2")]}
    )

    await world.run(["Ready.", DONE])

    found = copied(world, "Stop")
    assert said_in(found, "user") == [PROMPT, "no"]
    assert said_in(found, "assistant")[-1] == [{"type": "text", "text": DONE}]


async def test_every_line_of_a_transcript_is_compact_json_that_knows_its_session_and_its_parent(world: World) -> None:
    agent, _ = await world.run(work())

    lines = Path(agent.transcript_path).read_text().splitlines()
    assert all(line == json.dumps(json.loads(line), separators=(",", ":"), ensure_ascii=False) for line in lines)
    head, *rest = transcript(agent)
    assert (head["type"], head["version"], head["session_id"]) == ("session", 1, agent.session_id)
    assert [line["parentUuid"] for line in rest] == [None, *(line["uuid"] for line in rest[:-1])]
    assert {line["sessionId"] for line in rest} == {agent.session_id}
    assert {line["cwd"] for line in rest} == {str(world.project)}


async def test_the_transcript_is_private(world: World) -> None:
    agent, _ = await world.run([DONE])

    assert Path(agent.transcript_path).stat().st_mode & 0o077 == 0


# -------------------------------------------------------------------------------------------------------------- resume


async def test_a_resumed_session_goes_on_where_it_was(world: World) -> None:
    first, _ = await world.run(work())
    await first.close()

    agent = await world.agent([DONE], resume=first.session_id)
    assert agent.messages == first.messages
    result = await agent.send_message("And now?")

    assert world.request(0)[:-1] == [
        {"role": "user", "content": PROMPT},
        world.request(0)[1],
        world.request(0)[2],
        {"role": "assistant", "content": DONE},
    ]
    assert world.request(0)[-1] == {"role": "user", "content": "And now?"}
    assert agent.session_id == first.session_id
    assert agent.transcript_path == first.transcript_path
    rest = transcript(agent)[1:]
    assert [line["parentUuid"] for line in rest] == [None, *(line["uuid"] for line in rest[:-1])]
    assert result.status == "completed"


async def test_a_resume_brings_back_what_hooks_have_said_to_the_model_and_to_the_user(world: World) -> None:
    world.settings(
        {
            "UserPromptSubmit": [world.hook("facts", "echo 'It is Friday.'"), world.hook("more", "echo 'It is May.'")],
            "PreToolUse": [world.hook("guard", "echo 'Not like this.' >&2; exit 2")],
            "PostToolUse": [world.hook("never", "exit 0")],
            "Stop": [world.says("warns", {"systemMessage": "Mind the gap."}), world.hook("broken", "exit 1")],
        }
    )
    first, _ = await world.run(work())
    sent = world.request(1)
    await first.close()

    agent = await world.agent([DONE], resume=first.session_id)
    assert agent.messages == first.messages
    assert agent.hook_runs == first.hook_runs
    assert (notices(agent), errors(agent)) == (["Mind the gap."], ["Hook execution failed"])
    await agent.send_message("And now?")

    assert world.request(0)[: len(sent)] == sent
    assert not world.model_saw("Mind the gap.")


async def test_a_resume_brings_back_context_that_still_waits_for_a_prompt(world: World) -> None:
    waits = '{"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "Two tests are red."}}'
    world.settings({"Stop": [world.hook("tests", f"[ -e told ] || echo '{waits}'; touch told", **{"async": True})]})
    first, _ = await world.run([DONE])
    await first.close()

    agent = await world.agent([DONE, DONE], resume=first.session_id)
    await agent.send_message("And now?")
    await agent.send_message("And then?")

    told = wrapped("Stop", "tests", "Two tests are red.")
    assert world.request(0)[-2:] == [{"role": "user", "content": "And now?"}, {"role": "user", "content": told}]
    assert [message["content"] for message in world.request(1)].count(told) == 1
    assert [message.text for message in users(agent)].count("Two tests are red.") == 1


async def test_context_that_was_given_is_not_given_again_after_a_resume(world: World) -> None:
    waits = '{"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "Two tests are red."}}'
    world.settings({"Stop": [world.hook("tests", f"[ -e told ] || echo '{waits}'; touch told", **{"async": True})]})
    first, _ = await world.run([DONE, DONE])
    await world.finished("tests")
    await first.send_message("And now?")
    await first.close()

    agent = await world.agent([DONE], resume=first.session_id)
    await agent.send_message("And then?")

    assert [message.text for message in users(agent)].count("Two tests are red.") == 1
    assert world.request(0)[-1] == {"role": "user", "content": "And then?"}


async def test_context_of_a_hook_in_the_background_comes_with_the_next_request_of_the_turn(world: World) -> None:
    """And only once: a resume does not bring it again."""
    built = asyncio.Event()
    late = world.hook("late", """[ -e told ] || echo '{"additionalContext": "It was built."}'; touch told""")
    world.settings({"PostToolUse": [{**late, "async": True}]})

    def hear(event: Event) -> None:
        if isinstance(event, HookFinished):
            built.set()

    replies = [Reply(tool_calls=[make()]), Reply(tool_calls=[make("second")], gate=built), DONE]
    first, result = await world.run(replies, callbacks={"on_event": hear})

    told = {"role": "user", "content": wrapped("PostToolUse", "late", "It was built.")}
    assert told not in world.request(1)
    assert world.request(2)[-1] == told
    assert [one["role"] for one in world.request(2)] == ["user", "assistant", "tool", "assistant", "tool", "user"]
    assert [message.text for message in users(first)] == [PROMPT, "It was built."]
    assert result.status == "completed"
    await first.close()

    agent = await world.agent([DONE], resume=first.session_id)
    await agent.send_message("And now?")

    assert world.request(0).count(told) == 1


async def test_a_resume_brings_back_context_of_a_hook_in_the_background(world: World) -> None:
    world.settings({"Stop": [world.hook("late", 'echo \'{"additionalContext": "It was built."}\'', **{"async": True})]})
    first, _ = await world.run([DONE])
    await first.close()

    agent = await world.agent([DONE], resume=first.session_id)
    await agent.send_message("And now?")

    assert "It was built." in world.request(0)[-1]["content"]


async def test_a_resume_brings_back_a_replaced_result_as_it_was_replaced(world: World) -> None:
    (world.project / "secret.txt").write_text("hunter2")
    replaced = {"hookSpecificOutput": {"updatedToolOutput": "[redacted]"}}
    world.settings({"PostToolUse": [world.says("redact", replaced)]})
    first, _ = await world.run(work())
    sent = world.request(1)
    await first.close()

    agent = await world.agent([DONE], resume=first.session_id)
    await agent.send_message("And now?")

    assert world.request(0)[: len(sent)] == sent


STRANGE = {
    "a torn line": b'{"type":"user","message":{"role":"user","content":"half a se',
    "no JSON": b"hello\n",
    "no object": b'[1, 2]\n5\n"text"\nnull\n',
    "of another program": b'{"type":"summary","summary":"all is well"}\n{"type":"user"}\n{"kind":"x"}\n',
    "of an unknown call": b'{"type":"user","message":{"role":"user","content":'
    b'[{"type":"tool_result","tool_use_id":"x","content":"y"}]}}\n',
    "no text": b"\xff\xfe\x00\n",
    "a blank line": b"\n\n",
}


@pytest.mark.parametrize("strange", STRANGE.values(), ids=STRANGE.keys())
async def test_a_strange_last_line_of_a_transcript_is_skipped_and_does_not_spoil_the_next_one(
    world: World, strange: bytes
) -> None:
    first, _ = await world.run([DONE])
    await first.close()
    file = Path(first.transcript_path)
    file.write_bytes(file.read_bytes() + strange)

    second = await world.agent([DONE], resume=first.session_id)
    assert second.messages == first.messages
    await second.send_message("And now?")
    await second.close()
    third = await world.agent([DONE], resume=first.session_id)

    assert third.messages == second.messages
    assert [message.text for message in users(third)] == [PROMPT, "And now?"]


async def test_resuming_an_unknown_session_is_an_error_that_says_so(world: World) -> None:
    with pytest.raises(SessionError, match="no session"):
        await world.agent([], resume="00000000-0000-0000-0000-000000000000")


async def test_hooks_hear_of_a_resume(world: World) -> None:
    world.settings({"SessionStart": [world.hook("begin", "echo 'Welcome.'")]})
    first, _ = await world.run([DONE])
    await first.close()

    agent = await world.agent([DONE], resume=first.session_id)
    await agent.send_message("And now?")

    assert [run["source"] for run in world.log("begin")] == ["startup", "resume"]
    assert [message.text for message in users(agent)] == ["Welcome.", PROMPT, "Welcome.", "And now?"]
    assert len(records(agent, "hook_run")) == 2
