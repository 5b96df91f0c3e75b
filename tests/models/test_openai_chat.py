"""The chat client against a real server on loopback: what goes well."""

import asyncio
import json
import re
import subprocess
import sys
from contextlib import aclosing, suppress
from itertools import pairwise
from typing import Any

import pytest

from tests.models.serving import REQUEST, answer, client, collect, text_of
from tests.waiting import until
from wave_agent.errors import ModelError
from wave_agent.models.base import Delta, ModelRequest, Reasoning, Text, ToolCall, ToolSpec, Usage
from wave_agent.models.limits import AnswerLimits
from wave_agent.models.openai_chat import OpenAIChatModel
from wave_agent.models.scripted import call
from wave_agent.testing.model_server import Events, RecordedRequest, RecordingModelServer, Reply, Status, Whole, delta


async def test_an_answer_is_streamed_with_reasoning_calls_and_usage() -> None:
    bash = call("Bash", command="ls")
    reply = Reply("All is well.", [bash], "Let me see.", Usage(12, 7))
    async with RecordingModelServer([reply]) as server, client(server.base_url, api_key="sk-test-key") as model:
        deltas = await answer(model)
    assert [delta.text for delta in deltas if isinstance(delta, Reasoning)] == ["Let", " me", " see."]
    assert text_of(deltas) == "All is well."
    assert deltas[-2:] == [bash, Usage(12, 7)]
    assert server.requests[0].headers["authorization"] == "Bearer sk-test-key"


async def test_the_request_is_in_the_chat_format() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    request = ModelRequest(
        model="tiny",
        messages=[{"role": "user", "content": "é \udcff"}],
        tools=[ToolSpec("Read", "Reads a file", schema)],
    )
    async with RecordingModelServer(["ok"]) as server, client(server.base_url, headers={"X-Title": "Wave"}) as model:
        await answer(model, request)
    sent = server.requests[0]
    assert sent.path == "/v1/chat/completions"
    assert sent.headers["x-title"] == "Wave"
    assert "authorization" not in sent.headers
    assert sent.body == {
        "model": "tiny",
        "messages": [{"role": "user", "content": "é ?"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            {"type": "function", "function": {"name": "Read", "description": "Reads a file", "parameters": schema}}
        ],
    }


async def test_text_is_shown_before_the_answer_is_complete() -> None:
    gate = asyncio.Event()
    events = Events([delta(content="Hel"), gate, delta(content="lo"), delta("stop")])
    async with RecordingModelServer([events]) as server, client(server.base_url) as model:
        shown: list[Delta] = []
        task = asyncio.create_task(collect(model, shown))
        await until(lambda: bool(shown))
        assert shown == [Text("Hel")]
        gate.set()
        assert text_of(await task) == "Hello"


async def test_four_parallel_calls_come_whole_and_in_order() -> None:
    calls = [call("Read", file_path=f"/tmp/{number}", note="é" * number) for number in range(4)]
    async with RecordingModelServer([Reply(tool_calls=calls)]) as server, client(server.base_url) as model:
        assert await answer(model) == calls


async def test_broken_arguments_pass_through_as_they_are() -> None:
    broken = ToolCall("call_1", "Bash", '{"command": "ls')
    async with RecordingModelServer([Reply(tool_calls=[broken])]) as server, client(server.base_url) as model:
        assert await answer(model) == [broken]


async def test_fields_that_are_not_known_are_passed_over() -> None:
    chunk = delta(content="Hi", annotations=[], audio=None) | {"x_groq": {}, "system_fingerprint": None}
    chunk["choices"][0] |= {"logprobs": None, "content_filter_results": {}}
    empty = delta("stop") | {"usage": None, "obfuscation": "x"}
    events = Events([chunk, {"choices": None}, empty])
    async with RecordingModelServer([events]) as server, client(server.base_url) as model:
        assert await answer(model) == [Text("Hi")]


async def test_comments_and_crlf_and_a_missing_done() -> None:
    raw = json.dumps(delta("stop", content="Hi")).encode()
    events = Events([b": keep-alive\r\n\r\nevent: x\r\ndata:" + raw[:9], raw[9:] + b"\r\n\r\n"], "bare")
    async with RecordingModelServer([events]) as server, client(server.base_url) as model:
        assert await answer(model) == [Text("Hi")]


async def test_a_malformed_chunk_is_passed_over_when_the_stream_goes_on() -> None:
    events = Events([delta(content="Hel"), '{"choices": [{"del', "[]", delta(content="lo"), delta("stop")])
    async with RecordingModelServer([events]) as server, client(server.base_url) as model:
        assert text_of(await answer(model)) == "Hello"


async def test_a_finished_answer_survives_a_broken_end() -> None:
    events = Events([delta(content="Hi"), delta("stop")], "cut")
    async with RecordingModelServer([events]) as server, client(server.base_url) as model:
        assert await answer(model) == [Text("Hi")]


async def test_a_server_that_does_not_stream_is_understood() -> None:
    reply = Reply("Hi there", [call("Read")], "Hm", Usage(1, 2))
    async with RecordingModelServer([Whole(reply)]) as server, client(server.base_url) as model:
        assert await answer(model) == [
            Reasoning("Hm", "reasoning_content"),
            Text("Hi there"),
            *reply.tool_calls,
            Usage(1, 2),
        ]


async def test_what_the_server_refuses_is_left_out_from_then_on() -> None:
    def choosy(request: Any) -> Any:
        if "stream_options" in request.body:
            return Status(400, {"error": {"message": "Unknown field: stream_options"}})
        if request.body["stream"]:
            return Status(422, {"detail": [{"loc": ["body"], "msg": "stream is not supported"}]})
        return "Hi"

    async with RecordingModelServer([choosy] * 4) as server, client(server.base_url) as model:
        assert await answer(model) == [Text("Hi")]
        assert await answer(model) == [Text("Hi")]
    asked = [(request.body["stream"], "stream_options" in request.body) for request in server.requests]
    assert asked == [(True, True), (True, False), (False, False), (False, False)]


RESULT_AND_MORE: list[dict[str, Any]] = [
    {"role": "user", "content": "Look."},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": name, "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
            for name in ("toolu_01AbCdEf", "Ab3dEf6hI")
        ],
    },
    {"role": "tool", "tool_call_id": "toolu_01AbCdEf", "content": "one"},
    {"role": "tool", "tool_call_id": "Ab3dEf6hI", "content": "two"},
    {"role": "user", "content": "What a hook says."},
]


