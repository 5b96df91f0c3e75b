"""Messages as JSON, each encoded once: a request repeats all messages of the one before."""

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any

import msgspec


class EncodedMessages:
    """Remembers the messages of the last request. A message is the same as before if it is the same object."""

    def __init__(self) -> None:
        self._last: Sequence[Mapping[str, Any]] = ()
        self._encoded: list[msgspec.Raw] = []

    def encode(self, messages: Sequence[Mapping[str, Any]]) -> list[msgspec.Raw]:
        """For `msgspec.json.encode`. Raises what that raises."""
        same = list(map(is_, self._last, messages))
        encoded = self._encoded[: len(same)]
        if not all(same):  # Hardly ever, and a session has many messages.
            for at in (at for at, is_same in enumerate(same) if not is_same):
                encoded[at] = _encoded(messages[at])
        encoded += map(_encoded, messages[len(same) :])
        self._last, self._encoded = tuple(messages), encoded
        return encoded


def _encoded(message: Mapping[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(message, enc_hook=dict))
