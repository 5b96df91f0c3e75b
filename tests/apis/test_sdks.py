"""The providers' own SDKs accept our test server, so that what our client reads there is what they would send."""

import json
from typing import Any

import anthropic
import openai
import pytest

from wave_agent.models.base import Usage
from wave_agent.models.scripted import call, signature
from wave_agent.testing.model_server import RecordingModelServer, Reply, Status, Whole

BASH = call("Bash", command="ls -la /tmp", description="lists it")
REPLY = Reply("All is well. Is it?", [BASH, call("Read", file_path="a")], "Let me see.", Usage(20, 7, 9, 4))
PROMPT: Any = [{"role": "user", "content": "Hi"}]


def claude(server: RecordingModelServer) -> anthropic.Anthropic:
    root = server.base_url.removesuffix("/v1")
    return anthropic.Anthropic(base_url=root, api_key="k", max_retries=0, _strict_response_validation=True)


def gpt(server: RecordingModelServer) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.base_url, api_key="k", max_retries=0, _strict_response_validation=True)


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_anthropic(streamed: bool) -> None:
    with RecordingModelServer.in_thread([REPLY]) as server, claude(server) as client:
        if streamed:
            with client.messages.stream(model="m", max_tokens=9, messages=PROMPT) as stream:
                message = stream.get_final_message()
        else:
            message = client.messages.create(model="m", max_tokens=9, messages=PROMPT)
    blocks: list[Any] = [*message.content]
    thinking, text, first, second = blocks
    assert thinking.type == "thinking"
    assert (thinking.thinking, thinking.signature) == ("Let me see.", signature("Let me see."))
    assert (text.type, text.text) == ("text", REPLY.text)
    assert first.type == second.type == "tool_use"
    assert (first.id, first.name, first.input) == (BASH.id, "Bash", json.loads(BASH.arguments))
    used = message.usage
    assert (used.input_tokens, used.cache_read_input_tokens, used.cache_creation_input_tokens) == (7, 9, 4)
    assert (used.output_tokens, message.stop_reason) == (7, "tool_use")


@pytest.mark.parametrize(("cut", "reason"), [("length", "max_tokens"), ("content_filter", "refusal")])
def test_anthropic_that_stops_early(cut: Any, reason: str) -> None:
    with (
        RecordingModelServer.in_thread([Reply("Well", cut=cut)]) as server,
        claude(server) as client,
        client.messages.stream(model="m", max_tokens=9, messages=PROMPT) as stream,
    ):
        assert stream.get_final_message().stop_reason == reason


def test_anthropic_overloaded() -> None:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "r"}
    with RecordingModelServer.in_thread([Status(529, body)]) as server, claude(server) as client:
        with pytest.raises(anthropic.APIStatusError, match="Overloaded") as refused:
            client.messages.create(model="m", max_tokens=9, messages=PROMPT)
        assert refused.value.status_code == 529


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_responses(streamed: bool) -> None:
    with RecordingModelServer.in_thread([REPLY]) as server, gpt(server) as client:
        if streamed:
            with client.responses.stream(model="m", input="Hi", store=False) as stream:
                response = stream.get_final_response()
        else:
            response = client.responses.create(model="m", input="Hi", store=False)
    items: list[Any] = [*response.output]
    reasoning, message, first, second = items
    assert reasoning.type == "reasoning"
    assert (reasoning.summary[0].text, reasoning.encrypted_content) == ("Let me see.", signature("Let me see."))
    assert message.type == "message"
    assert response.output_text == REPLY.text
    assert first.type == second.type == "function_call"
    assert (first.call_id, first.name, json.loads(first.arguments)) == (BASH.id, "Bash", json.loads(BASH.arguments))
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (20, 7)
    assert response.usage.input_tokens_details.cached_tokens == 9
    assert response.status == "completed"


def test_responses_that_stop_early() -> None:
    with (
        RecordingModelServer.in_thread([Reply("Well", cut="length")]) as server,
        gpt(server) as client,
        client.responses.create(model="m", input="Hi", stream=True) as stream,
    ):
        last: Any = [*stream][-1]
    assert last.type == "response.incomplete"
    assert last.response.incomplete_details is not None
    assert last.response.incomplete_details.reason == "max_output_tokens"


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_chat(streamed: bool) -> None:
    with RecordingModelServer.in_thread([REPLY if streamed else Whole(REPLY)]) as server, gpt(server) as client:
        if streamed:
            with client.chat.completions.stream(model="m", messages=PROMPT) as stream:
                completion = stream.get_final_completion()
        else:
            completion = client.chat.completions.create(model="m", messages=PROMPT)
    choice: Any = completion.choices[0]
    assert choice.message.content == REPLY.text
    assert choice.message.tool_calls
    assert choice.message.tool_calls[0].function.arguments == BASH.arguments
    assert choice.finish_reason == "tool_calls"
