"""Converts messages to the chat format. Always a valid conversation, without anything meant only for the user."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import chain
from typing import Any

import msgspec
from msgspec import Struct

from wave_agent.marks import OWN, inside_hook, json_without_marks, without_marks
from wave_agent.messages import (
    BLOCKED,
    DENIED,
    HARNESS,
    NO_RESULT,
    NOT_RUN,
    Block,
    EachOnce,
    Kept,
    Message,
    Origin,
    ReasoningBlock,
    TextBlock,
    ToolBlock,
)
from wave_agent.text import strip_controls

_WITH_KEPT = (TextBlock, ReasoningBlock, ToolBlock)
IMAGE_LEFT_OUT = "[An image that a tool read is omitted here: this request has no images.]"


class FailedResult(dict[str, Any]):
    """The result of a call that failed. The chat format cannot say so: as JSON it is like any other, and only an API
    that has a word for it looks at the type."""


class ReasoningReplay(Enum):
    """Which of the model's reasoning to send back to it. What its API wants back unchanged always is, except with
    `NEVER`: taking it away at the end of a turn would change what prompt caches hold."""

    TURN = "that of the current turn"
    ALWAYS = "all of it, and an empty field where there is none"
    NEVER = "none"


class _RequestMessage(Struct, frozen=True):
    """One message of a request."""

    body: dict[str, Any]
    begins: bool = False
    """It starts a turn."""
    reasoning: Mapping[str, str] = {}
    """By the name of its field."""

    @property
    def has_images(self) -> bool:
        return isinstance(self.body["content"], list)


def convert_messages_for_api(
    messages: Iterable[Message], *, system: str | None = None, fold: bool = False, images: bool = False
) -> list[dict[str, Any]]:
    """The conversation in the chat format. `fold` joins consecutive user messages, for templates that need alternating
    roles. With `images`, images are sent; otherwise a note takes the place of each.

    Each call is followed by its result, in call order. Error and notice blocks and the reasoning of earlier turns are
    omitted, as are messages that are then empty. An answer with blocks that its API wants back has `parts`: all its
    blocks in order. `openai_chat` and the other APIs turn them into what theirs expects.
    """
    return _whole(list(chain.from_iterable(map(_converted, messages))), system, fold=fold, images=images)


class Converter:
    """`convert_messages_for_api` for repeated use on one conversation: converts only what is new or changed."""

    def __init__(self) -> None:
        self._each = EachOnce(_converted)
        self._bodies = EachOnce(_bodies)
        self._special = EachOnce(_special)
        self._system: dict[str, Any] = {}

    def has_images(self, messages: Sequence[Message]) -> bool:
        return any(one.has_images for one in self._special(messages))

    def convert(
        self,
        messages: Sequence[Message],
        *,
        system: str | None = None,
        fold: bool = False,
        images: bool = False,
        replay: ReasoningReplay = ReasoningReplay.TURN,
    ) -> list[dict[str, Any]]:
        if fold or replay is ReasoningReplay.NEVER or self._special(messages):
            return _whole(self._each(messages), system, fold=fold, images=images, replay=replay)
        # In most conversations, what was converted before can be sent again as it is.
        converted = self._bodies(messages)
        if not system:
            return converted
        if self._system.get("content") != system:
            self._system = {"role": "system", "content": system}
        return [self._system, *converted]


def _bodies(message: Message) -> list[dict[str, Any]]:
    return [one.body for one in _converted(message)]


def _special(message: Message) -> list[_RequestMessage]:
    """Those that are sent in more than one way: with reasoning or images, or without."""
    return [one for one in _converted(message) if one.reasoning or one.has_images]


def _whole(
    sent: list[_RequestMessage],
    system: str | None,
    *,
    fold: bool,
    images: bool,
    replay: ReasoningReplay = ReasoningReplay.TURN,
) -> list[dict[str, Any]]:
    converted = _with_reasoning(sent, replay)
    if not images:
        converted = [_without_images(message) for message in converted]
    if system:
        converted.insert(0, {"role": "system", "content": system})
    return folded(converted) if fold else converted


def _with_reasoning(sent: Sequence[_RequestMessage], replay: ReasoningReplay) -> list[dict[str, Any]]:
    fields = [field for one in sent for field in one.reasoning]
    if replay is ReasoningReplay.NEVER:
        return [without_parts(one.body) if "parts" in one.body else one.body for one in sent]
    if not fields:
        return [one.body for one in sent]
    if replay is ReasoningReplay.ALWAYS:
        absent = {fields[-1]: ""}
        return [
            {**one.body, **(one.reasoning or absent)} if one.body["role"] == "assistant" else one.body for one in sent
        ]
    start = max((at for at, one in enumerate(sent) if one.begins), default=0)
    is_replayed = [bool(one.reasoning) and at >= start for at, one in enumerate(sent)]
    return [{**one.body, **one.reasoning} if more else one.body for one, more in zip(sent, is_replayed, strict=True)]


def _converted(message: Message) -> list[_RequestMessage]:
    if message.role == "user":
        return [_RequestMessage(body, message.is_prompt) for body in _user(message)]
    thoughts = [block for block in message.blocks if isinstance(block, ReasoningBlock) and block.field]
    reasoning = {block.field: _for_model(block.content, None) for block in thoughts}
    first, *results = _assistant(message) or [None]
    return (
        []
        if first is None
        else [_RequestMessage(first, reasoning=reasoning), *map(_RequestMessage, filter(None, results))]
    )


def folded(messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join consecutive user messages."""
    found: list[dict[str, Any]] = []
    for message in messages:
        if found and message["role"] == "user" == found[-1]["role"]:
            found[-1] = {"role": "user", "content": _joined(found[-1]["content"], message["content"])}
        else:
            found.append(message)
    return found


