"""Fakes that tests of hooks and agents use. Shipped, so that nobody has to patch anything.

`ScriptedModel`            a model that says what it is told to, and remembers what it was asked
`RecordingModelServer`     the same behind a real HTTP server on loopback that speaks the chat format
`FakeHookRunner`           hooks that answer without a process
"""

from collections.abc import Callable, Mapping

from wave_agent.hooks.execution import HookExecutionResult, HookJob
from wave_agent.model_server import RecordingModelServer
from wave_agent.models.scripted import Reply, ScriptedModel, call

__all__ = ["FakeHookRunner", "RecordingModelServer", "Reply", "ScriptedModel", "call"]

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
