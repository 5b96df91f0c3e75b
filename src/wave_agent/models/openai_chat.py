"""The API `openai-chat`: OpenAI's `/chat/completions`, which most servers implement."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise, repeat
from operator import contains
from typing import TYPE_CHECKING, Any, ClassVar, cast

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.http.refusals import Refusal
from wave_agent.http.routes import Endpoint, endpoint_below, url_below
from wave_agent.lazy_regex import lazy_regex
from wave_agent.models.base import CHAT_API, Api, ModelRequest
from wave_agent.models.client import Deadlines, ModelClient
from wave_agent.models.conversion import belongs, without_parts
from wave_agent.models.limits import AnswerLimits
from wave_agent.models.windows import Fetch, Window, context_window

if TYPE_CHECKING:
    from wave_agent.models.chat_stream import AnswerReader
    from wave_agent.models.effort import AcceptedEffort

__all__ = ["Deadlines", "OpenAIChat", "OpenAIChatModel"]

_ABOUT_MESSAGES = frozenset({400, 422, 500})
"""Servers whose template refuses a conversation say so with 500."""
_WRONG_ORDER = lazy_regex(
    r"unexpected role \W{0,4}user\W{0,4} after role \W{0,4}tool|roles? must alternate", re.IGNORECASE
)
"""How Mistral, and the templates of its models on other servers, refuse what a user says right after a result."""
_WRONG_ID = lazy_regex(r"tool.?call.?id was .*length of 9|tool_call.{0,20}id.{0,20}too long", re.IGNORECASE)
_PLAIN_LENGTH = 9
_ANSWER = "Understood."


class OpenAIChat:
    """OpenAI, vLLM, Ollama, llama.cpp, LM Studio, OpenRouter, Gemini, Mistral and similar servers."""

    name: ClassVar[str] = CHAT_API
    conversation: ClassVar[str] = "messages"
    statuses: ClassVar[Mapping[str, int]] = {}

    def __init__(self) -> None:
        self._support = _ServerSupport()
        self._sent_extra: set[str] = set()
        """The fields of calls sent back that only the server understands."""
        self._sent: Sequence[Mapping[str, Any]] = ()
        """The messages of the last request."""

    def endpoint(self, base_url: str) -> Endpoint:
        return endpoint_below(base_url, "/chat/completions")

    def headers(self, key: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, request: ModelRequest, so_far: Sequence[Mapping[str, Any]] = ()) -> Mapping[str, Any]:
        support = self._support
        messages = request.messages
        if any(map(contains, messages, repeat("parts"))):  # In most sessions none has, and they are many.
            messages = [self._chat(one, request.model) if "parts" in one else one for one in messages]
        if support.plain_ids:
            messages = [_with_plain_ids(one) for one in messages]
        if support.answered_results:
            messages = [*_with_answers(messages)]
        self._sent = messages
        body: dict[str, Any] = {"model": request.model, "messages": messages, "stream": support.stream}
        if support.stream and support.usage:
            body["stream_options"] = {"include_usage": True}
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
                }
                for tool in request.tools
            ]
            if request.one_call and support.one_call:
                body["parallel_tool_calls"] = False
            if request.must_call and support.force is not None:
                body["tool_choice"] = support.force or {"type": "function", "function": {"name": request.must_call}}
        if request.max_output_tokens is not None:
            body[support.limit] = request.max_output_tokens
        if request.effort is not None and (effort := self._effort.of(request.effort, request.model)):
            body["reasoning_effort"] = effort
        return body

    def reader(self, request: ModelRequest, limits: AnswerLimits) -> "AnswerReader":
        from wave_agent.models.chat_stream import AnswerReader  # lazy: not needed to send a request

        return AnswerReader(limits, model=request.model)

    def adapts_to(self, status: int, refusal: Refusal) -> bool:
        if status in {400, 422} and self._support.extra and any(one in refusal.message for one in self._sent_extra):
            self._support = replace(self._support, extra=False)
            return True
        if stricter := self._support.as_strict_as(status, refusal.message, self._sent):
            self._support = stricter
            return True
        if status in {400, 422} and self._effort.adapts_to(refusal.message.lower(), "reasoning_effort"):
            return True
        simpler = self._support.without_refused(status, refusal)
        self._support = simpler or self._support
        return simpler is not None

    def instead(self, status: int, refusal: Refusal) -> Api | None:
        # Some of OpenAI's models are not served here, or take no tools.
        if status not in {400, 404} or "v1/responses" not in refusal.message:
            return None
        from wave_agent.models.openai_responses import OpenAIResponses  # lazy: few servers have it

        return OpenAIResponses()

    @cached_property
    def _effort(self) -> "AcceptedEffort":
        from wave_agent.models.effort import AcceptedEffort  # lazy: most sessions leave it to the model

        return AcceptedEffort()

    def models_url(self, base_url: str) -> str:
        return url_below(base_url, "/models")

    def _chat(self, message: Mapping[str, Any], model: str) -> dict[str, Any]:
        """An answer as this API sent it, with its fields, and those of its calls, that only the server understands."""
        plain = without_parts(message)
        extra: dict[str, Mapping[str, Any]] = {
            part["id"]: part["kept"]["data"]
            for part in cast(Sequence[Mapping[str, Any]], message["parts"])
            if part["type"] == "call" and belongs(part["kept"], CHAT_API, model)
        }
        if not self._support.extra:
            return plain
        for part in cast(Sequence[Mapping[str, Any]], message["parts"]):
            if part["type"] == "reasoning" and belongs(part["kept"], CHAT_API, model):
                self._sent_extra.update(part["kept"]["data"])
                plain |= part["kept"]["data"]
        if extra:
            self._sent_extra.update(name for fields in extra.values() for name in fields)
            plain["tool_calls"] = [_with(extra.get(call["id"], {}), call) for call in plain["tool_calls"]]
        return plain

    async def context_window(self, base_url: str, model: str, fetch: Fetch) -> Window | None:
        return await context_window(base_url, model, fetch)


class OpenAIChatModel(ModelClient):
    """A `Model` that speaks `openai-chat`."""

    def __init__(self, *, bearer: bool = False, **options: Any) -> None:
        """The options of `ModelClient`. `bearer`: this API sends every key as such a token."""
        super().__init__(OpenAIChat(), **options)


class _ServerSupport(Struct, frozen=True):
    """What this server supports. Assumed to be everything; features it refuses are no longer used."""

    stream: bool = True
    usage: bool = True
    one_call: bool = True
    force: str | None = ""
    """How a call is forced: by its name, or by this word. None: not at all."""
    extra: bool = True
    """Accepts the fields of calls that it sent itself."""
    limit: str = "max_tokens"
    """The name of the output limit."""
    answered_results: bool = False
    """After results of calls, the model has to speak before the user."""
    plain_ids: bool = False
    """Ids of calls are nine letters and digits, as Mistral wants them."""

    def as_strict_as(self, status: int, message: str, sent: Sequence[Mapping[str, Any]]) -> "_ServerSupport | None":
        """What to send instead, if the server refused the order of messages or the id of a call."""
        if status not in _ABOUT_MESSAGES:
            return None
        if not self.answered_results and _WRONG_ORDER.search(message):
            roles = [one["role"] for one in sent]
            if ("tool", "user") in pairwise(roles):
                return replace(self, answered_results=True)
        if not self.plain_ids and _WRONG_ID.search(message):
            return replace(self, plain_ids=True)
        return None

    def without_refused(self, status: int, refusal: Refusal) -> "_ServerSupport | None":
        """What to try instead, if the server refused an optional feature."""
        message = refusal.message.lower()
        if status not in {400, 422}:
            return None
        if "max_completion_tokens" in message and self.limit == "max_tokens":  # OpenAI's newer models
            return replace(self, limit="max_completion_tokens")
        if "parallel_tool_calls" in message and self.one_call:
            return replace(self, one_call=False)
        if "tool_choice" in message and self.force is not None:
            return replace(self, force=None if self.force else "required")  # some servers accept only words
        if "stream" not in message or not self.stream:
            return None
        if self.usage and ("stream_options" in message or "include_usage" in message):
            return replace(self, usage=False)
        return replace(self, stream=False, usage=False)


def _with_answers(messages: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    before = ""
    for message in messages:
        if message["role"] == "user" and before == "tool":
            yield {"role": "assistant", "content": _ANSWER}
        yield message
        before = message["role"]


def _with_plain_ids(message: Mapping[str, Any]) -> Mapping[str, Any]:
    if "tool_call_id" in message:
        return {**message, "tool_call_id": _plain_id(message["tool_call_id"])}
    if "tool_calls" in message:
        return {**message, "tool_calls": [{**call, "id": _plain_id(call["id"])} for call in message["tool_calls"]]}
    return message


def _plain_id(name: str) -> str:
    if len(name) == _PLAIN_LENGTH and name.isascii() and name.isalnum():
        return name
    from hashlib import blake2b  # lazy: few servers are this strict

    return blake2b(name.encode("utf-8", "surrogatepass")).hexdigest()[:_PLAIN_LENGTH]


def _with(extra: Mapping[str, Any], call: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**extra, **call, "function": {**extra.get("function", {}), **call["function"]}}
