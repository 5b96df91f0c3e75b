"""The conversation: blocks, messages, and the one object that changes them.

A block is for the model, for the user, or for both; `models.conversion` drops those for the user only.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

Role = Literal["user", "assistant"]
Source = Literal["user", "model", "hook"]


BLOCKED = "Hook blocked tool execution"
"""The `error` of a call that a hook denied."""
DENIED = "Permission denied"
"""The `error` of a call that was refused for any other reason."""
NOT_RUN = "Not run: "
"""Prefix of what the model reads about a refused call."""
STOPPED = f"{NOT_RUN}a hook ended the turn."
NO_RESULT = "This call was interrupted and has no result. It may have run, wholly or in part."
"""The result of a call that was still open when an agent was killed."""
SUMMARY_INTRODUCTION = "This conversation was long; this is a summary of what came before."


class Origin(Struct, frozen=True, omit_defaults=True):
    """The hook and event that a text comes from; or `HARNESS`."""

    event: str
    hook: str
    call: str = ""
    """The call that it is about, if its answer had more than one."""


HARNESS = Origin("harness", "wave")
"""Origin of text from the agent itself, such as the report that a background command has ended."""


class Image(Struct, frozen=True):
    """An image that a tool returns to the model."""

    media_type: str
    data: str
    """Base64."""
    width: int
    height: int

    @property
    def tokens(self) -> int:
        """Roughly how much of the window it takes. Servers scale large images down, each in its own way."""
        return min(max(self.width * self.height // 750, 100), 3000)


class Kept(Struct, frozen=True):
    """What an API sent with a block and wants back unchanged: signed or encrypted reasoning, or fields of a call that
    only this API understands. It goes back to the same API and model, and to no other."""

    api: str
    model: str
    data: Mapping[str, Any]


class TextBlock(Struct, frozen=True, tag="text", tag_field="type"):
    """Text from the user, the model or a hook. The agent's own text has the source `hook` and the origin `HARNESS`.

    A hook's text is stored verbatim; the model is shown its origin."""

    content: str
    source: Source
    origin: Origin | None = None
    kept: Kept | None = None


class ToolBlock(Struct, frozen=True, tag="tool", tag_field="type"):
    """A tool call and, once it exists, its result."""

    id: str
    name: str
    parameters: Mapping[str, Any]
    result: str | None = None
    success: bool | None = None
    error: str | None = None
    origin: Origin | None = None
    """Set when a hook wrote the result."""
    images: tuple[Image, ...] = ()
    """Images shown to the model with the result."""
    kept: Kept | None = None


class ErrorBlock(Struct, frozen=True, tag="error", tag_field="type"):
    """Something went wrong. Shown to the user only."""

    content: str


class NoticeBlock(Struct, frozen=True, tag="notice", tag_field="type"):
    """Something the user should know. Shown to the user only."""

    content: str
    level: Literal["info", "warning"] = "warning"


class ReasoningBlock(Struct, frozen=True, tag="reasoning", tag_field="type"):
    """The model's reasoning. Sent back for the rest of the turn, if the server accepts it; what is `kept`, for the
    rest of the session."""

    content: str
    field: str = ""
    """The message field in which the server sent it. Empty: never sent back."""
    kept: Kept | None = None


Block = TextBlock | ToolBlock | ErrorBlock | NoticeBlock | ReasoningBlock


