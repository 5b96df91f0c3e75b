"""How a session begins, goes on after a summary, fails and ends."""

import asyncio
import json
from time import monotonic
from typing import Any

import pytest

from tests.spec.world import DONE, World, errors, notices, records, work, wrapped
from tests.waiting import until
from wave_agent import ModelError
from wave_agent.hooks import HookCall
from wave_agent.testing import Reply, call

WINDOW = {"models": {"small": {"contextWindow": 4000}}}
LONG = "word " * 1500


def when(events: list[str], name: str) -> Any:
    """A hook that notes that it ran."""

    def note(_: HookCall) -> None:
        events.append(name)

    return note


# ---------------------------------------------------------------------------------------------------------------- start


async def test_context_of_session_start_hooks_comes_before_the_first_prompt(world: World) -> None:
    context = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "branch: main"}}
    world.settings({"SessionStart": [world.hook("text", "echo two open tickets"), world.says("json", context)]})

    agent, _ = await world.run(work(), model="test-model")

    assert [one["content"] for one in world.request(0)][:2] == [
        "\n\n".join(
            [wrapped("SessionStart", "text", "two open tickets"), wrapped("SessionStart", "json", "branch: main")]
        ),
        "Please make the file.",
    ]
    (given,) = world.log("text")
    assert (given["source"], given["model"]) == ("startup", "test-model")
    assert [line["event"] for line in records(agent, "hook_run")] == ["SessionStart", "SessionStart"]


async def test_a_session_start_cannot_be_blocked_and_the_user_reads_why_a_hook_wanted_to(world: World) -> None:
    world.settings({"SessionStart": [world.hook("no", "echo not now >&2; exit 2")]})

    agent, result = await world.run(work())

    assert result.status == "completed"
    assert notices(agent) == ["not now"]
    assert not world.model_saw("not now")


async def test_hooks_can_tell_a_new_session_from_a_resumed_one(world: World) -> None:
    groups = [
        {"matcher": source, "hooks": [world.hook(source, "exit 0")]}
        for source in ("startup", "resume", "clear", "compact")
    ]
    settings = {"hooks": {"SessionStart": groups}}
    agent, _ = await world.run(["one"], settings=settings)
    await agent.close()
    again = await world.agent(["two", "three"], settings=settings, resume=agent.session_id)
    await again.send_message("more")
    await again.send_message("and more")

    assert [len(world.log(name)) for name in ("startup", "resume", "clear", "compact")] == [1, 1, 0, 0]


async def test_session_start_hooks_run_again_after_a_summary(world: World) -> None:
    order: list[str] = []

    def start(event: HookCall) -> dict[str, str] | None:
        order.append(f"SessionStart {event.target}")
        return {"additionalContext": "told again"} if event.target == "compact" else None

    hooks = {
        "SessionStart": [start],
        "PreCompact": [when(order, "PreCompact")],
        "PostCompact": [when(order, "PostCompact")],
    }
    agent = await world.agent([LONG, "SUMMARY", "done"], model="small", settings=WINDOW, hooks=hooks)
    await agent.send_message("first " + LONG)
    await agent.send_message("second")

    assert order == ["SessionStart startup", "PreCompact", "PostCompact", "SessionStart compact"]
    sent = json.dumps(world.request(2))
    assert sent.index("SUMMARY") < sent.index("second") < sent.index("told again")


@pytest.mark.parametrize("event", ["PreCompact", "PostCompact", "SessionStart"])
async def test_a_hook_around_a_summary_can_end_the_turn(world: World, event: str) -> None:
    def end(one: HookCall) -> dict[str, Any] | None:
        return None if one.target == "startup" else {"continue": False, "stopReason": "not here"}

    agent = await world.agent([LONG, "SUMMARY", "done"], model="small", settings=WINDOW, hooks={event: [end]})
    await agent.send_message("first " + LONG)
    result = await agent.send_message("second")

    assert result.status == "stopped"
    assert "not here" in notices(agent)
    assert world.requests == (1 if event == "PreCompact" else 2)


