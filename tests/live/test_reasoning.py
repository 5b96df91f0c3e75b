"""What the model thought, sent back to it."""

import json
from typing import Any

import pytest

from tests.cli.project import Project, serving
from wave_agent.testing import Reply, call
from wave_agent.testing.model_server import Events, RecordedRequest, Status, delta

pytestmark = pytest.mark.chat_format


def thoughts(request: RecordedRequest, field: str = "reasoning_content") -> list[Any]:
    return [one.get(field) for one in request.body["messages"] if one["role"] == "assistant"]


def thinking(field: str, thought: str, name: str, **arguments: Any) -> Events:
    made = call(name, **arguments)
    function = {"name": name, "arguments": made.arguments}
    asked = delta("tool_calls", tool_calls=[{"index": 0, "id": made.id, "type": "function", "function": function}])
    return Events([delta(**{field: thought[:2]}), delta(**{field: thought[2:]}), asked])


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_the_model_forgets_its_plan_between_two_calls(project: Project, field: str):
    look = [thinking(field, "First look.", "Glob", pattern="*"), thinking(field, "Then read.", "Glob", pattern="*.py")]
    with serving(*look, "Done.", "Again.") as server:
        project.wave("-p", "Go.", server=server)
        project.wave("-c", "-p", "And?", server=server)
    _, second, third, later = server.requests
    assert thoughts(second, field) == ["First look."]
    assert thoughts(third, field) == ["First look.", "Then read."]
    assert thoughts(later, field) == [None, None, None]
    assert "First look." not in json.dumps(later.body)


@pytest.mark.parametrize(
    "refusal",
    [
        Status(400, {"error": {"message": "'messages.2' : property 'reasoning_content' is unsupported"}}),
        Status(422, {"detail": [{"msg": "Extra inputs are not permitted: messages.2.assistant.reasoning_content"}]}),
    ],
    ids=["Groq", "Mistral"],
)
def test_a_server_that_refuses_reasoning_ends_the_run(project: Project, refusal: Status):
    plan = Reply(reasoning="A plan.", tool_calls=[call("Glob", pattern="*")])
    more = Reply(reasoning="More of it.", tool_calls=[call("Glob", pattern="*.py")])
    with serving(plan, refusal, more, "Done.") as server:
        ran = project.wave("-p", "Go.", "--output-format", "json", server=server)
    assert [thoughts(request) for request in server.requests] == [[], ["A plan."], [None], [None, None]]
    result = json.loads(ran.stdout)
    assert (result["status"], result["turns"]) == ("completed", 3)
    kept = [block for message in result["messages"] for block in message["blocks"] if block["type"] == "reasoning"]
    assert kept == [{"type": "reasoning", "content": "A plan."}, {"type": "reasoning", "content": "More of it."}]


def test_a_server_that_wants_all_reasoning_back_ends_the_run(project: Project):
    demand = Status(400, {"error": {"message": "The `reasoning_content` in the thinking mode must be passed back."}})
    plan = Reply(reasoning="A plan.", tool_calls=[call("Glob", pattern="*")])
    with serving("Hello.", plan, demand, "Done.") as server:
        project.wave("-p", "Hi.", server=server)
        ran = project.wave("-c", "-p", "Go.", server=server)
    assert [thoughts(request) for request in server.requests[1:]] == [[None], [None, "A plan."], ["", "A plan."]]
    assert (ran.returncode, ran.stdout) == (0, "Done.\n")
