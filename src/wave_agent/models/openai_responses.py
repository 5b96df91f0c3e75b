"""The API `openai-responses`: OpenAI's `/responses`. Nothing is stored on the server: each request has it all."""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar
from zlib import crc32

from wave_agent.http.refusals import Refusal
from wave_agent.http.routes import Endpoint, endpoint_below, url_below
from wave_agent.models.base import Api, ModelRequest
from wave_agent.models.client import ModelClient
from wave_agent.models.conversion import belongs
from wave_agent.models.limits import AnswerLimits
from wave_agent.models.responses_stream import API, ResponsesReader
from wave_agent.models.windows import Fetch, Window, context_window

if TYPE_CHECKING:
    from wave_agent.models.effort import AcceptedEffort

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_ID = 64
_ENCRYPTED = "reasoning.encrypted_content"

Item = Mapping[str, Any]


class OpenAIResponsesModel(ModelClient):
    """A `Model` that speaks `openai-responses`."""

    def __init__(self, *, bearer: bool = False, **options: Any) -> None:
        """The options of `ModelClient`. `bearer`: this API sends every key as such a token."""
        super().__init__(OpenAIResponses(), **options)


class OpenAIResponses:
    """Writes requests as lists of items."""

    name: ClassVar[str] = API
    conversation: ClassVar[str] = "input"
    statuses: ClassVar[Mapping[str, int]] = {
        "server_error": 500,
        "rate_limit_exceeded": 429,
        "invalid_prompt": 400,
        "invalid_request_error": 400,
        "context_length_exceeded": 400,
        "insufficient_quota": 402,
    }

    def __init__(self) -> None:
        self._encrypted = True
        self._one_call = True
        self._force = True
        self._asked = ""
        self._written: dict[int, tuple[Mapping[str, Any], list[Item]]] = {}
        """What was written before, by the identity of a message."""

    def endpoint(self, base_url: str) -> Endpoint:
        return endpoint_below(base_url, "/responses")

    def headers(self, key: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, request: ModelRequest, so_far: Sequence[Mapping[str, Any]] = ()) -> Mapping[str, Any]:
        if request.model != self._asked:
            self._asked = request.model
            self._written.clear()
        system = "\n\n".join(one["content"] for one in request.messages if one["role"] == "system")
        body: dict[str, Any] = {
            "model": request.model,
            "input": self._items(request),
            "store": False,
            "stream": True,
        }
        if system:
            body["instructions"] = system
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.schema,
                    "strict": False,
                }
                for tool in request.tools
            ]
            if request.one_call and self._one_call:
                body["parallel_tool_calls"] = False
            if request.must_call and self._force:
                body["tool_choice"] = {"type": "function", "name": request.must_call}
        if self._encrypted:
            body["include"] = [_ENCRYPTED]
        if request.max_output_tokens is not None:
            body["max_output_tokens"] = request.max_output_tokens
        if request.effort is not None and (effort := self._effort.of(request.effort, request.model)):
            body["reasoning"] = {"effort": effort}
        return body

    def reader(self, request: ModelRequest, limits: AnswerLimits) -> ResponsesReader:
        return ResponsesReader(limits, model=request.model)

    def adapts_to(self, status: int, refusal: Refusal) -> bool:
        if status not in {400, 422}:
            return False
        message = refusal.message.lower()
        # A model that does not reason has nothing to encrypt, and some servers know nothing of it.
        if self._encrypted and ("encrypted" in message or "include" in message) and "verif" not in message:
            self._encrypted = False
            return True
        if self._effort.adapts_to(message, "reasoning.effort"):
            return True
        if self._force and "tool_choice" in message:
            self._force = False
            return True
        if self._one_call and "parallel_tool_calls" in message:
            self._one_call = False
            return True
        return False

    def instead(self, status: int, refusal: Refusal) -> Api | None:
        return None

    @cached_property
    def _effort(self) -> "AcceptedEffort":
        from wave_agent.models.effort import AcceptedEffort  # lazy: most sessions leave it to the model

        return AcceptedEffort()

    def models_url(self, base_url: str) -> str:
        return url_below(base_url, "/models")

    async def context_window(self, base_url: str, model: str, fetch: Fetch) -> Window | None:
        return await context_window(url_below(base_url, ""), model, fetch)

    def _items(self, request: ModelRequest) -> list[Item]:
        written: dict[int, tuple[Mapping[str, Any], list[Item]]] = {}
        for message in request.messages:
            known = self._written.get(id(message))
            written[id(message)] = known if known and known[0] is message else (message, _items(message, request.model))
        self._written = written
        return [item for message in request.messages for item in written[id(message)][1]]


def _items(message: Mapping[str, Any], model: str) -> list[Item]:
    """A message of the chat format as items."""
    content: Any = message["content"]
    match message["role"]:
        case "user":
            parts = content if isinstance(content, str) else [_user_part(part) for part in content]
            return [{"type": "message", "role": "user", "content": parts}]
        case "assistant":
            return _answer(message, model)
        case "tool":
            call_id = _identifier(message["tool_call_id"])
            return [{"type": "function_call_output", "call_id": call_id, "output": content}]
        case _:
            return []


def _user_part(part: Mapping[str, Any]) -> Item:
    if part["type"] == "text":
        return {"type": "input_text", "text": part["text"]}
    return {"type": "input_image", "image_url": part["image_url"]["url"], "detail": "auto"}


def _answer(message: Mapping[str, Any], model: str) -> list[Item]:
    calls = {call["id"]: _function_call(call) for call in message.get("tool_calls", ())}
    if "parts" not in message:
        return [*([_said(message["content"])] if message["content"] else []), *calls.values()]
    items: list[Item] = []
    for part in message["parts"]:
        ours = belongs(part["kept"], API, model)
        extra: Item = part["kept"]["data"] if ours else {}
        if part["type"] == "call":
            items.append({**extra, **calls[part["id"]]})
        elif part["type"] == "text":
            items.append({**extra, **_said(part["text"])})
        elif ours:
            items.append(extra)
    while items and items[-1]["type"] == "reasoning":  # refused without what it led to
        items.pop()
    return items


def _said(text: str) -> Item:
    return {"type": "message", "role": "assistant", "content": text}


def _function_call(call: Mapping[str, Any]) -> Item:
    function = call["function"]
    return {
        "type": "function_call",
        "call_id": _identifier(call["id"]),
        "name": _NOT_IN_NAMES.sub("_", function["name"])[:_LONGEST_ID] or "_",
        "arguments": function["arguments"],
    }


def _identifier(name: str) -> str:
    """The id of a call as this API accepts it."""
    if len(name) <= _LONGEST_ID:
        return name
    return f"{name[: _LONGEST_ID - 9]}_{crc32(name.encode('utf-8', 'surrogatepass')):08x}"
