"""The API `anthropic`: what is written, what is read, and what a server may do in between."""

import json
from typing import Any

import pytest

from tests.models.serving import Patient, retries_of, text_of
from wave_agent.errors import ModelError
from wave_agent.http.refusals import is_too_long
from wave_agent.messages import Kept
from wave_agent.models.anthropic import MOST_OUTPUT, Anthropic, AnthropicModel
from wave_agent.models.anthropic_replies import events
from wave_agent.models.anthropic_stream import MessagesReader
from wave_agent.models.base import CutShort, Delta, ModelRequest, Reasoning, Text, ToolCall, ToolSpec, Usage
from wave_agent.models.limits import AnswerLimits
from wave_agent.models.scripted import call
from wave_agent.testing.model_server import Events, RecordingModelServer, Reply, Status, Whole

PROMPT = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}]
TOOLS = [ToolSpec(name, "A tool.", {"type": "object"}) for name in ("Bash", "Read")]
REQUEST = ModelRequest(model="claude", messages=PROMPT, tools=TOOLS)
SUMMARIZED = {"type": "adaptive", "display": "summarized"}


async def asked(server: RecordingModelServer, request: ModelRequest = REQUEST, **options: Any) -> list[Delta]:
    given = {"api_key": "secret-key", "environment": {}, "sleep": Patient(), "chance": lambda: 0.5} | options
    model = AnthropicModel(base_url=server.base_url, **given)
    try:
        return [delta async for delta in model.stream(request)]
    finally:
        await model.close()


def read(*sent: dict[str, Any] | str) -> list[Delta]:
    reader = MessagesReader(model="claude")
    found = [*reader.read_all(one if isinstance(one, str) else json.dumps(one) for one in sent)]
    return [*found, *reader.end()]


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def thought(index: int, text: str, signature: str) -> list[dict[str, Any]]:
    deltas = [{"type": "thinking_delta", "thinking": text}, {"type": "signature_delta", "signature": signature}]
    return block(index, {"type": "thinking", "thinking": "", "signature": ""}, *deltas)


def use(index: int, name: str) -> list[dict[str, Any]]:
    start = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}
    return block(index, start, {"type": "input_json_delta", "partial_json": "{}"})


def ended(reason: str) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3}}


def kept(**data: Any) -> Kept:
    return Kept("anthropic", "claude", data)


# -------------------------------------------------------------------------------------------------------------- written


async def test_the_request_has_four_marks_for_the_cache_and_the_key_in_its_header() -> None:
    turns = [{"role": "user" if at % 2 == 0 else "assistant", "content": f"text {at}"} for at in range(5)]
    request = ModelRequest(model="claude", messages=[PROMPT[0], *turns], tools=TOOLS)
    async with RecordingModelServer(["Hi."]) as server:
        await asked(server, request)
    sent = server.requests[0]
    assert sent.path == "/v1/messages"
    assert (sent.headers["x-api-key"], sent.headers["anthropic-version"]) == ("secret-key", "2023-06-01")
    assert "authorization" not in sent.headers
    marked = {"cache_control": {"type": "ephemeral"}}
    assert sent.body["system"] == [{"type": "text", "text": "Be kind.", **marked}]
    assert [tool.get("cache_control") for tool in sent.body["tools"]] == [None, {"type": "ephemeral"}]
    blocks = [turn["content"][-1] for turn in sent.body["messages"]]
    assert [block.get("cache_control") is not None for block in blocks] == [False, False, True, False, True]
    assert (sent.body["max_tokens"], sent.body["stream"]) == (MOST_OUTPUT, True)
    assert "thinking" not in sent.body


async def test_a_token_is_sent_as_such() -> None:
    async with RecordingModelServer(["Hi."]) as server:
        await asked(server, bearer=True)
    assert server.requests[0].headers["authorization"] == "Bearer secret-key"
    assert "x-api-key" not in server.requests[0].headers


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/", "/v1/messages"])
def test_the_base_url_may_end_in_several_ways(end: str) -> None:
    api = Anthropic()
    assert api.endpoint(f"https://host/anthropic{end}").target == "/anthropic/v1/messages"
    assert api.models_url(f"https://host/anthropic{end}") == "https://host/anthropic/v1/models"


