"""The chat client against a real server on loopback: what goes wrong, and what the user is told."""

import asyncio
import socket
import time
from contextlib import suppress
from typing import Any

import pytest

from tests.models.serving import REQUEST, Patient, answer, client, collect, retries_of, text_of
from tests.waiting import until
from wave_agent.errors import ModelError
from wave_agent.http.retries import Backoff
from wave_agent.models.base import Delta, Reasoning, Retry, Text, ToolCall
from wave_agent.models.openai_chat import Deadlines, OpenAIChatModel
from wave_agent.models.scripted import call
from wave_agent.testing.model_server import Events, Hang, RecordingModelServer, Reply, Status, Whole, delta

BUSY = Status(429, {"error": {"message": "Too busy."}})


async def test_429_is_tried_again_after_the_time_that_the_server_asks_for() -> None:
    busy = Status(429, {"error": {"message": "Too busy."}}, {"Retry-After": "7"})
    sleep = Patient()
    async with RecordingModelServer([busy, "Hi"]) as server, client(server.base_url, sleep=sleep) as model:
        deltas = await answer(model)
    assert deltas == [Retry(f"{server.base_url} answered 429: Too busy", 7), Text("Hi")]
    assert sleep.slept == [7]


async def test_the_waits_grow_and_the_last_failure_is_told() -> None:
    sleep, shown = Patient(), list[Delta]()
    async with (
        RecordingModelServer([Status(500 + number, "down") for number in range(6)]) as server,
        client(server.base_url, sleep=sleep) as model,
    ):
        with pytest.raises(ModelError, match=r"answered 505: down \(tried 6 times\)\.$") as raised:
            await collect(model, shown)
    assert raised.value.status == 505
    assert sleep.slept == [0.5, 1, 2, 4, 8]
    assert [retry.seconds for retry in retries_of(shown)] == sleep.slept
    assert len(server.requests) == 6


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
async def test_passing_troubles_are_tried_again(status: int) -> None:
    async with RecordingModelServer([Status(status), "Hi"]) as server, client(server.base_url) as model:
        assert text_of(await answer(model)) == "Hi"


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, ""),
        (401, " Check the key in WAVE_API_KEY."),
        (403, ' Check that the key in WAVE_API_KEY may use the model "tiny".'),
        (404, ' Check the model ("tiny") and the base URL.'),
        (413, " The conversation is too long for this server."),
        (422, ""),
    ],
)
async def test_a_refusal_is_told_at_once_with_what_to_do(status: int, advice: str) -> None:
    refusal = Status(status, {"error": {"message": "Not\n you\x1b[31m."}})
    async with RecordingModelServer([refusal]) as server, client(server.base_url, api_key="a-key") as model:
        with pytest.raises(ModelError) as raised:
            await answer(model)
    assert str(raised.value) == f"{server.base_url} answered {status}: Not you.{advice}"
    assert raised.value.status == status
    assert len(server.requests) == 1


async def test_a_base_url_without_a_path_gets_a_hint() -> None:
    async with RecordingModelServer([Status(404)]) as server:
        bare = server.base_url.removesuffix("/v1")
        async with client(bare) as model:
            with pytest.raises(ModelError, match=rf"Most servers have it below {bare}/v1\.$"):
                await answer(model)


async def test_without_a_key_the_advice_is_to_set_one() -> None:
    async with RecordingModelServer([Status(401)]) as server, client(server.base_url) as model:
        with pytest.raises(ModelError, match=r"answered 401: no reason given\. Set WAVE_API_KEY\.$"):
            await answer(model)


async def test_an_exhausted_quota_is_not_tried_again() -> None:
    quota = Status(429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}})
    async with RecordingModelServer([quota]) as server, client(server.base_url) as model:
        with pytest.raises(ModelError, match="exceeded your quota"):
            await answer(model)
    assert len(server.requests) == 1


async def test_a_redirect_is_told() -> None:
    moved = Status(308, "", {"Location": "https://elsewhere.example/v1"})
    async with RecordingModelServer([moved]) as server, client(server.base_url) as model:
        with pytest.raises(ModelError, match=r"points to https://elsewhere\.example/v1\)\. Check the base URL\."):
            await answer(model)


async def test_the_key_is_hidden_in_what_the_server_says() -> None:
    key = "sk-very-secret"
    replies = [Status(500, f"bad {key}"), Status(401, f"no such key: {key}")]
    shown: list[Delta] = []
    async with RecordingModelServer(replies) as server, client(server.base_url, api_key=f"{key}\n") as model:
        with pytest.raises(ModelError, match=r"no such key: \[hidden\]") as raised:
            await collect(model, shown)
    assert server.requests[0].headers["authorization"] == f"Bearer {key}"
    assert key not in f"{raised.value} {shown}"


async def test_a_key_in_the_query_of_the_base_url_is_hidden_too() -> None:
    refused = Status(401, "no such key: very=secret or very%3Dsecret")
    async with RecordingModelServer([refused]) as server, client(f"{server.base_url}?key=very%3Dsecret&v=1") as model:
        with pytest.raises(ModelError, match=r"no such key: \[hidden\] or \[hidden\]"):
            await answer(model)
    assert server.requests[0].path.endswith("/chat/completions?key=very%3Dsecret&v=1")


