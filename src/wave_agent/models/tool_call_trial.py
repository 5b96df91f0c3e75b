"""Tries a model with one tool call: a model that never calls tools is of little use to an agent."""

import asyncio
from time import monotonic
from typing import Literal

from msgspec import Struct

from wave_agent.errors import WaveError
from wave_agent.models.base import Model, ModelRequest, Text, ToolCall, ToolSpec
from wave_agent.text import one_line

_PING = ToolSpec(
    "ping",
    "Replies with pong. Call it when asked to ping.",
    {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
)
_REQUEST = "Use the tool ping with the word hello. Do not answer in words."
_SHOWN = 200


class ToolCallTrial(Struct, frozen=True):
    """What came back."""

    outcome: Literal["call", "text", "nothing", "error"]
    detail: str
    """The call, the text or the error, on one line."""
    seconds: float


def tool_call_request(name: str) -> ModelRequest:
    """Asks this model for one call of a small tool."""
    return ModelRequest(model=name, messages=[{"role": "user", "content": _REQUEST}], tools=[_PING])


async def try_tool_call(client: Model, name: str, patience: float) -> ToolCallTrial:
    """Asks the model for one call of a small tool, which is not run. Never raises for what a server does."""
    began = monotonic()
    text, calls = "", list[ToolCall]()

    def done(outcome: Literal["call", "text", "nothing", "error"], detail: str) -> ToolCallTrial:
        return ToolCallTrial(outcome, one_line(detail, _SHOWN), monotonic() - began)

    try:
        async with asyncio.timeout(patience):
            async for delta in client.stream(tool_call_request(name)):
                if isinstance(delta, ToolCall):
                    calls.append(delta)
                elif isinstance(delta, Text):
                    text += delta.text
    except TimeoutError:
        return done("error", f"{name} did not answer within {patience:g} s")
    except WaveError as error:
        return done("error", str(error))
    if calls:
        return done("call", f"{calls[0].name} {calls[0].arguments}")
    return done("text", text) if text.strip() else done("nothing", "")