def _joined(first: str | list[Any], second: str | list[Any]) -> str | list[Any]:
    """Join two contents, each a text or a list of parts."""
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    parts = [[{"type": "text", "text": one}] if isinstance(one, str) else one for one in (first, second)]
    return [*parts[0], *parts[1]]


def _without_images(message: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(message["content"], list):
        return message
    return {**message, "content": IMAGE_LEFT_OUT}


def _user(message: Message) -> list[dict[str, Any]]:
    texts = [
        _text(block)
        for block in message.blocks
        if isinstance(block, TextBlock) and (block.content or block.source == "hook")
    ]
    return [{"role": "user", "content": "\n\n".join(texts)}] if texts else []


def _assistant(message: Message) -> list[dict[str, Any]]:
    text = _for_model(message.text, None)
    calls = [block for block in message.blocks if isinstance(block, ToolBlock)]
    parts = _parts(message)
    if not calls:
        return [{"role": "assistant", "content": text, **parts}] if text else []
    asked = {"role": "assistant", "content": text, "tool_calls": [_call(block) for block in calls], **parts}
    return [asked, *(_result(block) for block in calls), *_images(calls)]


def _parts(message: Message) -> dict[str, Any]:
    """The same answer block by block, with what its API wants back; nothing if it wants nothing back."""
    if not any(isinstance(block, _WITH_KEPT) and block.kept for block in message.blocks):
        return {}
    return {"parts": [part for block in message.blocks for part in _part(block)]}


def _part(block: Block) -> Iterator[dict[str, Any]]:
    match block:
        case ReasoningBlock(kept=Kept() as kept):
            yield {"type": "reasoning", "kept": msgspec.to_builtins(kept)}
        case TextBlock(content=content, kept=kept) if content:
            yield {"type": "text", "text": _for_model(content, None), "kept": msgspec.to_builtins(kept)}
        case ToolBlock(id=name, kept=kept):
            yield {"type": "call", "id": name, "kept": msgspec.to_builtins(kept)}
        case _:
            pass


def belongs(kept: Mapping[str, Any] | None, api: str, model: str) -> bool:
    """Whether this API and model sent it, so that it goes back to them."""
    return kept is not None and (kept["api"], kept["model"]) == (api, model)


def without_parts(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message in the plain chat format."""
    return {key: value for key, value in message.items() if key != "parts"}


def _call(block: ToolBlock) -> dict[str, Any]:
    try:
        arguments = msgspec.json.encode(block.parameters).decode()  # numbers that JSON cannot represent become null
    except (UnicodeEncodeError, OverflowError):
        arguments = json.dumps(block.parameters, separators=(",", ":"))
    return {
        "id": block.id,
        "type": "function",
        "function": {"name": block.name, "arguments": json_without_marks(arguments)},
    }


def result_for_model(block: ToolBlock) -> str:
    """The result of a call as the model reads it."""
    content = NO_RESULT if block.result is None else _for_model(block.result, block.origin)
    if block.error == BLOCKED or (block.error == DENIED and block.origin is not None):
        return f"{NOT_RUN}{content}"  # a bare reason ("no tests yet") could be read as a result
    return content


def _result(block: ToolBlock) -> dict[str, Any]:
    result = {"role": "tool", "tool_call_id": block.id, "content": result_for_model(block)}
    return FailedResult(result) if block.success is False else result


def _images(calls: Sequence[ToolBlock]) -> list[dict[str, Any]]:
    """Images go in a user message after all results of the batch: a tool message can only carry text."""
    parts: list[dict[str, Any]] = []
    for block in calls:
        for image in block.images:
            url = f"data:{image.media_type};base64,{image.data}"
            parts.append({"type": "text", "text": f"The image that {block.name} read (call {block.id}):"})
            parts.append({"type": "image_url", "image_url": {"url": url}})
    return [{"role": "user", "content": parts}] if parts else []


def _text(block: TextBlock) -> str:
    """The text of a block. A hook's text is marked as such even if its origin is unknown."""
    if block.origin == HARNESS:
        return f"{OWN} {_for_model(block.content, None)}"
    origin = block.origin or (Origin("unknown", "unknown") if block.source == "hook" else None)
    return _for_model(block.content, origin)


def _for_model(text: str, origin: Origin | None) -> str:
    """Mark a hook's text with its origin, so that the model does not take it for the user's or the tool's.

    No text can forge that mark, or the agent's own.
    """
    if origin is None:
        return without_marks(text)
    call = f' call="{_attribute(origin.call).replace("<", "&lt;").replace(">", "&gt;")}"' if origin.call else ""
    name = _attribute(origin.hook)
    return f'<hook event="{origin.event}" name="{name}"{call}>\n{inside_hook(strip_controls(text))}\n</hook>'


def _attribute(text: str) -> str:
    """The text between two quotes: one line that cannot end there."""
    return inside_hook(" ".join(strip_controls(text).replace('"', "'").split()))
