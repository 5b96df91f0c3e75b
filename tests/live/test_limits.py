"""What a run may cost and how it goes on when its model is overloaded. Otherwise somebody finds out on the bill."""

import json

import pytest

from tests.cli.project import Project, serving
from wave_agent.models.base import Usage
from wave_agent.testing import Reply, call
from wave_agent.testing.model_server import Status

READ = Reply(tool_calls=[call("Glob", pattern="*")], usage=Usage(100_000, 1_000, cache_read_tokens=40_000))
"""On gpt-5: 7.5 cents for plain input, 0.5 for cached, 1 for output."""
BUSY = Status(529, {"error": {"message": "Overloaded"}}, {"retry-after-ms": "1"})


@pytest.mark.chat_format  # looks at fields of this format
def test_a_run_costs_more_than_the_user_is_ready_to_pay(project: Project) -> None:
    with serving(READ, READ, READ, READ) as server:
        ran = project.wave(
            *("-p", "Look.", "--model", "gpt-5", "--max-cost", "0.15", "--output-format", "json"),
            *("--effort", "low", "--max-output-tokens", "900"),
            server=server,
        )
    result = json.loads(ran.stdout)
    assert [(one.body["reasoning_effort"], one.body["max_tokens"]) for one in server.requests] == [("low", 900)] * 2
    assert (ran.returncode, result["status"], result["turns"], result["cost_usd"]) == (4, "max_cost", 2, 0.18)
    assert result["usage"]["cache_read_tokens"] == 80_000
    assert "Stopped: the limit of $0.15 is reached ($0.18 spent)." in ran.stderr
    shown = project.wave("sessions", "show", result["session_id"]).stdout
    assert shown.endswith(
        "2 requests, 200,000 tokens in, 2,000 out; 80,000 from the prompt cache, which saved $0.0900; $0.18.\n"
    )


def test_a_limit_that_nobody_can_keep_is_silently_ignored(project: Project) -> None:
    with serving() as server:
        ran = project.wave("-p", "Look.", "--max-cost", "1", server=server)
        wrong = project.wave("-p", "Look.", "--max-cost", "nan", server=server)
    assert (ran.returncode, server.requests) == (1, [])
    assert '"models": {"test": {"prices": {"input": 3, "output": 15}}}' in ran.stderr
    assert (wrong.returncode, '"nan" is not valid: expected a number of US dollars' in wrong.stderr) == (2, True)


def test_an_overloaded_model_ends_a_run_that_another_could_finish(project: Project) -> None:
    with serving(*[BUSY] * 6, "Hello.") as server:
        ran = project.wave("-p", "Hi.", "--fallback-model", "small", server=server)
    assert [request.body["model"] for request in server.requests] == [*["test"] * 6, "small"]
    assert server.requests[-1].body["messages"] == server.requests[0].body["messages"]
    assert (ran.returncode, ran.stdout) == (0, "Hello.\n")
    assert "test is overloaded: small takes over for the rest of this session." in ran.stderr