@pytest.mark.parametrize("key", ["two\nlines", "ключ-ключ"])
def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ModelError, match="set WAVE_API_KEY again") as raised:
        OpenAIChatModel(base_url="http://h/v1", api_key=key, environment={})
    assert key not in str(raised.value)


async def test_a_header_that_cannot_be_sent_is_refused_without_showing_it() -> None:
    async with RecordingModelServer([]) as server, client(server.base_url, headers={"X-Key": "a\nb"}) as model:
        with pytest.raises(ModelError, match=r"^A header of the request contains invalid characters\.$"):
            await answer(model)


@pytest.mark.parametrize("reply", [Events([], "cut"), Events([delta(reasoning="Hm")], "cut"), Events([], "bare")])
async def test_a_stream_that_breaks_before_any_text_is_tried_again(reply: Events) -> None:
    async with RecordingModelServer([reply, "Hi"]) as server, client(server.base_url) as model:
        deltas = await answer(model)
    assert [delta for delta in deltas if not isinstance(delta, Reasoning)][1:] == [Text("Hi")]
    assert len(retries_of(deltas)) == 1


@pytest.mark.parametrize("end", ["cut", "bare"])
async def test_a_stream_that_breaks_after_text_keeps_what_was_shown(end: Any) -> None:
    events = Events([delta(content="Hel"), delta(tool_calls=[{"index": 0, "function": {"name": "Bash"}}])], end)
    shown: list[Delta] = []
    async with RecordingModelServer([events, "never"]) as server, client(server.base_url) as model:
        with pytest.raises(ModelError, match=r"^The answer broke off: .*Only what was shown arrived\.$"):
            await collect(model, shown)
    assert shown == [Text("Hel")]
    assert len(server.requests) == 1


async def test_a_cut_in_the_middle_of_calls_runs_none_of_them() -> None:
    calls = [call("Bash", command="rm -r build")]
    replies = [Reply(tool_calls=calls, error=ValueError()), Reply(tool_calls=calls)]
    async with RecordingModelServer(replies) as server, client(server.base_url) as model:
        deltas = await answer(model)
    assert [type(delta) for delta in deltas] == [Retry, ToolCall]


async def test_an_error_within_the_stream_is_told_in_the_servers_words() -> None:
    overloaded = {"error": {"message": "Overloaded", "code": 503}}
    refused = {"error": {"message": "Flagged", "code": 403, "metadata": {"raw": "by the provider"}}, "choices": []}
    async with (
        RecordingModelServer([Events([overloaded]), Events([refused])]) as server,
        client(server.base_url) as model,
    ):
        shown: list[Delta] = []
        with pytest.raises(ModelError, match=r"reported an error: Flagged \(by the provider\)") as raised:
            await collect(model, shown)
    assert raised.value.status == 403
    assert [retry.reason for retry in retries_of(shown)] == [f"{server.base_url} reported an error: Overloaded"]


async def test_nonsense_alone_is_an_error_that_shows_it() -> None:
    one_try = Backoff(attempts=1)
    async with RecordingModelServer([Events(["{oops"])]) as server, client(server.base_url, backoff=one_try) as model:
        with pytest.raises(ModelError, match=r'sent "\{oops" instead of an answer'):
            await answer(model)


async def test_a_web_page_is_an_error_about_the_base_url() -> None:
    page = Status(200, "<!doctype html><title>Welcome</title>", {"Content-Type": "text/html"})
    async with RecordingModelServer([page]) as server, client(server.base_url) as model:
        with pytest.raises(ModelError, match=r"sent a web page instead of an answer\. Check the base URL\."):
            await answer(model)


async def test_an_error_in_a_body_with_status_200() -> None:
    async with (
        RecordingModelServer([Status(200, {"error": {"message": "No", "code": 400}})]) as server,
        client(server.base_url) as model,
    ):
        with pytest.raises(ModelError, match="reported an error: No"):
            await answer(model)


@pytest.mark.parametrize("reply", [Hang(), Events([delta(role="assistant"), asyncio.Event()])])
async def test_a_silent_server_meets_the_idle_deadline(reply: Any) -> None:
    deadlines = Deadlines(idle=0.5)
    async with RecordingModelServer([reply, "Hi"]) as server, client(server.base_url, deadlines=deadlines) as model:
        deltas = await answer(model)
        await until(lambda: server.requests[0].disconnected)
    assert [retry.reason for retry in retries_of(deltas)] == ["no data from the server for 0.5 s"]
    assert text_of(deltas) == "Hi"


async def test_silence_after_text_is_an_error() -> None:
    events = Events([delta(content="Hel"), asyncio.Event()])
    async with (
        RecordingModelServer([events]) as server,
        client(server.base_url, deadlines=Deadlines(idle=0.5)) as model,
    ):
        with pytest.raises(ModelError, match=r"broke off: no data from the server for 0\.5 s"):
            await answer(model)