def strict(request: RecordedRequest) -> Status | str:
    """What Mistral refuses."""
    messages = request.body["messages"]
    for before, message in pairwise(messages):
        if (before["role"], message["role"]) == ("tool", "user"):
            return Status(400, {"message": "Unexpected role 'user' after role 'tool'", "code": "3230"})
    ids = [call["id"] for one in messages for call in one.get("tool_calls", ())]
    for one in [*ids, *(one["tool_call_id"] for one in messages if "tool_call_id" in one)]:
        if not re.fullmatch(r"[a-zA-Z0-9]{9}", one):
            said = f"Tool call id was {one} but must be a-z, A-Z, 0-9, with a length of 9."
            return Status(400, {"message": said, "code": "3280"})
    return "Done."


async def test_a_server_that_is_strict_about_order_and_ids_gets_what_it_wants() -> None:
    request = ModelRequest(model="m", messages=RESULT_AND_MORE)
    async with RecordingModelServer([strict] * 4) as server, client(server.base_url) as model:
        assert text_of(await answer(model, request)) == "Done."
        assert text_of(await answer(model, request)) == "Done."
    assert len(server.requests) == 4  # it is learned once
    sent = server.requests[-1].body["messages"]
    assert [one["role"] for one in sent] == ["user", "assistant", "tool", "tool", "assistant", "user"]
    ids = [call["id"] for call in sent[1]["tool_calls"]]
    assert ids == [one["tool_call_id"] for one in sent[2:4]]
    assert ids[1] == "Ab3dEf6hI"


@pytest.mark.parametrize("status", [400, 500])
async def test_a_template_that_counts_roles_past_the_results_gets_a_word_between(status: int) -> None:
    said = "After the optional system message, conversation roles must alternate user/assistant/user/assistant/..."
    request = ModelRequest(model="m", messages=RESULT_AND_MORE)
    async with RecordingModelServer([Status(status, said), "Done."]) as server, client(server.base_url) as model:
        assert text_of(await answer(model, request)) == "Done."
    assert [one["role"] for one in server.requests[1].body["messages"]][-2:] == ["assistant", "user"]


