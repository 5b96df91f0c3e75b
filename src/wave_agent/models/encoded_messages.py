"""Messages as JSON, each encoded once: a request repeats all messages of the one before."""

from collections.abc import Mapping, Sequence
from operator import is_not
from typing import Any

import msgspec


class EncodedMessages:
    """Remembers the messages of the last request. A message is the same as before if it is the same object."""

    def __init__(self) -> None:
        self._last: Sequence[Mapping[str, Any]] = ()
        self._encoded: list[msgspec.Raw] = []

    def encode(self, messages: Sequence[Mapping[str, Any]]) -> list[msgspec.Raw]:
        """For `msgspec.json.encode`. Raises what that raises."""
        encoded = self._encoded[: len(messages)]
        if any(map(is_not, self._last, messages)):  # Hardly ever, and a session has many messages.
            for at, (before, now) in enumerate(zip(self._last, messages, strict=False)):
                if now is not before:
                    encoded[at] = _encoded(now)
        encoded += map(_encoded, messages[len(encoded) :])
        self._last, self._encoded = tuple(messages), encoded
        return encoded


def _encoded(message: Mapping[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(message, enc_hook=dict))
