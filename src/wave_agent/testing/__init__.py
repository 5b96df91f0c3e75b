"""Test helpers for hooks and agents, so that tests need no patching.

`run_hook`                 run one hook, a function or a script, on one event and return the result
`ScriptedModel`            a model that gives scripted replies and records its requests
`RecordingModelServer`     the same as a real HTTP server on loopback that speaks the chat format
`FakeHookRunner`           hook results without starting a process
`FakeMcpHost`              MCP servers whose tools are Python functions, for `Agent.create(mcp_host=…)`
"""

import asyncio
import os
import shlex
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from wave_agent.hooks.authoring import HookCall
from wave_agent.hooks.events import Decision, HookEvent, HookEventName
from wave_agent.hooks.execution import HookExecutionResult, HookJob
from wave_agent.models.scripted import Reply, ScriptedModel, call
from wave_agent.rules.rule import Places
from wave_agent.settings.hook_entries import hooks_in_code, load_hooks
from wave_agent.testing.mcp_host import FakeMcpHost
from wave_agent.testing.model_server import RecordingModelServer
from wave_agent.tools.registry import every_tool
from wave_agent.workshop.sample_events import Subject, event_for, event_named, subject
from wave_agent.workshop.trial import Bench, ProjectJudge, Rehearsal, rehearse

__all__ = [
    "FakeHookRunner",
    "FakeMcpHost",
    "HookResult",
    "RecordingModelServer",
    "Reply",
    "ScriptedModel",
    "call",
    "run_hook",
]

Answer = HookExecutionResult | Callable[[HookJob], HookExecutionResult]


class FakeHookRunner:
    """Returns results for commands without starting a process, and records the jobs.

    `runs` maps a command to its result, or to a function of the job. A missing command fails to start.
    """

    def __init__(self, runs: Mapping[str, Answer]) -> None:
        self.runs = dict(runs)
        self.jobs: list[HookJob] = []

    async def run(self, job: HookJob) -> HookExecutionResult:
        self.jobs.append(job)
        answer = self.runs.get(job.command, HookExecutionResult(error=f"no such command: {job.command}"))
        return answer(job) if callable(answer) else answer


class HookResult(Struct, frozen=True, kw_only=True):
    """The result of one hook run."""

    decision: str
    """`block`, `ask`, `allow`, `stop`, `none`, or `failure` if the hook did not do its work."""
    reason: str
    """The reason for the decision or the failure."""
    context: str
    """Context added for the model."""
    input: Mapping[str, Any] | None
    """The tool's input after the hook, on events where it can change it."""
    output: str | None
    """The replacement for the tool's result."""
    told: tuple[str, ...]
    """Messages for the user, including problems with the hook's output."""
    exit_code: int | None
    stdout: str
    """The hook's stdout; for a function, its return value as JSON."""
    stderr: str


def run_hook(
    hook: Callable[[HookCall], Any] | str | os.PathLike[str],
    *,
    event: HookEventName | HookEvent | None = None,
    tool: str | None = None,
    input: Mapping[str, Any] | None = None,
    response: Mapping[str, Any] | None = None,
    prompt: str | None = None,
    payload: Mapping[str, Any] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    timeout: float = 30,
) -> HookResult:
    """Run a hook on one event as the agent would, and return the result.

    `hook` is a function, the path of a script, or a command as in the settings. The event can be omitted if `prompt`,
    `tool` or `response` imply it; `payload` sets stdin fields by name. Missing fields get a plausible value. Raises
    `ValueError` if the arguments do not describe an event.
    """
    stated = {"tool": tool, "input": input, "response": response, "prompt": prompt}
    given = {key: dict(value) if isinstance(value, Mapping) else value for key, value in stated.items()}
    given = {key: value for key, value in given.items() if value is not None}
    named = event_for(given) if event is None else event_named(event)
    config = load_hooks([hooks_in_code({named.value: [{**_entry(hook), "timeout": timeout, "onFailure": "continue"}]})])
    config.require_usable()
    places = Places(os.path.realpath(cwd or os.getcwd()), os.path.expanduser("~"))
    bench = Bench(
        hooks=config.hooks,
        environment=dict(os.environ),
        judge=ProjectJudge(places=places, directories=(places.project,)),
        tools={one.name: one for one in every_tool()},
    )
    return _result(_rehearsed(bench, subject(named, given, payload)))


def _entry(hook: Callable[[HookCall], Any] | str | os.PathLike[str]) -> dict[str, Any]:
    if callable(hook):
        return {"function": hook}
    path = os.path.abspath(hook)
    if not os.path.isfile(path):
        if not isinstance(hook, str):
            raise ValueError(f"Script {path} does not exist.")
        return {"command": hook}
    # A Python script runs in the test's environment, whether it is executable or not.
    return {"command": sys.executable, "args": [path]} if path.endswith(".py") else {"command": shlex.quote(path)}


def _rehearsed(bench: Bench, subject: Subject) -> Rehearsal:
    """Runs in a separate thread: the test itself may be asynchronous."""
    done: list[Rehearsal] = []
    problems: list[BaseException] = []

    def work() -> None:
        try:
            done.append(asyncio.run(rehearse(bench, subject)))
        except BaseException as error:  # re-raised in the calling thread
            problems.append(error)

    thread = threading.Thread(target=work, name="run_hook", daemon=True)
    thread.start()
    thread.join()
    if problems:
        raise problems[0]
    return done[0]


def _result(found: Rehearsal) -> HookResult:
    tried = found.runs[-1]
    failure, outcome = tried.verdict.failure, found.outcome
    decision = outcome.decision.name.lower()
    return HookResult(
        decision="failure" if failure and outcome.decision is Decision.NONE else decision,
        reason=failure.message if failure and not outcome.reason else outcome.reason,
        context="\n".join(said.text for said in outcome.contexts),
        input=outcome.tool_input,
        output=outcome.replacement,
        told=tuple(note.text for note in outcome.for_user()),
        exit_code=tried.result.exit_code,
        stdout=tried.result.stdout,
        stderr=tried.result.stderr,
    )
