"""A hook blocks, by exit code 2 or by JSON: what does not happen at each event, and who reads why.

Each test looks at the request that the model got, the hook's own log, the side effect on disk, the messages, the
transcript and the result, in this order.
"""

import pytest

from tests.spec.covering import covers, row
from tests.spec.malformed import MALFORMED
from tests.spec.world import (
    BLOCK,
    DONE,
    EVENTS,
    ONCE,
    PROMPT,
    REASON,
    UNDISTURBED,
    World,
    begin_with,
    errors,
    notices,
    printing,
    records,
    refused,
    results_in,
    roles,
    said_in,
    shape,
    specific,
    tools,
    transcript,
    users,
    work,
    wrapped,
)
from wave_agent import ErrorBlock, Message, TextBlock

UNHEARD = "only for me"
"""What a hook says where nobody listens: on stdout beside exit 2, on stderr beside JSON that decides."""
NOISY_BLOCK = f"echo '{UNHEARD}'; {BLOCK}"
JSON_BLOCK = printing({"decision": "block", "reason": REASON})
DENY = specific("PreToolUse", permissionDecision="deny", permissionDecisionReason=REASON)
BESIDE = ("012 edge: valid JSON beside an exit code", "012 SC-004")
SECRET = "The password is hunter2."


def deny_and_exit(code: int) -> str:
    return printing(DENY, f"echo '{UNHEARD}' >&2; exit {code}")


