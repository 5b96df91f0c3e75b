"""What is sent to the model: the conversation in the form, and at the length, that its server accepts."""

import re
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from wave_agent.agent.shortening import Shortening
from wave_agent.errors import ModelError
from wave_agent.lazy_regex import lazy_regex
from wave_agent.messages import EachOnce, Message, ReasoningBlock, ToolBlock
from wave_agent.models.base import ModelRequest, ToolSpec
from wave_agent.models.conversion import Converter, ReasoningReplay, folded
from wave_agent.models.windows import estimate_tokens

_ALTERNATE = lazy_regex(r"roles? must alternate|alternate user/assistant", re.IGNORECASE)
_REASONING = lazy_regex(r"\breasoning(_content)?\b|\b(redacted_)?thinking\b|encrypted.content")
_DEMANDED = lazy_regex(r"missing|must be (passed|provided|included|present|sent)|is required", re.IGNORECASE)
_FULL = 0.9
"""The share of the window above which a request is shortened before it is sent: the answer needs room too."""
_FITS = 0.75
"""The share to which it is then shortened."""


def tokens_of(messages: Sequence[Message], overhead: int = 0) -> int:
    """Roughly how many tokens of the window these messages take."""
    return overhead + sum(map(message_tokens, messages))


def message_tokens(message: Message) -> int:
    """Roughly how many tokens a message takes, excluding reasoning that is not `kept`."""
    calls = [block for block in message.blocks if isinstance(block, ToolBlock)]
    texts = [str(block.parameters) + (block.result or "") for block in calls]
    images = sum(image.tokens for block in calls for image in block.images)
    texts += [str(block.kept.data) for block in message.blocks if isinstance(block, ReasoningBlock) and block.kept]
    return 4 + images + sum(map(estimate_tokens, (message.text, *texts)))


def _reasoning_tokens(message: Message) -> int:
    thoughts = [block for block in message.blocks if isinstance(block, ReasoningBlock) and block.field]
    return sum(estimate_tokens(block.content) for block in thoughts)


async def _no_images() -> bool:
    return False


class Images(Struct, frozen=True):
    """Whether a model accepts images, and what to do when its server refuses one."""

    taken: Callable[[], Awaitable[bool]] = _no_images
    refuse: Callable[[ModelError], None] = lambda _: None
    """Called on a refusal; no more images are sent afterwards."""


NO_IMAGES = Images()


class RequestForm:
    """The form of request this model's server accepts. What it refuses is omitted for the rest of the session."""

    def __init__(
        self,
        *,
        model: str,
        system: Callable[[], str],
        tools: Callable[[], Sequence[ToolSpec]] = tuple,
        one_call: Callable[[], bool] = lambda: False,
        fold: bool = False,
        images: Images = NO_IMAGES,
        max_output_tokens: int | None = None,
        effort: str | None = None,
    ) -> None:
        """`system`, `tools` and `one_call` are called for each request. They change only when the conversation is
        summarised."""
        self.model = model
        self.system = system
        self.tools = tools
        self.one_call = one_call
        self._measured: tuple[Sequence[ToolSpec], int] = ((), 0)
        self.fold = fold
        """Joins consecutive user messages, for templates that require alternating roles."""
        self.images = images
        self.max_output_tokens = max_output_tokens
        self.effort = effort
        self.sent_images = False
        """The last request contained images."""
        self.replay = ReasoningReplay.TURN

    @property
    def overhead(self) -> int:
        """Roughly how many tokens every request takes regardless of messages."""
        tools = self.tools()
        if tools is not self._measured[0]:
            self._measured = tools, sum(estimate_tokens(f"{one.description}{one.schema}") for one in tools)
        return estimate_tokens(self.system()) + self._measured[1]

    def adapts_to(self, error: ModelError) -> bool:
        """True: the next request will avoid what the server refused."""
        text = str(error)
        if not self.fold and _ALTERNATE.search(text):
            self.fold = True
            return True
        from wave_agent.http.refusals import is_too_long, refuses_images  # lazy: few requests are refused

        if self.sent_images and refuses_images(error) and (error.status == 413 or not is_too_long(text, error.status)):
            self.images.refuse(error)
            return True
        if error.status not in {400, 422} or not _REASONING.search(text):
            return False
        wanted = (
            ReasoningReplay.ALWAYS
            if self.replay is ReasoningReplay.TURN and _DEMANDED.search(text)
            else ReasoningReplay.NEVER
        )
        changed = wanted is not self.replay
        self.replay = wanted
        return changed


