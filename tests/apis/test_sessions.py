"""Whole sessions on each API, against servers that refuse what the real ones refuse."""

import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.apis.conftest import Opening
from tests.apis.strict import StrictServer
from wave_agent.models.base import Usage
from wave_agent.models.scripted import call, signature
from wave_agent.testing.model_server import Events, RecordedRequest, RecordingModelServer, Reply, Status, delta

SIGNED = ("anthropic", "openai-responses")
"""The APIs that sign or encrypt reasoning."""


def reasoning_in(request: RecordedRequest) -> list[str]:
    """The thoughts that went back, each with its signature checked by the strict server."""
    if request.api == "anthropic":
        blocks = [block for turn in request.body["messages"] for block in turn["content"]]
        return [block["thinking"] for block in blocks if block["type"] == "thinking"]
    items = request.body["input"]
    return [item["summary"][0]["text"] for item in items if item["type"] == "reasoning"]


def thinking(thought: str, *calls: Any, text: str = "") -> Reply:
    return Reply(text, calls, thought, Usage(10, 5))


def glob(pattern: str = "*") -> Any:
    return call("Glob", pattern=pattern)


async def test_a_loop_of_calls_is_accepted_with_all_that_comes_between(api: str, open_agent: Opening) -> None:
    calls = [call("Bash", command="true"), call("Bash", command="printf '   '"), call("Nonsense"), glob()]
    replies = [Reply("Let me see.", calls), Reply(tool_calls=[call("Bash", command="echo again")]), " ", "Done."]
    hooks = {
        "UserPromptSubmit": [lambda _: {"additionalContext": "It is June."}],
        "PostToolUse": [lambda _: {"additionalContext": "Well done."}],
    }
    async with StrictServer(replies) as server, await open_agent(server, api=api, hooks=hooks) as agent:
        result = await agent.send_message("Go on.")
    assert (result.status, result.text, result.error) == ("completed", "Done.", None)
    assert {request.api for request in server.requests} == {api}


async def test_failed_calls_are_marked_as_errors_in_every_request_and_after_a_resume(open_agent: Opening) -> None:
    calls = [call("Bash", command="exit 3"), call("Nonsense"), glob()]
    thinks = thinking("Hm.", *calls)
    async with StrictServer([thinks, Reply(tool_calls=[glob("a*")]), "Done.", "Again."]) as server:
        async with await open_agent(server, api="anthropic") as agent:
            await agent.send_message("Go.")
        async with await open_agent(server, api="anthropic", resume=agent.session_id) as resumed:
            await resumed.send_message("And?")

    def results(request: RecordedRequest) -> list[Any]:
        blocks = [block for turn in request.body["messages"] for block in turn["content"]]
        found = [block for block in blocks if block["type"] == "tool_result"]
        return [{key: value for key, value in block.items() if key != "cache_control"} for block in found]

    second, third, fourth = (results(request) for request in server.requests[1:])
    assert [block.get("is_error") for block in second] == [True, True, None]
    assert third[:3] == fourth[:3] == second


@pytest.mark.parametrize("api", SIGNED)
async def test_reasoning_goes_back_through_the_loop_and_after_a_resume(api: str, open_agent: Opening) -> None:
    first = [thinking("One.", glob()), thinking("Two.", glob("a*"), text="Next."), thinking("Three.", text="Done.")]
    async with StrictServer([*first, "Again.", "Other."]) as server:
        async with await open_agent(server, api=api) as agent:
            assert (await agent.send_message("Go.")).text == "Done."
        async with await open_agent(server, api=api, resume=agent.session_id) as resumed:
            assert (await resumed.send_message("And?")).text == "Again."
        async with await open_agent(server, api=api, model="other", resume=agent.session_id) as other:
            assert (await other.send_message("And?")).text == "Other."
    sent = [reasoning_in(request) for request in server.requests]
    assert sent[:3] == [[], ["One."], ["One.", "Two."]]
    assert sent[3] == ["One.", "Two.", "Three."]
    assert sent[4] == []  # another model cannot read them


