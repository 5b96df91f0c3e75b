"""Reads answers of Anthropic's Messages, whole or as events, into deltas. Pure."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from wave_agent.formats.readable import readable, readable_text, whole_characters
from wave_agent.messages import Kept
from wave_agent.models.base import CutShort, Delta, Reasoning, Text, ToolCall, Usage
from wave_agent.models.events import as_object, as_text, decoded, joined_texts, new_call_id, unreadable
from wave_agent.models.limits import AnswerLimits, Meter
from wave_agent.models.prices import as_count

API = "anthropic"
_CUTS: Mapping[str, Literal["length", "content_filter"]] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
"""Reasons to stop that mean the answer is incomplete."""
_KNOWN = frozenset(
    {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "message",
        "error",
        "ping",
    }
)
_PIECES: Mapping[str, tuple[str, str]] = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "input"),
}
"""The field of a delta, and the field of the block that it continues."""


class _BlockDraft:
    """A block that is being assembled."""

    def __init__(self, block: Mapping[str, Any]) -> None:
        self.block = dict(block)
        self.kind = as_text(block.get("type"))
        self.texts: dict[str, list[str]] = {}

    def add(self, field: str, text: str) -> None:
        self.texts.setdefault(field, []).append(text)

    def value(self, field: str) -> str:
        start = self.block.get(field)
        return (start if isinstance(start, str) else "") + "".join(self.texts.get(field, ()))

    @property
    def arguments(self) -> str:
        """What the model wrote: in the events, or in the block itself if the answer came whole."""
        written = "".join(self.texts.get("input", ()))
        given = self.block.get("input")
        return written or (json.dumps(given, ensure_ascii=False) if given else "")

    def whole(self) -> dict[str, Any]:
        """The block as the API wants it back."""
        found = {**self.block, **{field: self.value(field) for field in self.texts if field != "input"}}
        if self.kind in {"tool_use", "server_tool_use"}:
            try:
                found["input"] = json.loads(self.arguments or "{}")
            except ValueError:
                found["input"] = {}
        return {key: value for key, value in found.items() if value is not None}


class MessagesReader:
    """Reads one answer. Text and reasoning are returned as they arrive, until there is a call: what follows a call
    waits for the end with it, so that all keeps its order."""

    def __init__(self, limits: AnswerLimits | None = None, *, model: str = "") -> None:
        self.limits = limits or AnswerLimits()
        self.finished = False
        self.pieces = 0
        self.unreadable = ""
        self.error: Any = None
        self.unfinished: Sequence[Mapping[str, Any]] = ()
        self._model = model
        self._meter = Meter(self.limits)
        self._blocks: dict[object, _BlockDraft] = {}
        self._done: list[_BlockDraft] = []
        self._waiting: list[Delta | _BlockDraft] = []
        self._usage: dict[str, int] = {}
        self._stop = ""

    def read_all(self, pieces: Iterable[str]) -> Iterator[Delta]:
        yield from joined_texts(delta for piece in pieces if not self.error for delta in self.read(piece))

    def read(self, piece: str | bytes) -> Iterable[Delta]:
        event = decoded(piece)
        if event is None or event.get("type") not in _KNOWN:
            # An event of a kind that is new since this was written is no reason to complain.
            if event is None or "type" not in event:
                self.unreadable = self.unreadable or unreadable(piece)
            return
        self.pieces += 1
        match event["type"]:
            case "message_start":
                self._count(as_object(event.get("message")).get("usage"))
            case "content_block_start":
                yield from self._start(event.get("index"), as_object(event.get("content_block")))
            case "content_block_delta":
                yield from self._continue(event.get("index"), as_object(event.get("delta")))
            case "content_block_stop":
                yield from self._end_block(event.get("index"))
            case "message_delta":
                self._count(event.get("usage"))
                self._stopped(as_text(as_object(event.get("delta")).get("stop_reason")))
            case "message":
                yield from self._message(event)
            case "error":
                self.error = event.get("error") or "no reason given"
            case "message_stop":
                self.finished = True
            case _:
                pass

    def end(self) -> Iterable[Delta]:
        cut = _CUTS.get(self._stop)
        calls = False
        for waiting in self._waiting:
            if not isinstance(waiting, _BlockDraft):
                yield waiting
                continue
            calls = True
            identity, name = (as_text(waiting.block.get(field)) for field in ("id", "name"))
            arguments = waiting.arguments or ("" if cut else "{}")
            yield ToolCall(whole_characters(identity) or new_call_id(), name, arguments)
        if self._stop == "pause_turn" and not calls:
            self.unfinished = [draft.whole() for draft in self._done]
        if self._usage:
            yield self._counted()
        if cut is not None:
            yield CutShort(cut)

    def _message(self, message: Mapping[str, Any]) -> Iterator[Delta]:
        """A whole answer."""
        self._count(message.get("usage"))
        content = message.get("content")
        for index, block in enumerate(cast(list[object], content) if isinstance(content, list) else []):
            yield from self._start(index, as_object(block))
            yield from self._end_block(index)
        self._stopped(as_text(message.get("stop_reason")))

    def _start(self, index: object, block: Mapping[str, Any]) -> Iterator[Delta]:
        draft = self._blocks[index] = _BlockDraft(block)
        self._meter.text(str(block))
        if draft.kind == "tool_use":
            self._meter.call()
            self._waiting.append(draft)
        elif text := as_text(block.get(draft.kind)):  # `text` or `thinking`
            yield from self._shown(draft.kind, text)

    def _continue(self, index: object, delta: Mapping[str, Any]) -> Iterator[Delta]:
        draft = self._blocks.get(index)
        if draft is None or as_text(delta.get("type")) not in _PIECES:
            return
        given, field = _PIECES[delta["type"]]
        text = as_text(delta.get(given))
        draft.add(field, text)
        if field == draft.kind:
            yield from self._shown(field, text)
        elif field == "input":
            self._meter.arguments(text)
        else:
            self._meter.text(text)

    def _end_block(self, index: object) -> Iterator[Delta]:
        draft = self._blocks.pop(index, None)
        if draft is None:
            return
        self._done.append(draft)
        # Without a signature, the API would refuse it.
        if draft.kind == "redacted_thinking" or (draft.kind == "thinking" and draft.value("signature")):
            yield from self._in_turn(Reasoning("", kept=Kept(API, self._model, readable(draft.whole()))))

    def _shown(self, kind: str, text: str) -> Iterator[Delta]:
        if text and kind in {"text", "thinking"}:
            self._meter.text(text)
            yield from self._in_turn(Text(readable_text(text)) if kind == "text" else Reasoning(readable_text(text)))

    def _in_turn(self, delta: Delta) -> Iterator[Delta]:
        if self._waiting:
            self._waiting.append(delta)
        else:
            yield delta

    def _stopped(self, reason: str) -> None:
        self._stop = reason or self._stop
        self.finished = self.finished or bool(reason)

    def _count(self, usage: object) -> None:
        """The later figures are totals, too: they replace the earlier ones."""
        self._usage |= {key: count for key, value in as_object(usage).items() if (count := as_count(value))}

    def _counted(self) -> Usage:
        """This API's `input_tokens` are only those that no cache was involved in."""
        read = self._usage.get("cache_read_input_tokens", 0)
        written = self._usage.get("cache_creation_input_tokens", 0)
        return Usage(
            self._usage.get("input_tokens", 0) + read + written,
            self._usage.get("output_tokens", 0),
            cache_read_tokens=read,
            cache_write_tokens=written,
        )
