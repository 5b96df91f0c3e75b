"""The shipped model server, asked with the standard library's own client."""

import asyncio
import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.waiting import until
from wave_agent.errors import ModelError
from wave_agent.models.base import Usage
from wave_agent.models.scripted import call
from wave_agent.testing.model_server import Events, Hang, RecordingModelServer, Reply, Status, Whole, delta

BODY = {"model": "any", "messages": [{"role": "user", "content": "Hi"}], "stream": True}


Connect = Callable[[RecordingModelServer], http.client.HTTPConnection]


@pytest.fixture
def connect() -> Iterator[Connect]:
    with ExitStack() as stack:

        def open_connection(server: RecordingModelServer) -> http.client.HTTPConnection:
            netloc = urlsplit(server.base_url).netloc
            return stack.enter_context(closing(http.client.HTTPConnection(netloc, timeout=20)))

        yield open_connection


def post(
    connection: http.client.HTTPConnection, body: Any = BODY, path: str = "/v1/chat/completions"
) -> tuple[int, str]:
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, response.read().decode()


def chunks(stream: str) -> list[Any]:
    events = [line.removeprefix("data: ") for line in stream.split("\n\n") if line]
    assert events.pop() == "[DONE]"
    return [json.loads(event) for event in events]


def test_a_stream_in_the_chat_format(connect: Connect) -> None:
    reply = Reply("All is well.", [call("Bash", command="ls -la")], "Hm.", Usage(3, 4))
    with RecordingModelServer.in_thread([reply]) as server:
        status, text = post(connect(server))
    assert status == 200
    *with_choice, usage = chunks(text)
    deltas = [chunk["choices"][0]["delta"] for chunk in with_choice]
    assert "".join(part.get("content", "") for part in deltas) == "All is well."
    assert "".join(part.get("reasoning_content", "") for part in deltas) == "Hm."
    fragments = [part["tool_calls"][0] for part in deltas if "tool_calls" in part]
    assert len(fragments) == 5
    assert fragments[0]["function"]["name"] == "Bash"
    assert "".join(fragment["function"]["arguments"] for fragment in fragments) == '{"command": "ls -la"}'
    assert with_choice[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert usage["usage"]["total_tokens"] == 7


def test_requests_are_recorded_and_connections_kept(connect: Connect) -> None:
    with RecordingModelServer.in_thread(["one", lambda request: request.body["model"]]) as server:
        connection = connect(server)
        post(connection)
        assert chunks(post(connection)[1])[1]["choices"][0]["delta"]["content"] == "any"
        post(connect(server))
    first, second, third = server.requests
    assert first.body == BODY
    assert first.headers["content-type"] == "application/json"
    assert (first.connection, second.connection, third.connection) == (1, 1, 2)


@pytest.mark.parametrize("body", [BODY | {"stream": False}, BODY], ids=["asked for", "not asked for"])
def test_one_json_body(connect: Connect, body: dict[str, Any]) -> None:
    reply = Reply("Yes", [call("Read")], "Hm", Usage(1, 2))
    with RecordingModelServer.in_thread([Whole(reply) if body["stream"] else reply]) as server:
        answer = json.loads(post(connect(server), body)[1])
    message = answer["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("Yes", "Hm")
    assert message["tool_calls"][0]["function"] == {"name": "Read", "arguments": "{}"}
    assert answer["usage"]["prompt_tokens"] == 1


def test_statuses_and_errors(connect: Connect) -> None:
    def broken(_: object) -> str:
        raise ValueError("oops")

    replies = [Status(418, "tea", {"X-Pot": "short"}), ValueError("bad"), ModelError("full", status=503), broken]
    with RecordingModelServer.in_thread(replies) as server:
        connection = connect(server)
        assert post(connection) == (418, "tea")
        answers = [post(connection) for _ in range(4)]
        assert post(connection, path="/v1/other")[0] == 404
    assert [status for status, _ in answers] == [500, 503, 400, 400]
    assert "ValueError('oops')" in answers[2][1]
    assert "request 5 arrived, but the script has 4 replies" in answers[3][1]
    assert len(server.requests) == 5


@pytest.mark.parametrize("reply", [Events([delta(content="Hal")], "cut"), Reply("Hal", error=ValueError())])
def test_a_cut_breaks_the_stream(connect: Connect, reply: Events | Reply) -> None:
    with RecordingModelServer.in_thread([reply]) as server, pytest.raises(http.client.IncompleteRead) as raised:
        post(connect(server))
    assert b'"Hal"' in raised.value.partial


def test_a_stream_made_by_hand(connect: Connect) -> None:
    with RecordingModelServer.in_thread([Events(["{oops", b": comment\n\n", delta("stop")], "bare")]) as server:
        text = post(connect(server))[1]
    assert text.startswith("data: {oops\n\n: comment\n\ndata: {")
    assert "DONE" not in text


def test_a_gate_is_released_from_another_thread(connect: Connect) -> None:
    gate = asyncio.Event()
    with RecordingModelServer.in_thread([Events([delta(content="a"), gate, delta("stop")])]) as server:
        connection = connect(server)
        connection.request("POST", "/v1/chat/completions", json.dumps(BODY))
        response = connection.getresponse()
        assert b'"a"' in response.readline()
        threading.Timer(0, server.release, [gate]).start()
        assert b"[DONE]" in response.read()
    assert not server.requests[0].disconnected


@pytest.mark.parametrize("reply", [Hang(), Reply("x", gate=asyncio.Event())])
async def test_a_client_that_goes_away_is_noticed(reply: Hang | Reply) -> None:
    async with RecordingModelServer([reply]) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", urlsplit(server.base_url).port)
        body = json.dumps(BODY).encode()
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        await until(lambda: len(server.requests) == 1)
        assert server.requests[0].body == BODY
        assert not server.requests[0].disconnected
        writer.close()
        await until(lambda: server.requests[0].disconnected)


async def test_leaving_the_block_ends_connections_that_wait() -> None:
    async with RecordingModelServer([Hang()]) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(server.base_url).port)
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
        await until(lambda: len(server.requests) == 1)
    assert await reader.read() == b""
    writer.close()