@pytest.mark.parametrize(
    ("body", "code", "shown"),
    [
        row(
            "exit 2", BLOCK, 2, [],
            covers=(
                "011 FR-002", "011 FR-006", "011 FR-007", "011 FR-017", "011 US2.1", "011 SC-004",
                "012 FR-002", "012 FR-013", "012 US1.2",
            ),
        ),
        row("exit 2 after text on stdout", NOISY_BLOCK, 2, [], covers=("011 FR-005",)),
        row(
            "JSON deny", printing(DENY), 0, [],
            covers=("012 FR-005", "012 FR-006", "012 FR-014", "012 US3.2", *BESIDE),
        ),
        row("JSON deny and exit 1", deny_and_exit(1), 1, [], covers=("012 FR-005", *BESIDE)),
        row("JSON deny and exit 2", deny_and_exit(2), 2, [], covers=("012 FR-005", *BESIDE)),
        row("JSON deny and exit 3", deny_and_exit(3), 3, [], covers=("012 FR-005", *BESIDE)),
        row(
            "JSON without a decision and exit 2", printing({"systemMessage": "Look here."}, BLOCK), 2, ["Look here."],
            covers=("012 FR-005", *BESIDE),
        ),
        *(
            row(
                f"malformed JSON and exit 2: {name}", printing(text, BLOCK), 2,
                ["hook guard: stdout looks like JSON but is not"],
                covers=("012 FR-010", "012 edge: malformed JSON"),
            )
            for name, text in MALFORMED.items()
        ),
    ],
)  # fmt: skip
async def test_a_blocked_tool_call_does_not_run_and_the_model_reads_why(
    world: World, body: str, code: int, shown: list[str]
) -> None:
    world.settings({"PreToolUse": [world.hook("guard", body)], "PostToolUse": [world.hook("after", "exit 0")]})

    agent, result = await world.run(work())

    assert roles(world.request(1)) == UNDISTURBED
    assert world.request(1)[1]["tool_calls"][0]["function"]["arguments"] == '{"command":"touch made.txt"}'
    assert world.request(1)[2]["content"] == refused("guard", REASON)
    assert not world.model_saw(UNHEARD)
    assert world.requests == 2
    assert [run["tool_name"] for run in world.log("guard")] == ["Bash"]
    assert world.log("after") == []
    assert not world.exists()
    block = tools(agent)[0]
    assert (block.name, block.parameters) == ("Bash", {"command": "touch made.txt"})
    assert (block.result, block.success, block.error) == (REASON, False, "Hook blocked tool execution")
    assert errors(agent) == []
    assert begin_with(notices(agent), shown)
    assert UNHEARD not in str(agent.messages)
    assert results_in(transcript(agent)) == [
        {"type": "tool_result", "tool_use_id": block.id, "content": REASON, "is_error": True}
    ]
    assert UNHEARD not in str(said_in(transcript(agent), "user"))
    assert [(run["exit_code"], run["outcome"]) for run in records(agent, "hook_run")] == [(code, "deny")]
    assert records(agent, "error") == []
    assert (result.status, result.text, result.hooks_failed_open) == ("completed", DONE, 0)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        row(
            "exit 2", BLOCK, 2,
            covers=(
                "011 FR-008", "011 FR-018", "011 US2.2", "011 SC-004",
                "012 FR-002", "012 FR-013", "012 US1.2",
            ),
        ),
        row("exit 2 after text on stdout", NOISY_BLOCK, 2, covers=("011 FR-005",)),
        row("JSON block", JSON_BLOCK, 0, covers=("012 FR-007", "012 US4.1")),
    ],
)  # fmt: skip
async def test_feedback_on_a_tool_call_follows_its_result_which_stays_as_it_was(
    world: World, body: str, code: int
) -> None:
    world.settings({"PostToolUse": [world.hook("review", body)]})

    agent, result = await world.run(work())

    assert roles(world.request(1)) == [*UNDISTURBED, "user"]
    assert REASON not in world.request(1)[2]["content"]
    assert world.request(1)[3] == {"role": "user", "content": wrapped("PostToolUse", "review", REASON)}
    assert not world.model_saw(UNHEARD)
    assert world.requests == 2
    assert [run["tool_input"] for run in world.log("review")] == [{"command": "touch made.txt"}]
    assert world.log("review")[0]["tool_response"]["success"] is True
    assert world.exists()
    assert (tools(agent)[0].success, tools(agent)[0].error) == (True, None)
    assert [message.text for message in users(agent)] == [PROMPT, REASON]
    added = users(agent)[1].blocks[0]
    assert isinstance(added, TextBlock)
    assert (added.content, added.source) == (REASON, "hook")
    assert (errors(agent), notices(agent)) == ([], [])
    assert UNHEARD not in str(agent.messages)
    said = said_in(transcript(agent), "user")
    assert (said[0], said[-1], len(said)) == (PROMPT, REASON, 3)
    assert UNHEARD not in str(said)
    assert [(run["exit_code"], run["outcome"]) for run in records(agent, "hook_run")] == [(code, "block")]
    assert records(agent, "error") == []
    assert (result.status, result.text) == ("completed", DONE)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        row(
            "exit 2", BLOCK, 2,
            covers=(
                "011 FR-002", "011 FR-009", "011 FR-010", "011 FR-011", "011 FR-019", "011 US2.3", "011 SC-004",
                "012 FR-002", "012 FR-013", "012 US1.2",
            ),
        ),
        row("exit 2 after text on stdout", NOISY_BLOCK, 2, covers=("011 FR-009",)),
        row("JSON block", JSON_BLOCK, 0, covers=("012 FR-008", "012 US5.1")),
    ],
)  # fmt: skip
async def test_a_blocked_prompt_is_erased_and_only_the_user_reads_why(world: World, body: str, code: int) -> None:
    world.settings({"UserPromptSubmit": [world.hook("guard", ONCE + body)], "Stop": [world.hook("stop", "exit 0")]})

    agent, result = await world.run(work(), SECRET)

    assert world.requests == 0
    assert [run["prompt"] for run in world.log("guard")] == [SECRET]
    assert world.log("stop") == []
    assert not world.exists()
    assert world.files_with("hunter2") == []
    assert agent.messages == [Message("assistant", (ErrorBlock(REASON),))]
    assert said_in(transcript(agent), "user") == []
    assert said_in(transcript(agent), "assistant") == []
    assert [line["content"] for line in records(agent, "error")] == [REASON]
    assert [(line["reason"], line["length"]) for line in records(agent, "prompt_blocked")] == [(REASON, len(SECRET))]
    assert [(run["exit_code"], run["outcome"]) for run in records(agent, "hook_run")] == [(code, "block")]
    assert (result.status, result.turns, result.text) == ("blocked", 0, None)

    await agent.send_message("Say hello.")

    assert world.request(0) == [{"role": "user", "content": "Say hello."}]
    assert not world.model_saw(REASON)
    assert not world.model_saw(UNHEARD)
    assert [run["prompt"] for run in world.log("guard")] == [SECRET, "Say hello."]
    assert world.files_with("hunter2") == []
    assert [message.text for message in users(agent)] == ["Say hello."]
    assert (errors(agent), notices(agent)) == ([REASON], [])
    said = said_in(transcript(agent), "user")
    assert (said[0], len(said)) == ("Say hello.", 2)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        row(
            "exit 2", BLOCK, 2,
            covers=(
                "011 FR-002", "011 FR-012", "011 FR-013", "011 FR-021", "011 US2.4", "011 SC-004",
                "012 FR-002", "012 FR-013", "012 US1.2",
            ),
        ),
        row("exit 2 after text on stdout", NOISY_BLOCK, 2, covers=("011 FR-005",)),
        row("JSON block", JSON_BLOCK, 0, covers=("012 FR-009", "012 US5.3")),
    ],
)  # fmt: skip
async def test_a_blocked_stop_keeps_the_agent_working_and_the_model_reads_why(
    world: World, body: str, code: int
) -> None:
    world.settings({"Stop": [world.hook("complete", f"[ -e made.txt ] && exit 0; {body}")]})

    agent, result = await world.run(["I stop here.", *work()])

    assert world.request(1)[1:] == [
        {"role": "assistant", "content": "I stop here."},
        {"role": "user", "content": wrapped("Stop", "complete", REASON)},
    ]
    assert not world.model_saw(UNHEARD)
    assert world.requests == 3
    assert [run["last_assistant_message"] for run in world.log("complete")] == ["I stop here.", DONE]
    assert [run["stop_hook_active"] for run in world.log("complete")] == [False, True]
    assert [run["stop_block_count"] for run in world.log("complete")] == [0, 1]
    assert world.exists()
    assert shape(agent) == [
        ("user", "text"), ("assistant", "text"), ("user", "text"), ("assistant", "tool"), ("assistant", "text"),
    ]  # fmt: skip
    assert [message.text for message in users(agent)] == [PROMPT, REASON]
    added = users(agent)[1].blocks[0]
    assert isinstance(added, TextBlock)
    assert (added.content, added.source) == (REASON, "hook")
    assert said_in(transcript(agent), "user")[:2] == [PROMPT, REASON]
    assert UNHEARD not in str(said_in(transcript(agent), "user"))
    assert [(run["exit_code"], run["outcome"]) for run in records(agent, "hook_run")] == [(code, "block"), (0, "none")]
    assert records(agent, "error") == []
    assert (result.status, result.text, result.turns) == ("completed", DONE, 3)


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize(
    ("stderr", "kept", "read"),
    [
        row("nothing", "true", "Blocked by hook guard", "Blocked by hook guard", covers=("011 edge: no output",)),
        row(
            "bytes that are no text", r"printf 'before \xff\xfe\x00 after' >&2",
            "before \ufffd\ufffd\0 after", "before \ufffd\ufffd after",
            covers=("011 edge: stderr that is no text",),
        ),
        row(
            "terminal escapes", r"printf '\x1b[31mred\x1b[0m\x1b]0;title\x07' >&2",
            "\x1b[31mred\x1b[0m\x1b]0;title\x07", "red",
            covers=("011 edge: stderr that is no text",),
        ),
    ],
)  # fmt: skip
async def test_exit_2_blocks_and_the_model_reads_plain_text_whatever_stderr_holds(
    world: World, event: str, stderr: str, kept: str, read: str
) -> None:
    world.settings({event: [world.hook("guard", f"{ONCE} {stderr}; exit 2")]})

    agent, _ = await world.run([*work(), DONE])

    assert world.model_saw(wrapped(event, "guard", read)) is (event != "UserPromptSubmit")
    assert not world.model_saw("\0")
    assert not world.model_saw("\x1b")
    assert world.log("guard")
    assert world.exists() is (event not in ("UserPromptSubmit", "PreToolUse"))
    shown = {"UserPromptSubmit": errors(agent), "PreToolUse": [block.result for block in tools(agent)]}
    assert shown.get(event, [message.text for message in users(agent)])[-1] == kept
    assert records(agent, "hook_run")[0]["reason"] == kept