async def test_an_order_that_cannot_be_mended_here_is_reported() -> None:
    request = ModelRequest(model="m", messages=RESULT_AND_MORE[:1] * 2)
    said = "Conversation roles must alternate user/assistant/user/assistant/..."
    async with RecordingModelServer([Status(400, said)]) as server, client(server.base_url) as model:
        with pytest.raises(ModelError, match="must alternate"):
            await answer(model, request)
    assert len(server.requests) == 1


async def test_a_megabyte_is_streamed_whole() -> None:
    parts = [f"{number:07d} " * 512 for number in range(256)]
    events = Events([*(delta(content=part) for part in parts), delta("stop")])
    async with RecordingModelServer([events]) as server, client(server.base_url) as model:
        assert text_of(await answer(model)) == "".join(parts)


async def test_a_slow_reader_makes_the_server_wait() -> None:
    part = "x" * (1 << 20)
    events = Events([*(delta(content=part) for _ in range(30)), delta("stop")])
    limits = {"tiny": AnswerLimits(max_text_bytes=30 << 20)}
    async with RecordingModelServer([events]) as server, client(server.base_url, limits=limits) as model:
        size = 0
        async for piece in model.stream(REQUEST):
            await asyncio.sleep(0.001)
            size += len(piece.text) if isinstance(piece, Text) else 0
    assert size == 30 << 20


async def test_connections_are_used_again() -> None:
    replies = ["one", Whole("two"), Status(400, "no"), "three"]
    async with RecordingModelServer(replies) as server, client(server.base_url) as model:
        for _ in replies:
            await asyncio.gather(answer(model), return_exceptions=True)
    assert [request.connection for request in server.requests] == [1, 1, 1, 1]


@pytest.mark.parametrize("when", ["unused", "used again"])
async def test_a_kept_connection_that_the_server_closes_is_replaced_without_a_word(when: str) -> None:
    body = json.dumps({"choices": [{"message": {"content": "Hi"}}]})
    answered = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal answered
        await reader.readuntil(b"tiny")
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        answered += 1
        if when == "used again":
            with suppress(asyncio.IncompleteReadError):  # the last one is closed by the client
                await reader.readuntil(b"tiny")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1") as model:
        for number in (1, 2, 3):
            assert await answer(model) == [Text("Hi")]
            assert answered == number


@pytest.mark.parametrize("way", ["cancel", "close", "break"])
async def test_ending_early_closes_the_connection_at_once(way: str) -> None:
    events = Events([delta(content="Hel"), asyncio.Event()])
    async with RecordingModelServer([events]) as server, client(server.base_url) as model:
        if way == "cancel":
            shown: list[Delta] = []
            task = asyncio.create_task(collect(model, shown))
            await until(lambda: bool(shown))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        else:
            stream = model.stream(REQUEST)
            async for _ in stream:
                if way == "break":
                    break
                async with aclosing(stream):  # type: ignore[type-var]
                    break
            del stream
        await until(lambda: server.requests[0].disconnected)


async def test_the_model_can_be_used_after_close_and_in_another_loop() -> None:
    with RecordingModelServer.in_thread(["one", "two", "three"]) as server:
        model = OpenAIChatModel(base_url=server.base_url, environment={})
        assert await answer(model) == [Text("one")]
        await model.close()
        assert await answer(model) == [Text("two")]
        await model.close()


@pytest.mark.parametrize("module", ["wave_agent.models.openai_chat", "wave_agent.models.scripted"])
def test_importing_and_creating_loads_no_http_library(module: str) -> None:
    code = f"""
import sys, {module} as module
if hasattr(module, "OpenAIChatModel"):
    module.OpenAIChatModel(base_url="https://api.example.com/v1", api_key="x", environment={{}})
print(sorted({{"h11", "httpcore", "wave_agent.http.transport", "email"}} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_the_key_is_not_in_the_repr() -> None:
    model = OpenAIChatModel(base_url="https://me:pass@h/v1", api_key="sk-secret-key", environment={})
    assert repr(model) == "OpenAIChatModel(base_url='https://h/v1')"
    await model.close()
