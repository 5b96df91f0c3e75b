"""Asks the model of a `prompt` or `agent` hook. The session's conversation is not part of it, and no hooks fire.

Loaded only if the settings contain such a hook.
"""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from wave_agent.agent.foundation import Foundation
from wave_agent.agent.hook_questions import AskedModel, ReadableProject, ReadingPlace, judged
from wave_agent.agent.model_choice import model_for, model_name_for
from wave_agent.agent.model_windows import WindowFinder
from wave_agent.agent.spending import Spending
from wave_agent.errors import WaveError
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.execution import Opinion
from wave_agent.hooks.questions import PolicyQuestion
from wave_agent.hooks.runners.thinking import SpentError, ThoughtNotes
from wave_agent.models.base import Model
from wave_agent.settings.layers import Settings


def hook_model(question: PolicyQuestion, settings: Settings, usual: str) -> str:
    """The model to ask. A model in managed settings holds for all hooks but managed ones."""
    is_fixed = bool({"model", "hook_model"} & settings.managed)
    if question.model and (question.layer == Layer.MANAGED.value or not is_fixed):
        return question.model
    return settings.hook_model or usual


class HookThinker:
    """Asks models for hooks, over connections of its own: what a session's client knows about its model and its
    conversation stays as it is."""

    def __init__(
        self,
        settings: Settings,
        *,
        client: Model | Callable[[str], Model],
        usual_model: Callable[[], str],
        home: Path,
        spending: Spending | None = None,
        read: Callable[[AskedModel, PolicyQuestion, ThoughtNotes], Awaitable[Opinion]] | None = None,
    ) -> None:
        """`client` belongs to the caller, or is opened with the name of the first model that is asked. `usual_model` is
        asked if neither the hook nor the settings name one. `spending` counts the tokens. `home` has the user's
        settings. `read` answers questions of `agent` hooks."""
        self._settings = settings
        self._client = client
        self._usual_model = usual_model
        self._home = home
        self._session = spending or Spending(lambda _: None)
        self._read = read
        self._opened: Model | None = None

    async def think(self, question: PolicyQuestion, notes: ThoughtNotes) -> Opinion:
        name = hook_model(question, self._settings, self._usual_model())
        model = self._model(name)
        notes.used(name, 0)
        with self._counted(model, name, notes) as spending:
            asked = AskedModel(model, name, self._settings.models.get(name, {}), spending)
            if not question.reads:
                return await judged(asked, question, notes)
            if self._read is None:
                raise WaveError("no model can read the project here")
            return await self._read(asked, question, notes)

    @contextmanager
    def _counted(self, model: Model, name: str, notes: ThoughtNotes) -> Generator[Spending]:
        """Whatever happens, what was used is counted."""
        session = self._session
        if session.is_used_up:
            raise SpentError(session.why_used_up)
        spending = session.for_hook(lambda name: WindowFinder(model, name, self._settings, lambda _: None).prices)
        spending.require_prices(name, self._home)
        try:
            yield spending
        except WaveError as error:
            if spending.is_used_up:  # there is no answer for want of money, or none that could be asked for again
                raise SpentError(str(error)) from None
            raise
        finally:
            usage = spending.total.usage
            session.add_for_hook(spending.total)
            notes.used(name, usage.input_tokens + usage.output_tokens)

    def _model(self, name: str) -> Model:
        if not callable(self._client):
            return self._client
        if self._opened is None:
            self._opened = self._client(name)
        return self._opened

    async def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.close()


def thinker_for(
    foundation: Foundation,
    place: ReadingPlace,
    *,
    usual_model: Callable[[], str] | None = None,
    spending: Spending | None = None,
) -> HookThinker:
    """Asks the models that the options, the environment and the settings describe. Outside a session, where there is no
    `usual_model`, that is the model a session would use."""
    options, settings, environment, home = (
        foundation.options, foundation.settings, foundation.environment, foundation.home,
    )  # fmt: skip

    def client(name: str) -> Model:
        return model_for(options.wishes, settings, environment, model=name, home=home)

    async def read(asked: AskedModel, question: PolicyQuestion, notes: ThoughtNotes) -> Opinion:
        from wave_agent.agent.reading_hook import read_and_judge  # lazy: few hooks read

        readable = ReadableProject(
            place=foundation.place,
            rules=settings.rules,
            directories=foundation.directories,
            find_protected=lambda: foundation.protected,
        )
        return await read_and_judge(asked, question, readable, place, notes)

    return HookThinker(
        settings,
        client=options.model_client or client,
        usual_model=usual_model or (lambda: model_name_for(options.model, settings, environment)),
        home=home,
        spending=spending,
        read=read,
    )
