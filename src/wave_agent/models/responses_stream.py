"""Reads answers of OpenAI's Responses, whole or as events, into deltas. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from wave_agent.formats.readable import readable, readable_text, whole_characters
from wave_agent.messages import Kept
from wave_agent.models.base import CutShort, Delta, Reasoning, Text, ToolCall, Usage, usage_of
from wave_agent.models.events import as_object, as_text, decoded, joined_texts, new_call_id, unreadable
from wave_agent.models.limits import AnswerLimits, Meter
from wave_agent.models.prices import as_count

API = "openai-responses"
_CUTS: Mapping[str, Literal["length", "content_filter"]] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}
_SHOWN: Mapping[str, type[Text] | type[Reasoning]] = {
    "response.output_text.delta": Text,
    "response.refusal.delta": Text,
    "response.reasoning_summary_text.delta": Reasoning,
    "response.reasoning_text.delta": Reasoning,
}
_CALL_FIELDS = frozenset({"type", "id", "call_id", "name", "arguments", "status"})
_TEXT_FIELDS = ("phase",)
"""The fields of a text to send back."""
_REASONING_STATUS = "status"


class _CallItem:
    """A call that is being assembled, from fragments or as a whole."""

    def __init__(self, item: Mapping[str, Any]) -> None:
        self.item = item
        self.fragments: list[str] = []

    @property
    def arguments(self) -> str:
        return as_text(self.item.get("arguments")) or "".join(self.fragments)


class ResponsesReader:
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
        self._calls: dict[object, _CallItem] = {}
        self._waiting: list[Delta | _CallItem] = []
        self._usage: Usage | None = None
        self._cut: CutShort | None = None

    def read_all(self, pieces: Iterable[str]) -> Iterator[Delta]:
        yield from joined_texts(delta for piece in pieces if not self.error for delta in self.read(piece))

    def read(self, piece: str | bytes) -> Iterable[Delta]:
        event = decoded(piece)
        kind = "" if event is None else as_text(event.get("type"))
        if event is None or not (kind or event.get("object") == "response" or "error" in event):
            self.unreadable = self.unreadable or unreadable(piece)
            return
        self.pieces += 1
        if kind in _SHOWN:
            yield from self._shown(_SHOWN[kind], as_text(event.get("delta")))
        elif event.get("object") == "response":
            yield from self._whole(event)
        else:
            yield from self._event(kind, event)

    def _event(self, kind: str, event: Mapping[str, Any]) -> Iterator[Delta]:
        match kind:
            case "response.output_item.added":
                self._added(event.get("output_index"), as_object(event.get("item")))
            case "response.function_call_arguments.delta":
                draft = self._calls.get(event.get("output_index"))
                self._meter.arguments(as_text(event.get("delta")))
                if draft is not None:
                    draft.fragments.append(as_text(event.get("delta")))
            case "response.reasoning_summary_part.added" if event.get("summary_index"):
                yield from self._in_turn(Reasoning("\n\n"))
            case "response.output_item.done":
                yield from self._done(event.get("output_index"), as_object(event.get("item")))
            case "response.completed" | "response.incomplete" | "response.failed":
                self._ended(as_object(event.get("response")))
            case "error" | "":
                self.error = event.get("error") or {key: event.get(key) for key in ("message", "code")}
            case _:
                pass

    def end(self) -> Iterable[Delta]:
        for waiting in self._waiting:
            if not isinstance(waiting, _CallItem):
                yield waiting
                continue
            item = waiting.item
            extra = {key: value for key, value in item.items() if key not in _CALL_FIELDS and value is not None}
            yield ToolCall(
                whole_characters(as_text(item.get("call_id"))) or new_call_id(),
                as_text(item.get("name")),
                waiting.arguments or ("" if self._cut else "{}"),
                Kept(API, self._model, readable(extra)) if extra else None,
            )
        yield from (one for one in (self._usage, self._cut) if one is not None)

    def _added(self, index: object, item: Mapping[str, Any]) -> None:
        if item.get("type") == "function_call":
            self._meter.call()
            self._meter.arguments(str(item))
            self._calls[index] = _CallItem(item)
            self._waiting.append(self._calls[index])

    def _done(self, index: object, item: Mapping[str, Any]) -> Iterator[Delta]:
        match item.get("type"):
            case "function_call":
                if index not in self._calls:
                    self._added(index, item)
                self._calls[index].item = item
            case "reasoning" if as_text(item.get("encrypted_content")):
                self._meter.text(str(item))
                kept = {key: value for key, value in item.items() if key != _REASONING_STATUS and value is not None}
                yield from self._in_turn(Reasoning("", kept=Kept(API, self._model, readable(kept))))
            case "message":
                if extra := {key: item[key] for key in _TEXT_FIELDS if item.get(key) is not None}:
                    yield from self._in_turn(Text("", Kept(API, self._model, readable(extra))))
            case _:
                pass

    def _whole(self, response: Mapping[str, Any]) -> Iterator[Delta]:
        """A whole answer."""
        for index, one in enumerate(_objects(response.get("output"))):
            for part in (*_objects(one.get("summary")), *_objects(one.get("content"))):
                kind = Reasoning if one.get("type") == "reasoning" else Text
                yield from self._shown(kind, as_text(part.get("text")) or as_text(part.get("refusal")))
            yield from self._done(index, one)
        self._ended(response)

    def _ended(self, response: Mapping[str, Any]) -> None:
        self.finished = True
        self.error = self.error or response.get("error")
        reason = as_text(as_object(response.get("incomplete_details")).get("reason"))
        if response.get("status") == "incomplete":
            self._cut = CutShort(_CUTS.get(reason, "length"))
        usage = as_object(response.get("usage"))
        details = as_object(usage.get("input_tokens_details"))
        if usage:
            self._usage = usage_of(
                as_count(usage.get("input_tokens")),
                as_count(usage.get("output_tokens")),
                as_count(details.get("cached_tokens")),
                as_count(details.get("cache_write_tokens")),
            )

    def _shown(self, kind: type[Text] | type[Reasoning], text: str) -> Iterator[Delta]:
        if text:
            self._meter.text(text)
            yield from self._in_turn(kind(readable_text(text)))

    def _in_turn(self, delta: Delta) -> Iterator[Delta]:
        if self._waiting:
            self._waiting.append(delta)
        else:
            yield delta


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [as_object(one) for one in cast(list[object], value)] if isinstance(value, list) else []
