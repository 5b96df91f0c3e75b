"""Which hooks an event would run, and in which order."""

import json
from typing import Any

from wave_agent.hooks.definitions import HookDefinition
from wave_agent.hooks.events import HookEvent
from wave_agent.hooks.execution import HookExecutionResult
from wave_agent.hooks.manager import HookManager, SessionFacts
from wave_agent.hooks.plan import in_order, plan
from wave_agent.rules.rule import Places
from wave_agent.settings.hook_entries import hooks_in_code, load_hooks
from wave_agent.testing import FakeHookRunner

PLACES = Places("/srv/project", "/home/ada")
HOOKS: dict[str, Any] = {
    "Stop": ["./stop"],
    "PreToolUse": [
        {"matcher": "Bash", "hooks": ["./a"]},
        {"sequential": True, "hooks": ["./b", "./c"]},
        {"phase": "rewrite", "hooks": ["./d", "./e"]},
        {"matcher": "Edit", "hooks": ["./f"]},
        {"command": "./g", "async": True},
        {"command": "./h", "enabled": False},
        {"command": "./i", "if": "Bash(git push:*)"},
    ],
}
FACTS = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "1"}


def loaded() -> tuple[HookDefinition, ...]:
    config = load_hooks([hooks_in_code(HOOKS)])
    config.require_usable()
    return config.hooks


def names(hooks: Any) -> list[str]:
    return [hook.name for hook in hooks]


def test_the_rewrite_phase_comes_first_then_strands_side_by_side() -> None:
    planned = plan(loaded(), HookEvent.PRE_TOOL_USE, FACTS, PLACES)
    assert names(planned.first) == ["d", "e"]
    assert [names(strand) for strand in planned.strands] == [["a"], ["b", "c"]]
    assert names(planned.background) == ["g"]
    assert planned.second_look


def test_whatever_does_not_run_has_its_reason() -> None:
    planned = plan(loaded(), HookEvent.PRE_TOOL_USE, FACTS, PLACES)
    assert {one.hook.name: one.why for one in planned.left_out} == {
        "f": 'its matcher (name "Edit") does not match "Bash"',
        "h": "it is disabled (enabled: false)",
        "i": 'its condition "Bash(git push:*)" does not match the input',
    }


def test_where_no_input_can_be_rewritten_there_is_no_second_look() -> None:
    planned = plan(loaded(), HookEvent.STOP, {}, PLACES)
    assert (names(planned.hooks), planned.second_look) == (["stop"], False)


def test_all_hooks_in_order_go_event_by_event_with_the_rewrite_phase_first() -> None:
    assert names(in_order(loaded())) == ["d", "e", "a", "b", "c", "f", "g", "h", "i", "stop"]


async def test_the_plan_is_what_the_manager_does() -> None:
    hooks = loaded()
    runner = FakeHookRunner({f"./{letter}": HookExecutionResult(exit_code=0) for letter in "abcdefghi"})
    facts = SessionFacts(session_id="1", transcript_path="/t", project_dir="/srv/project", home="/home/ada")
    manager = HookManager(hooks, runner=runner, session=facts, environment={})
    await manager.run(HookEvent.PRE_TOOL_USE, FACTS)
    await manager.close()
    ran = [job.command.removeprefix("./") for job in runner.jobs]
    planned = plan(hooks, HookEvent.PRE_TOOL_USE, FACTS, PLACES)
    assert ran[:2] == names(planned.first)
    assert sorted(ran) == sorted(names(planned.hooks))


async def test_in_a_sequence_the_next_hook_sees_the_error_as_the_one_before_left_it() -> None:
    config = load_hooks([hooks_in_code({"PostToolUseFailure": [{"sequential": True, "hooks": ["./a", "./b"]}]})])
    less = '{"hookSpecificOutput": {"hookEventName": "PostToolUseFailure", "updatedToolOutput": "a password"}}'
    runner = FakeHookRunner(
        {"./a": HookExecutionResult(exit_code=0, stdout=less), "./b": HookExecutionResult(exit_code=0)}
    )
    facts = SessionFacts(session_id="1", transcript_path="/t", project_dir="/srv/project", home="/home/ada")
    manager = HookManager(config.hooks, runner=runner, session=facts, environment={})
    await manager.run(HookEvent.POST_TOOL_USE_FAILURE, {**FACTS, "error": "hunter2"})
    await manager.close()
    assert [json.loads(job.stdin)["error"] for job in runner.jobs] == ["hunter2", "a password"]
