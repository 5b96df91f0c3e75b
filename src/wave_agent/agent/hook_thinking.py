"""Asks the model of a `prompt` or `agent` hook. The session's conversation is not part of it, and no hooks fire.

Loaded only if the settings contain such a hook.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from wave_agent.agent.hook_questions import AskedModel, ReadingPlace, judged
from wave_agent.agent.model_choice import model_for
from wave_agent.agent.options import Foundation, WindowFinder
from wave_agent.agent.spending import Spending
from wave_agent.errors import WaveError
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.execution import Opinion
from wave_agent.hooks.questions import Question
from wave_agent.hooks.runners.thinking import Used
from wave_agent.models.base import Model
from wave_agent.models.prices import Prices
from wave_agent.settings.layers import Settings


def hook_model(question: Question, settings: Settings, usual: str) -> str:
    """The model to ask. A model in managed settings holds for all hooks but managed ones."""
    is_fixed = bool({"model", "hook_model"} & settings.managed)
    if question.model and (question.layer == Layer.MANAGED.value or not is_fixed):
        return question.model
    return settings.hook_model or usual


class HookThinker:
    """Asks models for a session's hooks, over connections of their own: what the session's client knows about its
    model and conversation stays as it is."""

    def __init__(
        self,
        foundation: Foundation,
        *,
        usual_model: Callable[[], str],
        spending: Spending | None = None,
        place: ReadingPlace,
    ) -> None:
        """`usual_model` is asked if neither the hook nor the settings name one. `spending` counts the
        tokens."""
        self._foundation = foundation
        self._usual_model = usual_model
        self._session = spending or Spending(lambda _: None)
        self._place = place
        self._model: Model | None = None

    async def think(self, question: Question, used: Used) -> Opinion:
        settings = self._foundation.settings
        name = hook_model(question, settings, self._usual_model())
        used(name, 0)
        with self._counted(name, used) as spending:
            asked = AskedModel(self._client(name), name, settings.models.get(name, {}), spending)
            if not question.reads:
                return await judged(asked, question)
            from wave_agent.agent.reading_hook import read_and_judge  # lazy: few hooks read

            return await read_and_judge(asked, question, self._foundation, self._place)

    @contextmanager
    def _counted(self, name: str, used: Used) -> Generator[Spending]:
        """Whatever happens, what was used is counted."""
        session, foundation = self._session, self._foundation
        if session.is_used_up:
            raise WaveError(session.why_used_up)
        spending = session.for_hook(self._prices)
        spending.require_prices(name, foundation.home)
        try:
            yield spending
        finally:
            usage = spending.total.usage
            session.add_for_hook(spending.total)
            used(name, usage.input_tokens + usage.output_tokens)

    def _prices(self, name: str) -> Prices | None:
        return WindowFinder(self._client(name), name, self._foundation.settings, lambda _: None).prices

    def _client(self, name: str) -> Model:
        foundation = self._foundation
        options = foundation.options
        if options.model_client is not None:
            return options.model_client
        if self._model is None:
            settings, environment = foundation.settings, foundation.environment
            self._model = model_for(options.wishes, settings, environment, model=name, home=foundation.home)
        return self._model

    async def close(self) -> None:
        model, self._model = self._model, None
        if model is not None:
            await model.close()
