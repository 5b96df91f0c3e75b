"""Model servers that refuse what the real ones refuse, and say so in the same form.

The form of a request is checked against the types in the providers' own SDKs, the rest against their documentation.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from anthropic.types.message_create_params import MessageCreateParamsStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

from tests.apis.typed import problems
from wave_agent.models.scripted import signature
from wave_agent.testing.model_server import RecordedRequest, RecordingModelServer, Status

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_MOST_MARKS = 4


class StrictServer(RecordingModelServer):
    """Answers only requests that the provider would answer."""

    def refusal(self, request: RecordedRequest) -> Status | None:
        found = next(_CHECKS[request.api](request), None)
        return None if found is None else refused(request.api, found)


def refused(api: str, message: str) -> Status:
    error: dict[str, Any] = {"type": "invalid_request_error", "message": message}
    if api == "anthropic":
        return Status(400, {"type": "error", "error": error, "request_id": "req_1"})
    return Status(400, {"error": {**error, "param": None, "code": None}})


# ------------------------------------------------------------------------------------------------------------ anthropic


def anthropic_problems(request: RecordedRequest) -> Iterator[str]:
    body, headers = request.body, request.headers
    if headers.get("anthropic-version") not in ("2023-06-01", "2026-10-21"):
        yield "anthropic-version: header is required"
    if "x-api-key" not in headers and "authorization" not in headers:
        yield "x-api-key header is required"
    yield from problems(body, MessageCreateParamsStreaming)
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        yield "max_tokens: must be greater than or equal to 1"
    yield from _tools(body.get("tools", []))
    for block in body.get("system", []):
        if not block["text"].strip():
            yield "system: text content blocks must be non-empty"
    yield from _turns(body["messages"])
    marks = json.dumps(body).count('"cache_control"')
    if marks > _MOST_MARKS:
        yield f"A maximum of {_MOST_MARKS} blocks with cache_control may be provided. Found {marks}."


def _tools(tools: list[dict[str, Any]]) -> Iterator[str]:
    names = [tool["name"] for tool in tools]
    if len(names) != len(set(names)):
        yield "tools: Tool names must be unique."
    for name in names:
        if not _NAME.fullmatch(name):
            yield f"tools: {name!r} does not match the pattern"


def _turns(messages: list[dict[str, Any]]) -> Iterator[str]:
    if not messages or messages[0]["role"] != "user":
        yield "messages: first message must use the user role"
        return
    if messages[-1]["role"] != "user":
        yield "This model does not support assistant message prefill."
    asked: list[str] = []
    seen: set[str] = set()
    before = ""
    for index, message in enumerate(messages):
        if message["role"] == before:
            yield f"messages.{index}: roles must alternate"
        before = message["role"]
        blocks: list[dict[str, Any]] = message["content"]
        if not blocks:
            yield f"messages.{index}: all messages must have non-empty content"
        for at, block in enumerate(blocks):
            yield from _block(block, f"messages.{index}.content.{at}")
        if before == "user":
            yield from _results(blocks, asked, index)
            asked = []
        else:
            yield from _answer(blocks, index)
            asked = [block["id"] for block in blocks if block["type"] == "tool_use"]
            if seen & {*asked} or len({*asked}) != len(asked):
                yield f"messages.{index}: `tool_use` ids must be unique"
            seen |= {*asked}


def _block(block: dict[str, Any], place: str) -> Iterator[str]:
    kind = block["type"]
    if kind == "text" and not block["text"].strip():
        yield f"{place}: text content blocks must contain non-whitespace text"
    if kind == "thinking" and block["signature"] != signature(block["thinking"]):
        yield f"{place}: Invalid `signature` in `thinking` block"
    if kind in {"thinking", "redacted_thinking"} and "cache_control" in block:
        yield f"{place}: thinking blocks cannot be cached"
    if kind == "tool_use" and not (_ID.fullmatch(block["id"]) and _NAME.fullmatch(block["name"])):
        yield f"{place}: String should match pattern"
    if kind == "image":
        try:
            base64.b64decode(block["source"]["data"], validate=True)
        except binascii.Error:
            yield f"{place}: image is not valid base64"


def _results(blocks: list[dict[str, Any]], asked: list[str], index: int) -> Iterator[str]:
    kinds = [block["type"] == "tool_result" for block in blocks]
    if kinds != sorted(kinds, reverse=True):
        yield f"messages.{index}: `tool_result` blocks must come first"
    given = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    for one in asked:
        if one not in given:
            yield f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {one}"
    for one in given:
        if one not in asked:
            yield f"messages.{index}: unexpected `tool_use_id` found in `tool_result` blocks: {one}"
    if len({*given}) != len(given):
        yield f"messages.{index}: each tool_use must have a single result"


def _answer(blocks: list[dict[str, Any]], index: int) -> Iterator[str]:
    if blocks and blocks[-1]["type"] in {"thinking", "redacted_thinking"}:
        yield f"messages.{index}: The final block in an assistant message cannot be `thinking`."
    if any(block["type"] not in {"text", "tool_use", "thinking", "redacted_thinking"} for block in blocks):
        yield f"messages.{index}: this block cannot be in an assistant message"


# ------------------------------------------------------------------------------------------------------------ responses


def responses_problems(request: RecordedRequest) -> Iterator[str]:
    body = request.body
    if not request.headers.get("authorization", "").startswith("Bearer "):
        yield "You didn't provide an API key."
    yield from problems(body, ResponseCreateParamsStreaming)
    yield from _tools(body.get("tools", []))
    if body.get("store") is not False:
        yield "this test stores nothing"
    items: list[dict[str, Any]] = body["input"]
    if not items:
        yield "One of input, previous_response_id or prompt must be provided."
    calls: set[str] = set()
    outputs: set[str] = set()
    for index, item in enumerate(items):
        if item["type"] == "function_call":
            yield from _function_call(item, index)
            calls.add(item["call_id"])
        elif item["type"] == "function_call_output":
            if item["call_id"] not in calls:
                yield f"No tool call found for function call output with call_id {item['call_id']}."
            outputs.add(item["call_id"])
        elif item["type"] == "reasoning":
            yield from _reasoning(items, index)
        elif item["type"] != "message":
            yield f"input[{index}]: unexpected {item['type']}"
    for one in calls - outputs:
        yield f"No tool output found for function call {one}."


def _function_call(item: dict[str, Any], index: int) -> Iterator[str]:
    if len(item["call_id"]) > 64:
        yield f"Invalid 'input[{index}].call_id': string too long."
    if not _NAME.fullmatch(item["name"]):
        yield f"Invalid 'input[{index}].name': string does not match pattern."


def _reasoning(items: list[dict[str, Any]], index: int) -> Iterator[str]:
    item = items[index]
    text = "".join(part["text"] for part in item["summary"])
    if not item.get("encrypted_content"):
        yield f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to false."
    elif item["encrypted_content"] != signature(text):
        yield f"The encrypted content for item {item['id']} could not be verified."
    following = items[index + 1]["type"] if index + 1 < len(items) else ""
    if following not in {"function_call", "message", "reasoning"}:
        yield f"Item '{item['id']}' of type 'reasoning' was provided without its required following item."


# ----------------------------------------------------------------------------------------------------------------- chat


def chat_problems(request: RecordedRequest) -> Iterator[str]:
    body = request.body
    yield from problems(body, CompletionCreateParamsStreaming)
    yield from _tools([tool["function"] for tool in body.get("tools", [])])
    waiting: list[str] = []
    for index, message in enumerate(body["messages"]):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"messages.[{index}]: a tool message must follow a message with 'tool_calls'."
            waiting = [one for one in waiting if one != message["tool_call_id"]]
            continue
        if waiting:
            yield f"An assistant message with 'tool_calls' must be followed by tool messages: {waiting}"
        waiting = [call["id"] for call in message.get("tool_calls", [])]
    if waiting:
        yield f"An assistant message with 'tool_calls' must be followed by tool messages: {waiting}"


_CHECKS: Mapping[str, Any] = {
    "anthropic": anthropic_problems,
    "openai-responses": responses_problems,
    "openai-chat": chat_problems,
}