def gemini_call() -> Events:
    """A call with an id, a name and a field that no other API would accept."""
    function = {"name": "functions.Glob", "arguments": '{"pattern": "*"}'}
    extra = {"extra_content": {"google": {"thought_signature": "gemini"}}}
    made = {"index": 0, "id": f"functions.Glob:{'0' * 70}", "type": "function", "function": function, **extra}
    return Events([delta("tool_calls", tool_calls=[made])])


def needs_signatures(answer: Any) -> Callable[[RecordedRequest], Any]:
    """What Gemini's OpenAI-compatible endpoint does with a call that comes back without its signature."""

    def judged(request: RecordedRequest) -> Any:
        calls = [call for one in request.body["messages"] for call in one.get("tool_calls", [])]
        if all(call.get("extra_content") == {"google": {"thought_signature": "gemini"}} for call in calls):
            return answer
        missing = "Function call is missing a thought_signature in functionCall parts."
        return Status(400, [{"error": {"code": 400, "message": missing, "status": "INVALID_ARGUMENT"}}])

    return judged


async def test_gemini_gets_the_fields_of_its_calls_back(open_agent: Opening) -> None:
    again = gemini_call()
    replies = [gemini_call(), *map(needs_signatures, [again, "Done.", "Still."])]
    async with RecordingModelServer(replies) as server:
        async with await open_agent(server) as agent:
            assert (await agent.send_message("Go.")).text == "Done."
        async with await open_agent(server, resume=agent.session_id) as resumed:
            assert (await resumed.send_message("And?")).text == "Still."


OPEN_ROUTER_DETAIL = {
    "type": "reasoning.encrypted",
    "id": "call_1",
    "format": "google-gemini-v1",
    "index": 0,
    "data": "signed",
}


def signed_call(name: str) -> Events:
    """A call as OpenRouter passes it on: the signature is in another field of the message."""
    made = {"index": 0, "id": name, "type": "function", "function": {"name": "Glob", "arguments": '{"pattern": "*"}'}}
    thought = delta(reasoning="Hm.", reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "Hm."}])
    return Events([thought, delta(reasoning_details=[OPEN_ROUTER_DETAIL]), delta("tool_calls", tool_calls=[made])])


def needs_details(answer: Any) -> Callable[[RecordedRequest], Any]:
    def judged(request: RecordedRequest) -> Any:
        asking = [one for one in request.body["messages"] if one.get("tool_calls")]
        thought = {"type": "reasoning.text", "index": 0, "text": "Hm."}
        if all(
            one.get("reasoning_details") == [thought, OPEN_ROUTER_DETAIL] and "reasoning" not in one for one in asking
        ):
            return answer
        return Status(400, {"error": {"message": "Gemini models require OpenRouter reasoning details to be preserved"}})

    return judged


async def test_signed_reasoning_goes_back_in_the_field_that_it_came_in(open_agent: Opening) -> None:
    replies = [signed_call("call_1"), *map(needs_details, [signed_call("call_2"), "Done.", "Still."])]
    async with RecordingModelServer([*replies, "Other."]) as server:
        async with await open_agent(server) as agent:
            assert (await agent.send_message("Go.")).text == "Done."
        async with await open_agent(server, resume=agent.session_id) as resumed:
            assert (await resumed.send_message("And?")).text == "Still."
        async with await open_agent(server, resume=agent.session_id, model="other") as other:
            assert (await other.send_message("And?")).text == "Other."
    assert "reasoning_details" not in json.dumps(server.requests[-1].body)


async def test_signed_reasoning_that_is_refused_goes_back_no_more(open_agent: Opening) -> None:
    refusal = Status(400, {"error": {"message": "Unknown field: messages.2.reasoning_details"}})
    replies = [signed_call("call_1"), refusal, "Done."]
    async with RecordingModelServer(replies) as server, await open_agent(server) as agent:
        assert (await agent.send_message("Go.")).text == "Done."
    assert ["reasoning_details" in json.dumps(request.body) for request in server.requests] == [False, True, False]