class Message(Struct, frozen=True):
    role: Role
    blocks: tuple[Block, ...] = ()

    @property
    def text(self) -> str:
        """All text for the model, excluding tool results."""
        return "\n".join(block.content for block in self.blocks if isinstance(block, TextBlock))

    @property
    def is_prompt(self) -> bool:
        """It contains text from the user, so a turn starts with it."""
        return any(isinstance(block, TextBlock) and block.source == "user" for block in self.blocks)

    def to_dict(self) -> dict[str, Any]:
        """The JSON shape of the command line's `messages`."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        for block in found["blocks"]:
            block.pop("origin", None)
            block.pop("images", None)
            block.pop("field", None)
            block.pop("kept", None)
        return found


Value = TypeVar("Value")


class EachOnce(Generic[Value]):
    """The results of a function for every message of a conversation, computed once per message.

    A conversation only grows at its end, so a turn late in a session costs no more than an early one.
    """

    def __init__(self, work: Callable[[Message], Sequence[Value]]) -> None:
        self._work = work
        self._messages: list[Message] = []
        self._values: list[Value] = []
        self._starts: list[int] = []
        """The index of each message's first value."""

    def __call__(self, messages: Sequence[Message]) -> list[Value]:
        """The values of all messages, in order."""
        found = list(messages)
        same = self._unchanged(found)
        if same < len(self._messages):
            del self._values[self._starts[same] :], self._starts[same:]
        for message in found[same:]:
            self._starts.append(len(self._values))
            self._values.extend(self._work(message))
        self._messages = found
        return self._values.copy()

    def _unchanged(self, messages: list[Message]) -> int:
        """How many leading messages are the same as last time. Lists of identical objects compare quickly."""
        known = self._messages
        if messages[: len(known)] == known:  # almost always: something was added at the end
            return len(known)
        length, step = min(len(known), len(messages)), 1
        while length > 0 and messages[:length] != known[:length]:
            length, step = length - step, step * 2
        return max(length, 0)


class PromptAdded(Struct, frozen=True):
    """A prompt was added to the conversation, but no hook has judged it yet."""

    text: str


class PromptAccepted(Struct, frozen=True):
    text: str


class PromptRemoved(Struct, frozen=True):
    text: str
    reason: str
    typed: str = ""
    """What the user typed, if that was expanded."""


class MessageAdded(Struct, frozen=True):
    message: Message


class BlockAdded(Struct, frozen=True):
    """A block shown to the user only."""

    block: ErrorBlock | NoticeBlock


class Ran(Struct, frozen=True, omit_defaults=True):
    """When the tool itself ran, excluding the hooks around it."""

    started: str
    duration_ms: float
    own_length: int | None = None
    """How many characters of the result the tool wrote, if notes about hooks follow."""
    changed_files: tuple[str, ...] = ()
    """As hooks get them."""


class AsideUpdated(Struct, frozen=True):
    """A call that is not part of the conversation has its result."""

    block: ToolBlock


class ToolUpdated(Struct, frozen=True):
    block: ToolBlock
    ran: Ran | None = None


class Compacted(Struct, frozen=True, omit_defaults=True):
    """A summary replaces the first `upto` messages for the model. The user keeps them all."""

    summary: str
    upto: int
    words: str = ""
    """The user's words in these messages, verbatim."""
    facts: str = ""
    """Other facts that must not be lost: the todo list, files."""


class Opening(Struct, frozen=True, kw_only=True):
    """How every request of a session begins. It changes only when the conversation is summarised, also if the session
    is resumed, so that a server's prompt cache can serve it."""

    system: str
    tools: tuple[Mapping[str, Any], ...] = ()
    """The tools as offered to the model."""
    profile: str = "full"
    """How `system` and `tools` were made."""
    mode: str = ""
    """The permission mode that `system` names."""
    known: Mapping[str, str] = {}
    """What the model knows about things that may change: for each, a digest of its text in `system` or, if that was
    announced, in the latest message about it."""


Change = (
    PromptAdded | PromptAccepted | PromptRemoved | MessageAdded | BlockAdded | ToolUpdated | AsideUpdated | Compacted
)