# ------------------------------------------------------------------------------------------------------------------ end


async def test_session_end_hooks_run_once_after_the_last_stop(world: World) -> None:
    order: list[str] = []
    hooks = {event: [when(order, event)] for event in ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")}
    agent, _ = await world.run(["one"], hooks=hooks)
    assert order == ["SessionStart", "UserPromptSubmit", "Stop"]

    await agent.close()
    await agent.close()

    assert order == ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"]
    assert records(agent, "hook_run")[-1]["event"] == "SessionEnd"


async def test_session_end_hooks_get_the_reason(world: World) -> None:
    groups = [
        {"matcher": reason, "hooks": [world.hook(reason, "exit 0")]}
        for reason in ("other", "clear", "prompt_input_exit")
    ]
    for reason in ({}, {"reason": "clear"}):
        agent, _ = await world.run(["one"], settings={"hooks": {"SessionEnd": groups}})
        await agent.close(**reason)

    assert [(one["reason"], one["end_source"]) for one in world.log("other")] == [("other", "other")]
    assert [one["reason"] for one in world.log("clear")] == ["clear"]
    assert world.log("prompt_input_exit") == []


async def test_a_session_that_never_began_does_not_end(world: World) -> None:
    world.settings({"SessionEnd": [world.hook("bye", "exit 0")]})
    agent = await world.agent(["one"])

    await agent.close()

    assert world.log("bye") == []


async def test_a_session_end_cannot_be_blocked_and_a_failure_is_reported(world: World) -> None:
    world.settings(
        {"SessionEnd": [world.hook("no", "echo stay >&2; exit 2"), world.hook("broken", "echo oops >&2; exit 1")]}
    )
    agent, _ = await world.run(["one"])

    await agent.close()

    assert (notices(agent), errors(agent)) == (["stay"], ["oops"])
    assert [line["content"] for line in records(agent, "notice")] == ["stay"]


async def test_all_session_end_hooks_share_a_short_deadline(world: World) -> None:
    slow = [world.hook(f"slow{number}", "sleep 60", timeout=60) for number in range(3)]
    groups = [{"sequential": True, "hooks": slow}, {"hooks": [world.hook("quick", "exit 0")]}]
    agent, _ = await world.run(["one"], settings={"hooks": {"SessionEnd": groups}})
    assert any("1.5 s together" in notice for notice in notices(agent))
    started = monotonic()

    await agent.close()

    assert monotonic() - started < 10  # each of them alone wants a minute
    assert len(world.log("quick")) == 1
    assert (len(world.log("slow0")), len(world.log("slow1"))) == (1, 0)
    assert [run.failure for run in agent.hook_runs if run.name.startswith("slow")] == ["timeout"] * 3


async def test_session_end_hooks_run_after_an_interrupt_too(world: World) -> None:
    world.settings({"SessionEnd": [world.hook("bye", "exit 0")], "Stop": [world.hook("stop", "exit 0")]})
    agent = await world.agent([Reply(tool_calls=[call("Bash", command="touch started; exec sleep 600")])])
    turn = asyncio.create_task(agent.send_message("go"))
    await until(lambda: world.exists("started"))

    await asyncio.wait_for(agent.close(), 30)

    assert (await turn).status == "interrupted"
    assert len(world.log("bye")) == 1
    assert world.log("stop") == []


async def test_shadow_and_async_session_end_hooks_run_too(world: World) -> None:
    fields: list[dict[str, Any]] = [{"mode": "shadow"}, {"async": True}]
    world.settings({"SessionEnd": [world.hook(f"h{at}", "exit 2", **one) for at, one in enumerate(fields)]})
    agent, _ = await world.run(["one"])

    await agent.close()

    assert len(world.log("h0")) == len(world.log("h1")) == 1
    assert notices(agent) == []


# -------------------------------------------------------------------------------------------------------------- failure


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, "authentication_failed"), (402, "billing_error"), (429, "rate_limit"), (400, "invalid_request"),
     (503, "server_error"), (None, "unknown"), (418, "unknown")],
)  # fmt: skip
async def test_stop_failure_hooks_get_the_kind_of_error(world: World, status: int | None, kind: str) -> None:
    world.settings({"StopFailure": [world.hook("failed", "exit 0")], "Stop": [world.hook("stop", "exit 0")]})

    agent, result = await world.run([ModelError("The server said no.", status=status)])

    (given,) = world.log("failed")
    assert (given["error"], given["error_details"]) == (kind, "The server said no.")
    assert world.log("stop") == []
    assert (result.status, errors(agent)) == ("error", ["The server said no."])
    assert [run.event for run in result.hooks] == ["StopFailure"]