@covers("011 SC-003")
@pytest.mark.parametrize("position", range(4))
async def test_a_block_holds_beside_hooks_that_succeed_fail_and_allow_in_any_order(world: World, position: int) -> None:
    others = [
        world.hook("fine", "exit 0"),
        world.hook("broken", "echo broken >&2; exit 1"),
        world.says("allows", {"hookSpecificOutput": {"permissionDecision": "allow"}}),
    ]
    guard = world.hook("guard", BLOCK)
    world.settings({"PreToolUse": [*others[:position], guard, *others[position:]]})

    agent, _ = await world.run(work())

    assert world.request(1)[2]["content"] == refused("guard", REASON)
    assert all(len(world.log(name)) == 1 for name in ("fine", "broken", "allows", "guard"))
    assert not world.exists()
    assert tools(agent)[0].result == REASON


@covers("011 FR-015", "011 SC-006")
async def test_one_script_blocks_something_else_at_each_event(world: World) -> None:
    """One conversation in which each event first refuses and then agrees."""
    hooks = {event: world.hook(event, f"[ -e {event} ] && exit 0; touch {event}; echo {event} >&2; exit 2")
             for event in EVENTS}  # fmt: skip
    world.settings({event: [hook] for event, hook in hooks.items()})
    agent, first = await world.run([*work(), *work(), DONE], "First.")

    second = await agent.send_message("Second.")

    assert roles(world.request(0)) == ["user"]
    assert roles(world.request(1)) == UNDISTURBED
    assert roles(world.request(2)) == [*UNDISTURBED, "assistant", "user"]
    assert roles(world.request(3))[-3:] == ["assistant", "tool", "user"]
    assert {event: len(world.log(event)) for event in EVENTS} == {
        "UserPromptSubmit": 2, "PreToolUse": 2, "PostToolUse": 1, "Stop": 2,
    }  # fmt: skip
    assert world.exists()
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
    assert (errors(agent), notices(agent)) == (["UserPromptSubmit"], [])
    assert [block.success for block in tools(agent)] == [False, True]
    assert [message.text for message in users(agent)] == ["Second.", "Stop", "PostToolUse"]
    assert [run["outcome"] for run in records(agent, "hook_run")] == [
        "block", "none", "deny", "block", "none", "block", "none",
    ]  # fmt: skip
    assert (first.status, second.status) == ("blocked", "completed")


