"""What tests of hooks and agents use. Shipped, so that nobody has to patch anything.

`run_hook`                 one hook on one event, a function or a script, and what came of it
`ScriptedModel`            a model that says what it is told to, and remembers what it was asked
`RecordingModelServer`     the same behind a real HTTP server on loopback that speaks the chat format
`FakeHookRunner`           hooks that answer without a process
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
from wave_agent.hooks.config import hooks_in_code, load_hooks
from wave_agent.hooks.events import Decision, HookEvent, HookEventName
from wave_agent.hooks.execution import HookExecutionResult, HookJob
from wave_agent.models.scripted import Reply, ScriptedModel, call
from wave_agent.rules.rule import Places
from wave_agent.testing.model_server import RecordingModelServer
from wave_agent.tools.registry import builtin_tools
from wave_agent.workshop.sample_events import Subject, event_for, event_named, subject
from wave_agent.workshop.trial import Bench, ProjectJudge, Rehearsal, rehearse

__all__ = ["FakeHookRunner", "HookResult", "RecordingModelServer", "Reply", "ScriptedModel", "call", "run_hook"]

Answer = HookExecutionResult | Callable[[HookJob], HookExecutionResult]


class FakeHookRunner:
    """Answers for commands without starting a process, and remembers what it was asked.

    `runs` maps a command to its result, or to a function of the job. A command that is not there could not be started.
    """

    def __init__(self, runs: Mapping[str, Answer]) -> None:
        self.runs = dict(runs)
        self.jobs: list[HookJob] = []

    async def run(self, job: HookJob) -> HookExecutionResult:
        self.jobs.append(job)
        answer = self.runs.get(job.command, HookExecutionResult(error=f"no such command: {job.command}"))
        return answer(job) if callable(answer) else answer


class HookResult(Struct, frozen=True, kw_only=True):
    """What came of one run of one hook."""

    decision: str
    """`block`, `ask`, `allow`, `stop`, `none`, or `failure` if the hook did not do its work."""
    reason: str
    """Of the decision or the failure."""
    context: str
    """What it adds for the model."""
    input: Mapping[str, Any] | None
    """The tool's input as it left it, on events where it can change it."""
    output: str | None
    """What it puts in place of the tool's result."""
    told: tuple[str, ...]
    """What the user is told, with what was wrong with its answer."""
    exit_code: int | None
    stdout: str
    """What it printed; of a function, its answer as JSON."""
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
    """Runs a hook on one event as the agent would, and says what came of it.

    `hook` is a function, the path of a script, or a command as in the settings. The event need not be named where
    `prompt`, `tool` or `response` tell it; `payload` gives stdin fields by name. Fields that are not given are there
    with a plausible value. Raises `ValueError` for what is no event.
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
        tools={one.name: one for one in builtin_tools()},
    )
    return _result(_rehearsed(bench, subject(named, given, payload)))


def _entry(hook: Callable[[HookCall], Any] | str | os.PathLike[str]) -> dict[str, Any]:
    if callable(hook):
        return {"function": hook}
    path = os.path.abspath(hook)
    if not os.path.isfile(path):
        if not isinstance(hook, str):
            raise ValueError(f"There is no script {path}.")
        return {"command": hook}
    # A Python script runs in the environment of the test, executable or not.
    return {"command": sys.executable, "args": [path]} if path.endswith(".py") else {"command": shlex.quote(path)}


def _rehearsed(bench: Bench, subject: Subject) -> Rehearsal:
    """In a thread of its own: the test may be asynchronous itself."""
    done: list[Rehearsal] = []
    problems: list[BaseException] = []

    def work() -> None:
        try:
            done.append(asyncio.run(rehearse(bench, subject)))
        except BaseException as error:  # raised again in the thread that asked
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
