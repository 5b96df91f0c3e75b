"""`permissionDecision` and `updatedInput` of a hook before a tool call. What a deny does is in `test_blocks.py`.

Each test looks at the request that the model got, the hook's own log, the side effect on disk, the messages, and the
transcript, in this order.
"""

import pytest

from tests.spec.covering import covers, row
from tests.spec.world import (
    REASON,
    UNDISTURBED,
    World,
    begin_with,
    notices,
    printing,
    records,
    refused,
    results_in,
    roles,
    specific,
    tools,
    transcript,
    work,
    wrapped,
)
from wave_agent import Allow, Deny, PermissionRequest
from wave_agent.events import PermissionRequested

JUNE = "Only in June."
BESIDE = ("012 edge: valid JSON beside an exit code", "012 SC-004")
UNCONFIRMED = "nobody can confirm it in this run"


def permission(decision: str, reason: str = JUNE, **fields: object) -> dict[str, object]:
    return specific("PreToolUse", permissionDecision=decision, permissionDecisionReason=reason, **fields)


@pytest.mark.parametrize(
    ("body", "mode", "shown"),
    [
        row(
            "exit 0", printing(permission("allow")), "default", [JUNE],
            covers=("012 FR-006", "012 FR-014", "012 US3.1", *BESIDE),
        ),
        row(
            "exit 0 where nobody asks", printing(permission("allow")), "bypassPermissions", [JUNE],
            covers=("012 FR-014", *BESIDE),
        ),
        row("exit 1", printing(permission("allow"), "exit 1"), "default", [JUNE], covers=BESIDE),
        row(
            "exit 2", printing(permission("allow"), "exit 2"), "default",
            [JUNE, "hook guard printed allow and exited with 2"],
            covers=("012 FR-005", *BESIDE),
        ),
    ],
)  # fmt: skip
async def test_an_allow_runs_the_tool_unasked_and_only_the_user_reads_why(
    world: World, body: str, mode: str, shown: list[str]
) -> None:
    world.settings({"PreToolUse": [world.hook("guard", body)]})
    asked: list[PermissionRequest] = []

    async def user(request: PermissionRequest) -> Deny:
        asked.append(request)
        return Deny()

    agent, _ = await world.run(work(), permission_mode=mode, can_use_tool=user)

    assert roles(world.request(1)) == UNDISTURBED
    assert not world.model_saw(JUNE)
    assert len(world.log("guard")) == 1
    assert asked == []
    assert world.exists()
    assert tools(agent)[0].success is True
    assert begin_with(notices(agent), shown)
    assert [line["content"] for line in records(agent, "notice")] == notices(agent)
    assert [run["outcome"] for run in records(agent, "hook_run")] == ["allow"]


@covers("012 FR-014", "012 US3.3")
@pytest.mark.parametrize("consents", [True, False], ids=["yes", "no"])
async def test_an_ask_leaves_the_call_to_the_user_who_reads_why(world: World, consents: bool) -> None:
    world.settings({"PreToolUse": [world.says("guard", permission("ask"))]})
    asked: list[PermissionRequest] = []

    async def user(request: PermissionRequest) -> Allow | Deny:
        asked.append(request)
        return Allow() if consents else Deny("The user says no.")

    agent, _ = await world.run(work(), can_use_tool=user)

    assert not world.model_saw(JUNE)
    assert ("The user says no." in world.request(1)[2]["content"]) is not consents
    assert [(one.tool_name, one.tool_input, one.reason) for one in asked] == [
        ("Bash", {"command": "touch made.txt"}, JUNE)
    ]
    assert [event.reason for event in world.events if isinstance(event, PermissionRequested)] == [JUNE]
    assert world.exists() is consents
    assert tools(agent)[0].success is consents
    assert results_in(transcript(agent))[0]["is_error"] is not consents


@covers("012 edge: no output at all")
async def test_a_silent_hook_does_not_allow_a_call_that_needs_permission(world: World) -> None:
    world.settings({"PreToolUse": [world.hook("quiet", "exit 0")]})

    agent, _ = await world.run(work(), permission_mode="default")

    assert UNCONFIRMED in world.request(1)[2]["content"]
    assert not world.exists()
    assert tools(agent)[0].success is False