async def test_a_server_that_refuses_its_own_fields_gets_them_no_more(open_agent: Opening) -> None:
    refusal = Status(422, {"detail": [{"msg": "Extra inputs are not permitted: tool_calls.0.extra_content"}]})
    async with RecordingModelServer([gemini_call(), refusal, "Done."]) as server, await open_agent(server) as agent:
        assert (await agent.send_message("Go.")).text == "Done."
    assert ["extra_content" in json.dumps(request.body) for request in server.requests] == [False, True, False]


async def test_a_session_goes_on_with_another_api(open_agent: Opening) -> None:
    """Each API gets what the others wrote, but nothing that they signed."""
    async with RecordingModelServer([gemini_call(), "One."]) as gemini, await open_agent(gemini) as agent:
        assert (await agent.send_message("Go.")).text == "One."
    rounds = {
        "anthropic": [thinking("Hm.", glob(), text="Let me see."), "Two."],
        "openai-responses": [thinking("Ah.", glob(), text="I see."), "Three."],
    }
    async with StrictServer([*rounds["anthropic"], *rounds["openai-responses"], "Four."]) as server:
        for api, text in (("anthropic", "Two."), ("openai-responses", "Three."), ("anthropic", "Four.")):
            async with await open_agent(server, api=api, resume=agent.session_id) as resumed:
                result = await resumed.send_message("Go.")
            assert (result.error, result.text) == (None, text)
    assert [reasoning_in(request) for request in server.requests] == [[], ["Hm."], [], ["Ah."], ["Hm."]]
    assert "gemini" not in json.dumps([request.body for request in server.requests])


def png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0\0\0\0")) + chunk(b"IEND", b"")
    )


async def test_an_image_reaches_the_model(api: str, open_agent: Opening, tmp_path: Path) -> None:
    (tmp_path / "project" / "a.png").write_bytes(png())
    replies = [Reply(tool_calls=[call("Read", file_path="a.png"), glob()]), "A dot."]
    seen = {"models": {"m": {"images": True}}}
    async with StrictServer(replies) as server, await open_agent(server, api=api, settings=seen) as agent:
        assert (await agent.send_message("What is it?")).text == "A dot."
    sent = json.dumps(server.requests[-1].body)
    form = {"anthropic": '"media_type": "image/png"', "openai-responses": "input_image", "openai-chat": "image_url"}
    assert form[api] in sent
    assert "iVBORw0KGgo" in sent


async def test_an_answer_that_reached_the_limit_is_continued(api: str, open_agent: Opening) -> None:
    half = Reply("The answer is forty-", cut="length")
    async with StrictServer([half, "two."]) as server, await open_agent(server, api=api) as agent:
        result = await agent.send_message("What is it?")
    assert result.text == "The answer is forty-two."


async def test_a_call_that_reached_the_limit_is_not_run(api: str, open_agent: Opening, tmp_path: Path) -> None:
    made = call("Write", file_path="half.txt", content="a long text")
    half = type(made)(made.id, made.name, made.arguments[:-8])
    replies = [Reply(tool_calls=[half], cut="length"), "In parts, then."]
    async with StrictServer(replies) as server, await open_agent(server, api=api) as agent:
        result = await agent.send_message("Write it.")
    assert result.status == "completed"
    assert "reached the output limit" in json.dumps(server.requests[1].body)
    assert not (tmp_path / "project" / "half.txt").exists()


async def test_a_refusal_of_the_server_ends_the_turn(api: str, open_agent: Opening) -> None:
    async with StrictServer([Reply(cut="content_filter")]) as server, await open_agent(server, api=api) as agent:
        result = await agent.send_message("Do evil.")
    assert (result.status, result.error) == ("error", "The server's content filter withheld the answer.")


