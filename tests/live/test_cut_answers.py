"""Answers that end before the model was done."""

import json

from tests.cli.project import Project, serving
from wave_agent.testing import Reply, call
from wave_agent.testing.model_server import Events, delta


def fragment(index: int, name: str, arguments: str) -> dict[str, object]:
    function = {"name": name, "arguments": arguments}
    return delta(tool_calls=[{"index": index, "id": f"call_{index}", "type": "function", "function": function}])


def test_half_a_file_is_written_because_the_answer_was_cut(project: Project):
    cut = Events(
        [
            fragment(0, "Write", '{"file_path": "whole.txt", "content": "all of it"}'),
            fragment(1, "Write", '{"file_path": "half.txt", "content": "only half of"'),
            delta("length"),
        ]
    )
    with serving(cut, "In parts, then.") as server:
        ran = project.wave("-p", "Write.", "--permission-mode", "acceptEdits", "--output-format", "json", server=server)
    _, second = server.requests
    whole, half = [message["content"] for message in second.body["messages"] if message["role"] == "tool"]
    assert "whole.txt" in whole
    assert half.startswith("Not run: your answer reached the output limit")
    assert "smaller parts" in half
    assert (project.directory / "whole.txt").read_text() == "all of it"
    assert not (project.directory / "half.txt").exists()
    assert "reached the model's output limit. A tool call in it was incomplete" in ran.stderr
    assert json.loads(ran.stdout)["status"] == "completed"


def test_a_call_without_its_arguments_is_run_without_any(project: Project):
    cut = Events([fragment(0, "Bash", ""), delta("length")])
    with serving(cut, "Once more.") as server:
        project.wave("-p", "Go.", server=server)
    assert "output limit" in server.requests[1].body["messages"][-1]["content"]


def test_a_call_in_the_text_is_completed_by_guessing(project: Project):
    written = '<tool_call>{"name": "Write", "arguments": {"file_path": "half.txt", "content": "half"'
    with serving(Reply(written, cut="length"), "In parts, then.") as server:
        project.wave("-p", "Write.", "--permission-mode", "acceptEdits", server=server)
    assert "in the middle of a tool call" in server.requests[1].body["messages"][-1]["content"]
    assert not (project.directory / "half.txt").exists()


def test_a_text_that_was_cut_is_taken_for_the_whole_answer(project: Project):
    parts = [Reply("The answer is forty-", cut="length"), "two, as far as I know."]
    with serving(*parts) as server:
        ran = project.wave("-p", "What is the answer?", server=server)
    first, said = server.requests[1].body["messages"][-2:]
    assert (first["role"], first["content"]) == ("assistant", "The answer is forty-")
    assert "Continue exactly where it ends" in said["content"]
    assert ran.stdout == "The answer is forty-two, as far as I know.\n"
    assert ran.stderr.count("output limit") == 1


def test_a_model_that_never_comes_to_an_end_is_asked_for_ever(project: Project):
    parts = [Reply(f"{number} ", cut="length") for number in range(9)]
    with serving(*parts) as server:
        ran = project.wave("-p", "Count.", server=server)
    assert len(server.requests) == 4
    assert (ran.returncode, ran.stdout.strip()) == (0, "0 1 2 3")
    assert ran.stderr.count("output limit") == 4


def test_the_content_filter_ends_the_answer_in_silence(project: Project):
    with serving(Reply("I would", cut="content_filter"), Reply(cut="content_filter")) as server:
        some = project.wave("-p", "Say it.", server=server)
        none = project.wave("-p", "Say it.", "--output-format", "json", server=server)
    assert len(server.requests) == 2
    assert (some.returncode, some.stdout) == (0, "I would\n")
    assert "content filter" in some.stderr
    assert none.returncode == 1
    assert "content filter" in json.loads(none.stdout)["error"]


def test_an_answer_that_breaks_off_ends_the_session(project: Project):
    parts = [Reply("The answer is forty-", error=ConnectionError()), "two, as far as I know."]
    with serving(*parts) as server:
        ran = project.wave("-p", "What is the answer?", server=server)
    first, said = server.requests[1].body["messages"][-2:]
    assert (first["role"], first["content"]) == ("assistant", "The answer is forty-")
    assert said["content"].startswith("[From Wave, not from the user] Your answer broke off")
    assert (ran.returncode, ran.stdout) == (0, "The answer is forty-two, as far as I know.\n")
    assert "The answer broke off: " in ran.stderr


def test_a_call_in_an_answer_that_broke_off_is_run(project: Project):
    lost = Reply("First I touch it.", [call("Write", file_path="lost.txt", content="x")], error=ConnectionError())
    made = Reply(tool_calls=[call("Write", file_path="made.txt", content="x")])
    with serving(lost, made, "Done.") as server:
        ran = project.wave("-p", "Go.", "--permission-mode", "acceptEdits", server=server)
    assert "make it now" in server.requests[1].body["messages"][-1]["content"]
    assert (ran.returncode, ran.stdout) == (0, "Done.\n")
    assert (project.directory / "made.txt").exists()
    assert not (project.directory / "lost.txt").exists()


def test_answers_that_keep_breaking_off_are_asked_for_for_ever(project: Project):
    parts = [Reply(f"{number} ", error=ConnectionError()) for number in range(9)]
    with serving(*parts) as server:
        ran = project.wave("-p", "Count.", "--output-format", "json", server=server)
    assert len(server.requests) == 4
    assert (ran.returncode, json.loads(ran.stdout)["status"]) == (1, "error")
