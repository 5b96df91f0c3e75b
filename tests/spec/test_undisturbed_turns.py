"""Hooks at every event that block nothing: the turn goes on as without them, and at most the user reads something.

Each row runs its script at all four events of one turn, and at those of a second one without a tool call. The tests
look at the requests that the model got, the hooks' own logs, the side effect on disk, the messages, the transcript and
the results, in this order.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spec.covering import covers, row
from tests.spec.malformed import MALFORMED
from tests.spec.world import (
    DONE,
    NO_TRACE,
    PROMPT,
    REASON,
    UNDISTURBED,
    World,
    begin_with,
    errors,
    notices,
    printing,
    records,
    roles,
    shape,
    users,
    work,
)
from wave_agent import Agent, ErrorBlock, Message, NoticeBlock, Result, TextBlock, ToolBlock, convert_messages_for_api

UNHEARD = "only for me"
"""What a hook says where nobody listens."""
EVENTS_IN_ORDER = ("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "UserPromptSubmit", "Stop")
"""The events of the two turns."""


async def two_turns(world: World, body: str) -> tuple[Agent, list[Result]]:
    """The two turns with this script at every event, of which the model must notice nothing."""
    world.at_every_event(body)
    agent, first = await world.run([*work(), DONE])
    second = await agent.send_message("And now?")

    assert [roles(world.request(number)) for number in range(world.requests)] == [
        ["user"], UNDISTURBED, [*UNDISTURBED, "assistant", "user"],
    ]  # fmt: skip
    assert not world.model_saw(UNHEARD)
    assert {event: [run["hook_event_name"] for run in world.log(event)] for event in EVENTS_IN_ORDER} == {
        event: [event] * EVENTS_IN_ORDER.count(event) for event in EVENTS_IN_ORDER
    }
    assert world.exists()
    assert [message.text for message in users(agent)] == [PROMPT, "And now?"]
    assert UNHEARD not in str(agent.messages)
    assert UNHEARD not in Path(agent.transcript_path).read_text()
    assert [(result.status, result.text) for result in (first, second)] == [("completed", DONE)] * 2
    return agent, [first, second]


def journal(agent: Agent) -> Iterator[tuple[object, ...]]:
    for run in records(agent, "hook_run"):
        yield run["exit_code"], run["outcome"], run["failure"]


@pytest.mark.parametrize(
    "body",
    [
        row(
            "no output", "exit 0",
            covers=("011 FR-001", "011 FR-015", "011 edge: no output", "012 edge: no output at all"),
        ),
        row(
            "text on stderr", f"echo '{UNHEARD}' >&2; exit 0",
            covers=("011 US1.3", "011 SC-004"),
        ),
        row("an empty object", printing({}), covers=("012 US4.3",)),
        row("continue true", printing({"continue": True, "stopReason": UNHEARD}), covers=("012 FR-004",)),
        row("a reason and null as decision", printing({"decision": None, "reason": REASON}), covers=("012 US4.3",)),
    ],
)  # fmt: skip
async def test_a_hook_that_succeeds_and_has_nothing_to_say_changes_nothing(world: World, body: str) -> None:
    agent, results = await two_turns(world, body)

    assert shape(agent) == [*NO_TRACE, ("user", "text"), ("assistant", "text")]
    assert records(agent, "error") == []
    assert list(journal(agent)) == [(0, "none", None)] * 6
    assert [result.hooks_failed_open for result in results] == [0, 0]


def error_with(code: int) -> str:
    return f"echo 'Out of order.' >&2; exit {code}"


@pytest.mark.parametrize(
    ("body", "code", "shown", "noticed"),
    [
        row(
            "exit code 1", error_with(1), 1, "Out of order.", "",
            covers=(
                "011 FR-003", "011 FR-014", "011 FR-020", "011 US3.1", "011 SC-004", "011 SC-005",
                "012 FR-003", "012 US1.3",
            ),
        ),
        row("exit code 3", error_with(3), 3, "Out of order.", "", covers=("011 FR-003", "012 FR-003")),
        row("exit code 126", error_with(126), 126, "Out of order.", "", covers=("011 FR-003", "012 FR-003")),
        row("exit code 127", error_with(127), 127, "Out of order.", "", covers=("011 FR-003", "012 FR-003")),
        row("exit code 255", error_with(255), 255, "Out of order.", "", covers=("011 FR-003", "012 FR-003")),
        row("no word and exit code 1", "exit 1", 1, "Hook execution failed", "",
            covers=("011 FR-014", "011 edge: no output")),
        row("text on stdout and exit code 1", f"echo '{UNHEARD}'; exit 1", 1, "Hook execution failed", "",
            covers=("011 FR-005", "011 US3.2")),
        row(
            "malformed JSON and exit code 1", printing(MALFORMED["cut off before a value"], error_with(1)),
            1, "Out of order.", "hook {name}: stdout looks like JSON but is not",
            covers=("012 FR-010", "012 edge: malformed JSON"),
        ),
    ],
)  # fmt: skip
async def test_a_hook_that_fails_blocks_nothing_and_only_the_user_reads_why(
    world: World, body: str, code: int, shown: str, noticed: str
) -> None:
    agent, results = await two_turns(world, body)

    assert not world.model_saw(shown)
    assert errors(agent) == [shown] * 6
    assert begin_with(notices(agent), [noticed.format(name=event) for event in EVENTS_IN_ORDER if noticed])
    assert shown not in str(convert_messages_for_api(agent.messages))
    assert [line["content"] for line in records(agent, "error")] == [shown] * 6
    assert [(run_code, failure) for run_code, _, failure in journal(agent)] == [(code, "exit")] * 6
    assert [result.hooks_failed_open for result in results] == [4, 2]


LOOK_HERE = {"systemMessage": "Look here."}


@pytest.mark.parametrize(
    ("body", "code", "failure", "shown"),
    [
        row("systemMessage", printing(LOOK_HERE), 0, None, ["Look here."], covers=("012 FR-004", "012 US2.2")),
        row(
            "systemMessage and exit 1", printing(LOOK_HERE, f"echo '{UNHEARD}' >&2; exit 1"), 1, None, ["Look here."],
            covers=("012 FR-005",),
        ),
        row(
            "systemMessage beside a field of the wrong type", printing({**LOOK_HERE, "suppressOutput": "yes"}),
            0, None, ["Look here.", "hook {name}: suppressOutput must be"],
            covers=("012 FR-011",),
        ),
        row(
            "a reason without a decision", printing({"reason": REASON}),
            0, None, ["hook {name}: reason without a decision"],
            covers=("012 US4.3",),
        ),
        *(
            row(
                f"malformed JSON: {name}", printing(text),
                0, "json", ["hook {name}: stdout looks like JSON but is not"],
                covers=("012 FR-010", "012 SC-004", "012 edge: malformed JSON"),
            )
            for name, text in MALFORMED.items()
        ),
    ],
)  # fmt: skip
async def test_a_hook_that_only_warns_changes_nothing_and_only_the_user_reads_it(
    world: World, body: str, code: int, failure: str | None, shown: list[str]
) -> None:
    agent, results = await two_turns(world, body)

    assert not world.model_saw("Look here.")
    assert errors(agent) == []
    assert begin_with(notices(agent), [text.format(name=event) for event in EVENTS_IN_ORDER for text in shown])
    assert [(line["content"], line["level"]) for line in records(agent, "notice")] == [
        (notice, "warning") for notice in notices(agent)
    ]
    assert [(run_code, run_failure) for run_code, _, run_failure in journal(agent)] == [(code, failure)] * 6
    assert [result.hooks_failed_open for result in results] == [0, 0]


@covers("011 FR-020")
def test_messages_with_nothing_but_blocks_for_the_user_are_not_sent_to_the_model() -> None:
    call = ToolBlock("call_1", "Bash", {"command": "ls"}, "made.txt", success=True)
    messages = [
        Message("user", (TextBlock("Hello", "user"),)),
        Message("assistant", (ErrorBlock("secret one"), NoticeBlock("secret two"))),
        Message("assistant", (ErrorBlock("secret three"), TextBlock("Hi", "model"), call, NoticeBlock("secret four"))),
    ]

    sent = convert_messages_for_api(messages)

    assert roles(sent) == ["user", "assistant", "tool"]
    assert "secret" not in str(sent)