def test_the_limit_and_the_effort_are_what_was_asked_for() -> None:
    asked = ModelRequest(model="claude", messages=PROMPT, max_output_tokens=99, effort="low")
    body = Anthropic().body(asked)
    assert (body["max_tokens"], body["output_config"]) == (99, {"effort": "low"})
    assert body["thinking"] == SUMMARIZED
    assert "thinking" not in Anthropic().body(REQUEST)


def test_turns_alternate_whatever_the_conversation_looks_like() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "one"},
        {"role": "user", "content": " "},
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": " "},
        {"role": "user", "content": "three"},
        {"role": "assistant", "content": "half an ans"},
    ]
    turns = Anthropic().body(ModelRequest(model="claude", messages=messages))["messages"]
    texts = [(turn["role"], [block["text"] for block in turn["content"]]) for turn in turns]
    assert [role for role, _ in texts] == ["user", "assistant", "user", "assistant", "user"]
    assert texts[2] == ("user", ["one", "two", "three"])
    assert "broke off" in texts[-1][1][0]
    assert Anthropic().body(ModelRequest(model="claude", messages=[]))["messages"][0]["role"] == "user"


def test_what_was_written_once_is_not_written_again() -> None:
    api = Anthropic()
    made = call("Bash", command="ls")
    function = {"name": "Bash", "arguments": made.arguments}
    answer = {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "type": "function", "function": function}]}
    messages = [*PROMPT, answer, {"role": "tool", "tool_call_id": "a", "content": ""}]
    first = api.body(ModelRequest(model="claude", messages=messages))["messages"]
    second = api.body(ModelRequest(model="claude", messages=[*messages, {"role": "user", "content": "And?"}]))[
        "messages"
    ]
    assert first[1]["content"][0] is second[1]["content"][0]
    assert second[2]["content"][0] == {"type": "tool_result", "tool_use_id": "a"}


def test_reasoning_of_another_model_is_not_sent() -> None:
    data = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    parts = [
        {"type": "reasoning", "kept": {"api": "anthropic", "model": "claude", "data": data}},
        {"type": "text", "text": "Hello.", "kept": None},
        {"type": "reasoning", "kept": {"api": "anthropic", "model": "claude", "data": data}},
    ]
    messages = [*PROMPT, {"role": "assistant", "content": "Hello.", "parts": parts}, PROMPT[1]]
    api = Anthropic()
    for model, blocks in (
        ("claude", [data, {"type": "text", "text": "Hello."}]),
        ("other", [{"type": "text", "text": "Hello."}]),
    ):
        assert api.body(ModelRequest(model=model, messages=messages))["messages"][1]["content"] == blocks


# ----------------------------------------------------------------------------------------------------------------- read


