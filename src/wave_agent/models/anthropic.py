"""The API `anthropic`: Anthropic's Messages, which some other servers implement too."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote
from zlib import crc32

from wave_agent.http.refusals import Refusal
from wave_agent.http.routes import Endpoint, endpoint_below, url_below
from wave_agent.models.anthropic_stream import API, MessagesReader
from wave_agent.models.base import Api, ModelRequest
from wave_agent.models.client import ModelClient
from wave_agent.models.conversion import FailedResult, belongs
from wave_agent.models.events import as_object
from wave_agent.models.limits import AnswerLimits
from wave_agent.models.prices import as_count
from wave_agent.models.windows import Fetch, Window

if TYPE_CHECKING:
    from wave_agent.models.effort import AcceptedEffort

VERSION = "2023-06-01"
"""Of the API. Every server that implements it accepts this one."""
MOST_OUTPUT = 32_000
"""How long an answer may be if nothing is known about the model: this API requires a number."""
_CACHED: Mapping[str, Any] = {"type": "ephemeral"}
_MARKED_TURNS = 2
"""The last turns of the user that are marked for the cache. With the system prompt and the tools, this makes four
marks, the most that the API accepts."""
_TOO_MUCH_OUTPUT = re.compile(
    r"max_tokens.{0,40}?>\s*([0-9][0-9,_]*)|max_tokens.{0,60}?(?:at most|maximum)\D{0,20}([0-9][0-9,_]*)"
)
_NO_THINKING = re.compile(r"thinking|adaptive", re.IGNORECASE)
_BUDGETS: Mapping[str, int] = {"low": 4_000, "medium": 10_000, "high": 24_000}
"""Tokens for thinking, by effort, where the model does not decide by itself."""
_LEAST_BUDGET = 1_024
_SUMMARIZED: Mapping[str, Any] = {"type": "adaptive", "display": "summarized"}
_ADAPTIVE: Mapping[str, Any] = {"type": "adaptive"}
_WITH_BUDGET: Mapping[str, Any] = {"type": "enabled"}
_WAYS_TO_THINK = (_SUMMARIZED, _ADAPTIVE, _WITH_BUDGET)
"""As newer models are asked, which keep their thoughts to themselves otherwise; servers that cannot show them; and as
older models are asked."""
_ONE_CALL: Mapping[str, Any] = {"type": "auto", "disable_parallel_tool_use": True}
_NO_ONE_CALL = re.compile(r"tool_choice|disable_parallel_tool_use")
_SECONDS = 3.0
"""For the list of models."""
_GO_ON = "Your last answer broke off. Continue where it ends."
_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_-]")


class AnthropicModel(ModelClient):
    """A `Model` that speaks `anthropic`."""

    def __init__(self, *, bearer: bool = False, **options: Any) -> None:
        """The options of `ModelClient`. `bearer`: the key is a token for the header `Authorization`."""
        super().__init__(Anthropic(bearer=bearer), **options)


class Anthropic:
    """Writes requests in the format of Messages."""

    name: ClassVar[str] = API
    conversation: ClassVar[str] = "messages"
    statuses: ClassVar[Mapping[str, int]] = {
        "invalid_request_error": 400,
        "authentication_error": 401,
        "billing_error": 402,
        "permission_error": 403,
        "not_found_error": 404,
        "request_too_large": 413,
        "rate_limit_error": 429,
        "api_error": 500,
        "timeout_error": 504,
        "overloaded_error": 529,
    }

    def __init__(self, *, bearer: bool = False) -> None:
        self._bearer = bearer
        self._most: dict[str, int] = {}
        """The output limit by model, as the server says."""
        self._wanted = 0
        """That of the last request."""
        self._thinking: tuple[Mapping[str, Any], ...] = _WAYS_TO_THINK
        """Those that this model has not refused."""
        self._thinks = False
        """The last request asked for it."""
        self._one_call = True
        self._force = True
        """Accepts a forced call."""
        self._forces = False
        """The last request forced one."""
        self._asked = ""
        self._written: dict[int, tuple[Mapping[str, Any], list[_Turn]]] = {}
        """What was written before, by the identity of a message: a long conversation is not written anew each time."""

    def endpoint(self, base_url: str) -> Endpoint:
        return endpoint_below(base_url, "/messages", "/v1")

    def headers(self, key: str) -> Mapping[str, str]:
        named = {"Authorization": f"Bearer {key}"} if self._bearer else {"x-api-key": key}
        return {"anthropic-version": VERSION, **(named if key else {})}

    def body(self, request: ModelRequest, so_far: Sequence[Mapping[str, Any]] = ()) -> Mapping[str, Any]:
        if request.model != self._asked:
            self._asked = request.model
            self._thinking = _WAYS_TO_THINK
            self._written.clear()
        system = "\n\n".join(one["content"] for one in request.messages if one["role"] == "system")
        messages = self._messages(request)
        _mark_turns(messages)
        if so_far:
            messages.append({"role": "assistant", "content": [*so_far]})
        wanted = request.max_output_tokens or MOST_OUTPUT
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": min(wanted, self._most.get(request.model, wanted)),
            "stream": True,
            "messages": messages,
        }
        if system.strip():
            body["system"] = [{"type": "text", "text": system, "cache_control": _CACHED}]
        if request.tools:
            tools: list[dict[str, Any]] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.schema}
                for tool in request.tools
            ]
            tools[-1]["cache_control"] = _CACHED
            body["tools"] = tools
            if request.must_call and self._force:
                body["tool_choice"] = {"type": "tool", "name": request.must_call}
            elif request.one_call and self._one_call:
                body["tool_choice"] = _ONE_CALL
        if request.effort is not None:
            body |= self._thought(request, body["max_tokens"])
        self._wanted = body["max_tokens"]
        self._thinks = "thinking" in body
        self._forces = body.get("tool_choice", {}).get("type") == "tool"
        return body

    def _thought(self, request: ModelRequest, most: int) -> Mapping[str, Any]:
        """What asks for thinking: these models do not think unasked."""
        effort = self._effort.of(request.effort, request.model)
        fields: dict[str, Any] = {} if effort is None else {"output_config": {"effort": effort}}
        budget = min(_BUDGETS.get(request.effort or "", max(_BUDGETS.values())), most // 2)
        if not self._thinking:
            return fields
        if self._thinking[0] is not _WITH_BUDGET:
            return {**fields, "thinking": self._thinking[0]}
        if budget >= _LEAST_BUDGET:
            fields["thinking"] = {**_WITH_BUDGET, "budget_tokens": budget}
        return fields

    def reader(self, request: ModelRequest, limits: AnswerLimits) -> MessagesReader:
        return MessagesReader(limits, model=request.model)

    def adapts_to(self, status: int, refusal: Refusal) -> bool:
        if status not in {400, 422}:
            return False
        if found := _TOO_MUCH_OUTPUT.search(refusal.message):
            most = int(re.sub(r"\D", "", found[1] or found[2]))
            if 0 < most < self._wanted:  # otherwise it is the window, which the request fills with its answer
                self._most[self._asked] = most
                return True
        if self._effort.adapts_to(refusal.message.lower(), "effort", "output_config"):
            return True
        if self._forces and self._force and "tool_choice" in refusal.message:
            self._force = False
            return True
        if self._one_call and _NO_ONE_CALL.search(refusal.message):
            self._one_call = False
            return True
        if self._thinks and _NO_THINKING.search(refusal.message):
            about_display = "display" in refusal.message
            left = [one for one in self._thinking[1:] if about_display or one is not _ADAPTIVE]
            self._thinking = tuple(left)
            return True
        return False

    def instead(self, status: int, refusal: Refusal) -> Api | None:
        return None

    @cached_property
    def _effort(self) -> "AcceptedEffort":
        from wave_agent.models.effort import AcceptedEffort  # lazy: most sessions leave it to the model

        return AcceptedEffort()

    def models_url(self, base_url: str) -> str:
        return url_below(base_url, "/models", "/v1")

    async def context_window(self, base_url: str, model: str, fetch: Fetch) -> Window | None:
        """As the list of models says, which also knows the output limit."""
        try:
            status, answer = await fetch("GET", f"{self.models_url(base_url)}/{quote(model, safe='')}", None, _SECONDS)
        except Exception:  # the window is then unknown, and real requests will report what is wrong
            return None
        facts = as_object(answer) if status == 200 else as_object(None)
        if (most := as_count(facts.get("max_tokens"))) > 0:
            self._most.setdefault(model, most)
        tokens = as_count(facts.get("max_input_tokens"))
        return Window(tokens, "the server's list of models", images=_sees(facts)) if tokens > 0 else None

    def _messages(self, request: ModelRequest) -> list[dict[str, Any]]:
        """Turns in alternation, the first and the last the user's."""
        written: dict[int, tuple[Mapping[str, Any], list[_Turn]]] = {}
        turns: list[dict[str, Any]] = []
        for message in request.messages:
            known = self._written.get(id(message))
            pair = known if known and known[0] is message else (message, _turns(message, request.model))
            written[id(message)] = pair
            for role, blocks in pair[1]:
                if turns and turns[-1]["role"] == role:
                    turns[-1]["content"] += blocks
                else:
                    turns.append({"role": role, "content": [*blocks]})
        self._written = written
        if not turns or turns[0]["role"] != "user":
            turns.insert(0, {"role": "user", "content": [_text("[The conversation begins with your own words.]")]})
        if turns[-1]["role"] != "user":
            turns.append({"role": "user", "content": [_text(_GO_ON)]})
        return turns


