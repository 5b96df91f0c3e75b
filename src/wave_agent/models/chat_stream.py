"""Reads answers in the chat format, whole or in chunks, into deltas. Pure and lenient, since servers differ."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from wave_agent.errors import ModelError
from wave_agent.formats.readable import readable, readable_text, whole_characters
from wave_agent.messages import Kept
from wave_agent.models.base import CHAT_API, CutShort, Delta, Reasoning, Text, ToolCall, Usage, usage_of
from wave_agent.models.limits import AnswerLimits, Meter
from wave_agent.models.prices import as_count

_ENDS: Mapping[str, Literal["length", "content_filter"]] = {
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "sensitive": "content_filter",
    "recitation": "content_filter",
    "prohibited_content": "content_filter",
}
"""Finish reasons, in lower case, that mean the answer is incomplete. Any other means it is complete."""
_BROKEN = frozenset({"error", "abort", "network_error", "insufficient_system_resource"})
"""Finish reasons that mean the server failed midway."""
_UNREADABLE_KEPT = 4096
_CALL_FIELDS = frozenset({"id", "index", "type", "function"})
_FUNCTION_FIELDS = frozenset({"name", "arguments"})
_REASONING = ("reasoning_content", "reasoning")
DETAILS = "reasoning_details"
"""Reasoning in parts, signed or encrypted. OpenRouter and MiniMax expect it back: Gemini 3 refuses results without."""
_IN_PIECES: Mapping[str, str] = {"reasoning.text": "text", "reasoning.summary": "summary"}
"""The parts that are sent in pieces, and the field that grows."""


class AnswerReader:
    """Reads one answer, piece by piece.

    Text and reasoning are returned as they arrive. Calls arrive in fragments and are returned complete by `end()`. A
    call without an id gets one; a call without arguments gets an empty object, unless the answer was cut off; malformed
    arguments are kept as they are.
    """

    def __init__(self, limits: AnswerLimits | None = None, *, model: str = "") -> None:
        """Reading raises `ModelError` once the answer exceeds `limits`. `model` is who was asked."""
        self.limits = limits or AnswerLimits()
        self.unfinished: Sequence[Mapping[str, Any]] = ()
        self._model = model
        self._meter = Meter(self.limits)
        self.finished = False
        """The model gave a finish reason: nothing more will come."""
        self._cut: CutShort | None = None
        self.pieces = 0
        """How many pieces were readable."""
        self.unreadable = ""
        """The first piece that was not."""
        self.error: Any = None
        """The error the server reported midway, if any."""
        self._calls: list[_CallDraft] = []
        self._details: list[dict[str, Any]] = []
        self._usage: Usage | None = None

    def read_all(self, pieces: Iterable[str]) -> Iterator[Delta]:
        """The deltas in these chunks, up to one with an error. Consecutive texts are joined.

        Raises `ModelError` at the chunk that exceeds a limit, after yielding everything before it, so that it does not
        matter how the bytes were grouped in transit.
        """
        texts: list[str] = []
        for piece in pieces:
            try:
                text = self._plain(piece)
            except ModelError:
                yield from _joined(texts)
                raise
            if text is not None:
                texts.append(text)
                continue
            yield from _joined(texts)
            texts.clear()
            yield from self.read(piece)
            if self.error:
                break
        yield from _joined(texts)

    def _plain(self, piece: str) -> str | None:
        """The text of a chunk that contains only text, as nearly all do; None for any other."""
        try:
            chunk = _plain_chunk(piece)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None
        if len(chunk.choices) != 1 or not (text := chunk.choices[0].delta.content):
            return None
        self.pieces += 1
        self._meter.text(text)
        return text

    def read(self, piece: str | bytes) -> list[Delta]:
        """The deltas in this chunk, or in this whole body."""
        value = _decoded(piece)
        if not isinstance(value, dict) or value.keys().isdisjoint(("choices", "usage", "error")):  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
            begins = piece[:_UNREADABLE_KEPT]
            self.unreadable = self.unreadable or (
                begins if isinstance(begins, str) else begins.decode(errors="replace")
            )
            return []
        chunk = cast(dict[str, Any], value)
        self.error = self.error or chunk.get("error")
        self._usage = _usage(chunk.get("usage")) or self._usage
        choices = _objects(chunk.get("choices"))
        self.pieces += 1
        return [delta for choice in choices if not choice.get("index") for delta in self._choice(choice)]

    def end(self) -> list[Delta]:
        """The signed reasoning, the calls, the token usage, and whether the answer was cut short."""
        calls: list[Delta] = []
        if self._details:
            calls.append(Reasoning("", kept=Kept(CHAT_API, self._model, readable({DETAILS: self._details}))))
        seen: set[str] = set()
        for call in self._calls:
            given = whole_characters(call.id)  # it is recorded; a name or an input that is odd is refused later
            identity = given if given and given not in seen else f"call_{os.urandom(9).hex()}"
            seen.add(identity)
            arguments = "".join(call.arguments) or ("" if self._cut else "{}")
            kept = Kept(CHAT_API, self._model, readable(call.extra)) if call.extra else None
            calls.append(ToolCall(identity, call.name, arguments, kept))
        return [*calls, *(one for one in (self._usage, self._cut) if one is not None)]

    def _choice(self, choice: dict[str, Any]) -> Iterable[Delta]:
        message = _object(choice.get("delta")) or _object(choice.get("message"))
        self.error = self.error or choice.get("error")
        self._end_with(_text(choice.get("finish_reason")))
        field = next((field for field in _REASONING if _text(message.get(field))), None)
        if field is not None:
            yield self._counted(Reasoning(readable_text(message[field]), field))
        for detail in _objects(message.get(DETAILS)):
            self._add_detail(detail)
        for delta in (*_content(message.get("content")), *_content(message.get("refusal"))):
            yield self._counted(delta)
        for fragment in _objects(message.get("tool_calls")):
            self._fragment(fragment)

    def _end_with(self, reason: str) -> None:
        self.finished = self.finished or bool(reason)
        if reason.lower() in _BROKEN:
            self.error = self.error or f'it ended the answer with the reason "{reason}"'
        elif (why := _ENDS.get(reason.lower())) is not None:
            self._cut = CutShort(why)

    def _fragment(self, fragment: dict[str, Any]) -> None:
        function = _object(fragment.get("function"))
        index, identity, name = (fragment.get("index"), _text(fragment.get("id")), _text(function.get("name")))
        call = self._call_of(index, identity, name)
        if call is None:
            self._meter.call()
            call = _CallDraft(index)
            self._calls.append(call)
        call.id = call.id or identity
        if name != call.name:  # some servers repeat the name, others send it in parts
            call.name += name
        arguments = function.get("arguments")
        written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        self._meter.arguments(identity, name, written)
        if arguments is not None:
            call.arguments.append(written)
        self._extra(call, fragment, function)

    def _add_detail(self, detail: Mapping[str, Any]) -> None:
        """A part of its own, or a piece that continues the one before."""
        self._meter.text(str(detail))
        given = {key: value for key, value in detail.items() if value is not None}
        last = self._details[-1] if self._details else {}
        kind = _text(given.get("type"))
        if kind in _IN_PIECES and (kind, given.get("index")) == (last.get("type"), last.get("index")):
            field = _IN_PIECES[kind]
            last |= {**given, field: _text(last.get(field)) + _text(given.get(field))}
        else:
            self._details.append(given)

    def _extra(self, call: "_CallDraft", fragment: Mapping[str, Any], function: Mapping[str, Any]) -> None:
        """Fields that are not in OpenAI's documentation. Gemini refuses a conversation without its own."""
        extra = _unknown(fragment, _CALL_FIELDS)
        if inner := _unknown(function, _FUNCTION_FIELDS):
            extra["function"] = {**call.extra.get("function", {}), **inner}
        if extra:
            self._meter.arguments(str(extra))
            call.extra |= extra

    def _counted(self, delta: Text | Reasoning) -> Delta:
        self._meter.text(delta.text)
        return delta

    def _call_of(self, index: object, identity: str, name: str) -> "_CallDraft | None":
        """The call that a fragment continues; None if it starts a new one.

        The index decides, if there is one. But some servers give every call index 0: then a new id together with a
        name, or a different name once there are arguments, starts a call. A new id alone does not, since some servers
        make one up for each fragment.
        """
        if index is None:
            if identity:
                return next((call for call in self._calls if call.id == identity), None)
            return None if name or not self._calls else self._calls[-1]
        call = next((call for call in reversed(self._calls) if call.index == index), None)
        if call is None or not name:
            return call
        other_id = bool(identity and call.id and identity != call.id)
        other_name = name != call.name and any(call.arguments)
        return None if other_id or other_name else call