class Draft:
    """A conversation on its way to the model. It is shortened as often as the server finds it too long."""

    def __init__(
        self,
        form: RequestForm,
        messages: Callable[[], Sequence[Message]],
        *,
        question: str = "",
        shortening: Shortening | None = None,
    ) -> None:
        """`question` follows all messages."""
        self.form = form
        self._messages = messages
        self._question = question
        self._shortening = shortening or Shortening()
        self._converter = Converter()
        self._sizes: EachOnce[tuple[int, int, bool]] = EachOnce(
            lambda message: ((message_tokens(message), _reasoning_tokens(message), message.is_prompt),)
        )
        self.cuts = 0
        """How often it was shortened."""
        self._refused: int | None = None
        """The smallest size the server has rejected as too long."""

    def part(self, messages: Sequence[Message], question: str) -> "Draft":
        """A part of the conversation with a question, shortened in the same places."""
        return Draft(self.form, lambda: messages, question=question, shortening=self._shortening.copy())

    async def request(self, *, tools: bool = True) -> ModelRequest:
        form, messages = self.form, self._shortening.apply(self._messages())
        form.sent_images = self._converter.has_images(messages) and await form.images.taken()
        sent = self._converter.convert(
            messages, system=form.system(), fold=form.fold, images=form.sent_images, replay=form.replay
        )
        if self._question:
            question = {"role": "user", "content": self._question}
            sent = folded([*sent, question]) if form.fold else [*sent, question]
        return ModelRequest(
            model=form.model,
            messages=sent,
            tools=form.tools() if tools else (),
            max_output_tokens=form.max_output_tokens,
            effort=form.effort,
            one_call=form.one_call(),
        )

    def size(self) -> int:
        """Roughly how many tokens the next request takes."""
        return self._size(self._shortening.apply(self._messages()))

    def room(self, window: int | None) -> int | None:
        """How many tokens the model accepts, from what is known about it and what its server has rejected."""
        return min((one for one in (window, self._refused) if one is not None), default=None)

    def make_fit(self, window: int | None) -> None:
        """Shortens a request that is known to be too long."""
        room = self.room(window)
        if room is not None and self.size() > _FULL * room:
            # An estimate alone must not let the fixed parts of the request crowd out the conversation.
            self._shorten(max(int(_FITS * room), self.form.overhead + room // 4))

    def goal(self, size: int, error: ModelError) -> int:
        """How short a request that the server rejected at `size` should become."""
        from wave_agent.http.refusals import shorter  # lazy: see above

        return shorter(size, self.form.overhead, str(error))

    def shrinks(self, size: int, goal: int) -> bool:
        """Shortens it to `goal`, unless it is already that short. False: it cannot get smaller than `size`."""
        if self.size() > goal:
            self._shorten(goal)
        return self.size() < size

    def too_long(self, error: ModelError) -> bool:
        """Whether the server said this request is too long; if so, remembers its size."""
        from wave_agent.http.refusals import is_too_long  # lazy: see above

        if not is_too_long(str(error), error.status):
            return False
        self._refused = min(self._refused or self.size(), self.size())
        return True

    def _shorten(self, budget: int) -> None:
        self.cuts += self._shortening.shorten(self._messages(), budget, self._size)

    def _size(self, messages: Sequence[Message]) -> int:
        sizes = self._sizes(messages)
        start = max((at for at, (_, _, begins) in enumerate(sizes) if begins), default=0)
        since = {ReasoningReplay.TURN: start, ReasoningReplay.ALWAYS: 0, ReasoningReplay.NEVER: len(sizes)}[
            self.form.replay
        ]
        thoughts = sum(reasoning for _, reasoning, _ in sizes[since:])
        return self.form.overhead + estimate_tokens(self._question) + sum(size for size, _, _ in sizes) + thoughts