async def test_stop_failure_hooks_cannot_decide_anything(world: World) -> None:
    outputs = [{"decision": "block", "reason": "go on"}, {"continue": False, "stopReason": "halt"}]
    said = [world.says(f"h{at}", output) for at, output in enumerate(outputs)]
    world.settings({"StopFailure": [*said, world.hook("two", "echo again >&2; exit 2")]})

    agent, result = await world.run([ModelError("down"), "unreached"])

    assert (result.status, world.requests, notices(agent)) == ("error", 1, [])
    assert {line["name"]: line["outcome"] for line in records(agent, "hook_run")} == {
        "h0": "block",
        "h1": "stop",
        "two": "block",
    }


async def test_the_matcher_of_a_stop_failure_hook_is_compared_with_the_kind_of_error(world: World) -> None:
    groups = [{"matcher": kind, "hooks": [world.hook(kind, "exit 0")]} for kind in ("rate_limit", "server_error")]

    await world.run([ModelError("later", status=429)], settings={"hooks": {"StopFailure": groups}})

    assert (len(world.log("rate_limit")), len(world.log("server_error"))) == (1, 0)


async def test_no_stop_failure_hook_runs_after_an_answer(world: World) -> None:
    world.settings({"StopFailure": [world.hook("failed", "exit 0")]})

    await world.run([DONE])

    assert world.log("failed") == []


# ------------------------------------------------------------------------------------------------------------- settings


async def test_config_change_hooks_get_the_source_of_the_changed_settings_file(world: World) -> None:
    groups = [
        {"matcher": source, "hooks": [world.hook(source, "exit 2")]}
        for source in ("project_settings", "local_settings", "user_settings")
    ]
    agent = await world.agent(["one", "two"], settings={"hooks": {"ConfigChange": groups}})
    await agent.send_message("first")
    (world.project / ".wave").mkdir()
    local = world.project / ".wave" / "settings.local.json"
    local.write_text('{"hooks": {"Stop": ["touch stopped"]}}')
    result = await agent.send_message("second")
    await agent.close()

    (given,) = world.log("local_settings")
    assert (given["source"], given["file_path"]) == ("local_settings", str(local))
    assert world.log("project_settings") == world.log("user_settings") == []
    assert result.status == "completed"
    assert not world.exists("stopped")


async def test_events_that_only_other_agents_have_are_reported_and_harm_nothing(world: World) -> None:
    world.settings({
        "TeammateIdle": [world.hook("sub", "exit 2")],
        "WorktreeCreate": [world.hook("tree", "exit 2", onFailure="block")],
        "Stop": [world.hook("stop", "exit 0")],
    })  # fmt: skip

    agent, result = await world.run([DONE])

    assert result.status == "completed"
    assert len(world.log("stop")) == 1
    assert ["TeammateIdle" in notices(agent)[0], "WorktreeCreate" in notices(agent)[1]] == [True, True]
    assert all("never happens here" in notice for notice in notices(agent))