def test_blocks_keep_their_order_and_what_must_go_back() -> None:
    found = read(
        {"type": "message_start", "message": {"usage": {"input_tokens": 4, "cache_read_input_tokens": 6}}},
        *thought(0, "One.", "s1"),
        *block(1, {"type": "redacted_thinking", "data": "xyz"}),
        *block(2, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Hi."}),
        *use(3, "Bash"),
        *thought(4, "Two.", "s2"),
        *use(5, "Read"),
        ended("tool_use"),
        {"type": "message_stop"},
    )
    assert found == [
        Reasoning("One."),
        Reasoning("", kept=kept(type="thinking", thinking="One.", signature="s1")),
        Reasoning("", kept=kept(type="redacted_thinking", data="xyz")),
        Text("Hi."),
        ToolCall("toolu_3", "Bash", "{}"),
        Reasoning("Two."),
        Reasoning("", kept=kept(type="thinking", thinking="Two.", signature="s2")),
        ToolCall("toolu_5", "Read", "{}"),
        Usage(10, 3, cache_read_tokens=6),
    ]


def test_thinking_that_is_not_shown_still_goes_back() -> None:
    assert read(*thought(0, "", "s1"), ended("end_turn"))[0] == Reasoning(
        "", kept=kept(type="thinking", thinking="", signature="s1")
    )


def test_thinking_without_a_signature_is_only_shown() -> None:
    start = {"type": "thinking", "thinking": ""}
    assert read(*block(0, start, {"type": "thinking_delta", "thinking": "Hm."}), ended("end_turn"))[:1] == [
        Reasoning("Hm.")
    ]


@pytest.mark.parametrize(
    ("reason", "cut"),
    [
        ("end_turn", None),
        ("stop_sequence", None),
        ("something_new", None),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
    ],
)
def test_why_it_ended(reason: str, cut: Any) -> None:
    assert [one.reason for one in read(ended(reason)) if isinstance(one, CutShort)] == ([cut] if cut else [])


def test_what_is_new_or_broken_is_passed_over() -> None:
    odd: list[dict[str, Any] | str] = [
        {"type": "something_new", "value": 1},
        {"type": "content_block_delta", "index": 9, "delta": {"type": "text_delta", "text": "lost"}},
        {"type": "content_block_stop", "index": 9},
        *block(0, {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
        *block(1, {"type": "text", "text": "He"}, {"type": "citations_delta", "citation": {}}),
        {"type": "content_block_start", "index": 2, "content_block": None},
        {"type": "message_delta", "delta": None, "usage": {"output_tokens": "many"}},
        "not json",
        "[]",
    ]
    assert read(*odd) == [Text("He")]


@pytest.mark.parametrize("whole", [False, True])
async def test_a_reply_is_read_as_it_was_meant(whole: bool) -> None:
    made = call("Bash", command="ls", deep={"a": [1]})
    reply = Reply("All is well.", [made], "Let me see.", Usage(12, 7, 3, 2))
    async with RecordingModelServer([Whole(reply) if whole else reply]) as server:
        deltas = await asked(server)
    assert text_of(deltas) == "All is well."
    assert "".join(delta.text for delta in deltas if isinstance(delta, Reasoning)) == "Let me see."
    assert [delta for delta in deltas if isinstance(delta, ToolCall)] == [made]
    assert deltas[-1] == Usage(12, 7, 3, 2)


async def test_an_answer_without_end_is_stopped() -> None:
    async with RecordingModelServer([Reply("word " * 1000)]) as server:
        with pytest.raises(ModelError, match="maxTextBytes"):
            await asked(server, limits={"claude": AnswerLimits(max_text_bytes=500)})


# --------------------------------------------------------------------------------------------------------- the server's


async def test_a_turn_that_the_server_paused_goes_on() -> None:
    search = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
    query = {"type": "input_json_delta", "partial_json": '{"query": "x"}'}
    paused = Events([*thought(0, "Hm.", "s1"), *block(1, search, query), ended("pause_turn")], "bare")
    async with RecordingModelServer([paused, "Found."]) as server:
        deltas = await asked(server)
    assert text_of(deltas) == "Found."
    assert server.requests[1].body["messages"][-1] == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "s1"},
            {**search, "input": {"query": "x"}},
        ],
    }


OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


@pytest.mark.parametrize(
    "busy",
    [
        Status(529, OVERLOADED),
        Events([events(Reply("x"))[0], {"type": "ping"}, OVERLOADED], "bare"),
        Events([*events(Reply(reasoning="Hm.", error=ValueError())), OVERLOADED], "bare"),
    ],
    ids=["529", "in the stream", "after reasoning"],
)
async def test_an_overloaded_server_is_asked_again(busy: Any) -> None:
    async with RecordingModelServer([busy, busy, "At last."]) as server:
        deltas = await asked(server)
    assert text_of(deltas) == "At last."
    assert ["Overloaded" in retry.reason for retry in retries_of(deltas)] == [True, True]


async def test_a_request_that_is_wrong_is_not_repeated() -> None:
    wrong = {"type": "error", "error": {"type": "invalid_request_error", "message": "messages: wrong"}}
    async with RecordingModelServer([Events([wrong], "bare"), "never"]) as server:
        with pytest.raises(ModelError, match="messages: wrong"):
            await asked(server)
    assert len(server.requests) == 1


async def test_a_smaller_limit_of_the_model_is_learned() -> None:
    said = f"max_tokens: {MOST_OUTPUT} > 8192, which is the maximum allowed number of output tokens for claude"
    refusal = Status(400, {"type": "error", "error": {"type": "invalid_request_error", "message": said}})
    async with RecordingModelServer([refusal, "Hi."]) as server:
        assert text_of(await asked(server)) == "Hi."
    assert [request.body["max_tokens"] for request in server.requests] == [MOST_OUTPUT, 8192]