_Turn = tuple[str, list[dict[str, Any]]]


def _turns(message: Mapping[str, Any], model: str) -> list[_Turn]:
    """A message of the chat format as a turn; none if nothing is in it."""
    content: Any = message["content"]
    match message["role"]:
        case "user":
            found = [_text(content)] if isinstance(content, str) else [_user_part(part) for part in content]
            blocks = [block for block in found if block.get("type") != "text" or block["text"].strip()]
        case "assistant":
            blocks = _answer(message, model)
        case "tool":
            result: dict[str, Any] = {"type": "tool_result", "tool_use_id": _identifier(message["tool_call_id"])}
            if content.strip():  # the API demands that an error says what is wrong
                result |= {"content": content, **({"is_error": True} if isinstance(message, FailedResult) else {})}
            return [("user", [result])]
        case _:
            return []
    return [(message["role"], blocks)] if blocks else []


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _user_part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return _text(part["text"])
    media_type, _, data = part["image_url"]["url"].removeprefix("data:").partition(";base64,")
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def _answer(message: Mapping[str, Any], model: str) -> list[dict[str, Any]]:
    calls = {call["id"]: _tool_use(call) for call in message.get("tool_calls", ())}
    if "parts" not in message:
        text: str = message["content"]
        return [*([_text(text)] if text.strip() else []), *calls.values()]
    blocks: list[dict[str, Any]] = []
    for part in message["parts"]:
        if part["type"] == "call":
            blocks.append(calls[part["id"]])
        elif part["type"] == "text" and part["text"].strip():
            blocks.append(_text(part["text"]))
        elif part["type"] == "reasoning" and belongs(part["kept"], API, model):
            blocks.append(part["kept"]["data"])
    while blocks and blocks[-1]["type"] in {"thinking", "redacted_thinking"}:  # refused at the end
        blocks.pop()
    return blocks


def _tool_use(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    name = _NOT_IN_IDS.sub("_", function["name"])[:128] or "_"
    return {
        "type": "tool_use",
        "id": _identifier(call["id"]),
        "name": name,
        "input": json.loads(function["arguments"]),
    }


def _identifier(name: str) -> str:
    """The id of a call as this API accepts it. Other servers use other characters."""
    plain = _NOT_IN_IDS.sub("_", name)
    return plain if plain == name else f"{plain}_{crc32(name.encode('utf-8', 'surrogatepass')):08x}"


def _mark_turns(turns: list[dict[str, Any]]) -> None:
    """Mark the last turns of the user, so that the server caches everything up to there."""
    marked = [turn for turn in turns if turn["role"] == "user"][-_MARKED_TURNS:]
    for turn in marked:
        turn["content"][-1] = {**turn["content"][-1], "cache_control": _CACHED}


def _sees(facts: Mapping[str, Any]) -> bool | None:
    sees = as_object(as_object(facts.get("capabilities")).get("image_input")).get("supported")
    return sees if isinstance(sees, bool) else None