@covers("012 FR-009")
@pytest.mark.parametrize("output", [{"decision": "block"}, {"decision": "block", "reason": "  "}])
async def test_a_stop_blocked_by_json_without_a_reason_names_the_hook_and_warns_the_user(
    world: World, output: dict[str, str]
) -> None:
    world.settings({"Stop": [world.hook("complete", ONCE + printing(output))]})

    agent, result = await world.run([DONE, DONE])

    assert world.request(1)[-1]["content"] == wrapped("Stop", "complete", "Blocked by hook complete")
    assert [run["stop_block_count"] for run in world.log("complete")] == [0, 1]
    assert len(notices(agent)) == 1
    assert 'needs a "reason"' in notices(agent)[0]
    assert [run["outcome"] for run in records(agent, "hook_run")] == ["block", "none"]
    assert (result.status, result.hooks_failed_open) == ("completed", 0)


@covers("012 edge: fields of another event")
@pytest.mark.parametrize("event", ["UserPromptSubmit", "PostToolUse", "Stop"])
async def test_a_deny_at_an_event_without_permissions_blocks_too_and_warns_the_user(world: World, event: str) -> None:
    output = {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": REASON}}
    world.settings({event: [world.hook("guard", ONCE + printing(output))]})

    agent, _ = await world.run([*work(), DONE])

    assert world.model_saw(REASON) is (event != "UserPromptSubmit")
    assert REASON in str(agent.messages)
    assert any("permissionDecision was honoured" in notice for notice in notices(agent))
