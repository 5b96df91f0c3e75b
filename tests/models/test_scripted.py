"""The scripted model."""

import asyncio
import json
from itertools import repeat

import pytest

from tests.waiting import until
from wave_agent.errors import ModelError
from wave_agent.models.base import Delta, Model, ModelRequest, Reasoning, Text, ToolCall, Usage
from wave_agent.models.scripted import Reply, ScriptedModel, call

REQUEST = ModelRequest(model="any", messages=[{"role": "user", "content": "Hello"}])


async def collect(model: Model, shown: list[Delta]) -> None:
    async for delta in model.stream(REQUEST):
        shown.append(delta)  # noqa: PERF401 - what came before an error counts


async def answer(model: Model, request: ModelRequest = REQUEST) -> list[Delta]:
    return [delta async for delta in model.stream(request)]


async def test_text_comes_in_pieces_that_add_up() -> None:
    text = "  One two,\n\nthree.\n"
    deltas = await answer(ScriptedModel([text]))
    assert len(deltas) == 4
    assert "".join(delta.text for delta in deltas if isinstance(delta, Text)) == text


async def test_a_reply_is_streamed_as_models_do() -> None:
    bash = call("Bash", command="ls")
    reply = Reply("Fine.", [bash], reasoning="Hm.", usage=Usage(3, 4))
    assert await answer(ScriptedModel([reply])) == [Reasoning("Hm."), Text("Fine."), bash, Usage(3, 4)]


async def test_requests_are_kept_and_functions_see_them() -> None:
    model = ScriptedModel(repeat(lambda request: f"{request.model}!"))
    assert await answer(model) == [Text("any!")]
    assert await answer(model, ModelRequest(model="other", messages=[])) == [Text("other!")]
    assert [request.model for request in model.requests] == ["any", "other"]


async def test_an_exception_is_raised_also_from_a_function_and_after_text() -> None:
    down = ModelError("down")
    model = ScriptedModel([down, lambda _: down, Reply("Half", error=down)])
    for expected in ([], [], [Text("Half")]):
        shown: list[Delta] = []
        with pytest.raises(ModelError, match="down"):
            await collect(model, shown)
        assert shown == expected


async def test_running_out_of_replies_says_so() -> None:
    model = ScriptedModel(["one"])
    await answer(model)
    with pytest.raises(AssertionError, match=r"request 2 arrived, but the script has one reply; its last .*Hello"):
        await answer(model)


async def test_a_gate_holds_the_answer() -> None:
    gate = asyncio.Event()
    model = ScriptedModel([Reply("late", gate=gate)])
    task = asyncio.create_task(answer(model))
    await until(lambda: bool(model.requests))
    assert not task.done()
    gate.set()
    assert await task == [Text("late")]


def test_calls_have_ids_of_their_own_and_json_arguments() -> None:
    first, second = call("Read", file_path="é", name="x"), call("Read", file_path="é", name="x")
    assert first.id != second.id
    assert isinstance(first, ToolCall)
    assert json.loads(first.arguments) == {"file_path": "é", "name": "x"}


async def test_closing_is_noted() -> None:
    model = ScriptedModel([])
    await model.close()
    assert model.closed
