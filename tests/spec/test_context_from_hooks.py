"""Context that hooks give to the model: by text on stdout, by `additionalContext`, and by both.

Each test looks at the request that the model got, the hook's own log, the side effect on disk, the messages, the
transcript and the result, in this order.
"""

from pathlib import Path

import pytest

from tests.spec.covering import covers, row
from tests.spec.world import (
    BLOCK,
    DONE,
    EVENTS,
    NO_TRACE,
    ONCE,
    PROMPT,
    UNDISTURBED,
    World,
    errors,
    notices,
    printing,
    records,
    roles,
    said_in,
    shape,
    specific,
    transcript,
    users,
    work,
    wrapped,
)
from wave_agent import Message, TextBlock

UNHEARD = "only for me"
FRIDAY = specific("UserPromptSubmit", additionalContext="It is Friday.")
LONG = 60_000


@pytest.mark.parametrize(
    ("body", "text"),
    [
        row(
            "text on stdout", "echo 'The branch is main.'; echo 'It is clean.'", "The branch is main.\nIt is clean.",
            covers=("011 FR-004", "011 FR-016", "011 US1.1"),
        ),
        row(
            "text on stdout beside stderr", f"echo 'a fact'; echo '{UNHEARD}' >&2", "a fact",
            covers=("011 edge: both streams with exit 0",),
        ),
        row("additionalContext", printing(FRIDAY), "It is Friday.", covers=("012 FR-008", "012 US5.2")),
        *(
            row(f"text of {length} characters", f"printf 'x%.0s' {{1..{length}}}", "x" * length, covers=("011 SC-002",))
            for length in (1, 4096, 9999)
        ),
        *(
            row(f"JSON that is no object: {text}", f"echo '{text}'", text, covers=("012 FR-010",))
            for text in ("[1, 2]", '"a word"', "42", "null")
        ),
    ],
)  # fmt: skip
async def test_context_for_a_prompt_is_a_message_after_it_in_every_request(world: World, body: str, text: str) -> None:
    world.settings({"UserPromptSubmit": [world.hook("facts", body)]})

    agent, result = await world.run(work())

    given = [
        {"role": "user", "content": PROMPT},
        {"role": "user", "content": wrapped("UserPromptSubmit", "facts", text)},
    ]
    assert world.request(0) == given
    assert world.request(1)[:2] == given
    assert roles(world.request(1)) == ["user", *UNDISTURBED]
    assert not world.model_saw(UNHEARD)
    assert [run["prompt"] for run in world.log("facts")] == [PROMPT]
    assert world.exists()
    assert shape(agent) == [("user", "text"), *NO_TRACE]
    added = users(agent)[1].blocks[0]
    assert isinstance(added, TextBlock)
    assert (added.content, added.source) == (text, "hook")
    assert agent.messages[:2] == [Message("user", (TextBlock(PROMPT, "user"),)), Message("user", (added,))]
    assert agent.messages[-1] == Message("assistant", (TextBlock(DONE, "model"),))
    assert (errors(agent), notices(agent)) == ([], [])
    said = [(line["message"]["content"], line.get("source")) for line in transcript(agent) if line["type"] == "user"]
    assert said[:2] == [(PROMPT, "user"), (text, "hook")]
    assert len(said) == 3
    assert result.status == "completed"


@covers("011 FR-005", "011 US1.2", "012 FR-001", "012 US1.1")
async def test_text_on_stdout_is_context_for_a_prompt_and_ignored_at_other_events(world: World) -> None:
    world.settings({event: [world.hook(event, f"echo 'a fact of {event}'")] for event in EVENTS})

    agent, result = await world.run(work())

    others = [event for event in EVENTS if event != "UserPromptSubmit"]
    assert world.model_saw("a fact of UserPromptSubmit")
    assert [event for event in others if world.model_saw(f"a fact of {event}")] == []
    assert roles(world.request(1)) == ["user", *UNDISTURBED]
    assert [len(world.log(event)) for event in EVENTS] == [1, 1, 1, 1]
    assert world.exists()
    assert shape(agent) == [("user", "text"), *NO_TRACE]
    assert [message.text for message in users(agent)] == [PROMPT, "a fact of UserPromptSubmit"]
    assert [event for event in others if f"a fact of {event}" in str(agent.messages)] == []
    assert len(said_in(transcript(agent), "user")) == 3
    assert [event for event in others if f"a fact of {event}" in str(said_in(transcript(agent), "user"))] == []
    assert [run["outcome"] for run in records(agent, "hook_run")] == ["context", "none", "none", "none"]
    assert result.status == "completed"


@covers("012 FR-007", "012 US4.2")
async def test_context_after_a_tool_call_is_a_message_after_its_result(world: World) -> None:
    context = specific("PostToolUse", additionalContext="Twelve tests cover it.")
    world.settings({"PostToolUse": [world.says("review", context)]})

    agent, _ = await world.run(work())

    assert world.request(1)[-1] == {
        "role": "user",
        "content": wrapped("PostToolUse", "review", "Twelve tests cover it."),
    }
    assert world.exists()
    assert users(agent)[-1].text == "Twelve tests cover it."
    assert said_in(transcript(agent), "user")[-1] == "Twelve tests cover it."


@covers("012 FR-015")
async def test_text_on_stdout_and_additional_context_come_in_one_message(world: World) -> None:
    told = specific("UserPromptSubmit", additionalContext="from JSON")
    world.settings({"UserPromptSubmit": [world.hook("text", "echo 'from stdout'"), world.says("object", told)]})

    agent, _ = await world.run([DONE])

    assert roles(world.request(0)) == ["user", "user"]
    assert world.request(0)[1]["content"] == "\n\n".join(
        [
            wrapped("UserPromptSubmit", "text", "from stdout"),
            wrapped("UserPromptSubmit", "object", "from JSON"),
        ]
    )
    assert (len(world.log("text")), len(world.log("object"))) == (1, 1)
    assert shape(agent) == [("user", "text"), ("user", "text", "text"), ("assistant", "text")]
    assert said_in(transcript(agent), "user") == [
        PROMPT,
        [{"type": "text", "text": "from stdout"}, {"type": "text", "text": "from JSON"}],
    ]


@covers("012 US5.2")
async def test_context_for_a_prompt_that_another_hook_blocks_is_dropped(world: World) -> None:
    facts = world.says("facts", FRIDAY)
    world.settings({"UserPromptSubmit": [facts, world.hook("guard", ONCE + BLOCK)]})
    agent, _ = await world.run([DONE], "First.")
    assert shape(agent) == [("assistant", "error")]

    await agent.send_message("Second.")

    assert [message["content"] for message in world.request(0)] == [
        "Second.",
        wrapped("UserPromptSubmit", "facts", "It is Friday."),
    ]


@covers("011 edge: very large output")
async def test_long_context_is_cut_with_a_note_and_the_path_of_the_whole(world: World) -> None:
    world.settings({"UserPromptSubmit": [world.hook("facts", f"head -c {LONG} /dev/zero | tr '\\0' x")]})

    agent, _ = await world.run([DONE])

    told = world.request(0)[1]["content"]
    assert 10_000 < len(told) < 10_500
    assert f"10,000 of {LONG:,} characters" in told
    assert "the whole is in " in told
    assert Path(users(agent)[1].text.rpartition("the whole is in ")[2].rstrip("]")).read_text() == "x" * LONG
