"""Hooks that answer a question before anybody is asked."""

import asyncio
from typing import Any

import pytest

from tests.spec.world import (
    MADE,
    World,
    errors,
    notices,
    records,
    results_in,
    roles,
    tools,
    transcript,
    work,
    wrapped,
)
from wave_agent import Agent, Allow, Deny, PermissionRequest
from wave_agent.events import PermissionRequested
from wave_agent.hooks import HookCall, deny, grant, refuse
from wave_agent.testing import call

EVENT = "PermissionRequest"


def answer(**decision: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": EVENT, "decision": decision}}


class Person:
    """Whoever is asked: remembers the questions, and says yes unless told otherwise."""

    def __init__(self, says: Allow | Deny | None = None) -> None:
        self.says = says or Allow()
        self.asked: list[PermissionRequest] = []

    def __call__(self, request: PermissionRequest) -> Allow | Deny:
        self.asked.append(request)
        return self.says


async def run(world: World, *calls: Any, person: Person | None = None, **options: Any) -> Agent:
    options = {"permission_mode": "default", "can_use_tool": person, **options}
    agent, _ = await world.run(work(*calls), **options)
    return agent


# -------------------------------------------------------------------------------------------------------------- answers


async def test_a_permission_request_hook_that_allows_answers_for_the_user(world: World) -> None:
    person = Person(Deny("no"))
    world.settings({EVENT: [world.says("yes", answer(behavior="allow"))]})

    agent = await run(world, person=person)

    assert world.exists()
    assert person.asked == []
    assert not [event for event in world.events if isinstance(event, PermissionRequested)]
    (given,) = world.log("yes")
    assert (given["tool_name"], given["tool_input"]) == ("Bash", {"command": f"touch {MADE}"})
    assert given["tool_use_id"] == tools(agent)[0].id
    assert given["permission_suggestions"] == [f"Bash(touch {MADE})", "Bash(touch:*)"]
    assert tools(agent)[0].success is True
    assert [line["outcome"] for line in records(agent, "hook_run")] == ["allow"]
    assert roles(world.request(1)) == ["user", "assistant", "tool"]


async def test_a_permission_request_hook_can_allow_where_there_is_nobody_to_ask(world: World) -> None:
    world.settings({EVENT: [world.says("yes", answer(behavior="allow"))]})

    await run(world)

    assert world.exists()


async def test_a_permission_request_hook_that_denies_refuses_the_call_and_the_model_reads_its_message(
    world: World,
) -> None:
    person = Person()
    world.settings({EVENT: [world.says("no", answer(behavior="deny", message="Use make."))]})

    agent = await run(world, person=person)

    assert not world.exists()
    assert person.asked == []
    assert world.request(1)[2]["content"] == "Not run: " + wrapped(EVENT, "no", "Use make.")
    assert (tools(agent)[0].result, tools(agent)[0].success) == ("Use make.", False)
    assert tools(agent)[0].error == "Permission denied"
    assert results_in(transcript(agent))[0]["is_error"] is True
    assert [run.outcome for run in agent.hook_runs] == ["deny"]


async def test_exit_2_of_a_permission_request_hook_refuses_the_call_and_only_the_user_reads_stderr(
    world: World,
) -> None:
    world.settings({EVENT: [world.hook("no", "echo 'policy 4' >&2; exit 2")]})

    agent = await run(world, person=Person())

    assert not world.exists()
    assert world.request(1)[2]["content"] == "Not run: denied by hook no. Do without it, or tell the user."
    assert not world.model_saw("policy 4")
    assert notices(agent) == ["policy 4"]


async def test_a_permission_request_hook_that_denies_with_interrupt_ends_the_turn(world: World) -> None:
    world.settings({EVENT: [world.says("no", answer(behavior="deny", message="Enough.", interrupt=True))]})

    agent, result = await world.run(work(), permission_mode="default", can_use_tool=Person())

    assert (result.status, world.requests) == ("stopped", 1)
    assert not world.exists()
    assert tools(agent)[0].result == "Enough."


async def test_of_two_permission_request_hooks_a_deny_beats_an_allow_in_either_order(world: World) -> None:
    yes, no = world.says("yes", answer(behavior="allow")), world.says("no", answer(behavior="deny"))
    world.settings({EVENT: [yes, no]})
    await run(world)
    assert not world.exists()

    world.settings({EVENT: [no, yes]})
    await run(world)
    assert not world.exists()


# ----------------------------------------------------------------------------------------------- what is left to people


@pytest.mark.parametrize(
    "body", ["exit 0", "echo fine", "exit 1", "kill -9 $$", "echo '{'", """echo '{"decision": "allow"}'"""]
)
async def test_an_invalid_answer_of_a_permission_request_hook_leaves_the_question_to_the_user(
    world: World, body: str
) -> None:
    person = Person(Deny("I say no."))
    world.settings({EVENT: [world.hook("odd", body)]})

    await run(world, person=person)

    assert len(person.asked) == 1
    assert not world.exists()
    assert "I say no." in world.request(1)[2]["content"]


async def test_an_unreadable_answer_of_a_permission_request_hook_is_shown_with_the_question(world: World) -> None:
    person = Person()
    world.settings({EVENT: [world.says("odd", answer(behavior="Allow")), world.says("yes", answer(behavior="allow"))]})

    await run(world, person=person)

    assert '"Allow" cannot be read' in person.asked[0].reason


async def test_a_permission_request_hook_with_on_failure_block_refuses_when_it_fails(world: World) -> None:
    person = Person()
    world.settings({EVENT: [world.hook("broken", "echo no jq >&2; exit 1", onFailure="block")]})

    agent = await run(world, person=person)

    assert person.asked == []
    assert not world.exists()
    assert errors(agent) == ["no jq"]


async def test_a_permission_request_hook_that_hangs_is_ended_and_the_user_is_asked(world: World) -> None:
    person = Person()
    world.settings({EVENT: [world.hook("slow", "sleep 60", timeout=0.3)]})

    agent = await run(world, person=person)

    assert len(person.asked) == 1
    assert "timed out" in errors(agent)[0]


@pytest.mark.parametrize("fields", [{"mode": "shadow"}, {"async": True}])
async def test_shadow_and_async_hooks_answer_no_permission_request(world: World, fields: dict[str, Any]) -> None:
    person = Person(Deny("no"))
    world.settings({EVENT: [world.says("yes", answer(behavior="allow"), **fields)]})

    agent = await run(world, person=person)
    await agent.close()

    assert len(person.asked) == 1
    assert not world.exists()
    assert [(run.outcome, run.event) for run in agent.hook_runs] == [("allow", EVENT)]


async def test_no_hook_answers_what_an_ask_rule_asks(world: World) -> None:
    person = Person(Deny("no"))
    world.settings({EVENT: [world.says("yes", answer(behavior="allow"))]}, permissions={"ask": ["Bash(touch:*)"]})

    await run(world, person=person)
    assert len(world.log("yes")) == len(person.asked) == 1
    assert not world.exists()

    await run(world)
    assert not world.exists()


async def test_no_hook_answers_what_a_protected_path_asks(world: World) -> None:
    world.settings({EVENT: [world.says("yes", answer(behavior="allow"))]})
    write = call("Write", file_path=".git/config", content="x")

    await run(world, write, permission_mode="bypassPermissions")

    assert len(world.log("yes")) == 1
    assert not world.exists(".git/config")


async def test_a_hook_can_refuse_what_only_a_person_can_allow(world: World) -> None:
    person = Person()
    world.settings(
        {EVENT: [world.says("no", answer(behavior="deny", message="Never."))]}, permissions={"ask": ["Bash"]}
    )

    await run(world, person=person)

    assert person.asked == []
    assert not world.exists()


async def test_a_permission_request_hook_can_answer_the_ask_of_another_hook(world: World) -> None:
    ask = {"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "Sure?"}}
    world.settings({"PreToolUse": [world.says("ask", ask)], EVENT: [world.says("yes", answer(behavior="allow"))]})

    await run(world, permission_mode="bypassPermissions")

    assert world.exists()


@pytest.mark.parametrize(
    ("mode", "settings"),
    [("dontAsk", {}), ("bypassPermissions", {}), ("plan", {}), ("default", {"permissions": {"allow": ["Bash"]}}),
     ("default", {"permissions": {"deny": ["Bash"]}})],
)  # fmt: skip
async def test_no_permission_request_hook_runs_where_nothing_is_asked(
    world: World, mode: str, settings: dict[str, Any]
) -> None:
    world.settings({EVENT: [world.says("yes", answer(behavior="allow"))]}, **settings)

    await run(world, permission_mode=mode)

    assert world.log("yes") == []
    assert world.exists() == (mode == "bypassPermissions" or "allow" in settings.get("permissions", {}))


# ------------------------------------------------------------------------------------------------------ a changed input


async def test_a_changed_input_goes_past_guards_and_rules_again(world: World) -> None:
    changed = answer(behavior="allow", updatedInput={"command": "touch other.txt"})
    world.settings({"PreToolUse": [world.hook("guard", "exit 0")], EVENT: [world.says("yes", changed)]})

    await run(world)

    assert (world.exists(), world.exists("other.txt")) == (False, True)
    assert [one["tool_input"]["command"] for one in world.log("guard")] == [f"touch {MADE}", "touch other.txt"]
    assert len(world.log("yes")) == 1


async def test_a_guard_and_a_rule_still_deny_what_a_hook_has_put_in_place(world: World) -> None:
    changed = answer(behavior="allow", updatedInput={"command": "touch other.txt"})
    guard = world.hook("guard", 'case "$payload" in *other*) echo no other >&2; exit 2;; esac')
    world.settings({"PreToolUse": [guard], EVENT: [world.says("yes", changed)]})
    await run(world)
    assert not world.exists("other.txt")
    assert world.model_saw("no other")

    world.settings({EVENT: [world.says("yes", changed)]}, permissions={"deny": ["Bash(touch other.txt)"]})
    await run(world)
    assert not world.exists("other.txt")


async def test_an_input_that_a_hook_has_broken_does_not_run_and_the_hook_is_named(world: World) -> None:
    world.settings({EVENT: [world.says("yes", answer(behavior="allow", updatedInput={"command": None}))]})

    agent = await run(world)

    assert not world.exists()
    assert "command by hook yes" in (tools(agent)[0].result or "")


async def test_a_changed_input_that_an_ask_rule_speaks_of_goes_to_a_person(world: World) -> None:
    person = Person(Allow({"command": "touch third.txt"}))
    changed = answer(behavior="allow", updatedInput={"command": "touch other.txt"})
    world.settings({EVENT: [world.says("yes", changed)]}, permissions={"ask": ["Bash(touch other.txt)"]})

    await run(world, person=person)

    assert [one.tool_input["command"] for one in person.asked] == ["touch other.txt"]
    assert (world.exists("other.txt"), world.exists("third.txt")) == (False, True)
    assert len(world.log("yes")) == 1


# ------------------------------------------------------------------------------------------------------------ functions


async def test_functions_answer_with_grant_and_refuse(world: World) -> None:
    seen: list[HookCall] = []

    def judge(question: HookCall) -> Any:
        seen.append(question)
        return grant() if MADE in question.input["command"] else refuse("Only that one.")

    await run(world, call("Bash", command=f"touch {MADE}"), call("Bash", command="touch b"), hooks={EVENT: [judge]})

    assert (world.exists(), world.exists("b")) == (True, False)
    assert world.request(1)[3]["content"] == "Not run: " + wrapped(EVENT, "judge", "Only that one.")
    assert seen[0].suggestions == [f"Bash(touch {MADE})", "Bash(touch:*)"]


async def test_grant_can_change_the_input_and_deny_refuses(world: World) -> None:
    await run(world, hooks={EVENT: [lambda _: grant(command="touch b")]})
    assert (world.exists(), world.exists("b")) == (False, True)

    agent = await run(world, hooks={EVENT: [lambda _: deny("Not today.")]})
    assert notices(agent) == ["Not today."]
    assert not world.exists()


# --------------------------------------------------------------------------------------------------------- notification


async def test_the_user_is_notified_of_a_question_that_is_put_to_them(world: World) -> None:
    world.settings({"Notification": [world.hook("bell", "touch rang; echo ignored >&2; exit 2")]})

    agent = await run(world, person=Person())
    await agent.close()

    (given,) = world.log("bell")
    assert given["notification_type"] == "permission_prompt"
    assert given["message"] == "Your permission is needed to use Bash: Bash needs your consent"
    assert given["title"] == "Permission needed"
    assert world.exists()
    assert notices(agent) == []
    assert not world.model_saw("ignored")
    assert [run.outcome for run in agent.hook_runs] == ["block"]


async def test_nobody_is_notified_of_a_question_that_nobody_is_asked(world: World) -> None:
    world.settings(
        {"Notification": [world.hook("bell", "exit 0")], EVENT: [world.says("yes", answer(behavior="allow"))]}
    )
    agent = await run(world, person=Person())
    await agent.close()
    assert world.log("bell") == []

    world.settings({"Notification": [world.hook("bell", "exit 0")]})
    agent = await run(world)
    await agent.close()
    assert world.log("bell") == []


async def test_nobody_waits_for_a_notification(world: World) -> None:
    """The hook ends only after the question has been answered."""
    world.settings({"Notification": [world.hook("bell", "until [ -e answered ]; do sleep 0.02; done; touch rang")]})

    class Answering(Person):
        def __call__(self, request: PermissionRequest) -> Allow | Deny:
            (world.project / "answered").touch()
            return super().__call__(request)

    agent = await run(world, person=Answering())
    await agent.close()

    assert world.exists()
    assert world.exists("rang")


async def test_a_front_end_can_notify_once_the_session_has_begun(world: World) -> None:
    settings = {"hooks": {"Notification": [{"matcher": "idle_prompt", "hooks": [world.hook("bell", "exit 0")]}]}}
    agent = await world.agent(["Hello."], settings=settings)
    await agent.notify("idle_prompt", "Before the session.")
    await agent.send_message("Hi.")
    await agent.notify("auth_success", "Something else.")
    await agent.notify("idle_prompt", "Still there?", "Waiting")
    await asyncio.wait_for(agent.close(), 30)
    await agent.notify("idle_prompt", "After it.")

    assert [(one["message"], one["title"]) for one in world.log("bell")] == [("Still there?", "Waiting")]


async def test_a_notification_hook_that_fails_is_reported_and_blocks_nothing(world: World) -> None:
    world.settings({"Notification": [world.hook("bell", "echo no sound >&2; exit 1")]})

    agent = await run(world, person=Person())
    await agent.close()

    assert world.exists()
    assert [run.failure for run in agent.hook_runs] == ["exit"]
    assert not any(run.let_through for run in agent.hook_runs)
    assert "no sound" in str(world.events)
