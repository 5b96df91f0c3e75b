"""Messages that were encoded for the last request are not encoded again."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from wave_agent.models.encoded_messages import EncodedMessages

MESSAGES: list[dict[str, Any]] = [{"role": "user", "content": text} for text in ("a", "b", "é", "<")]


@given(st.lists(st.lists(st.sampled_from(MESSAGES), max_size=6), max_size=6))
def test_a_request_is_encoded_as_if_it_were_the_first(requests: list[list[dict[str, Any]]]) -> None:
    encoded = EncodedMessages()
    for messages in requests:
        assert msgspec.json.encode(encoded.encode(messages)) == msgspec.json.encode(messages)


def test_a_message_is_encoded_once() -> None:
    encoded = EncodedMessages()
    first, second = MESSAGES[:2]
    before = encoded.encode([first])
    after = encoded.encode([first, second])
    assert after[0] is before[0]
    assert after[1] is encoded.encode([first, second])[1]
    changed = encoded.encode([{**first}, second])  # another object may have another content
    assert changed[0] is not after[0]
    assert changed[1] is after[1]