class MessageManager:
    """Owns the list of messages. Every change is announced immediately and in order."""

    def __init__(
        self,
        messages: Sequence[Message] = (),
        on_change: Callable[[Change], None] = lambda _: None,
        compacted: Compacted | None = None,
    ) -> None:
        self._messages = list(messages)
        self._on_change = on_change
        self._prompt: int | None = None
        self._typed = ""
        self._asides: dict[str, ToolBlock] = {}
        self._compacted = compacted or Compacted("", 0)
        self._summary = _summary_message(self._compacted)
        self._calls: dict[str, ToolBlock] = {}
        """All calls by their ids, as they are now."""
        self._open_ids: set[str] = set()
        self._unsettled: dict[str, ToolBlock] = {}
        """Calls whose new state is not in `_messages` yet: an answer may have thousands, and each result would copy
        them all."""
        for message in messages:
            self._note_calls(message.blocks)

    @property
    def messages(self) -> list[Message]:
        """A copy: only this object changes the conversation."""
        return list(self._settled())

    @property
    def latest_prompt(self) -> str:
        """What the user, or for a subagent the agent above, wants now, as the model reads it; empty before that."""
        prompts = (message for message in reversed(self._settled()) if message.is_prompt)
        blocks = next(prompts, Message("user")).blocks
        return "\n".join(one.content for one in blocks if isinstance(one, TextBlock) and one.source == "user")

    @property
    def for_model(self) -> list[Message]:
        """The messages the model still reads: all of them, or a summary and the ones after it."""
        upto = self._compacted.upto
        return [self._summary, *self._settled()[upto:]] if upto else self.messages

    @property
    def compacted_upto(self) -> int:
        return self._compacted.upto

    def compact(self, summary: str, upto: int, *, words: str = "", facts: str = "") -> None:
        """Replaces the first `upto` messages with a summary, for the model."""
        self._compacted = Compacted(summary, upto, words, facts)
        self._summary = _summary_message(self._compacted)
        self._on_change(self._compacted)

    # ---------------------------------------------------------------------------------------------------------- prompt

    def add_prompt(self, text: str) -> None:
        """Adds the user's prompt, until a hook has judged it: see `accept_prompt` and `remove_last_user_message`."""
        self._prompt, self._typed, self._asides = len(self._messages), "", {}
        self._messages.append(Message("user", (TextBlock(text, "user"),)))
        self._on_change(PromptAdded(text))

    def expand_prompt(self, text: str) -> None:
        """Replaces the text of the prompt that is waiting for its verdict."""
        if self._prompt is not None:
            self._typed = self._messages[self._prompt].text
            self._messages[self._prompt] = Message("user", (TextBlock(text, "user"),))

    def accept_prompt(self) -> None:
        if self._prompt is not None:
            text = self._messages[self._prompt].text
            self._prompt = None
            self._on_change(PromptAccepted(text))

    def drop_unjudged_prompt(self, why: str = "interrupted before its hooks had finished") -> None:
        """Erases a prompt whose hooks could not finish: one of them might have refused it."""
        if self._prompt is not None:
            self.remove_last_user_message(why)

    def remove_last_user_message(self, reason: str = "") -> None:
        """Erases the prompt that is waiting for its verdict, otherwise the last user message."""
        users = [index for index, message in enumerate(self._messages) if message.role == "user"]
        at = self._prompt if self._prompt is not None else users[-1] if users else None
        self._prompt = None
        if at is not None:
            self._on_change(PromptRemoved(self._messages.pop(at).text, reason, self._typed))

    # -------------------------------------------------------------------------------------------------------- messages

    def tell_model(self, *texts: str) -> None:
        """Text from the agent itself, in the user's role: a command has ended, the mode has changed."""
        self.add_user_message(*(TextBlock(text, "hook", HARNESS) for text in texts))

    def add_user_message(self, *texts: TextBlock) -> None:
        """Adds a message in the user's role, whoever wrote the text."""
        self._add(Message("user", texts))

    def add_assistant_message(self, *blocks: Block) -> None:
        self._note_calls(blocks)
        self._add(Message("assistant", blocks))

    def _note_calls(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            if isinstance(block, ToolBlock):
                self._calls[block.id] = block
                if block.result is None:
                    self._open_ids.add(block.id)

    def _settled(self) -> list[Message]:
        """The messages, with every call as it is now."""
        for index in range(len(self._messages) - 1, -1, -1):
            if not self._unsettled:
                break
            message = self._messages[index]
            if any(isinstance(block, ToolBlock) and block.id in self._unsettled for block in message.blocks):
                self._messages[index] = replace(message, blocks=tuple(map(self._now, message.blocks)))
        self._unsettled.clear()
        return self._messages

    def _now(self, block: Block) -> Block:
        return self._unsettled.pop(block.id, block) if isinstance(block, ToolBlock) else block

    def _add(self, message: Message) -> None:
        self._messages.append(message)
        self._on_change(MessageAdded(message))

    # ---------------------------------------------------------------------------------------------------------- blocks

    def add_error_block(self, content: str) -> None:
        """Shown to the user only; never empty."""
        self._add_block(ErrorBlock(content or "Something failed without giving a reason"))

    def add_notice_block(self, content: str, level: Literal["info", "warning"] = "warning") -> None:
        self._add_block(NoticeBlock(content, level))

    def _add_block(self, block: ErrorBlock | NoticeBlock) -> None:
        """Adds it at the end of the conversation, in an assistant message."""
        if self._messages and self._messages[-1].role == "assistant":
            last = self._messages[-1]
            self._messages[-1] = replace(last, blocks=(*last.blocks, block))
        else:
            self._messages.append(Message("assistant", (block,)))
        self._on_change(BlockAdded(block))

    def add_aside(self, call: ToolBlock) -> None:
        """A call that the prompt asks for before it is sent. It gets its result as others do, but never becomes part of
        the conversation or the transcript."""
        self._asides[call.id] = call

    def aside(self, tool_id: str) -> ToolBlock | None:
        """A call that the latest prompt asked for."""
        return self._asides.get(tool_id)

    def update_tool_block(
        self,
        tool_id: str,
        *,
        result: str,
        success: bool,
        error: str | None = None,
        origin: Origin | None = None,
        ran: Ran | None = None,
        images: tuple[Image, ...] = (),
    ) -> None:
        """Sets the result of a call. Its parameters stay as the model sent them. `ran` is announced, not stored.

        Raises `KeyError`."""
        if tool_id in self._asides:
            aside = replace(self._asides[tool_id], result=result, success=success, error=error, origin=origin)
            self._asides[tool_id] = aside
            self._on_change(AsideUpdated(aside))
            return
        done = replace(self._calls[tool_id], result=result, success=success, error=error, origin=origin, images=images)
        self._calls[tool_id] = self._unsettled[tool_id] = done
        self._open_ids.discard(tool_id)
        self._on_change(ToolUpdated(done, ran))

    def results(self) -> list[str]:
        """All tool results."""
        return [block.result for block in self._calls.values() if block.result]

    def call(self, tool_id: str) -> ToolBlock:
        """Raises `KeyError`."""
        return self._calls[tool_id]

    def result_of(self, tool_id: str) -> str:
        """The result of a call; empty if there is none yet."""
        return (self.call(tool_id).result or "") if self.has_call(tool_id) else ""

    @property
    def number_of_calls(self) -> int:
        return len(self._calls)

    def has_call(self, tool_id: str) -> bool:
        return tool_id in self._calls

    def open_calls(self) -> list[ToolBlock]:
        """Calls without a result."""
        return [block for name, block in self._calls.items() if name in self._open_ids] if self._open_ids else []


def _summary_message(compacted: Compacted) -> Message:
    summary = TextBlock(f"{SUMMARY_INTRODUCTION}\n\n{compacted.summary}", "model")
    words = (TextBlock(compacted.words, "user"),) if compacted.words else ()
    facts = (TextBlock(compacted.facts, "model"),) if compacted.facts else ()
    return Message("user", (summary, *facts, *words))