async def test_an_answer_that_does_not_fit_beside_the_request_is_not_asked_for_again_as_it_is() -> None:
    said = f"input length and `max_tokens` exceed context limit: 199000 + {MOST_OUTPUT} > 200000, decrease input length"
    async with RecordingModelServer([Status(400, {"error": {"message": said}})]) as server:
        with pytest.raises(ModelError, match="exceed context limit") as raised:
            await asked(server)
    assert len(server.requests) == 1
    assert is_too_long(str(raised.value), raised.value.status)


async def test_a_model_without_effort_is_asked_without() -> None:
    said = "This model does not support the effort parameter."
    refusal = Status(400, {"type": "error", "error": {"type": "invalid_request_error", "message": said}})
    request = ModelRequest(model="claude", messages=PROMPT, effort="high")
    async with RecordingModelServer([refusal, "Hi."]) as server:
        assert text_of(await asked(server, request)) == "Hi."
    assert ["output_config" in request.body for request in server.requests] == [True, False]


async def test_a_model_that_does_not_know_a_level_of_effort_gets_the_nearest() -> None:
    said = "output_config.effort: Input should be 'low', 'medium', 'high' or 'max'"
    refusal = Status(400, {"type": "error", "error": {"type": "invalid_request_error", "message": said}})
    request = ModelRequest(model="claude", messages=PROMPT, effort="xhigh")
    async with RecordingModelServer([refusal, "Hi."]) as server:
        assert text_of(await asked(server, request)) == "Hi."
    assert [request.body["output_config"]["effort"] for request in server.requests] == ["xhigh", "high"]


@pytest.mark.parametrize(
    ("most", "last"), [(None, {"type": "enabled", "budget_tokens": 4_000}), (1_500, None)], ids=["enough", "too little"]
)
async def test_an_older_model_gets_a_budget_for_thinking(most: int | None, last: object) -> None:
    said = "adaptive thinking is not supported on this model"
    refusal = Status(400, {"type": "error", "error": {"type": "invalid_request_error", "message": said}})
    request = ModelRequest(model="claude", messages=PROMPT, effort="low", max_output_tokens=most)
    async with RecordingModelServer([refusal, "Hi."]) as server:
        assert text_of(await asked(server, request)) == "Hi."
    assert [request.body.get("thinking") for request in server.requests] == [SUMMARIZED, last]


async def test_a_server_that_cannot_show_thoughts_is_asked_to_think_all_the_same() -> None:
    said = "thinking.adaptive.display: Extra inputs are not permitted"
    refusal = Status(400, {"type": "error", "error": {"type": "invalid_request_error", "message": said}})
    request = ModelRequest(model="claude", messages=PROMPT, effort="low")
    async with RecordingModelServer([refusal, "Hi."]) as server:
        assert text_of(await asked(server, request)) == "Hi."
    assert [request.body.get("thinking") for request in server.requests] == [SUMMARIZED, {"type": "adaptive"}]


async def test_a_model_that_does_not_think_is_asked_without() -> None:
    said = "thinking is not supported on this model"
    refusal = Status(400, {"type": "error", "error": {"type": "invalid_request_error", "message": said}})
    request = ModelRequest(model="claude", messages=PROMPT, effort="low")
    async with RecordingModelServer([refusal, refusal, "Hi."]) as server:
        assert text_of(await asked(server, request)) == "Hi."
    assert "thinking" not in server.requests[-1].body


async def test_the_window_and_the_output_limit_come_from_the_list_of_models() -> None:
    facts = {"max_input_tokens": 200_000, "max_tokens": 4096, "capabilities": {"image_input": {"supported": True}}}
    async with RecordingModelServer(["Hi."], elsewhere={"GET /v1/models/claude": facts}) as server:
        model = AnthropicModel(base_url=server.base_url, api_key="secret-key", environment={})
        window = await model.context_window("claude")
        assert await model.context_window("unknown") is None
        async for _ in model.stream(REQUEST):
            pass
        await model.close()
    assert window is not None
    assert (window.tokens, window.images) == (200_000, True)
    assert server.requests[0].body["max_tokens"] == 4096
