"""One model that a hook asks, and its answer: a verdict, asked for once more if it is not valid."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from wave_agent.agent.model_answer import ModelAnswer
from wave_agent.agent.spending import Spending
from wave_agent.errors import ModelError, WaveError
from wave_agent.hooks.execution import Opinion
from wave_agent.hooks.opinions import OPINION_SCHEMA, OpinionError, objects_in, opinion_in
from wave_agent.hooks.questions import VERDICT_TOOL, PolicyQuestion, repair
from wave_agent.hooks.runners.thinking import ThoughtNotes
from wave_agent.models.base import Model, ModelRequest, Retry, ToolSpec, Usage
from wave_agent.models.limits import limits_in
from wave_agent.models.windows import estimate_tokens
from wave_agent.system.processes import Ledger, no_ledger
from wave_agent.system.project import Project

if TYPE_CHECKING:
    from wave_agent.permissions.decision import Rules
    from wave_agent.permissions.protected_paths import ProtectedPaths
    from wave_agent.permissions.sandbox import Sandbox

VERDICT = ToolSpec(VERDICT_TOOL, "Gives your verdict on the event. Call it exactly once.", OPINION_SCHEMA)
_SHOWN = 2000
"""Characters of an invalid answer that its model gets back."""


class ReadingPlace(Struct, frozen=True, kw_only=True):
    """With what the model of an `agent` hook reads."""

    outputs: Path
    """A private directory for output that is too long for the model."""
    environment: Mapping[str, str]
    ledger: Ledger = no_ledger
    sandbox: "Sandbox | None" = None


class ReadableProject(Struct, frozen=True, kw_only=True):
    """What the model of an `agent` hook may read."""

    place: Project
    rules: "Rules"
    directories: tuple[str, ...]
    """Those considered inside the project, as real paths."""
    find_protected: "Callable[[], ProtectedPaths]"


class AskedModel:
    """The model of one hook."""

    def __init__(self, client: Model, name: str, facts: Mapping[str, Any], spending: Spending) -> None:
        """`facts` are those in the settings."""
        self.client = client
        self.name = name
        self.limits = limits_in(facts)
        self.max_output_tokens: int | None = facts.get("maxOutputTokens")
        self.spending = spending

    async def answer(self, request: ModelRequest) -> ModelAnswer:
        """The answer to one request. Raises `ModelError`, also if no more may be spent."""
        if self.spending.is_used_up:
            raise ModelError(self.spending.why_used_up)
        answer = ModelAnswer(self.limits)
        try:
            async for delta in self.client.stream(request):
                match delta:
                    case Usage():
                        answer.usage += delta
                    case Retry():
                        answer.begin_again()
                    case _:
                        answer.take(delta)
        finally:
            if answer.usage.input_tokens:
                self.spending.add(self.name, answer.usage)
            else:  # not every server says how many tokens it used
                asked = estimate_tokens("".join(str(message["content"]) for message in request.messages))
                self.spending.add_unreported(self.name, lambda: Usage(asked, answer.tokens))
        return answer


async def judged(asked: AskedModel, question: PolicyQuestion, notes: ThoughtNotes) -> Opinion:
    """One question; a second one if the answer is not valid. `notes` learn of an objection. Raises a `WaveError`."""
    first: list[Mapping[str, Any]] = [
        {"role": "system", "content": question.system},
        {"role": "user", "content": question.user},
    ]
    request = _request(asked, first, (VERDICT,))
    try:
        answer = await asked.answer(request)
        return opinion_from(answer)
    except ModelError as error:
        if not _refuses_tools(error):
            raise
        again = _request(asked, first, ())
    except OpinionError as error:
        notes.objects = error.objects
        again = _request(asked, _asking_again(first, error), (VERDICT,))
    return required_opinion(await asked.answer(again), notes)


def _request(asked: AskedModel, messages: list[Mapping[str, Any]], tools: tuple[ToolSpec, ...]) -> ModelRequest:
    return ModelRequest(
        model=asked.name,
        messages=messages,
        tools=tools,
        must_call=VERDICT_TOOL if tools else "",
        max_output_tokens=asked.max_output_tokens,
    )


def _refuses_tools(error: ModelError) -> bool:
    """Models that cannot call tools can still answer in plain JSON."""
    return error.status in {400, 404, 422, 501} and "tool" in str(error).lower()


class InvalidAnswerError(OpinionError):
    """An answer that is no verdict, as its model wrote it."""

    def __init__(self, problem: str, written: str, *, objects: bool = False) -> None:
        super().__init__(problem, objects=objects)
        self.written = written


def _asking_again(first: list[Mapping[str, Any]], error: OpinionError) -> list[Mapping[str, Any]]:
    written = error.written.strip()[:_SHOWN] if isinstance(error, InvalidAnswerError) else ""
    if written:
        return [*first, {"role": "assistant", "content": written}, {"role": "user", "content": repair(str(error))}]
    system, user = first
    return [system, {"role": "user", "content": f"{user['content']}\n\n{repair(str(error))}"}]


def opinion_from(answer: ModelAnswer) -> Opinion:
    """The opinion in an answer: that of its calls, or else of its text. Of several, an objection counts, also one
    in the text beside a call. Raises `InvalidAnswerError`."""
    calls = [call for call in answer.calls if call.name == VERDICT_TOOL]
    texts = [call.arguments for call in calls] or [answer.text]
    if answer.cut is not None and not calls:
        problem = "it was cut off" if answer.text.strip() else "it is empty"
        raise InvalidAnswerError(problem, answer.text, objects=objects_in(answer.text))
    found: list[Opinion] = []
    wrong: list[OpinionError] = []
    for text in texts:
        try:
            found.append(opinion_in(text))
        except OpinionError as error:
            wrong.append(error)
    if calls:  # what is written beside a call can only object
        try:
            found.append(opinion_in(answer.text))
        except OpinionError as error:
            wrong += [error] if error.objects else []
    objections = [one for one in found if not one.ok]
    if objections:
        return objections[0]
    if wrong:
        written = "\n".join(texts)
        problem = str(wrong[0]) if written.strip() else "it is empty"
        raise InvalidAnswerError(problem, written, objects=any(one.objects for one in wrong))
    return found[0]


def required_opinion(answer: ModelAnswer, notes: ThoughtNotes) -> Opinion:
    """The opinion in an answer that is the last one. `notes` learn of an objection. Raises `WaveError`."""
    try:
        return opinion_from(answer)
    except OpinionError as error:
        notes.objects = notes.objects or error.objects
        raise WaveError(f"the model's answer is not valid, and was not when it was asked again: {error}") from None
