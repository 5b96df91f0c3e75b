"""The interface between the agent and a model."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct


class ToolSpec(Struct, frozen=True):
    """A tool as described to the model."""

    name: str
    description: str
    schema: Mapping[str, Any]
    """JSON Schema of the input object."""


class ModelRequest(Struct, frozen=True, kw_only=True):
    """One request. `messages` are in the chat format, as `models.conversion` makes them."""

    model: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[ToolSpec] = ()


class Text(Struct, frozen=True):
    """A piece of the answer."""

    text: str


class Reasoning(Struct, frozen=True):
    """A piece of the model's reasoning."""

    text: str
    field: str = ""
    """The message field in which the server sent it and expects it back. Empty if it is not sent back."""


class ToolCall(Struct, frozen=True):
    """A complete call. `arguments` is what the model wrote: meant to be a JSON object, but not always one."""

    id: str
    name: str
    arguments: str


class CutShort(Struct, frozen=True):
    """The answer ended before the model was done. Always the last delta."""

    reason: Literal["length", "content_filter"]
    """It reached the output limit, or the server's content filter stopped it."""


class Usage(Struct, frozen=True):
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)


class Retry(Struct, frozen=True):
    """The request failed and will be retried: progress for the user. Anything already streamed stays visible."""

    reason: str
    seconds: float


Delta = Text | Reasoning | ToolCall | CutShort | Usage | Retry


class Model(Protocol):
    """Anything that can answer a request."""

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """Stream the answer; calls arrive complete. Raises `ModelError` if there is no answer.

        Ending the iteration early, or cancelling the task, ends the request.
        """
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
