"""A model that replays scripted replies: deterministic and offline, for tests and demos."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Literal
from zlib import crc32

from msgspec import Struct

from wave_agent.models.base import CutShort, Delta, ModelRequest, Reasoning, Text, ToolCall, Usage


class Reply(Struct, frozen=True):
    """One answer: reasoning, then text, then calls, then usage, as models stream them."""

    text: str = ""
    tool_calls: Sequence[ToolCall] = ()
    reasoning: str = ""
    usage: Usage | None = None
    gate: asyncio.Event | None = None
    """Nothing is streamed until this is set, so a test can inspect the waiting agent."""
    error: Exception | None = None
    """Raised after everything above: a stream that breaks midway."""
    cut: Literal["length", "content_filter"] | None = None
    """The answer ends here although the model was not done, for example at the output limit."""


Answer = Reply | str | Exception
"""A string is a reply with that text; an exception is raised instead of an answer."""

Script = Answer | Callable[[ModelRequest], Answer]
"""A function is called with the request when its turn comes."""


def call(name: str, /, **arguments: Any) -> ToolCall:
    """A call of the tool `name`, with a new id."""
    return ToolCall(f"call_{os.urandom(9).hex()}", name, json.dumps(arguments, ensure_ascii=False))


def signature(text: str) -> str:
    """A stand-in for the signature or the encrypted form of reasoning: the same for the same text."""
    return f"signed-{crc32(text.encode('utf-8', 'surrogatepass')):08x}"


def pieces(text: str) -> list[str]:
    """Split a text into words, as models stream it; joined, they give the same text."""
    return re.findall(r"\s*\S+|\s+", text)


class ScriptedModel:
    """A `Model` that gives its replies one after another and records the requests.

        model = ScriptedModel([Reply(tool_calls=[call("Bash", command="make test")]), "All tests pass."])

    `replies` may be endless: `itertools.repeat(function_of_the_request)`.
    """

    def __init__(self, replies: Iterable[Script]) -> None:
        self._replies = iter(replies)
        self.requests: list[ModelRequest] = []
        """All requests, in order."""
        self.closed = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        self.requests.append(request)
        reply = self._next_reply(request)
        if reply.gate is not None:
            await reply.gate.wait()
        for delta in _deltas(reply):
            await asyncio.sleep(0)  # lets other tasks run and cancellation happen, as with a real stream
            yield delta
        if reply.error is not None:
            raise reply.error

    async def close(self) -> None:
        self.closed = True

    def _next_reply(self, request: ModelRequest) -> Reply:
        try:
            script = next(self._replies)
        except StopIteration:
            raise out_of_replies(len(self.requests), request.messages) from None
        return as_reply(script(request) if callable(script) else script)


def as_reply(answer: Answer) -> Reply:
    """The answer as a reply; an exception becomes the error of an empty reply."""
    if isinstance(answer, str):
        return Reply(answer)
    return Reply(error=answer) if isinstance(answer, Exception) else answer


def out_of_replies(asked: int, messages: Sequence[Any]) -> AssertionError:
    """Not a `ModelError`: a test that is missing a reply should fail, not see the agent recover."""
    last = json.dumps(messages[-1], ensure_ascii=False, default=repr) if messages else "nothing"
    had = {1: "no reply", 2: "one reply"}.get(asked, f"{asked - 1} replies")
    return AssertionError(f"request {asked} arrived, but the script has {had}; its last message was {last[:500]}")


def _deltas(reply: Reply) -> list[Delta]:
    shown: list[Delta] = [Reasoning(piece) for piece in pieces(reply.reasoning)]
    shown += [Text(piece) for piece in pieces(reply.text)]
    shown += reply.tool_calls
    shown += [] if reply.usage is None else [reply.usage]
    return shown if reply.cut is None else [*shown, CutShort(reply.cut)]
