"""Shortens a conversation that is too long for its model.

The model is shown where something is missing. The user's words are never touched, and the transcript stays complete.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from wave_agent.messages import Block, Message, ReasoningBlock, TextBlock, ToolBlock

_STEPS = ((8000, None), (2000, 16000), (1000, 8000), (500, 4000), (200, 2000), (200, 1000), (200, 500), (200, 200))
"""Characters that a text may keep, step by step: in an older message, and in the latest answer or after it."""
_SLACK = 200
"""A text is cut only if that makes it shorter, including the note about it."""
_WHY = "because the conversation is too long for the model"
_IMAGES_FROM = 8000
"""If texts may keep fewer characters than this, images are omitted."""
_NO_IMAGE = f"[Its image was omitted here, {_WHY}: read it again if you need it]"
_GAP = Message("user", (TextBlock(f"[Older messages were omitted, from here on, {_WHY}.]", "model"),))


class _Instead(Struct, frozen=True):
    original: Block
    """Stored so that no other object can get its identity."""
    shown: Block | None
    """None: omitted."""
    limit: int


class Shortening:
    """Remembers what was cut, so that anything sent once is sent the same way again: prompt caches depend on it."""

    def __init__(self) -> None:
        self._instead: dict[int, _Instead] = {}
        self._made: dict[int, tuple[Message, Message]] = {}

    def copy(self) -> "Shortening":
        other = Shortening()
        other._instead = dict(self._instead)
        return other

    def apply(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The conversation as it is sent."""
        if not self._instead:
            return messages
        shown: list[Message] = []
        is_noted = False
        for message in messages:
            kept = self._kept(message)
            if kept.blocks or not message.blocks:
                shown.append(kept)
            elif not is_noted:  # once: hundreds of gaps would fill the window with notes
                shown.append(_GAP)
                is_noted = True
        return shown

    def shorten(self, messages: Sequence[Message], budget: int, size: Callable[[Sequence[Message]], int]) -> bool:
        """Omits as much as needed to get down to `budget`, or as much as possible. False: nothing got shorter."""
        before = size(self.apply(messages))
        latest = max((at for at, message in enumerate(messages) if message.role == "assistant"), default=0)
        for older_limit, latest_limit in _STEPS:
            for at, message in enumerate(messages):
                self._cut(message, older_limit if at < latest else latest_limit)
            if size(self.apply(messages)) <= budget:
                return size(self.apply(messages)) < before
        droppable = [message for message in messages[:latest] if _may_go(message)]
        while droppable and size(self.apply(messages)) > budget:
            several = max(1, len(droppable) // 8)
            for message in droppable[:several]:
                self._drop(message)
            del droppable[:several]
        if size(self.apply(messages)) > budget:
            for message in messages:
                self._cut(message, 0)
        return size(self.apply(messages)) < before

    def _kept(self, message: Message) -> Message:
        made = self._made.get(id(message))
        if made is None:
            shown = [
                self._instead[id(block)].shown if id(block) in self._instead else block for block in message.blocks
            ]
            blocks = tuple(block for block in shown if block is not None)
            made = self._made[id(message)] = (message, replace(message, blocks=blocks))
        return made[1]

    def _cut(self, message: Message, limit: int | None) -> None:
        if limit is None:
            return
        for block in message.blocks:
            before = self._instead.get(id(block))
            if before is None or (before.shown is not None and limit < before.limit):
                shown = _shortened(block, limit)
                if shown is not block:
                    self._instead[id(block)] = _Instead(block, shown, limit)
                    self._made.clear()

    def _drop(self, message: Message) -> None:
        self._instead |= {id(block): _Instead(block, None, 0) for block in message.blocks}
        self._made.clear()


def _may_go(message: Message) -> bool:
    """Neither the user's words nor a summary."""
    return message.role == "assistant" or all(isinstance(b, TextBlock) and b.source == "hook" for b in message.blocks)


def _shortened(block: Block, limit: int) -> Block:
    """The block itself if there is nothing to cut."""
    match block:
        case ToolBlock(result=result, parameters=parameters):
            cut = None if result is None else cut_text(result, limit, "call the tool again for the part that you need")
            given = cast(Mapping[str, Any], _cut_values(parameters, limit))
            if block.images and limit < _IMAGES_FROM:
                return replace(block, result=f"{cut}\n{_NO_IMAGE}", parameters=given, images=())
            return block if cut == result and given == parameters else replace(block, result=cut, parameters=given)
        case TextBlock(source="user"):
            return block
        case ReasoningBlock(content=content, kept=kept) if kept and len(str(kept.data)) > limit + _SLACK:
            return replace(block, content=cut_text(content, limit), kept=None)  # a part of it would be refused
        case TextBlock(content=content) | ReasoningBlock(content=content):
            cut = cut_text(content, limit)
            return block if cut == content else replace(block, content=cut)
        case _:
            return block


def _cut_values(value: Any, limit: int) -> Any:
    """A call's arguments with their long texts cut."""
    if isinstance(value, str):
        return cut_text(value, limit)
    if isinstance(value, Mapping):
        return {key: _cut_values(one, limit) for key, one in cast(Mapping[str, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_cut_values(one, limit) for one in cast(Sequence[Any], value)]
    return value


def cut_text(text: str, limit: int, advice: str = "") -> str:
    """The text, with its middle replaced by a note if it is longer than `limit`."""
    if len(text) <= limit + _SLACK:
        return text
    head = limit * 2 // 3
    tail = text[len(text) - (limit - head) :] if limit > head else ""
    note = f"[{len(text) - limit:,} characters omitted here, {_WHY}{advice and f': {advice}'}]"
    return "\n".join(part for part in (text[:head], note, tail) if part)
