"""Whether a call may run: rules, modes, hooks, and whoever is asked."""

from typing import Any

import pytest

from tests.spec.covering import covers
from tests.spec.world import (
    World,
    errors,
    make,
    notices,
    records,
    results_in,
    roles,
    tools,
    transcript,
    users,
    work,
)
from wave_agent import Allow, Deny, PermissionRequest
from wave_agent.events import PermissionRequested
from wave_agent.testing import Reply, call

NOBODY = "nobody can confirm it in this run. Do without it, or tell the user."
ASKED = f"Not run: this call needs confirmation because of hook guard, and {NOBODY}"
ASKED_IN_DONT_ASK = ASKED.replace("in this run", "in this run (permission mode dontAsk)")


def permission(decision: str, reason: str = "Only in June.") -> dict[str, Any]:
    return {"hookSpecificOutput": {"permissionDecision": decision, "permissionDecisionReason": reason}}


def answering(answer: Any, asked: list[PermissionRequest] | None = None) -> Any:
    async def user(request: PermissionRequest) -> Any:
        if asked is not None:
            asked.append(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return user


# ------------------------------------------------------------------------------------------------------ nobody to ask


@covers("012 FR-014")
@pytest.mark.parametrize(
    ("mode", "told", "shown"),
    [
        ("default", ASKED, "Bash was not run, as this run is not interactive: Only in June."),
        ("acceptEdits", ASKED, "Bash was not run, as this run is not interactive: Only in June."),
        ("bypassPermissions", ASKED, "Bash was not run, as this run is not interactive: Only in June."),
        ("dontAsk", ASKED_IN_DONT_ASK, "Bash was not run: Only in June."),
    ],
    ids=["default", "acceptEdits", "bypassPermissions", "dontAsk"],
)
async def test_an_ask_that_reaches_nobody_denies_the_call_and_only_the_user_reads_why(
    world: World, mode: str, told: str, shown: str
) -> None:
    world.settings({"PreToolUse": [world.says("guard", permission("ask"))]})

    agent, result = await world.run(work(), permission_mode=mode)

    assert world.request(1)[2]["content"] == told
    assert not world.model_saw("Only in June.")
    assert len(world.log("guard")) == 1
    assert not world.exists()
    assert (tools(agent)[0].result, tools(agent)[0].success) == (told, False)
    assert notices(agent) == [shown]
    assert results_in(transcript(agent))[0]["content"] == told
    assert [line["content"] for line in records(agent, "notice")] == notices(agent)
    assert result.status == "completed"


async def test_a_mode_that_wants_consent_is_a_deny_where_nobody_can_give_it(world: World) -> None:
    agent, _ = await world.run(work(), permission_mode="default")

    asks = "Bash needs confirmation in the permission mode default"
    assert world.request(1)[2]["content"] == f"Not run: {asks}, and {NOBODY}"
    assert not world.exists()
    assert "needs your consent" in notices(agent)[0]


# ------------------------------------------------------------------------------------------------------- can_use_tool


async def test_an_approver_can_allow(world: World) -> None:
    asked: list[PermissionRequest] = []

    agent, _ = await world.run(work(), permission_mode="default", can_use_tool=answering(Allow(), asked))

    assert roles(world.request(1)) == ["user", "assistant", "tool"]
    assert world.exists()
    assert [(one.tool_name, one.tool_input, one.tool_use_id) for one in asked] == [
        ("Bash", {"command": "touch made.txt"}, tools(agent)[0].id)
    ]
    assert asked[0].suggestions == ("Bash(touch made.txt)", "Bash(touch:*)")
    assert len([event for event in world.events if isinstance(event, PermissionRequested)]) == 1
    assert tools(agent)[0].success is True


async def test_an_approver_can_deny_and_the_model_reads_why(world: World) -> None:
    agent, _ = await world.run(
        work(), permission_mode="default", can_use_tool=answering(Deny("Ask me again tomorrow."))
    )

    assert world.request(1)[2]["content"] == "Not run: Ask me again tomorrow."
    assert not world.exists()
    assert (tools(agent)[0].result, tools(agent)[0].success) == ("Not run: Ask me again tomorrow.", False)
    assert results_in(transcript(agent))[0]["is_error"] is True


async def test_a_denial_of_the_user_without_a_word_still_gives_the_call_a_result(world: World) -> None:
    agent, _ = await world.run(work(), permission_mode="default", can_use_tool=answering(Deny()))

    assert world.request(1)[2]["content"] == "Not run: permission was denied. Do without it, or tell the user."
    assert not world.exists()
    assert tools(agent)[0].success is False


async def test_an_approver_can_change_the_input(world: World) -> None:
    world.settings({"PostToolUse": [world.hook("after", "exit 0")]})
    changed = Allow(updated_input={"command": "touch other.txt"})

    agent, _ = await world.run(work(), permission_mode="default", can_use_tool=answering(changed))

    assert world.log("after")[0]["tool_input"] == {"command": "touch other.txt"}
    assert (world.exists(), world.exists("other.txt")) == (False, True)
    assert tools(agent)[0].parameters == {"command": "touch made.txt"}


@pytest.mark.parametrize("updated", [{"command": "rm made.txt"}, {"command": 5}, {}])
async def test_an_input_that_an_approver_changed_must_still_pass_rules_and_schema(
    world: World, updated: dict[str, Any]
) -> None:
    world.settings({}, permissions={"deny": ["Bash(rm:*)"]})
    (world.project / "made.txt").touch()

    agent, result = await world.run(
        work(make("other.txt")), permission_mode="default", can_use_tool=answering(Allow(updated_input=updated))
    )

    assert (world.exists(), world.exists("other.txt")) == (True, False)
    assert tools(agent)[0].success is False
    assert result.status == "completed"


async def test_an_approver_that_raises_allows_nothing(world: World) -> None:
    broken = answering(RuntimeError("the window is gone"))

    agent, result = await world.run(work(), permission_mode="default", can_use_tool=broken)

    assert not world.exists()
    assert tools(agent)[0].success is False
    assert len(errors(agent)) == 1
    assert "can_use_tool" in errors(agent)[0]
    assert not world.model_saw("the window is gone")
    assert result.status == "completed"


# --------------------------------------------------------------------------------------------- what a hook cannot lift


@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
async def test_a_rule_that_denies_beats_a_hook_that_allows(world: World, mode: str) -> None:
    world.settings({"PreToolUse": [world.says("guard", permission("allow"))]}, permissions={"deny": ["Bash(touch:*)"]})

    agent, _ = await world.run(work(), permission_mode=mode, can_use_tool=answering(Allow()))

    assert (
        world.request(1)[2]["content"]
        == "Not run: denied by the permission rule Bash(touch:*). Do without it, or tell the user."
    )
    assert len(world.log("guard")) == 1
    assert not world.exists()
    assert tools(agent)[0].success is False


async def test_a_rule_that_denies_judges_the_input_that_hooks_have_made(world: World) -> None:
    rewrite = {"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"command": "touch other.txt"}}}
    world.settings({"PreToolUse": [world.says("guard", rewrite)]}, permissions={"deny": ["Bash(touch other*)"]})

    await world.run(work())

    assert world.request(1)[2]["content"] == (
        "Not run: denied by the permission rule Bash(touch other*). Do without it, or tell the user."
        "\n\nHook guard changed the input of this call: command."
    )
    assert not world.exists("other.txt")


async def test_the_model_does_not_read_a_path_that_a_hook_put_into_the_input(world: World) -> None:
    rewrite = {"hookSpecificOutput": {"updatedInput": {"file_path": "/var/vault-7/key"}}}
    world.settings({"PreToolUse": [world.says("guard", rewrite)]})

    agent, _ = await world.run(work(call("Read", file_path="a.txt")), permission_mode="default")

    assert world.request(1)[2]["content"] == (
        f"Not run: a path of this call is outside the project, so Read needs confirmation, and {NOBODY}"
        "\n\nHook guard changed the input of this call: file_path."
    )
    assert not world.model_saw("vault-7")
    assert tools(agent)[0].success is False


async def test_a_rule_that_asks_is_not_answered_by_a_hook_that_allows(world: World) -> None:
    world.settings({"PreToolUse": [world.says("guard", permission("allow"))]}, permissions={"ask": ["Bash(touch:*)"]})
    asked: list[PermissionRequest] = []

    await world.run(work(), can_use_tool=answering(Deny("No."), asked))

    assert [one.reason for one in asked] == ["the rule Bash(touch:*) asks"]
    assert not world.exists()


@pytest.mark.parametrize("decision", ["allow", "ask"])
async def test_plan_mode_only_reads_whatever_a_hook_says(world: World, decision: str) -> None:
    (world.project / "note.txt").write_text("hello")
    world.settings({"PreToolUse": [world.says("guard", permission(decision))]})

    agent, _ = await world.run(work(), permission_mode="plan", can_use_tool=answering(Allow()))

    assert world.request(1)[2]["content"] == (
        "Not run: plan mode only lets you read, and Bash does more. Put it into the plan."
    )
    assert not world.exists()
    assert tools(agent)[0].success is False


async def test_plan_mode_runs_tools_that_only_read(world: World) -> None:
    (world.project / "note.txt").write_text("hello")

    agent, _ = await world.run(work(call("Read", file_path="note.txt")), permission_mode="plan")

    assert "hello" in world.request(1)[2]["content"]
    assert tools(agent)[0].success is True


# ------------------------------------------------------------------------------------------------------------- dontAsk


@pytest.mark.parametrize(
    ("decision", "allow", "runs"),
    [(None, [], False), (None, ["Bash(touch:*)"], True), ("allow", [], True), ("ask", ["Bash(touch:*)"], False)],
)
async def test_in_dont_ask_only_what_is_allowed_runs_and_every_ask_is_a_deny(
    world: World, decision: str | None, allow: list[str], runs: bool
) -> None:
    hook = world.says("guard", permission(decision)) if decision else world.hook("guard", "exit 0")
    world.settings({"PreToolUse": [hook]}, permissions={"allow": allow})
    asked: list[PermissionRequest] = []

    agent, _ = await world.run(work(), permission_mode="dontAsk", can_use_tool=answering(Allow(), asked))

    assert ("nobody can confirm it in this run" in world.request(1)[2]["content"]) is not runs
    assert world.exists() is runs
    assert asked == []
    assert tools(agent)[0].success is runs


# -------------------------------------------------------------------------------------------------- blocks for the user


async def test_nothing_that_is_for_the_user_reaches_the_model(world: World) -> None:
    """Every way in which a hook can speak to the user, in one conversation."""
    speaking = [
        world.says("warns", {"systemMessage": "for you: warning"}),
        world.says("allows", permission("allow", "for you: allowed")),
        world.says("asks", permission("ask", "for you: asked")),
        world.hook("fails", "echo 'for you: failure' >&2; exit 1"),
        world.hook("mumbles", "echo '{for you: mumbled'"),
    ]
    stop = world.says("stops", {"continue": False, "stopReason": "for you: stopped"})
    world.settings({"PreToolUse": speaking, "PostToolUse": [stop]})
    agent, first = await world.run(
        [Reply(tool_calls=[make()]), "Hello."], permission_mode="default", can_use_tool=answering(Allow())
    )

    second = await agent.send_message("Again.")

    assert (first.status, second.status) == ("stopped", "completed")
    assert roles(world.request(1)) == ["user", "assistant", "tool", "user"]
    assert not world.model_saw("for you")
    assert world.exists()
    for text in ("warning", "failure", "stopped"):
        assert any(f"for you: {text}" in shown for shown in [*errors(agent), *notices(agent)])
    assert len(users(agent)) == 2


async def test_hooks_judge_an_input_that_an_approver_changed_and_can_end_the_turn(world: World) -> None:
    stop = """case "$payload" in *changed*) echo '{"continue": false, "stopReason": "not that"}' ;; esac"""
    world.settings({"PreToolUse": [world.hook("guard", stop)]})

    def change(_: PermissionRequest) -> Allow:
        return Allow(updated_input={"command": "touch changed"})

    agent, result = await world.run(
        work(call("Bash", command="touch made")), permission_mode="default", can_use_tool=change
    )

    assert result.status == "stopped"
    assert not (world.project / "changed").exists()
    assert not (world.project / "made").exists()
    assert [run.outcome for run in agent.hook_runs] == ["none", "stop"]