@covers("012 edge: fields that conflict")
@pytest.mark.parametrize(
    ("top", "inner", "runs"), [("block", "allow", False), ("approve", "deny", False), ("approve", "allow", True)]
)
async def test_of_two_decisions_in_one_output_the_stricter_holds(
    world: World, top: str, inner: str, runs: bool
) -> None:
    world.settings({"PreToolUse": [world.says("guard", {"decision": top, **permission(inner)})]})

    await world.run(work(), permission_mode="default")

    assert world.exists() is runs


@pytest.mark.parametrize(
    ("output", "mode"),
    [
        row(
            "without a decision", specific("PreToolUse", updatedInput={"command": "touch other.txt"}),
            "bypassPermissions", covers=("012 FR-006",),
        ),
        row(
            "with an allow", permission("allow", updatedInput={"command": "touch other.txt"}),
            "default", covers=("012 US3.4",),
        ),
    ],
)  # fmt: skip
async def test_the_tool_gets_the_updated_input_and_the_model_keeps_what_it_asked_for(
    world: World, output: dict[str, object], mode: str
) -> None:
    world.settings({"PreToolUse": [world.says("guard", output)], "PostToolUse": [world.hook("after", "exit 0")]})

    agent, _ = await world.run(work(), permission_mode=mode)

    assert roles(world.request(1)) == UNDISTURBED
    assert world.request(1)[1]["tool_calls"][0]["function"]["arguments"] == '{"command":"touch made.txt"}'
    assert world.log("after")[0]["tool_input"] == {"command": "touch other.txt"}
    assert (world.exists(), world.exists("other.txt")) == (False, True)
    assert tools(agent)[0].parameters == {"command": "touch made.txt"}
    run = records(agent, "hook_run")[0]
    assert (run["before"], run["after"]) == ({"command": "touch made.txt"}, {"command": "touch other.txt"})


@covers("012 SC-002")
async def test_all_fields_of_one_output_work_together(world: World) -> None:
    updated = {"command": "touch other.txt"}
    output = permission("allow", "a reason", updatedInput=updated, additionalContext="a fact")
    world.settings({"PreToolUse": [world.says("guard", {"systemMessage": "a warning", **output})]})

    agent, _ = await world.run(work(), permission_mode="default")

    assert world.request(1)[-1]["content"] == wrapped("PreToolUse", "guard", "a fact")
    assert (world.exists(), world.exists("other.txt")) == (False, True)
    assert sorted(notices(agent)) == ["a reason", "a warning"]
    assert records(agent, "hook_run")[0]["rewrote"] is True


@covers("012 FR-011")
@pytest.mark.parametrize("fields", [{"permissionDecision": "allow"}, {"updatedInput": {"command": "touch other.txt"}}])
async def test_a_field_that_loosens_is_ignored_under_the_name_of_another_event(
    world: World, fields: dict[str, object]
) -> None:
    world.settings({"PreToolUse": [world.says("guard", specific("PostToolUse", **fields))]})

    agent, _ = await world.run(work(), permission_mode="default")

    assert UNCONFIRMED in world.request(1)[2]["content"]
    assert not world.exists()
    assert not world.exists("other.txt")
    assert any('hookEventName must be "PreToolUse"' in notice for notice in notices(agent))


@covers("012 FR-011")
async def test_a_deny_blocks_under_the_name_of_another_event_too_and_warns_the_user(world: World) -> None:
    deny = specific("PostToolUse", permissionDecision="deny", permissionDecisionReason=REASON)
    world.settings({"PreToolUse": [world.says("guard", deny)]})

    agent, _ = await world.run(work())

    assert world.request(1)[2]["content"] == refused("guard", REASON)
    assert not world.exists()
    assert any("permissionDecision was honoured" in notice for notice in notices(agent))


@covers("012 FR-011")
async def test_a_permission_decision_that_cannot_be_read_asks_the_user(world: World) -> None:
    world.settings({"PreToolUse": [world.says("guard", specific("PreToolUse", permissionDecision="Deny"))]})

    agent, _ = await world.run(work())

    assert UNCONFIRMED in world.request(1)[2]["content"]
    assert not world.exists()
    assert any("permissionDecision" in notice for notice in notices(agent))
