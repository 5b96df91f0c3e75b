"""HookManager with real processes and Python functions: what runs, what it sees, what is kept."""

import asyncio
import hashlib
import json
import os
import shlex
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import number_in
from wave_agent.events import Event, HookFinished, HookRun, HookStarted, Notice
from wave_agent.hooks import context, deny, rewrite, tell
from wave_agent.hooks.authoring import HookCall
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.events import EVENTS, Decision, Flow, HookEvent
from wave_agent.hooks.execution import HookExecutionResult, HookJob
from wave_agent.hooks.manager import ASYNC_GRACE, HookManager, SessionFacts
from wave_agent.hooks.runners.command import ProcessRunner
from wave_agent.hooks.stage import ToolFacts
from wave_agent.settings.hook_entries import hooks_in_code, load_hooks, parse_settings
from wave_agent.testing import FakeHookRunner

PRE = HookEvent.PRE_TOOL_USE
BASH = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "call_1"}


class World:
    """A project directory, its hooks, and what happened."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.events: list[Event] = []

    def manager(
        self,
        hooks: Mapping[str, Any],
        *,
        runner: Any = None,
        environment: Mapping[str, str] | None = None,
        settings_env: Mapping[str, str] | None = None,
        on_event: Callable[[Event], None] | None = None,
        in_code: Mapping[str, Any] | None = None,
        async_grace: float = ASYNC_GRACE,
    ) -> HookManager:
        sources = [parse_settings(json.dumps({"hooks": hooks}), Layer.PROJECT, "settings.json")]
        config = load_hooks([*sources, *([hooks_in_code(in_code)] if in_code else [])])
        assert config.issues == ()
        return HookManager(
            config.hooks,
            runner=runner or ProcessRunner(),
            session=SessionFacts(
                session_id="s-1",
                transcript_path=str(self.project / "t.jsonl"),
                project_dir=str(self.project),
                home=str(self.project),
            ),
            environment=dict(os.environ) if environment is None else environment,
            settings_env=settings_env,
            on_event=on_event or self.events.append,
            outputs=self.project / "state" / "outputs",
            async_grace=async_grace,
        )

    @property
    def runs(self) -> list[HookRun]:
        return [event.run for event in self.events if isinstance(event, HookFinished)]

    def write(self, name: str, body: str) -> str:
        file = self.project / name
        file.write_text(body)
        file.chmod(0o755)
        return f"./{name}"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def group(*hooks: Any, **more: Any) -> dict[str, Any]:
    return {"hooks": list(hooks), **more}


def say(output: object) -> str:
    return f"echo {shlex.quote(json.dumps(output))}"


def updated(**fields: Any) -> str:
    return say({"hookSpecificOutput": {"updatedInput": fields}})


# ------------------------------------------------------------------------------------------- what a hook gets to see


async def test_stdin_holds_the_common_fields_and_the_events_own(world: World):
    manager = world.manager({"PreToolUse": [group("cat > seen.json")]})
    await manager.run(PRE, BASH, permission_mode="plan")
    assert json.loads((world.project / "seen.json").read_text()) == {
        "session_id": "s-1",
        "transcript_path": str(world.project / "t.jsonl"),
        "cwd": str(world.project),
        "hook_event_name": "PreToolUse",
        "permission_mode": "plan",
        **BASH,
        "effects": {
            **{name: [] for name in ("reads", "writes", "deletes", "runs", "hosts")},
            "complete": False,
            "truncated": False,
        },
    }


async def test_the_environment_names_project_session_event_and_tool_and_holds_no_key_of_the_agent(world: World):
    manager = world.manager(
        {"PreToolUse": [group("env > seen.env")], "Stop": [group("env > stop.env")]},
        environment={
            "PATH": os.environ["PATH"],
            "WAVE_API_KEY": "secret",
            "OPENAI_API_KEY": "secret",
            "OTHER": "1",
            "HOOK_TOOL_NAME": "stale",
            "CLAUDE_PLUGIN_ROOT": "stale",
            "CLAUDE_ENV_FILE": "stale",
            "CLAUDE_CONFIG_DIR": "kept",
        },
        settings_env={"OTHER": "2", "EXTRA": "x", "WAVE_PROJECT_DIR": "/elsewhere"},
    )
    await manager.run(PRE, BASH)
    await manager.run(HookEvent.STOP, {})
    seen = dict(line.split("=", 1) for line in (world.project / "seen.env").read_text().splitlines())
    project = str(world.project)
    assert {key: seen.get(key) for key in ("WAVE_PROJECT_DIR", "CLAUDE_PROJECT_DIR", "WAVE_SESSION_ID")} == {
        "WAVE_PROJECT_DIR": project,
        "CLAUDE_PROJECT_DIR": project,
        "WAVE_SESSION_ID": "s-1",
    }
    assert (seen["HOOK_EVENT"], seen["HOOK_TOOL_NAME"], seen["OTHER"], seen["EXTRA"]) == (
        "PreToolUse",
        "Bash",
        "2",
        "x",
    )
    assert not {"secret", "stale"} & set(seen.values())
    assert (seen["CLAUDE_SESSION_ID"], seen["CLAUDE_CONFIG_DIR"]) == ("s-1", "kept")
    assert "HOOK_TOOL_NAME" not in (world.project / "stop.env").read_text()


@pytest.mark.parametrize(
    ("event", "facts", "expected"),
    [
        ("UserPromptSubmit", {"prompt": "say \"hi\" $HOME `x`\n'y'"}, ["say \"hi\" $HOME `x`\n'y'"]),
        ("PreToolUse", BASH, ["Bash", '{"command":"ls"}']),
        ("PostToolUse", {**BASH, "tool_response": {"success": True, "content": "a\0b"}}, ["Bash", "ab"]),
        ("Stop", {}, []),
    ],
)
async def test_a_bare_path_gets_the_main_values_as_arguments(
    world: World, event: str, facts: dict[str, Any], expected: list[str]
):
    script = world.write("hook.sh", '#!/bin/bash\nprintf "%s\\0" "$@" > args\necho $# > count\n')
    manager = world.manager({event: [group(script)]})
    await manager.run(HookEvent(event), facts)
    assert (world.project / "count").read_text().strip() == str(len(expected))
    assert (world.project / "args").read_text().split("\0")[:-1] == (expected or [""])


async def test_an_argument_is_cut_where_the_system_would_refuse_it_and_stdin_has_it_whole(world: World):
    script = world.write("hook.sh", '#!/bin/bash\nprintf %s "$1" | wc -c > size\nwc -c > whole\n')
    outcome = await world.manager({"UserPromptSubmit": [group(script)]}).run(
        HookEvent.USER_PROMPT_SUBMIT, {"prompt": "é" * 200_000}
    )
    assert outcome.failed_open == 0
    assert int((world.project / "size").read_text()) == 100 * 1024
    assert int((world.project / "whole").read_text()) > 400_000


async def test_whatever_the_payload_holds_a_hook_can_read_it(world: World):
    odd = {"command": "echo \ud800 \0 \ud83d\ude00", "n": [float("nan"), 2**80, 10**400]}
    manager = world.manager({"PreToolUse": [group("cat > seen.json")]})
    await manager.run(PRE, {**BASH, "tool_input": odd})
    seen = json.loads((world.project / "seen.json").read_text())["tool_input"]
    assert seen == {"command": "echo \ufffd \ufffd 😀", "n": [None, 2**80, None]}


async def test_what_the_environment_holds_a_hook_can_read_it(world: World):
    manager = world.manager(
        {"PreToolUse": [group("env -0 > seen")]}, environment={**os.environ, "ODD": "a\udcffb"}, settings_env={"E": "é"}
    )
    await manager.run(PRE, {**BASH, "tool_name": "Ba\0sh\udcff"})
    seen = (world.project / "seen").read_bytes().decode().split("\0")
    assert {"ODD=a\ufffdb", "E=é", "HOOK_TOOL_NAME=Ba\ufffdsh\ufffd"} <= set(seen)


async def test_no_hook_costs_nothing_and_decides_nothing(world: World):
    outcome = await world.manager({}).run(PRE, BASH)
    assert outcome.decision is Decision.NONE
    assert outcome.flow is Flow.JUDGE
    assert outcome.tool_input == BASH["tool_input"]
    assert world.events == []


# ------------------------------------------------------------------------------------------------ order and rewriting


async def test_parallel_hooks_all_run_to_completion_and_the_outcome_is_in_configuration_order(world: World):
    # The first waits for the third, the third for the second: only a parallel run ends.
    first = "while [ ! -e three ]; do sleep 0.01; done; echo first >&2; exit 2"
    third = "while [ ! -e two ]; do sleep 0.01; done; touch three; echo third >&2; exit 2"
    manager = world.manager({"PreToolUse": [group(first, f"touch two; {say({'decision': 'approve'})}", third)]})
    outcome = await manager.run(PRE, BASH)
    assert outcome.reason == "first\nthird"
    assert len(manager.journal) == 3


async def test_the_rewrite_phase_runs_in_order_each_seeing_what_came_before_and_a_deny_ends_it_all(world: World):
    world.write(
        "append.py",
        "import json, sys\n"
        "command = json.load(sys.stdin)['tool_input']['command'] + sys.argv[1]\n"
        "print(json.dumps({'hookSpecificOutput': {'updatedInput': {'command': command}}}))\n",
    )
    append = f"{shlex.quote(sys.executable)} append.py %s"
    sequence = [group(append % "1", append % "2", phase="rewrite"), group("cat > guard.json")]
    outcome = await world.manager({"PreToolUse": sequence}).run(PRE, BASH)
    assert outcome.tool_input == {"command": "ls12"}
    assert json.loads((world.project / "guard.json").read_text())["tool_input"] == {"command": "ls12"}
    assert "original_tool_input" not in (world.project / "guard.json").read_text()
    assert [(run.rewrote, run.before, run.after) for run in world.runs[:2]] == [
        (True, {"command": "ls"}, {"command": "ls1"}),
        (True, {"command": "ls1"}, {"command": "ls12"}),
    ]
    denied = world.manager({"PreToolUse": [group("exit 2", "touch later", phase="rewrite"), group("touch guard")]})
    assert (await denied.run(PRE, BASH)).decision is Decision.BLOCK
    assert not (world.project / "later").exists()
    assert not (world.project / "guard").exists()


async def test_a_guard_gets_a_second_look_at_what_another_hook_wrote(world: World):
    guard = world.write(
        "guard.sh",
        '#!/bin/bash\ninput=$(cat); echo "$input" >> looks.jsonl\n'
        '[[ $input == *\'"tool_input":{"command":"rm\'* ]] && { echo "no rm" >&2; exit 2; }\nexit 0\n',
    )
    manager = world.manager({"PreToolUse": [group(guard, updated(command="rm -rf /"))]})
    outcome = await manager.run(PRE, BASH)
    assert outcome.decision is Decision.BLOCK
    assert outcome.reason == "no rm"
    looks = [json.loads(line) for line in (world.project / "looks.jsonl").read_text().splitlines()]
    assert [look["tool_input"]["command"] for look in looks] == ["ls", "rm -rf /"]
    assert looks[1]["original_tool_input"] == {"command": "ls"}
    assert [(run.name, run.look) for run in manager.journal if run.name == "guard.sh"] == [
        ("guard.sh", 1),
        ("guard.sh", 2),
    ]


async def test_an_equal_number_of_another_type_is_another_input(world: World):
    manager = world.manager(
        {"PreToolUse": [group(updated(flag=1), {"command": "cat >> looks; echo >> looks", "name": "g"})]}
    )
    await manager.run(PRE, {**BASH, "tool_input": {"flag": True}})
    assert len((world.project / "looks").read_text().splitlines()) == 2


async def test_paths_are_made_absolute_again_before_a_guard_looks(world: World):
    def normalise(tool_input: dict[str, Any]) -> dict[str, Any]:
        return {**tool_input, "file_path": os.path.join("/project", tool_input["file_path"])}

    manager = world.manager(
        {"PreToolUse": [group(updated(file_path=".env"), {"command": "cat >> looks; echo >> looks"})]}
    )
    outcome = await manager.run(
        PRE,
        {"tool_name": "Read", "tool_input": {"file_path": "/project/a"}, "tool_use_id": "c"},
        tool=ToolFacts(normalise=normalise),
    )
    assert outcome.tool_input == {"file_path": "/project/.env"}
    assert '"/project/.env"' in (world.project / "looks").read_text().splitlines()[1]
    assert outcome.rewritten_by == {"file_path": manager.hooks[0].name}


async def test_a_sequential_group_after_the_tool_passes_the_replaced_result_on(world: World):
    first = say({"hookSpecificOutput": {"updatedToolOutput": "one"}})
    second = "cat > seen.json; " + say({"hookSpecificOutput": {"updatedToolOutput": "two"}})
    manager = world.manager({"PostToolUse": [group(first, second, sequential=True)]})
    response = {"success": False, "content": "secret", "stdout": "secret"}
    outcome = await manager.run(HookEvent.POST_TOOL_USE, {**BASH, "tool_response": response})
    assert outcome.replacement == "two"
    assert "secret" not in (world.project / "seen.json").read_text()  # nor under another name
    assert json.loads((world.project / "seen.json").read_text())["tool_response"] == {
        "success": False,
        "content": "one",
    }
    expected = hashlib.sha256(json.dumps(response, sort_keys=True).encode()).hexdigest()
    assert manager.journal[0].original_sha256 == expected
    assert "secret" not in repr(manager.journal)


async def test_equal_entries_of_one_layer_run_once(world: World):
    hook = {"command": "echo x >> log", "name": "same"}
    sources = [
        parse_settings(json.dumps({"hooks": {"Stop": [group(hook, hook), group(hook)]}}), Layer.PROJECT, "a.json"),
        parse_settings(json.dumps({"hooks": {"Stop": [group(hook)]}}), Layer.LOCAL, "b.json"),
    ]
    config = load_hooks(sources)
    assert [hook.layer for hook in config.hooks] == [Layer.PROJECT, Layer.LOCAL]
    assert [issue.broken for issue in config.issues] == [False, False]


# ------------------------------------------------------------------------------------------------- functions as hooks


async def test_functions_and_commands_stand_side_by_side(world: World):
    async def guard(call: HookCall) -> Any:
        assert (call.event, call.session, call.cwd) == ("PreToolUse", "s-1", str(world.project))
        return deny(f"not {call.input['command']}") if call.tool == "Bash" else None

    manager = world.manager(
        {"PreToolUse": [group(say({"additionalContext": "from a script"}))]},
        in_code={"PreToolUse": [{"matcher": "Bash", "hooks": [guard]}]},
    )
    outcome = await manager.run(PRE, BASH)
    assert outcome.for_model() == ("not ls", "from a script")
    assert [(run.name, run.command, run.layer) for run in manager.journal if run.layer == "code"] == [
        ("guard", "python:guard", "code")
    ]


async def test_a_function_that_raises_denies_a_tool_and_a_prompt_but_not_a_stop(world: World):
    def broken(call: HookCall) -> None:
        raise ValueError("oops")

    manager = world.manager({}, in_code={event.value: [broken] for event in EVENTS})
    for event in (PRE, HookEvent.USER_PROMPT_SUBMIT):
        outcome = await manager.run(event, BASH)
        assert outcome.blocked
        assert outcome.reason == "ValueError: oops"
    stopped = await manager.run(HookEvent.STOP, {})
    assert not stopped.blocked
    assert stopped.failed_open == 1


async def test_answers_combine(world: World):
    manager = world.manager(
        {}, in_code={"PreToolUse": [lambda _: rewrite(command="pwd") | tell("note") | context("c")]}
    )
    outcome = await manager.run(PRE, BASH)
    assert outcome.tool_input == {"command": "pwd"}
    assert outcome.for_model() == ("c",)
    assert [note.text for note in outcome.for_user()] == ["note"]


# --------------------------------------------------------------------------------------------------- async and shadow


async def test_an_async_hook_is_not_waited_for_and_its_context_comes_with_the_next_prompt(world: World):
    gated = "while [ ! -e gate ]; do sleep 0.01; done; " + say(
        {"decision": "block", "reason": "ignored", "additionalContext": "late", "systemMessage": "hello"}
    )
    manager = world.manager({"PostToolUse": [group({"command": gated, "async": True, "name": "slow"})]})
    outcome = await manager.run(HookEvent.POST_TOOL_USE, {**BASH, "tool_response": {}})
    assert outcome.decision is Decision.NONE
    assert manager.journal == []
    (world.project / "gate").touch()
    await manager.close()
    assert [waiting.said.text for waiting in manager.take_deferred()] == ["late"]
    assert manager.take_deferred() == ()
    assert Notice(content="hello") in world.events
    assert [(run.outcome, run.is_async, run.let_through) for run in world.runs] == [("block", True, False)]


async def test_a_failing_async_hook_is_told_but_not_counted(world: World):
    manager = world.manager({"Stop": [group({"command": "echo broke >&2; exit 1", "async": True})]})
    outcome = await manager.run(HookEvent.STOP, {})
    await manager.close()
    assert outcome.failed_open == 0
    assert Notice(content="broke", level="error") in world.events
    assert not world.runs[0].let_through


async def test_async_hooks_that_outlive_the_grace_are_ended(world: World):
    hook = {"command": "echo $$ > pid; exec sleep 600", "async": True}
    manager = world.manager({"Stop": [group(hook)]}, async_grace=0.05)
    await manager.run(HookEvent.STOP, {})
    pid = await number_in(world.project / "pid")
    await manager.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert [(run.outcome, run.reason) for run in world.runs] == [("failure", "cancelled")]


async def test_shadow_hooks_run_and_are_journalled_with_what_they_would_have_done(world: World):
    manager = world.manager({"PreToolUse": [
        group({"command": "touch ran; echo no >&2; exit 2", "mode": "shadow", "name": "s"}),
        group({"command": updated(command="rm"), "mode": "shadow", "name": "r"}, phase="rewrite"),
    ]})  # fmt: skip
    outcome = await manager.run(PRE, BASH)
    assert outcome.decision is Decision.NONE
    assert outcome.tool_input == {"command": "ls"}
    assert (world.project / "ran").exists()
    assert [(run.name, run.outcome, run.mode, run.rewrote) for run in manager.journal] == [
        ("r", "none", "shadow", True),
        ("s", "deny", "shadow", False),
    ]


async def test_context_of_a_stop_hook_keeps_the_agent_working(world: World):
    manager = world.manager({"Stop": [group(say({"additionalContext": "remember"}))]})
    outcome = await manager.run(HookEvent.STOP, {})
    assert (outcome.flow, outcome.for_model()) == (Flow.KEEP_WORKING, ("remember",))
    assert manager.take_deferred() == ()
    assert (await manager.run(HookEvent.STOP, {"stop_block_count": 8})).limit_reached


# ------------------------------------------------------------------------------------------- events, cancelling, limits


async def test_a_front_end_hears_each_start_and_each_end(world: World):
    manager = world.manager({"PreToolUse": [group({"command": "exit 2", "name": "g", "statusMessage": "checking"})]})
    await manager.run(PRE, BASH)
    started, finished = world.events
    assert started == HookStarted(event="PreToolUse", name="g", tool_use_id="call_1", status_message="checking")
    assert isinstance(finished, HookFinished)
    assert finished.run == manager.journal[0]
    assert (finished.run.outcome, finished.run.exit_code, finished.run.reason) == ("deny", 2, "Blocked by hook g")


async def test_cancelling_ends_every_hook_that_runs_and_journals_it(world: World):
    hooks = [f"echo $$ > pid{number}; exec sleep 600" for number in range(3)]
    manager = world.manager({"PreToolUse": [group(*hooks)]})
    task = asyncio.create_task(manager.run(PRE, BASH))
    files = [world.project / f"pid{number}" for number in range(3)]
    pids = [await number_in(file) for file in files]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert [run.outcome for run in manager.journal] == ["failure"] * 3
    assert not any(run.let_through for run in manager.journal)


async def test_a_long_text_is_cut_and_kept_whole_in_a_private_file(world: World):
    manager = world.manager({"PreToolUse": [group("head -c 30000 /dev/zero | tr '\\0' x >&2; exit 2")]})
    outcome = await manager.run(PRE, BASH)
    [file] = (world.project / "state" / "outputs").iterdir()
    assert file.read_text() == "x" * 30_000
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert outcome.reason.startswith("x" * 10_000 + "\n[cut here")
    assert str(file) in outcome.reason
    assert len(outcome.reason) < 10_300


@pytest.mark.parametrize(
    ("event", "stdout", "code", "reader"),
    [
        (PRE, {"additionalContext": "x" * 20_000}, 0, "model"),
        (PRE, {"systemMessage": "x" * 20_000}, 0, "user"),
        (HookEvent.STOP, None, 1, "user"),
    ],
)
async def test_every_text_for_a_reader_is_cut(world: World, event: HookEvent, stdout: Any, code: int, reader: str):
    result = HookExecutionResult(exit_code=code, stdout=json.dumps(stdout) if stdout else "", stderr="x" * 20_000)
    (world.project / "state").touch()  # the whole cannot be kept: that must cost nothing but the hint
    manager = world.manager({event.value: [group("h")]}, runner=FakeHookRunner({"h": result}))
    outcome = await manager.run(event, BASH)
    texts = outcome.for_model() if reader == "model" else [note.text for note in outcome.for_user()]
    assert [text for text in texts if "[cut here: 10,000 of 20,000 characters]" in text]
    assert all(len(text) < 10_100 for text in texts)


async def test_the_fake_runner_answers_by_command_and_remembers_its_jobs(world: World):
    def answer(job: HookJob) -> HookExecutionResult:
        return HookExecutionResult(exit_code=2, stderr=json.loads(job.stdin)["tool_name"])

    runner = FakeHookRunner({"guard": answer})
    outcome = await world.manager({"PreToolUse": [group("guard", "absent")]}, runner=runner).run(PRE, BASH)
    assert outcome.reason == "Bash"
    assert [note.text for note in outcome.for_user()] == ["Hook absent could not be started: no such command: absent"]
    assert [job.command for job in runner.jobs] == ["guard", "absent"]
