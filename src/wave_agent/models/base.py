"""The interface between the agent and a model."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from operator import add
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import astuple

from wave_agent.messages import Kept

if TYPE_CHECKING:  # only the client needs them
    from wave_agent.http.refusals import Refusal
    from wave_agent.http.routes import Endpoint
    from wave_agent.models.limits import AnswerLimits
    from wave_agent.models.windows import Fetch, Window


ApiName: TypeAlias = Literal["openai-chat", "openai-responses", "anthropic"]
CHAT_API: ApiName = "openai-chat"
Effort: TypeAlias = Literal["low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[Effort, ...] = ("low", "medium", "high", "xhigh", "max")
"""From the least to the most. Not every model knows the last ones."""


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
    max_output_tokens: int | None = None
    """The most tokens the answer may have. None: as many as the server permits."""
    one_call: bool = False
    """The answer should make at most one call."""
    must_call: str = ""
    """The tool that the answer has to call, if any. A server that cannot force a call is only asked for it."""
    effort: str | None = None
    """How hard the model should think: `low`, `medium`, `high` or what else its API knows. None: the API's default."""


class Text(Struct, frozen=True):
    """A piece of the answer."""

    text: str
    kept: Kept | None = None
    """Ends this block of text, and says what to send back with it."""


class Reasoning(Struct, frozen=True):
    """A piece of the model's reasoning."""

    text: str
    field: str = ""
    """The message field in which the server sent it and expects it back. Empty if it is not sent back."""
    kept: Kept | None = None
    """Ends this block of reasoning, and says what to send back in its place."""


class ToolCall(Struct, frozen=True):
    """A complete call. `arguments` is what the model wrote: meant to be a JSON object, but not always one."""

    id: str
    name: str
    arguments: str
    kept: Kept | None = None
    """What to send back with it."""


class CutShort(Struct, frozen=True):
    """The answer ended before the model was done. Always the last delta."""

    reason: Literal["length", "content_filter"]
    """It reached the output limit, or the server's content filter stopped it."""


class Usage(Struct, frozen=True):
    """Tokens of one or more requests. Every field means the same for every API."""

    input_tokens: int = 0
    """The whole request, whether or not a part of it was cached."""
    output_tokens: int = 0
    """The whole answer, including reasoning."""
    cache_read_tokens: int = 0
    """The part of `input_tokens` that came from the server's cache."""
    cache_write_tokens: int = 0
    """The part of `input_tokens` that the server charged for adding to its cache."""
    hook_tokens: int = 0
    """Tokens that hooks used for requests of their own; not part of the others."""

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*map(add, astuple(self), astuple(other)))


def usage_of(given: int, answered: int, read: int, written: int) -> Usage:
    """No more of a request can come from a cache, or go to it, than there is of the request."""
    read = min(read, given)
    return Usage(given, answered, cache_read_tokens=read, cache_write_tokens=min(written, given - read))


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


class Reader(Protocol):
    """Reads one answer of an API, piece by piece."""

    limits: "AnswerLimits"
    """Reading raises `ModelError` once the answer exceeds them."""
    finished: bool
    """The model is done: nothing more will come, except perhaps the usage."""
    pieces: int
    """How many pieces were readable."""
    unreadable: str
    """The beginning of the first piece that was not."""
    error: Any
    """The error that the server reported midway, if any."""
    unfinished: Sequence[Mapping[str, Any]]
    """What the API wants to see again in order to go on with this answer; empty if the answer is complete."""

    def read_all(self, pieces: Iterable[str]) -> Iterator[Delta]:
        """The deltas in these events, up to one with an error."""
        ...

    def read(self, piece: str | bytes) -> Iterable[Delta]:
        """The deltas in a body that holds the whole answer."""
        ...

    def end(self) -> Iterable[Delta]:
        """What is known only at the end: the calls, the usage, and whether the answer was cut short."""
        ...


class Api(Protocol):
    """What differs between the APIs of model servers. `models.client` does the rest.

    An instance belongs to one client, and learns what its server refuses.
    """

    name: ClassVar[str]
    """As in `--api`."""
    conversation: ClassVar[str]
    """The field of a request that has the messages."""
    statuses: ClassVar[Mapping[str, int]]
    """The HTTP status that an error in the middle of an answer corresponds to, by its type or code."""

    def endpoint(self, base_url: str) -> "Endpoint":
        """Where requests go. Raises `ModelError` if this is not a URL."""
        ...

    def headers(self, key: str) -> Mapping[str, str]:
        """The headers that only this API needs, among them the key, unless that is empty."""
        ...

    def body(self, request: ModelRequest, so_far: Sequence[Mapping[str, Any]] = ()) -> Mapping[str, Any]:
        """The request as JSON. `so_far` are the `unfinished` parts of the same answer."""
        ...

    def reader(self, request: ModelRequest, limits: "AnswerLimits") -> Reader: ...

    def adapts_to(self, status: int, refusal: "Refusal") -> bool:
        """True: the server refused something optional, and the next body will do without."""
        ...

    def instead(self, status: int, refusal: "Refusal") -> "Api | None":
        """Another API of the server, if its refusal says that this model is only there."""
        ...

    def models_url(self, base_url: str) -> str:
        """Where the server lists its models."""
        ...

    async def context_window(self, base_url: str, model: str, fetch: "Fetch") -> "Window | None":
        """The context window of a model, if the server reports it."""
        ...
