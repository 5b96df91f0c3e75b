"""The API `openai-responses`: what is written, what is read, and what a server may do in between."""

import json
from typing import Any

import pytest

from tests.models.serving import Patient, retries_of, text_of
from wave_agent.errors import ModelError
from wave_agent.messages import Kept
from wave_agent.models.base import CutShort, Delta, ModelRequest, Reasoning, Text, ToolCall, ToolSpec, Usage
from wave_agent.models.openai_responses import OpenAIResponses, OpenAIResponsesModel
from wave_agent.models.responses_stream import ResponsesReader
from wave_agent.models.scripted import call
from wave_agent.testing.model_server import Events, RecordingModelServer, Reply, Status, Whole

PROMPT = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}]
REQUEST = ModelRequest(model="gpt", messages=PROMPT, tools=[ToolSpec("Bash", "Runs it.", {"type": "object"})])


async def asked(server: RecordingModelServer, request: ModelRequest = REQUEST) -> list[Delta]:
    model = OpenAIResponsesModel(
        base_url=server.base_url, api_key="secret-key", environment={}, sleep=Patient(), chance=lambda: 0.5
    )
    try:
        return [delta async for delta in model.stream(request)]
    finally:
        await model.close()


def read(*sent: dict[str, Any] | str) -> list[Delta]:
    reader = ResponsesReader(model="gpt")
    found = [*reader.read_all(one if isinstance(one, str) else json.dumps(one) for one in sent)]
    return [*found, *reader.end()]


