"""What readers of streamed answers share: values out of JSON that may be anything."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec

from wave_agent.errors import ModelError
from wave_agent.models.base import Delta, Text

_SHOWN = 4096


def decoded(piece: str | bytes) -> Mapping[str, Any] | None:
    """A JSON object; None if it is not one. Half a surrogate pair is accepted: servers split text mid-character."""
    try:
        value: object = msgspec.json.decode(piece)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = piece if isinstance(piece, str) else piece.decode(errors="replace")
        try:
            value = json.loads(text) if "\\ud" in text.lower() else None
        except (ValueError, RecursionError):
            return None
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else None


def unreadable(piece: str | bytes) -> str:
    """The beginning of what cannot be read, for a message."""
    begins = piece[:_SHOWN]
    return begins if isinstance(begins, str) else begins.decode(errors="replace")


def as_object(value: object) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], value) if isinstance(value, dict) else {}


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def new_call_id() -> str:
    return f"call_{os.urandom(9).hex()}"


def joined_texts(deltas: Iterable[Delta]) -> Iterator[Delta]:
    """The same, with texts that follow each other joined. What came before an error is not lost."""
    texts: list[str] = []
    try:
        for delta in deltas:
            if isinstance(delta, Text) and delta.kept is None:
                texts.append(delta.text)
                continue
            if texts:
                yield Text("".join(texts))
                texts.clear()
            yield delta
    except ModelError:
        if texts:
            yield Text("".join(texts))
        raise
    if texts:
        yield Text("".join(texts))