async def test_an_answer_that_broke_off_is_kept_and_the_model_gives_the_rest(api: str, open_agent: Opening) -> None:
    broken = Reply("I will", reasoning="Hm.", tool_calls=[glob()], error=ConnectionError())
    async with StrictServer([broken, " look.", "Better."]) as server, await open_agent(server, api=api) as agent:
        first = await agent.send_message("Go.")
        second = await agent.send_message("Again.")
    assert (first.status, first.text, second.text) == ("completed", "I will look.", "Better.")
    assert "I will" in json.dumps(server.requests[1].body)


async def test_a_summary_is_made_and_followed(api: str, open_agent: Opening) -> None:
    replies = [thinking("Hm.", glob(), text="See."), "One.", "Two.", "The summary.", "Three."]
    if api == "openai-chat":
        replies[0] = Reply("See.", [glob()])
    async with StrictServer(replies) as server, await open_agent(server, api=api) as agent:
        await agent.send_message("Go.")
        await agent.send_message("On.")
        assert await agent.compact()
        assert (await agent.send_message("And?")).text == "Three."
    assert "The summary." in json.dumps(server.requests[-1].body)


async def test_usage_means_the_same(api: str, open_agent: Opening) -> None:
    used = Usage(100, 7, 60, 30) if api != "openai-chat" else Usage(100, 7, 60)
    async with StrictServer([Reply("Hi.", usage=used)]) as server, await open_agent(server, api=api) as agent:
        assert (await agent.send_message("Hi.")).usage == used


@pytest.mark.parametrize("api", SIGNED)
async def test_reasoning_that_the_server_no_longer_accepts_is_left_out(api: str, open_agent: Opening) -> None:
    message = "messages.1.content.0: Invalid `signature` in `thinking` block"
    if api == "openai-responses":
        message = "The encrypted content gAAA... for reasoning could not be verified."
    gone = Status(400, {"error": {"type": "invalid_request_error", "message": message}})
    replies = [thinking("Hm.", glob()), gone, thinking("Ah.", glob("a*")), "Done."]
    async with RecordingModelServer(replies) as server, await open_agent(server, api=api) as agent:
        result = await agent.send_message("Go.")
    assert (result.status, result.text) == ("completed", "Done.")
    assert [reasoning_in(request) for request in server.requests] == [[], ["Hm."], [], []]


ONE_CALL = {
    "openai-chat": ("parallel_tool_calls", False),
    "openai-responses": ("parallel_tool_calls", False),
    "anthropic": ("tool_choice", {"type": "auto", "disable_parallel_tool_use": True}),
}


async def test_a_small_model_is_asked_for_one_call_at_a_time(api: str, open_agent: Opening) -> None:
    name, value = ONE_CALL[api]
    replies = [Reply(tool_calls=[glob()]), "Done.", "The summary.", "Again."]
    small = {"models": {"m": {"profile": "small"}}}
    async with StrictServer(replies) as server, await open_agent(server, api=api, settings=small) as agent:
        assert (await agent.send_message("Go.")).text == "Done."
        assert await agent.compact()
        assert (await agent.send_message("And?")).text == "Again."
    assert [request.body.get(name) for request in server.requests] == [value] * 4
    async with StrictServer(["Hi."]) as server, await open_agent(server, api=api) as agent:
        await agent.send_message("Go.")
    assert name not in server.requests[0].body


async def test_a_server_that_does_not_know_the_limit_to_one_call_is_asked_without(
    api: str, open_agent: Opening
) -> None:
    name, _ = ONE_CALL[api]
    refusal = Status(400, {"error": {"type": "invalid_request_error", "message": f"{name}: Extra inputs"}})
    small = {"models": {"m": {"profile": "small"}}}
    replies = [refusal, "Hi.", "Ho."]
    async with RecordingModelServer(replies) as server, await open_agent(server, api=api, settings=small) as agent:
        assert (await agent.send_message("Go.")).text == "Hi."
        assert (await agent.send_message("Go.")).text == "Ho."
    assert [name in request.body for request in server.requests] == [True, False, False]


def test_the_stand_in_for_a_signature_depends_on_the_text() -> None:
    assert signature("a") != signature("b")
