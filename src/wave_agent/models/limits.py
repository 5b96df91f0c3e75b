"""Limits on the size of one answer. Without them, a server that never stops would fill the memory."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import fields

from wave_agent.errors import ModelError

_PIECE = 16
"""Minimum bytes counted per piece, so that a flood of tiny pieces is limited too."""


class AnswerLimits(Struct, frozen=True, rename="camel"):
    """Limits for one answer; `models.NAME.maxTextBytes` and so on in the settings."""

    max_text_bytes: int = 16 << 20
    """Text and reasoning together."""
    max_argument_bytes: int = 8 << 20
    """Arguments of all calls together."""
    max_calls: int = 256

    @property
    def body(self) -> int:
        """Maximum bytes of a non-streamed answer: escapes may double the length of a text."""
        return 2 * (self.max_text_bytes + self.max_argument_bytes) + (1 << 20)


LIMIT_KEYS: Mapping[str, int] = {one.encode_name: one.default for one in fields(AnswerLimits)}
"""The settings keys and their defaults."""


def limits_in(facts: Mapping[str, Any]) -> AnswerLimits:
    """The limits in the settings of one model."""
    named = {one.name: facts[one.encode_name] for one in fields(AnswerLimits) if one.encode_name in facts}
    return AnswerLimits(**named)


class Meter:
    """Measures one answer as it arrives. Each method raises `ModelError` once its limit is exceeded."""

    def __init__(self, limits: AnswerLimits) -> None:
        self._limits = limits
        self._text = 0
        self._arguments = 0
        self._calls = 0

    def text(self, text: str) -> None:
        self._text += max(_PIECE, _size(text))
        if self._text > self._limits.max_text_bytes:
            raise _beyond(f"it contains more than {_shown(self._limits.max_text_bytes)} of text", "maxTextBytes")

    def call(self) -> None:
        self._calls += 1
        if self._calls > self._limits.max_calls:
            raise _beyond(f"it makes more than {self._limits.max_calls} tool calls, and none was run", "maxCalls")

    def arguments(self, *texts: str) -> None:
        self._arguments += max(_PIECE, sum(map(_size, texts)))
        if self._arguments > self._limits.max_argument_bytes:
            most = _shown(self._limits.max_argument_bytes)
            raise _beyond(f"its tool calls have more than {most} of arguments, and none was run", "maxArgumentBytes")


def _beyond(why: str, key: str) -> ModelError:
    return ModelError(f"The answer was cut off: {why}. The limit is the setting models.NAME.{key}.")


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _shown(size: int) -> str:
    return f"{size >> 20} MB" if size >= 1 << 20 else f"{size:,} bytes"
