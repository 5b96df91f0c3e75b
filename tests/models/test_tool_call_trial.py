"""One tool call on trial: a call, words, nothing, or an error in one line."""

import pytest

from wave_agent.models.openai_chat import OpenAIChatModel
from wave_agent.models.tool_call_trial import try_tool_call
from wave_agent.testing import RecordingModelServer, Reply, call
from wave_agent.testing.model_server import Hang, ServerScript, Status


@pytest.mark.parametrize(
    ("reply", "outcome", "detail"),
    [
        (Reply(tool_calls=[call("ping", word="hello")]), "call", 'ping {"word": "hello"}'),
        (Reply(text="Calling.", tool_calls=[call("ping", word="hi")]), "call", 'ping {"word": "hi"}'),
        ("pong\nand \x1b[2Jmore", "text", "pong and more"),
        (Reply(text=" "), "nothing", ""),
        (Status(401, {"error": {"message": "bad sk-secret"}}), "error", "answered 401: bad"),
        (Status(404, "<html>"), "error", "404"),
        (Hang(), "error", "m did not answer within 0.5 s"),
    ],
)
async def test_what_came_back_is_said_in_one_line(reply: ServerScript, outcome: str, detail: str) -> None:
    async with RecordingModelServer([reply]) as server:
        client = OpenAIChatModel(base_url=server.base_url, api_key="sk-secret", environment={})
        trial = await try_tool_call(client, "m", 0.5)
        await client.close()
    assert trial.outcome == outcome
    assert detail in trial.detail
    assert not {"\n", "\x1b"} & set(trial.detail)
    assert "sk-secret" not in trial.detail
    (request,) = server.requests
    assert [tool["function"]["name"] for tool in request.body["tools"]] == ["ping"]
