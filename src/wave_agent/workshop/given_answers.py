"""Answers for hooks that ask a model, given by whoever tries them: the wiring of a policy can be tested without one."""

from typing import Any

from wave_agent.errors import WaveError
from wave_agent.hooks.execution import HookExecutionResult, HookJob, HookRunner, Opinion, close_runner
from wave_agent.hooks.kinds import THINKING
from wave_agent.hooks.opinions import OpinionError, opinion_in, opinion_of
from wave_agent.hooks.questions import PolicyQuestion
from wave_agent.hooks.runners.thinking import ThinkingRunner, ThoughtNotes


class GivenAnswer:
    """Answers every question in the same way. Text is read like that of a model, which may not be a valid answer."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def think(self, question: PolicyQuestion, notes: ThoughtNotes) -> Opinion:
        try:
            return opinion_in(self._answer) if isinstance(self._answer, str) else opinion_of(self._answer)
        except OpinionError as error:
            notes.objects = error.objects
            raise WaveError(f"the answer is not valid: {error}") from None

    async def close(self) -> None:
        pass


class AnsweredRunner:
    """Hooks that would ask a model get this answer; the others run as usual."""

    def __init__(self, answer: Any, others: HookRunner) -> None:
        self._answered = ThinkingRunner(GivenAnswer(answer))
        self._others = others

    async def run(self, job: HookJob) -> HookExecutionResult:
        return await (self._answered if job.kind in THINKING else self._others).run(job)

    async def close(self) -> None:
        await close_runner(self._others)
