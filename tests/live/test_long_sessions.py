"""Sessions that are longer than the model's window."""

import json
from collections.abc import Callable, Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project, serving
from wave_agent.testing import Reply, call
from wave_agent.testing.model_server import RecordedRequest, RecordingModelServer, Status

PROMPT = "Find the line that says why, and never touch db.py."


def sent(request: RecordedRequest) -> str:
    return json.dumps(request.body["messages"])


def narrow(characters: int, refusal: Status, answers: Iterator[Any]) -> Callable[[RecordedRequest], Any]:
    """A server that takes in so many characters."""

    def answer(request: RecordedRequest) -> Any:
        if len(sent(request)) > characters:
            return refusal
        summary = request.body["messages"][-1]["content"].startswith("Summarise")
        return "SUMMARY" if summary else next(answers)

    return answer


LLAMA_CPP = {
    "error": {
        "code": 400,
        "message": "request (61203 tokens) exceeds the available context size (8192 tokens), try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 61203,
        "n_ctx": 8192,
    }
}
VLLM = {
    "object": "error",
    "message": "This model's maximum context length is 8192 tokens. However, you requested 70000 tokens.",
    "type": "BadRequestError",
    "code": 400,
}
LM_STUDIO = {"error": "The number of tokens to keep from the initial prompt is greater than the context length"}


@pytest.mark.parametrize(
    "refusal",
    [Status(400, LLAMA_CPP), Status(400, VLLM), Status(400, LM_STUDIO), Status(500, "Context size has been exceeded.")],
    ids=["llama.cpp", "vLLM", "LM Studio", "no numbers, 500"],
)
def test_results_of_one_answer_that_fill_the_window_end_the_run(project: Project, refusal: Status):
    for number in range(8):
        (project.directory / f"log{number}").write_text(f"line of log {number}\n" * 1000)
    reads = Reply(tool_calls=[call("Read", file_path=f"log{number}") for number in range(8)])
    answers = iter([reads, "Because of the comma."])
    with RecordingModelServer.in_thread(repeat(narrow(40_000, refusal, answers))) as server:
        ran = project.wave("-p", PROMPT, "--output-format", "json", server=server)
    result = json.loads(ran.stdout)
    assert (ran.returncode, result["status"], result["result"]) == (0, "completed", "Because of the comma.")
    assert result["turns"] == 2
    last = server.requests[-1].body["messages"]
    assert PROMPT in [message["content"] for message in last]
    results = [message["content"] for message in last if message["role"] == "tool"]
    assert len(results) == 8
    assert all("characters omitted here" in one and "call the tool again" in one for one in results)
    sizes = [len(sent(request)) for request in server.requests[1:]]
    assert sizes == sorted(sizes, reverse=True)
    assert "some long texts were shortened for it" in ran.stderr
    on_record = [block["result"] for message in result["messages"] for block in message["blocks"] if "result" in block]
    assert len(on_record) == 8
    assert not any("omitted here" in one for one in on_record)
    assert all(json.dumps(one)[1:-1] in Path(result["transcript_path"]).read_text() for one in on_record)


def test_a_user_whose_words_alone_are_too_long_waits_for_ever(project: Project):
    with RecordingModelServer.in_thread(repeat(Status(400, VLLM))) as server:
        ran = project.wave("-p", "why " * 20_000, "--output-format", "json", server=server)
    assert (ran.returncode, json.loads(ran.stdout)["status"]) == (1, "error")
    assert "maximum context length" in json.loads(ran.stdout)["error"]
    assert len(server.requests) < 4


def test_a_summary_forgets_what_the_user_said_and_what_was_to_be_done(project: Project):
    (project.directory / "a.txt").write_text("one\n")
    (project.directory.parent / "small.json").write_text('{"models": {"test": {"contextWindow": 20000}}}')
    todos = [{"content": "Look for the comma", "status": "in_progress"}]
    first = Reply(tool_calls=[call("TodoWrite", todos=todos), call("Read", file_path="a.txt")])
    long = "word " * 14_000
    flags = ("--settings", str(project.directory.parent / "small.json"), "--output-format", "json")
    summary = [Reply(tool_calls=[call("Read", file_path="a.txt")]), "SUMMARY"]
    with serving(first, long, *summary, "Second answer.", "Third answer.") as server:
        project.wave("-p", PROMPT, *flags, server=server)
        second = json.loads(project.wave("-c", "-p", "And now?", *flags, server=server).stdout)
        third = json.loads(project.wave("-c", "-p", "Sure?", *flags, server=server).stdout)
    _, before, asked, asked_again, after, resumed = [request.body for request in server.requests]
    assert (asked["messages"][0], asked["tools"]) == (after["messages"][0], after["tools"])
    assert asked["messages"][1 : len(before["messages"])] == before["messages"][1:]
    assert asked["messages"][-1]["content"].startswith("Summarise the conversation")
    assert "tools" not in asked_again
    assert asked_again["messages"] == asked["messages"]
    for request in (after, resumed):
        kept = request["messages"][1]["content"]
        assert "SUMMARY" in kept
        assert PROMPT in kept
        assert "[→] Look for the comma" in kept
        assert "a.txt" in kept
        assert long[:100] not in json.dumps(request)
    assert after["messages"][-1]["content"] == "And now?"
    assert second["result"] == "Second answer."
    assert third["result"] == "Third answer."
    assert long in json.dumps(third["messages"])
    reads = [block for message in third["messages"] for block in message["blocks"] if block.get("name") == "Read"]
    assert len(reads) == 1  # the call in place of a summary was not run
