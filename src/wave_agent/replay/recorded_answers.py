"""The answers of models in a recorded session, for hooks that would ask the same again."""

from collections.abc import Sequence

from wave_agent.errors import WaveError
from wave_agent.events import HookRun
from wave_agent.hooks.execution import Opinion
from wave_agent.hooks.opinions import OpinionError, opinion_of
from wave_agent.hooks.questions import PolicyQuestion
from wave_agent.hooks.runners.thinking import ThoughtNotes

NONE_RECORDED = "no recorded answer"


class RecordedAnswers:
    """Answers a policy as it was answered when the event happened. Nothing is guessed."""

    def __init__(self) -> None:
        self._left: list[HookRun] = []
        self.has_none = False
        """A question about the current event had no recorded answer."""

    def begin(self, runs: Sequence[HookRun]) -> None:
        """The next event, on which these runs had an answer."""
        self._left = [*runs]
        self.has_none = False

    async def think(self, question: PolicyQuestion, notes: ThoughtNotes) -> Opinion:
        for run in self._left:
            if run.command == question.policy and (not question.model or run.model == question.model):
                self._left.remove(run)  # a second look had an answer of its own
                notes.used(run.model, 0)
                return self._opinion(run, notes)
        self.has_none = True
        raise WaveError(f"{NONE_RECORDED} of a model to this policy; --ask-models asks one now")

    def _opinion(self, run: HookRun, notes: ThoughtNotes) -> Opinion:
        try:
            return opinion_of(run.answer)
        except OpinionError as error:
            notes.objects = error.objects
            raise WaveError(f"the recorded answer is not valid: {error}") from None

    async def close(self) -> None:
        pass
