"""Hooks around tools: denials, batches that a hook ends, feedback, context, and results that a hook replaces."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from tests.spec.world import (
    DONE,
    World,
    errors,
    make,
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
from wave_agent.events import ToolFinished, ToolOutput, event_to_dict
from wave_agent.testing import Reply, call

NOT_RUN = "Not run: a hook ended the turn."
REASON = "Not like this."
BLOCK = f"echo '{REASON}' >&2; exit 2"
THREE = ("one.txt", "two.txt", "three.txt")


def at_second(then: str) -> str:
    """A hook that does something at the second call only."""
    return f'case "$payload" in *two.txt*) {then};; esac'


def replace(text: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": text}}


# ------------------------------------------------------------------------------------------------------------ batches


async def test_a_deny_keeps_the_parameters_and_spares_the_rest_of_the_batch(world: World) -> None:
    world.settings({"PreToolUse": [world.hook("guard", at_second(BLOCK))]})

    agent, result = await world.run(work(*map(make, THREE)))

    assert roles(world.request(1)) == ["user", "assistant", "tool", "tool", "tool"]
    assert world.request(1)[3]["content"] == refused("guard", REASON)
    assert len(world.log("guard")) == 3
    assert [world.exists(name) for name in THREE] == [True, False, True]
    assert [block.parameters for block in tools(agent)] == [{"command": f"touch {name}"} for name in THREE]
    assert [block.success for block in tools(agent)] == [True, False, True]
    assert [one["is_error"] for one in results_in(transcript(agent))] == [False, True, False]
    assert result.status == "completed"


async def test_a_stop_before_the_second_of_three_calls_keeps_the_rest_from_running(world: World) -> None:
    stop = """echo '{"continue": false, "stopReason": "Enough."}'"""
    world.settings({"PreToolUse": [world.hook("guard", at_second(stop))]})
    agent, result = await world.run([Reply(tool_calls=[*map(make, THREE)]), DONE])

    assert world.requests == 1
    assert len(world.log("guard")) == 2
    assert [world.exists(name) for name in THREE] == [True, False, False]
    assert [block.result for block in tools(agent)][1:] == [NOT_RUN, NOT_RUN]
    assert [block.success for block in tools(agent)] == [True, False, False]
    assert notices(agent) == ["Enough."]
    assert [one["content"] for one in results_in(transcript(agent))][1:] == [NOT_RUN, NOT_RUN]
    assert result.status == "stopped"

    await agent.send_message("And now?")

    assert roles(world.request(1)) == ["user", "assistant", "tool", "tool", "tool", "user"]
    assert not world.model_saw("Enough.")


async def test_a_stop_after_the_second_of_three_calls_keeps_its_result(world: World) -> None:
    world.settings({"PostToolUse": [world.hook("review", at_second("""echo '{"continue": false}'"""))]})

    agent, result = await world.run([Reply(tool_calls=[*map(make, THREE)])])

    assert world.requests == 1
    assert [world.exists(name) for name in THREE] == [True, True, False]
    assert [block.success for block in tools(agent)] == [True, True, False]
    assert tools(agent)[2].result == NOT_RUN
    assert result.status == "stopped"


async def test_calls_that_only_read_run_side_by_side_and_those_that_run_when_a_hook_stops_end(world: World) -> None:
    """Each hook waits until all three have started: one by one they would wait for ever."""
    for name in THREE:
        (world.project / name).write_text(f"in {name}")
    together = """touch "started.$$"; until [ "$(ls started.* | wc -l)" -ge 3 ]; do sleep 0.01; done\n"""
    stop = together + at_second("""echo '{"continue": false}'""")
    world.settings({"PreToolUse": [world.hook("guard", stop)]})

    agent, result = await world.run([Reply(tool_calls=[call("Read", file_path=name) for name in THREE])])

    assert world.requests == 1
    assert len(world.log("guard")) == 3
    assert "in one.txt" in (tools(agent)[0].result or "")
    assert tools(agent)[1].result == NOT_RUN
    assert "in three.txt" in (tools(agent)[2].result or "")
    assert result.status == "stopped"


async def test_no_stop_hook_runs_when_a_hook_has_ended_the_turn(world: World) -> None:
    world.settings(
        {"PreToolUse": [world.says("guard", {"continue": False})], "Stop": [world.hook("complete", "exit 0")]}
    )

    await world.run([Reply(tool_calls=[make()])])

    assert world.log("complete") == []


# ----------------------------------------------------------------------------------------------- feedback and context


async def test_feedback_comes_after_all_results_of_the_batch(world: World) -> None:
    """In the order of the calls, between no call and its result."""
    body = 'case "$payload" in *one.txt*) echo "on one" >&2;; *) echo "on another" >&2;; esac; exit 2'
    world.settings({"PostToolUse": [world.hook("review", body)]})

    agent, _ = await world.run(work(make("one.txt"), make("two.txt")))

    assert roles(world.request(1)) == ["user", "assistant", "tool", "tool", "user", "user"]
    assert [message["content"] for message in world.request(1)[4:]] == [
        wrapped("PostToolUse", "review", "on one", call="Bash touch one.txt"),
        wrapped("PostToolUse", "review", "on another", call="Bash touch two.txt"),
    ]
    assert [message.text for message in users(agent)][1:] == ["on one", "on another"]
    assert said_in(transcript(agent), "user")[-2:] == ["on one", "on another"]


async def test_context_of_a_batch_comes_after_its_results_in_the_order_of_calls_and_hooks(world: World) -> None:
    """Also that of a denied call."""
    before = (
        """printf '{"hookSpecificOutput": {"additionalContext": "before %s"}}' "$(grep -o '[a-z]*[.]txt' <<<"$2")" """
    )
    after = """printf '{"additionalContext": "after"}'"""
    world.settings(
        {
            "PreToolUse": [world.hook("before", before), world.hook("guard", at_second(BLOCK))],
            "PostToolUse": [world.hook("after", after)],
        }
    )

    agent, _ = await world.run(work(make("one.txt"), make("two.txt")))

    assert roles(world.request(1))[:4] == ["user", "assistant", "tool", "tool"]
    told = "\n".join(message["content"] for message in world.request(1)[4:])
    places = [told.index(text) for text in ("before one.txt", "after", "before two.txt")]
    assert places == sorted(places)
    assert [message.text for message in users(agent)][1:] == ["before one.txt", "after", "before two.txt"]


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PreToolUse", "PostToolUse"])
async def test_context_of_several_hooks_comes_in_the_order_of_the_configuration(world: World, event: str) -> None:
    """The first hook ends last, and yet comes first."""
    slow = 'until [ -e go ]; do sleep 0.01; done; echo \'{"additionalContext": "first"}\''
    quick = 'echo \'{"additionalContext": "second"}\'; touch go'
    world.settings({event: [world.hook("slow", slow), world.hook("quick", quick)]})

    agent, _ = await world.run(work())

    told = "\n\n".join([wrapped(event, "slow", "first"), wrapped(event, "quick", "second")])
    assert told in [message["content"] for message in world.request(1)]
    assert users(agent)[1].text == "first\nsecond"


async def test_all_reasons_of_a_deny_are_given_in_the_order_of_the_configuration(world: World) -> None:
    slow = world.hook("slow", "until [ -e go ]; do sleep 0.01; done; echo one >&2; exit 2")
    quick = world.hook("quick", "touch go; echo two >&2; exit 2")
    world.settings({"PreToolUse": [slow, quick]})

    agent, _ = await world.run(work())

    assert world.request(1)[2]["content"] == refused("slow, quick", "one\ntwo")
    assert not world.exists()
    assert tools(agent)[0].result == "one\ntwo"


async def test_after_tool_hooks_run_for_a_command_that_fails_and_not_for_a_tool_that_could_not_work(
    world: World,
) -> None:
    world.settings({"PostToolUse": [world.hook("after", "exit 0")]})

    agent, _ = await world.run(work(call("Bash", command="echo no; exit 3"), call("Read", file_path="missing.txt")))

    assert [run["tool_name"] for run in world.log("after")] == ["Bash"]
    response = world.log("after")[0]["tool_response"]
    assert (response["success"], response["exit_code"], response["content"]) == (False, 3, "no\n[exit code 3]")
    assert [block.success for block in tools(agent)] == [False, False]


async def test_hooks_see_absolute_paths(world: World) -> None:
    world.settings({"PreToolUse": [world.hook("guard", "exit 0")]})

    await world.run(work(call("Write", file_path="sub/../made.txt", content="x")))

    assert world.log("guard")[0]["tool_input"]["file_path"] == str(world.project / "made.txt")
    assert world.exists()


@pytest.mark.parametrize("tool", ["Bash", "Nonsense"])
async def test_hooks_run_for_known_tools_also_when_the_input_is_invalid(world: World, tool: str) -> None:
    world.settings({"PreToolUse": [world.hook("guard", "exit 0")]})

    agent, result = await world.run(work(call(tool, nonsense=True)))

    assert len(world.log("guard")) == (1 if tool == "Bash" else 0)
    assert tools(agent)[0].success is False
    assert result.status == "completed"


# --------------------------------------------------------------------------------------------------- replaced results


def show(world: World, text: str) -> Any:
    (world.project / "secret.txt").write_text(text)
    return call("Bash", command="cat secret.txt")


async def test_a_replaced_result_is_nowhere_but_in_the_hook(world: World) -> None:
    world.settings({"PostToolUse": [world.says("redact", replace("[redacted]"))]})

    agent, result = await world.run(work(show(world, "hunter2")))

    assert world.request(1)[2]["content"] == wrapped("PostToolUse", "redact", "[redacted]")
    assert not world.model_saw("hunter2")
    assert world.log("redact")[0]["tool_response"]["content"] == "hunter2"
    assert world.files_with("hunter2") == []
    assert not any("hunter2" in str(event_to_dict(event)) for event in world.events)
    assert [event.result for event in world.events if isinstance(event, ToolFinished)] == ["[redacted]"]
    assert "hunter2" not in str(agent.messages)
    assert (tools(agent)[0].result, tools(agent)[0].success) == ("[redacted]", True)
    assert results_in(transcript(agent))[0]["content"] == "[redacted]"
    assert "hunter2" not in str(result.to_dict())


async def test_a_note_about_a_call_whose_result_was_replaced_names_the_call(world: World) -> None:
    rewrite = {"hookSpecificOutput": {"updatedInput": {"command": "cat secret.txt; true"}}}
    world.settings({
        "PreToolUse": [world.says("guard", rewrite)],
        "PostToolUse": [world.says("redact", replace("[redacted]"))],
    })  # fmt: skip
    made = show(world, "hunter2")

    await world.run(work(made))

    note = f"Bash ({made.id}): Hook guard changed the input of this call: command."
    assert world.request(1)[3]["content"] == wrapped("PreToolUse", "guard", note)


async def test_a_long_result_that_is_replaced_leaves_no_file_behind(world: World) -> None:
    """Long output is kept whole in a file, but not before the hooks have had their say."""
    world.settings({"PostToolUse": [world.says("redact", replace("[redacted]"))]})

    await world.run(work(show(world, "hunter2 " * 8000)))

    assert not world.model_saw("hunter2")
    assert world.files_with("hunter2") == []


async def test_a_long_result_that_no_hook_replaces_is_kept_whole(world: World) -> None:
    world.settings({"PostToolUse": [world.hook("after", "exit 0")]})

    agent, _ = await world.run(work(show(world, "hunter2 " * 8000)))

    named = (tools(agent)[0].result or "").partition("the whole is in ")[2].partition(": ")[0]
    assert Path(named).read_text() == "hunter2 " * 8000


async def test_what_a_read_returned_can_be_replaced_too(world: World) -> None:
    (world.project / "secret.txt").write_text("hunter2")
    world.settings({"PostToolUse": [world.says("redact", replace("[redacted]"))]})

    agent, _ = await world.run(work(call("Read", file_path="secret.txt")))

    assert world.files_with("hunter2") == []
    assert tools(agent)[0].result == "[redacted]"


async def test_output_is_shown_as_it_comes_only_where_no_hook_may_replace_it(world: World) -> None:
    group = [{"matcher": "Bash", "hooks": [world.says("redact", replace("[redacted]"))]}]
    await world.run(work(show(world, "hunter2")))
    assert [event.text for event in world.events if isinstance(event, ToolOutput)] == ["hunter2"]
    world.events.clear()

    await world.run(work(show(world, "hunter2")), hooks={"PostToolUse": group})

    assert [event for event in world.events if isinstance(event, ToolOutput)] == []


async def test_the_journal_keeps_a_digest_of_what_was_replaced(world: World) -> None:
    world.settings({"PostToolUse": [world.says("redact", replace("[redacted]"))]})

    agent, _ = await world.run(work(show(world, "hunter2")))

    digest = records(agent, "hook_run")[0]["original_sha256"]
    assert len(digest) == len(hashlib.sha256().hexdigest())


async def test_hooks_that_replace_a_result_in_different_ways_bring_nothing_back(world: World) -> None:
    names = world.says("names", replace("hunter2 of [name]"))
    words = world.says("words", replace("[password] of Alice"))
    world.settings({"PostToolUse": [names, words]})

    agent, _ = await world.run(work(show(world, "hunter2 of Alice")))

    assert not world.model_saw("hunter2")
    assert not world.model_saw("Alice")
    assert "withheld" in (tools(agent)[0].result or "")
    assert "withheld" in notices(agent)[0]
    assert world.files_with("Alice") == []


async def test_a_result_can_be_replaced_and_commented_at_once(world: World) -> None:
    output = {**replace("[redacted]"), "decision": "block", "reason": "Do not print secrets."}
    world.settings({"PostToolUse": [world.says("redact", output)]})

    agent, _ = await world.run(work(show(world, "hunter2")))

    assert [message["content"] for message in world.request(1)[2:]] == [
        wrapped("PostToolUse", "redact", "[redacted]"),
        wrapped("PostToolUse", "redact", "Do not print secrets."),
    ]
    assert shape(agent) == [("user", "text"), ("assistant", "tool"), ("user", "text"), ("assistant", "text")]
    assert errors(agent) == []