async def test_the_total_deadline_ends_all_tries() -> None:
    async with (
        RecordingModelServer([BUSY, Hang()]) as server,
        client(server.base_url, deadlines=Deadlines(total=1), backoff=Backoff(first=0.01)) as model,
    ):
        with pytest.raises(ModelError, match=r"exceeded its total deadline \(tried 2 times\)"):
            await answer(model)


async def test_a_wait_beyond_the_total_deadline_is_not_begun() -> None:
    sleep = Patient()
    busy = Status(429, "Too busy", {"Retry-After": "50"})
    async with (
        RecordingModelServer([busy]) as server,
        client(server.base_url, deadlines=Deadlines(total=40), sleep=sleep) as model,
    ):
        with pytest.raises(ModelError, match="429: Too busy"):
            await answer(model)
    assert sleep.slept == []


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_refused_connection_is_told_at_once(host: str) -> None:
    url = f"http://{host}:{free_port()}"
    async with client(f"{url}/v1") as model:
        with pytest.raises(ModelError) as raised:
            await answer(model)
    assert str(raised.value) == (f"Could not connect to {url}/v1 (connection refused). Is the server running at {url}?")


async def test_a_server_that_is_gone_after_it_answered_may_come_back() -> None:
    shown: list[Delta] = []
    async with RecordingModelServer(["one"]) as server, client(server.base_url) as model:
        await answer(model)
        await server.__aexit__()
        with pytest.raises(ModelError, match=r"connection refused\) \(tried 6 times\)"):
            await collect(model, shown)
    assert len(retries_of(shown)) == 5


async def test_an_unknown_host_is_told() -> None:
    async with client("http://nowhere.invalid/v1", backoff=Backoff(attempts=1)) as model:
        with pytest.raises(ModelError, match=r'unknown host "nowhere\.invalid"\)\. Check the name'):
            await answer(model)


async def test_a_server_that_speaks_no_http_is_told() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"tiny")
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with server, client(url, backoff=Backoff(attempts=2)) as model:
        with pytest.raises(ModelError, match=r"does not answer \(.*\) \(tried 2 times\)"):
            await answer(model)


async def test_closing_the_model_ends_a_request_under_way() -> None:
    async with (
        RecordingModelServer([Events([delta(role="assistant"), asyncio.Event()]), Hang()]) as server,
        client(server.base_url) as model,
    ):
        for number in (1, 2):
            task = asyncio.create_task(answer(model))
            await until(lambda number=number: len(server.requests) == number)
            await model.close()
            with pytest.raises(ModelError, match=r"^The model was closed\.$"):
                await task


async def test_cancelling_a_wait_ends_it() -> None:
    waiting = asyncio.Event()

    async def sleep(_: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    async with RecordingModelServer([BUSY]) as server, client(server.base_url, sleep=sleep) as model:
        task = asyncio.create_task(answer(model))
        await waiting.wait()
        task.cancel()
        begun = time.monotonic()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        assert time.monotonic() - begun < 5


async def test_a_whole_answer_that_is_cut_is_tried_again() -> None:
    cut = Status(
        200, '{"choices": [', {"Content-Type": "application/json", "Content-Length": "100", "Connection": "close"}
    )
    async with (
        RecordingModelServer([cut, Whole("Hi")]) as server,
        client(server.base_url, deadlines=Deadlines(idle=0.5)) as model,
    ):
        assert text_of(await answer(model, REQUEST)) == "Hi"


_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


async def _dripping(head: bytes, drop: bytes) -> asyncio.Server:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"tiny")
        writer.write(head)
        with suppress(ConnectionError, asyncio.CancelledError):
            while not writer.is_closing():
                writer.write(drop)
                await writer.drain()
                await asyncio.sleep(0.02)
        writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", 0)


@pytest.mark.parametrize(
    ("head", "drop", "deadlines", "why"),
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"x", Deadlines(idle=0.3), "No data"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", b"H", Deadlines(idle=0.3), "No data"),
        (_STREAM, b"d", Deadlines(idle=0.3), "not ended a line"),
        (
            _STREAM,
            b": on\n",
            Deadlines(total=0.5),
            "total deadline",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", b" ", Deadlines(total=0.5), "total deadline"),
    ],
    ids=["head", "interim", "line", "comments", "body"],
)
async def test_a_server_that_drips_meets_a_deadline(head: bytes, drop: bytes, deadlines: Deadlines, why: str) -> None:
    server = await _dripping(head, drop)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with server, client(url, deadlines=deadlines, backoff=Backoff(attempts=1)) as model, asyncio.timeout(5):
        with pytest.raises(ModelError, match=why):
            await answer(model)


@pytest.mark.parametrize("value", ["-5", "nan", "-inf", "1e999", "soon", "Thu, 01 Jan 1970 00:00:00 GMT", "", "0"])
async def test_a_wait_that_makes_no_sense_is_not_kept(value: str) -> None:
    patient = Patient()
    busy = Status(429, "busy", {"Retry-After": value})
    async with RecordingModelServer([busy, "fine"]) as server, client(server.base_url, sleep=patient) as model:
        assert text_of(await answer(model)) == "fine"
    assert patient.slept == [0.5]
