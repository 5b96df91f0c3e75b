"""Chunks of many servers → deltas; events out of bytes; waits; refusals."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rows import rows
from wave_agent.errors import ModelError
from wave_agent.http.refusals import is_too_long, read_refusal, refuses_images, says_no_images, shorter
from wave_agent.http.retries import Backoff, asked_wait
from wave_agent.http.sse import MAX_EVENT, EventReader
from wave_agent.messages import Kept
from wave_agent.models.base import CutShort, Delta, Reasoning, Text, ToolCall, Usage
from wave_agent.models.chat_stream import AnswerReader
from wave_agent.models.limits import AnswerLimits


def read(*deltas: dict[str, Any], **chunk: Any) -> list[Delta]:
    reader = AnswerReader()
    shown: list[Delta] = []
    for delta in deltas:
        shown += reader.read(json.dumps({"choices": [{"delta": delta}], **chunk}))
    return shown + reader.end()


def fragment(arguments: Any = None, name: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"tool_calls": [{**fields, "function": {"name": name, "arguments": arguments}}]}


def calls(*fragments: dict[str, Any]) -> list[tuple[str, str, str]]:
    found = read(*fragments)
    assert all(isinstance(call, ToolCall) for call in found)
    return [(call.id, call.name, call.arguments) for call in found if isinstance(call, ToolCall)]


def test_fragments_of_two_calls_may_alternate() -> None:
    assert calls(
        fragment("", "Read", index=0, id="a"),
        fragment("", "Bash", index=1, id="b"),
        fragment('{"x"', index=0),
        fragment('{"y"', index=1),
        fragment(":1}", index=0),
        fragment(":2}", index=1),
    ) == [("a", "Read", '{"x":1}'), ("b", "Bash", '{"y":2}')]


def test_whole_calls_that_all_have_the_index_zero() -> None:
    first, second = fragment("{}", "Read", index=0, id="a"), fragment("{}", "Read", index=0, id="b")
    assert calls(first, second) == [("a", "Read", "{}"), ("b", "Read", "{}")]


def test_another_name_after_arguments_begins_a_call() -> None:
    found = calls(fragment("{}", "Read", index=0), fragment("{}", "Bash", index=0))
    assert [name for _, name, _ in found] == ["Read", "Bash"]


def test_calls_without_an_index() -> None:
    found = calls(fragment("{", "Read", id="a"), fragment("}", id="a"), fragment("{", "Bash"), fragment("}"))
    assert [call[1:] for call in found] == [("Read", "{}"), ("Bash", "{}")]
    assert found[0][0] == "a"
    assert found[1][0].startswith("call_")


def test_an_id_made_up_for_each_fragment_begins_no_call() -> None:
    assert calls(fragment("{", "Read", index=0, id="a"), fragment("}", index=0, id="b")) == [("a", "Read", "{}")]


def test_a_name_that_is_repeated_or_sent_in_parts() -> None:
    repeated = [fragment("{", "Read", index=0, id="a"), fragment("}", "Read", index=0, id="a")]
    in_parts = [fragment("", "Todo", index=0, id="a"), fragment("{}", "Write", index=0)]
    assert calls(*repeated) == [("a", "Read", "{}")]
    assert calls(*in_parts) == [("a", "TodoWrite", "{}")]


def test_equal_ids_of_two_calls_are_told_apart() -> None:
    found = calls(fragment("{}", "Read", index=0, id="x"), fragment("{}", "Bash", index=1, id="x"))
    assert found[0][0] == "x"
    assert found[1][0] not in {"x", ""}


@pytest.mark.parametrize(
    ("written", "expected"), [({"a": "é"}, '{"a": "é"}'), ("", "{}"), (None, "{}"), ('{"a', '{"a'), ([1], "[1]")]
)
def test_arguments_that_are_no_text(written: Any, expected: str) -> None:
    assert calls(fragment(written, "Read", index=0, id="a")) == [("a", "Read", expected)]


@pytest.mark.parametrize(
    ("delta", "expected"),
    [
        ({"content": "a"}, [Text("a")]),
        ({"content": None, "refusal": "I will not"}, [Text("I will not")]),
        ({"content": [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": [{"text": "b"}]}]}, None),
        ({"reasoning_content": "a", "reasoning": "a"}, [Reasoning("a", "reasoning_content")]),
        ({"reasoning": "a"}, [Reasoning("a", "reasoning")]),
        ({"reasoning": {"effort": 1}, "content": 7, "tool_calls": ["x", 1]}, []),
        ({"content": [{"type": "thinking", "thinking": "b"}, "x", {"type": "image"}]}, [Reasoning("b")]),
    ],
)
def test_where_text_and_reasoning_stand(delta: dict[str, Any], expected: list[Delta] | None) -> None:
    assert read(delta) == (expected if expected is not None else [Text("a"), Reasoning("b")])


def ended(*chunks: dict[str, Any]) -> list[Delta]:
    reader = AnswerReader()
    shown = [delta for chunk in chunks for delta in reader.read(json.dumps(chunk))]
    assert reader.finished
    return [*shown, *reader.end()]


def test_signed_reasoning_is_put_together_and_comes_before_the_calls() -> None:
    text = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
    pieces = [
        {"reasoning": "Hm", "reasoning_details": [{**text, "text": "H"}, {**text, "text": "m"}]},
        {"content": "I look.", "reasoning_details": [{**text, "signature": "sig", "text": None}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "id": "a", "index": 0, "data": "x"}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "id": "b", "index": 0, "data": "y"}, "odd"]},
        {"reasoning_details": None, **fragment("{}", "Read", index=0, id="a")},
    ]
    details = [
        {**text, "text": "Hm", "signature": "sig"},
        {"type": "reasoning.encrypted", "id": "a", "index": 0, "data": "x"},
        {"type": "reasoning.encrypted", "id": "b", "index": 0, "data": "y"},
    ]
    found = ended(*({"choices": [{"delta": piece}]} for piece in pieces), {"choices": [{"finish_reason": "stop"}]})
    assert found == [
        Reasoning("Hm", "reasoning"),
        Text("I look."),
        Reasoning("", kept=Kept("openai-chat", "", {"reasoning_details": details})),
        ToolCall("a", "Read", "{}"),
    ]


@pytest.mark.parametrize(
    ("word", "reason"),
    [("length", "length"), ("MAX_TOKENS", "length"), ("model_length", "length"), ("content_filter", "content_filter")],
)
def test_an_answer_that_was_cut_says_why_after_everything_else(word: str, reason: Any) -> None:
    assert ended({"choices": [{"delta": {"content": "a"}, "finish_reason": word}]}) == [Text("a"), CutShort(reason)]
    counted = {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}
    whole = {"choices": [{"message": {"content": "a"}, "finish_reason": word}]}
    assert ended(whole, counted) == [Text("a"), Usage(1, 2), CutShort(reason)]


@pytest.mark.parametrize("word", ["stop", "tool_calls", "eos", "whatever"])
def test_any_other_end_is_the_models_own(word: str) -> None:
    assert ended({"choices": [{"delta": {"content": "a"}, "finish_reason": word}]}) == [Text("a")]


def test_a_call_whose_arguments_may_be_missing_gets_none() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "Bash", "arguments": ""}}
    chunk = {"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "length"}]}
    assert ended(chunk) == [ToolCall("a", "Bash", ""), CutShort("length")]


@pytest.mark.parametrize("word", ["error", "network_error", "insufficient_system_resource"])
def test_an_end_that_is_the_servers_failure_is_an_error(word: str) -> None:
    reader = AnswerReader()
    reader.read(json.dumps({"choices": [{"delta": {}, "finish_reason": word}]}))
    assert word in reader.error


TOO_LONG = [
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages,",
    "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
    "max_tokens must be at least 1, got -344.",
    "the request exceeds the available context size. try increasing the context size or enable context shift",
    "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
    "Context size has been exceeded.",
    "Requested tokens (9000) exceed context window of 8192",
    "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length",
    "Reached context length of 8192 tokens with model (arch: gpt-oss) that does not currently support mid-generation",
    "The number of tokens to keep from the initial prompt is greater than the context length",
    "the input length exceeds the context length",
    "prompt too long; exceeded max context length by 31 tokens",
    "This endpoint's maximum context length is 8192 tokens. However, you requested about 9000 tokens",
    "prompt is too long: 9000 tokens > 8192 maximum",
    "input length and `max_tokens` exceed context limit: 9000 + 20000 > 8192",
    "The input token count (9000) exceeds the maximum number of tokens allowed (8192).",
    "Please reduce the length of the messages or completion.",
    "Prompt contains 9000 tokens and 0 draft tokens, too large for model with 8192 maximum context length",
    "This model's maximum prompt length is 8192 but the request contains 9000 tokens.",
    "Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)",
    "invalid params, context window exceeds limit (2013)",
    "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
    "context_length_exceeded",
]


@rows("message", TOO_LONG)
def test_what_servers_say_of_a_request_that_is_too_long(message: str) -> None:
    assert is_too_long(message, 400)
    assert not is_too_long(message, 401)
    assert 1000 < shorter(10_000, 1000, message) < 10_000


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
        "Rate limit reached for gpt-4 on tokens per min (TPM): Limit 10000, Used 9000.",
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "'messages.2' : property 'reasoning_content' is unsupported",
        "Incorrect API key provided.",
    ],
)
def test_other_refusals_are_not_taken_for_that(message: str) -> None:
    assert not is_too_long(message, 400)


def test_a_body_that_is_too_large_is_too_long_whatever_it_says() -> None:
    assert is_too_long("", 413)


@pytest.mark.parametrize(
    ("message", "goal"),
    [
        ("no numbers", 10 + 0.6 * 990),
        ("maximum context length is 500 tokens, you requested 1,000 tokens", 450),
        ("maximum context length is 999 tokens, you requested 1000 tokens", 10 + 0.8 * 990),
        ("the context length is only 300 tokens", 270),
        ("context window exceeds limit (20)", 10 + 0.1 * 990),
    ],
)
def test_the_numbers_of_a_refusal_say_how_much_shorter_it_has_to_get(message: str, goal: float) -> None:
    assert shorter(1000, 10, message) == int(goal)


def test_usage_is_told_once_and_tolerates_holes() -> None:
    assert read({}, {}, usage={"prompt_tokens": 3, "completion_tokens": None}) == [Usage(3, 0)]
    assert read({}, usage=None) == []


@pytest.mark.parametrize(
    ("more", "cached"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 2}}, Usage(3, 1, cache_read_tokens=2)),
        (
            {"prompt_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 2}},
            Usage(3, 1, cache_read_tokens=1, cache_write_tokens=2),
        ),
        ({"prompt_cache_hit_tokens": 2, "prompt_cache_miss_tokens": 1}, Usage(3, 1, cache_read_tokens=2)),
        ({"prompt_tokens_details": None}, Usage(3, 1)),
        ({"prompt_tokens_details": {"cached_tokens": -7}}, Usage(3, 1)),
        ({"prompt_cache_hit_tokens": 10**400}, Usage(3, 1)),
    ],
    ids=["OpenAI", "OpenRouter", "DeepSeek", "others", "negative", "odd"],
)
def test_cached_tokens_are_a_part_of_the_input(more: dict[str, Any], cached: Usage) -> None:
    assert read({}, usage={"prompt_tokens": 3, "completion_tokens": 1, **more}) == [cached]
    assert cached + cached == Usage(6, 2, 2 * cached.cache_read_tokens, 2 * cached.cache_write_tokens)


def test_other_choices_are_not_mixed_in() -> None:
    reader = AnswerReader()
    choices = [{"index": 1, "delta": {"content": "b"}}, {"index": 0, "delta": {"content": "a"}}]
    assert reader.read(json.dumps({"choices": choices})) == [Text("a")]


@pytest.mark.parametrize("piece", ["", "[1]", "{", '{"x": 1}', b"\xff", "[" * 100_000])
def test_what_cannot_be_read_is_kept_for_the_message(piece: str | bytes) -> None:
    reader = AnswerReader()
    assert reader.read(piece) == []
    assert reader.pieces == 0
    assert bool(reader.unreadable) == bool(piece)


STREAM = "\ufeffdata: one\n\n: comment\nevent: x\ndata:two\ndata:  three é\n\nid: 1\n\ndata\n\n".encode()


@rows("ending", [b"\n", b"\r\n", b"\r"])
@rows("size", [1, 2, 3, 7, 1000])
def test_events_out_of_portions_of_any_size(size: int, ending: bytes) -> None:
    stream = STREAM.replace(b"\n", ending)
    reader = EventReader()
    events = [event for at in range(0, len(stream), size) for event in reader.feed(stream[at : at + size])]
    assert events == ["one", "two\n three é", ""]


def test_an_event_is_given_with_its_last_byte_and_the_end_completes_one() -> None:
    reader = EventReader()
    assert reader.feed(b"data: a\r\n\r") == ["a"]
    assert reader.feed(b"\ndata: b") == []
    assert reader.finish() == ["b"]
    assert reader.finish() == []


@pytest.mark.parametrize(
    "message",
    [
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        "image input is not supported by this server",
        "test is not a multimodal model",
        "No endpoints found that support image input",
        "unknown variant `image_url`, expected `text`",
        "This model does not support image inputs",
        "images are not allowed here",
    ],
)
def test_servers_say_in_many_ways_that_they_take_no_images(message: str) -> None:
    assert says_no_images(message)
    assert refuses_images(ModelError(message, status=500))


@pytest.mark.parametrize("message", ["overloaded", "the disk image is corrupt", "model not found", "not supported"])
def test_other_troubles_are_not_taken_for_a_refusal_of_images(message: str) -> None:
    assert not says_no_images(message)
    assert not refuses_images(ModelError(message, status=500))
    assert refuses_images(ModelError(message, status=400))  # of a request with images in it, that may be why


def test_an_endless_event_is_refused() -> None:
    reader = EventReader()
    with pytest.raises(ValueError, match="an event of more than 16 MB"):
        reader.feed(b"x" * (MAX_EVENT + 1))


@rows(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "0"}, 0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:30 GMT"}, 20),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:05 GMT"}, 0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
    ],
)
def test_what_the_server_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_wait(headers, now=10) == seconds


def test_waits_double_and_have_a_limit() -> None:
    backoff = Backoff()
    assert [backoff.seconds(number, None, 0.5) for number in (1, 2, 3, 20)] == [0.5, 1, 2, 30]
    assert (backoff.seconds(1, None, 0), backoff.seconds(1, None, 1)) == (0.375, 0.625)
    assert (backoff.seconds(1, 45, 0), backoff.seconds(1, 3600, 0), backoff.seconds(1, 0, 0.5)) == (45, 60, 0.5)


@rows(
    ("body", "message", "code"),
    [
        ('{"error": {"message": "No", "code": "x", "type": "y"}}', "No", "x"),
        ('{"error": "No"}', "No", ""),
        ('{"detail": "No"}', "No", ""),
        ('{"detail": [{"loc": ["body"], "msg": "No", "type": "t"}, {"msg": "nor that"}]}', "No; nor that", ""),
        ('[{"error": {"message": "No", "code": 400}}]', "No", ""),
        ('{"object": "error", "message": "No", "code": 404}', "No", "404"),
        ('{"error": {"message": "Failed", "metadata": {"raw": "why"}}}', "Failed (why)", ""),
        ('{"x": 1}', '{"x":1}', ""),
        ("null", "", ""),
        ("{}", "", ""),
        ("plain\n text\x1b[0m", "plain text", ""),
        ("<html><head><title>502 Bad\nGateway</title>", "502 Bad Gateway", ""),
        ("<p>Go <b>away</b></p>", "Go away", ""),
        ("x" * 900, "x" * 499 + "…", ""),
    ],
)
def test_where_the_servers_message_stands(body: str, message: str, code: str) -> None:
    refusal = read_refusal(body.encode())
    assert (refusal.message, refusal.code) == (message, code)


def as_event(delta: dict[str, object], **more: object) -> str:
    return json.dumps(
        {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": None}], "usage": None, **more}
    )


DELTAS = st.sampled_from(
    [
        as_event({"content": "a"}),
        as_event({"content": "b", "role": "assistant", "refusal": None, "tool_calls": None}),
        as_event({"content": ""}),
        as_event({"content": None}),
        as_event({"content": "c", "reasoning_content": "r"}),
        as_event({"content": "d", "unknown": 1}),
        as_event({"content": [{"text": "e"}]}),
        as_event({"content": "f"}, usage={"prompt_tokens": 1, "completion_tokens": 2}),
        as_event({"tool_calls": [{"index": 0, "id": "1", "function": {"name": "Bash", "arguments": "{}"}}]}),
        json.dumps({"choices": [{"index": 1, "delta": {"content": "other"}}]}),
        json.dumps({"choices": [{"delta": {"content": "g"}, "finish_reason": "stop"}]}),
        json.dumps({"choices": [{"delta": {"content": "h"}}, {"index": 0, "delta": {"content": "i"}}]}),
        json.dumps({"choices": []}),
        "nonsense",
        '"text"',
        '{"choices": [{"delta": {"content": "\\ud800"}}]}',
    ]
)


def merged(deltas: list[Delta]) -> list[Delta]:
    """Texts that follow each other, as one."""
    found: list[Delta] = []
    for delta in deltas:
        if found and isinstance(delta, Text) and isinstance(found[-1], Text):
            found[-1] = Text(found[-1].text + delta.text)
        else:
            found.append(delta)
    return found


@given(st.lists(DELTAS, max_size=8))
def test_many_chunks_at_once_mean_what_they_mean_one_by_one(pieces: list[str]) -> None:
    one_by_one, at_once = AnswerReader(), AnswerReader()
    shown = [delta for piece in pieces for delta in one_by_one.read(piece)]
    assert merged([*at_once.read_all(pieces)]) == merged(shown)
    assert (at_once.pieces, at_once.finished, at_once.unreadable) == (
        one_by_one.pieces,
        one_by_one.finished,
        one_by_one.unreadable,
    )
    assert at_once.end() == one_by_one.end()


@pytest.mark.parametrize("last", [{"content": "beyond"}, {"reasoning": "beyond"}])
def test_what_came_before_a_limit_is_shown_however_the_bytes_came(last: dict[str, object]) -> None:
    reader = AnswerReader(AnswerLimits(max_text_bytes=32))
    shown: list[Delta] = []
    with pytest.raises(ModelError, match="more than 32 bytes"):
        shown.extend(reader.read_all([as_event({"content": "a"}), as_event({"content": "b"}), as_event(last)]))
    assert shown == [Text("ab")]


def test_chunks_after_one_that_tells_of_an_error_are_not_shown() -> None:
    reader = AnswerReader()
    pieces = [as_event({"content": "a"}), json.dumps({"error": {"message": "no"}}), as_event({"content": "b"})]
    assert [*reader.read_all(pieces)] == [Text("a")]
    assert reader.error == {"message": "no"}


def test_half_a_character_in_an_id_can_be_recorded() -> None:
    (call,) = calls(fragment("{}", "Read", index=0, id="i\ud800"))
    assert call == ("i\ufffd", "Read", "{}")
