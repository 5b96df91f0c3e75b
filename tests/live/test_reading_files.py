"""What a model gets to see of files that are not plain text, and what it learns from a wrong call."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import Project, serving
from tests.tools.pictures import png
from wave_agent import Agent
from wave_agent.models.scripted import Reply, ScriptedModel, call
from wave_agent.testing.model_server import Status

PICTURE = png(30, 20)
URL = f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"


def user_settings(project: Project, **settings: Any) -> None:
    project.home.mkdir(exist_ok=True)
    (project.home / "settings.json").write_text(json.dumps(settings))


def images(request: Any) -> list[str]:
    """The images in a request, and that nothing else is a list of parts."""
    lists = [message for message in request.body["messages"] if isinstance(message["content"], list)]
    assert all(message["role"] == "user" for message in lists)
    parts = [part for message in lists for part in message["content"]]
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


@pytest.fixture
def pictured(project: Project) -> Project:
    (project.directory / "a.png").write_bytes(PICTURE)
    (project.directory / "b.txt").write_text("text\n")
    return project


def test_a_model_that_can_see_is_shown_the_image_also_after_a_resume(pictured: Project) -> None:
    user_settings(pictured, models={"test": {"images": True}})
    both = Reply(tool_calls=[call("Read", file_path="a.png"), call("Read", file_path="b.txt")])
    with serving(both, "A black box.", "Still black.") as server:
        first = pictured.wave("-p", "Look", "--output-format", "json", server=server)
        again = pictured.wave("-p", "Again", "-c", server=server)
    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    roles = [message["role"] for message in server.requests[1].body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user"]  # all results before the image
    assert images(server.requests[1]) == images(server.requests[2]) == [URL]
    assert "PNG image, 30 × 20 pixels" in server.requests[1].body["messages"][3]["content"]
    told = json.loads(first.stdout)
    assert "base64" not in json.dumps(told["messages"])
    lines = Path(told["transcript_path"]).read_text().splitlines()
    kept = [json.loads(line)["message"]["content"][0] for line in lines if '"tool_result"' in line]
    image = next(one["content"] for one in kept if isinstance(one["content"], list))  # reads end in any order
    assert [part["type"] for part in image] == ["text", "image"]


LLAMA_CPP = {"GET /v1/models": {"data": [{"id": "test", "owned_by": "llamacpp"}]}}


@pytest.mark.chat_format  # other APIs ask in another way
@pytest.mark.parametrize("sees", [True, False])
def test_the_server_is_asked_whether_its_model_can_see(pictured: Project, sees: bool) -> None:
    props: Mapping[str, Any] = {"default_generation_settings": {"n_ctx": 32768}, "modalities": {"vision": sees}}
    look = Reply(tool_calls=[call("Read", file_path="a.png")])
    with serving(look, "Seen.", elsewhere={**LLAMA_CPP, "GET /props": props}) as server:
        assert pictured.wave("-p", "Look", server=server).returncode == 0
    assert images(server.requests[1]) == ([URL] if sees else [])
    result = server.requests[1].body["messages"][3]["content"]
    assert ("this model is not known to accept images" in result) is not sees


@pytest.mark.parametrize(
    "refusal",
    [
        Status(400, {"error": {"message": "test is not a multimodal model"}}),
        Status(500, {"error": {"message": "image input is not supported - hint: you may need to provide the mmproj"}}),
    ],
    ids=["as vLLM", "as llama.cpp"],
)
def test_a_server_that_refuses_the_image_does_not_end_the_turn(pictured: Project, refusal: Status) -> None:
    user_settings(pictured, models={"test": {"images": True}})
    look = Reply(tool_calls=[call("Read", file_path="a.png")])
    with serving(look, refusal, look, "I cannot see it.") as server:
        done = pictured.wave("-p", "Look", server=server)
    assert (done.returncode, done.stdout) == (0, "I cannot see it.\n"), done.stderr
    assert [images(request) for request in server.requests] == [[], [URL], [], []]
    assert "The server refused a request with images; no more images will be sent" in done.stderr
    last = server.requests[3].body["messages"]
    assert "this model is not known to accept images" in last[-1]["content"]  # the second look was not sent in vain


def test_a_hook_can_withhold_an_image(pictured: Project) -> None:
    user_settings(pictured, models={"test": {"images": True}})
    answer = {"hookSpecificOutput": {"updatedToolOutput": "not for you"}}
    (pictured.directory / "hook.sh").write_text(f"cat > seen.json; echo '{json.dumps(answer)}'")
    pictured.settings({"hooks": {"PostToolUse": [{"matcher": "Read", "hooks": [{"command": "sh hook.sh"}]}]}})
    with serving(Reply(tool_calls=[call("Read", file_path="a.png")]), "Well.") as server:
        done = pictured.wave("-p", "Look", "--trust", "--output-format", "json", server=server)
    assert done.returncode == 0, done.stderr
    assert images(server.requests[1]) == []
    assert "not for you" in server.requests[1].body["messages"][3]["content"]
    seen = json.loads((pictured.directory / "seen.json").read_text())["tool_response"]
    assert (seen["type"], seen["file"]["type"]) == ("image", "image/png")
    assert base64.b64encode(PICTURE).decode() not in Path(json.loads(done.stdout)["transcript_path"]).read_text()


async def test_images_that_do_not_fit_are_left_out_of_a_summary(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PICTURE)
    model = ScriptedModel([Reply(tool_calls=[call("Read", file_path="a.png")]), "Black.", "A summary.", "Yes."])
    settings = {"models": {"m": {"images": True, "contextWindow": 1000, "profile": "full"}}}
    async with await Agent.create(workdir=tmp_path, model="m", model_client=model, settings=settings) as agent:
        await agent.send_message("Look")
        assert "data:image/png" in str(model.requests[1].messages)
        await agent.compact()
        await agent.send_message("Sure?")
    assert "data:image/png" not in str(model.requests[2].messages)
    assert "Its image was omitted here" in str(model.requests[2].messages)
    assert "data:image/png" not in str(model.requests[3].messages)


def test_wrong_calls_are_answered_with_what_to_do_instead(project: Project) -> None:
    directory = project.directory
    (directory / "data.bin").write_bytes(b"\0\1\2")
    (directory / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    (directory / "a.py").write_text("x = 1\ny = 2\n")
    cell = {"cell_type": "code", "source": ["print(1)"], "outputs": [{"output_type": "stream", "text": "z" * 9000}]}
    (directory / "n.ipynb").write_text(json.dumps({"cells": [cell]}))
    calls = [
        call("read_file", path="a.py"),
        call("Grep", pattern="y", path="a.py"),
        call("Grep", pattern="y", output_mode="lines"),
        call("Read", path="a.py"),
        call("Read", file_path="n.ipynb"),
        call("Read", file_path="data.bin"),
        call("Write", file_path="data.bin", content="gone"),
        call("Read", file_path="dos.txt"),
        call("Write", file_path="dos.txt", content="three\nfour\n"),
    ]
    with serving(Reply(tool_calls=calls), "Done.") as server:
        done = project.wave("-p", "Go", "--permission-mode", "acceptEdits", server=server)
    assert done.returncode == 0, done.stderr
    assert "$ref" not in json.dumps(server.requests[0].body["tools"])
    got = [message["content"] for message in server.requests[1].body["messages"] if message["role"] == "tool"]
    assert got[0].startswith('There is no tool "read_file". Call one of these now: ')
    assert got[1] == "a.py:2:y = 2"
    assert "The values are content, count, files_with_matches" in got[2]
    assert "The fields are file_path, offset, limit" in got[3]
    assert "[Cell 1: code, id cell-0]" in got[4]
    assert "characters of output omitted" in got[4]
    assert "has not been read since this session was started" in got[6]
    assert (directory / "data.bin").read_bytes() == b"\0\1\2"
    assert (directory / "dos.txt").read_bytes() == b"three\r\nfour\r\n"