def item(index: int, **item: Any) -> list[dict[str, Any]]:
    return [
        {"type": "response.output_item.added", "output_index": index, "item": {**item, "arguments": ""}},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def function(index: int, **more: Any) -> list[dict[str, Any]]:
    made = {"type": "function_call", "id": f"fc_{index}", "call_id": f"call_{index}", "status": "completed"}
    return item(index, **made, name="Bash", arguments="{}", **more)


def kept(**data: Any) -> Kept:
    return Kept("openai-responses", "gpt", data)


DONE = {"type": "response.completed", "response": {"status": "completed", "output": []}}


async def test_the_request_stores_nothing_and_asks_for_encrypted_reasoning() -> None:
    request = ModelRequest(model="gpt", messages=PROMPT, tools=REQUEST.tools, max_output_tokens=99, effort="high")
    async with RecordingModelServer(["Hi."]) as server:
        await asked(server, request)
    sent = server.requests[0]
    assert (sent.path, sent.headers["authorization"]) == ("/v1/responses", "Bearer secret-key")
    assert sent.body == {
        "model": "gpt",
        "input": [{"type": "message", "role": "user", "content": "Hello"}],
        "instructions": "Be kind.",
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 99,
        "reasoning": {"effort": "high"},
        "tools": [
            {
                "type": "function",
                "name": "Bash",
                "description": "Runs it.",
                "parameters": {"type": "object"},
                "strict": False,
            }
        ],
    }


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


def test_items_keep_their_order_and_what_must_go_back() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"}
    found = read(
        *item(0, **thought, status=None, content=None),
        {"type": "response.output_text.delta", "output_index": 1, "delta": "Hi."},
        *item(1, type="message", id="m", role="assistant", content=[], status="completed", phase="commentary"),
        *function(2),
        *item(3, **{**thought, "id": "rs_2"}),
        *function(4, namespace="files"),
        DONE,
    )
    assert found == [
        Reasoning("", kept=kept(**thought)),
        Text("Hi."),
        Text("", kept(phase="commentary")),
        ToolCall("call_2", "Bash", "{}"),
        Reasoning("", kept=kept(**{**thought, "id": "rs_2"})),
        ToolCall("call_4", "Bash", "{}", kept(namespace="files")),
    ]


def test_the_parts_of_a_summary_are_paragraphs() -> None:
    found = read(
        {"type": "response.reasoning_summary_part.added", "summary_index": 0},
        {"type": "response.reasoning_summary_text.delta", "delta": "One."},
        {"type": "response.reasoning_summary_part.added", "summary_index": 1},
        {"type": "response.reasoning_summary_text.delta", "delta": "Two."},
        *item(0, type="reasoning", id="rs", summary=[]),
        DONE,
    )
    assert "".join(one.text for one in found if isinstance(one, Reasoning)) == "One.\n\nTwo."
    assert not any(one.kept for one in found if isinstance(one, Reasoning))  # nothing encrypted to send back


def test_what_goes_back_is_in_its_place() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"}
    mine = {"api": "openai-responses", "model": "gpt"}
    parts = [
        {"type": "reasoning", "kept": {**mine, "data": thought}},
        {"type": "text", "text": "Hi.", "kept": {**mine, "data": {"phase": "commentary"}}},
        {"type": "call", "id": "a", "kept": {**mine, "data": {"namespace": "files"}}},
    ]
    made = {"id": "a", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
    messages = [
        *PROMPT,
        {"role": "assistant", "content": "Hi.", "tool_calls": [made], "parts": parts},
        {"role": "tool", "tool_call_id": "a", "content": "x"},
    ]
    said = {"type": "message", "role": "assistant", "content": "Hi."}
    function_call = {"type": "function_call", "call_id": "a", "name": "Bash", "arguments": "{}"}
    api = OpenAIResponses()
    ours = api.body(ModelRequest(model="gpt", messages=messages))["input"]
    assert ours[1:4] == [thought, {**said, "phase": "commentary"}, {**function_call, "namespace": "files"}]
    other = api.body(ModelRequest(model="other", messages=messages))["input"]
    assert other[1:3] == [said, function_call]


@pytest.mark.parametrize(
    ("reason", "cut"), [("max_output_tokens", "length"), ("content_filter", "content_filter"), ("new", "length")]
)
def test_why_it_is_incomplete(reason: str, cut: Any) -> None:
    response = {"status": "incomplete", "incomplete_details": {"reason": reason}, "usage": {"input_tokens": 1}}
    made = {"type": "function_call", "call_id": "a", "name": "Bash", "arguments": ""}
    found = read(
        {"type": "response.output_item.added", "output_index": 0, "item": made},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"comm'},
        {"type": "response.incomplete", "response": response},
    )
    assert found == [ToolCall("a", "Bash", '{"comm'), Usage(1), CutShort(cut)]


def test_what_is_new_or_broken_is_passed_over() -> None:
    odd: list[dict[str, Any] | str] = [
        {"type": "response.something.new"},
        {"type": "response.function_call_arguments.delta", "output_index": 9, "delta": "lost"},
        {"type": "response.output_item.done", "output_index": 0, "item": {"type": "web_search_call"}},
        {"type": "response.output_item.done", "output_index": 1, "item": None},
        {"type": "response.refusal.delta", "delta": "I will not."},
        "not json",
        "[]",
    ]
    assert read(*odd) == [Text("I will not.")]


@pytest.mark.parametrize(
    "failure",
    [
        Status(503, {"error": {"message": "The server is overloaded"}}),
        Events([{"type": "error", "code": "server_error", "message": "Overloaded", "param": None}], "bare"),
        Events(
            [{"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded", "message": "Slow"}}}],
            "bare",
        ),
    ],
    ids=["503", "error", "failed"],
)
async def test_a_failure_is_retried(failure: Any) -> None:
    async with RecordingModelServer([failure, "At last."]) as server:
        deltas = await asked(server)
    assert text_of(deltas) == "At last."
    assert len(retries_of(deltas)) == 1


async def test_a_prompt_that_is_refused_is_not_repeated() -> None:
    error = {"code": "invalid_prompt", "message": "Invalid prompt"}
    failed = Events([{"type": "response.failed", "response": {"status": "failed", "error": error}}], "bare")
    async with RecordingModelServer([failed, "never"]) as server:
        with pytest.raises(ModelError, match="Invalid prompt"):
            await asked(server)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("Encrypted content is not supported with this model.", "include"),
        ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", "reasoning"),
    ],
)
async def test_what_a_model_does_not_know_is_left_out(message: str, field: str) -> None:
    refusal = Status(400, {"error": {"message": message}})
    request = ModelRequest(model="gpt", messages=PROMPT, effort="low")
    async with RecordingModelServer([refusal, "Hi."]) as server:
        assert text_of(await asked(server, request)) == "Hi."
    assert [field in request.body for request in server.requests] == [True, False]