class _PlainDelta(msgspec.Struct, forbid_unknown_fields=True):
    content: str
    role: str | None = None
    # Servers send these as null. With a value, decoding fails and the chunk takes the slow path.
    refusal: None = None
    tool_calls: None = None
    function_call: None = None
    reasoning: None = None
    reasoning_content: None = None


class _PlainChoice(msgspec.Struct):
    delta: _PlainDelta
    index: Literal[0] = 0
    finish_reason: None = None
    error: None = None
    message: None = None


class _PlainChunk(msgspec.Struct):
    choices: list[_PlainChoice]
    usage: None = None
    error: None = None


_plain_chunk = msgspec.json.Decoder(_PlainChunk).decode


class _CallDraft:
    """A call that is being assembled."""

    def __init__(self, index: object) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.extra: dict[str, Any] = {}


def _unknown(found: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if key not in known and value is not None}


def _joined(texts: list[str]) -> Iterator[Text]:
    if texts:
        yield Text("".join(texts))


def _decoded(piece: str | bytes) -> object:
    """None if it is not JSON. Half a surrogate pair is accepted: servers send it when they split text mid-character."""
    try:
        return msgspec.json.decode(piece)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    text = piece if isinstance(piece, str) else piece.decode(errors="replace")
    try:
        return json.loads(text) if "\\ud" in text.lower() else None
    except (ValueError, RecursionError):
        return None


def _content(content: object) -> Iterable[Text | Reasoning]:
    """Content is text or, with some servers, a list of typed parts."""
    if isinstance(content, str) and content:
        yield Text(readable_text(content))
    for part in _objects(content):
        if text := _text(part.get("text")):
            yield Text(readable_text(text))
        elif thinking := part.get("thinking"):
            parts = [thinking] if isinstance(thinking, str) else [_text(one.get("text")) for one in _objects(thinking)]
            yield Reasoning(readable_text("".join(parts)))


def _usage(value: object) -> Usage | None:
    counts = _object(value)
    if not counts:
        return None
    details = _object(counts.get("prompt_tokens_details"))
    read = as_count(details.get("cached_tokens")) or as_count(counts.get("prompt_cache_hit_tokens"))  # DeepSeek's name
    written = as_count(details.get("cache_write_tokens"))  # OpenRouter
    return usage_of(as_count(counts.get("prompt_tokens")), as_count(counts.get("completion_tokens")), read, written)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object(value: object) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _objects(value: object) -> list[dict[str, Any]]:
    items = cast(list[object], value) if isinstance(value, list) else []
    return [cast(dict[str, Any], item) for item in items if isinstance(item, dict)]
