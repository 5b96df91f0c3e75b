"""An agent and the agents that its commands start have one budget."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.project import WAVE, Project, serving
from wave_agent.agent.shared_budget import BudgetFile, SharedBudget
from wave_agent.errors import SettingsError
from wave_agent.models.base import Usage
from wave_agent.settings.inheritance import Budget
from wave_agent.testing import Reply, call

YOLO = ("--permission-mode", "bypassPermissions", "--output-format", "json")
USED = Usage(1000, 1000)
"""At the prices below, two dollars."""
PRICES = {"models": {"any": {"prices": {"input": 1000, "output": 1000}}}}


def answering(begin: str) -> list[Any]:
    """The agent itself runs `begin`; each agent below it goes on forever."""

    def answer(request: Any) -> Reply:
        text = json.dumps(request.body["messages"])
        command = "true" if "BELOW" in text.split("Go.")[0] or "Go." not in text else begin
        results = sum(one["role"] == "tool" for one in request.body["messages"])
        if command == begin and results:
            return Reply("Done.", usage=USED)
        return Reply(tool_calls=[call("Bash", command=f"{command} #{results}")], usage=USED)

    return [answer] * 40


@pytest.fixture
def project(tmp_path: Path) -> Project:
    found = Project(tmp_path)
    found.home.mkdir(parents=True, exist_ok=True)
    (found.home / "settings.json").write_text(json.dumps(PRICES))
    return found


NESTED = f"'{WAVE}' -p BELOW --model any >/dev/null 2>&1"


def test_requests_of_nested_agents_count_and_end_the_agent_above(project: Project) -> None:
    with serving(*answering(f"{NESTED}; {NESTED}; {NESTED}")) as server:
        ran = project.wave("-p", "Go.", "--model", "any", "--max-turns", "4", *YOLO, server=server)
    result = json.loads(ran.stdout)
    assert (len(server.requests), result["turns"], result["status"], ran.returncode) == (4, 4, "max_turns", 4)
    assert list((project.home / "budgets").iterdir()) == []


def test_agents_side_by_side_share_what_is_left_to_spend(project: Project) -> None:
    with serving(*answering(f"{NESTED} & {NESTED} & wait")) as server:
        ran = project.wave("-p", "Go.", "--model", "any", "--max-cost", "9", *YOLO, server=server)
    result = json.loads(ran.stdout)
    # Two requests may be under way at once when the limit is reached.
    assert 5 <= len(server.requests) <= 6
    assert result["cost_usd"] == 2 * len(server.requests)
    assert (result["status"], ran.returncode) == ("max_cost", 4)


def test_without_a_limit_the_result_tells_what_nested_agents_used(project: Project) -> None:
    nested = f"'{WAVE}' -p BELOW --model any --max-turns 3 >/dev/null 2>&1"
    with serving(*answering(nested)) as server:
        ran = project.wave("-p", "Go.", "--model", "any", *YOLO, server=server)
    result = json.loads(ran.stdout)
    assert (result["turns"], result["cost_usd"], result["status"]) == (5, 10.0, "completed")


def test_an_agent_that_cannot_be_counted_does_not_start(tmp_path: Path) -> None:
    limited, free = Budget(str(tmp_path / "gone"), max_turns=2), Budget(str(tmp_path / "gone"))
    with pytest.raises(SettingsError, match="cannot be counted"):
        SharedBudget("below", None, [limited]).open()
    shared = SharedBudget("below", None, [free])
    shared.open()
    assert (shared.turns_used_up, shared.cost_used_up) == (None, None)


def test_entries_are_summed_and_no_entry_lowers_what_was_used(tmp_path: Path) -> None:
    path = tmp_path / "budgets" / "one"
    above = SharedBudget("above", str(path))
    above.begin_prompt()
    above.add(requests=1, dollars=1.0)
    below = SharedBudget("below", None, [Budget(str(path), max_turns=3, max_cost=4.0)])
    below.open()
    below.add(requests=1, dollars=2.0)
    assert (below.turns_used_up, below.cost_used_up) == (None, None)
    assert (above.take_requests(), above.take_dollars()) == (1, 2.0)
    with path.open("ab") as file:
        file.write(b'{"by":"x","requests":-9,"dollars":-9}\nnonsense\n{"by":"y","dollars":1.0,"requests":1}\n')
    assert (above.take_requests(), above.take_dollars()) == (1, 1.0)
    assert (below.turns_used_up, below.cost_used_up) == (3, 4.0)
    path.write_bytes(b"")
    assert (above.take_requests(), above.take_dollars()) == (0, 0.0)
    below.add(requests=1)
    assert above.take_requests() == 1
    above.begin_prompt()  # requests are counted by prompt, costs by session
    assert (above.take_requests(), below.cost_used_up) == (0, 4.0)
    above.close()
    assert not path.exists()


def test_costs_that_are_unknown_use_a_limit_up(tmp_path: Path) -> None:
    path = tmp_path / "budgets" / "one"
    above = SharedBudget("above", str(path))
    above.begin_prompt()
    below = SharedBudget("below", None, [Budget(str(path), max_cost=4.0)])
    below.open()
    below.add(dollars=None)
    assert (below.cost_used_up, above.take_dollars(), above.take_dollars()) == (4.0, None, 0.0)


def test_a_file_that_cannot_be_written_any_more_uses_the_limit_up(tmp_path: Path) -> None:
    above = BudgetFile(str(tmp_path / "one"), "above", is_own=True)
    above.add(begins=True)
    below = SharedBudget("below", None, [Budget(str(tmp_path / "one"), max_turns=9)])
    below.open()
    below.close()
    (tmp_path / "one").unlink()
    below.add(requests=1)
    assert below.turns_used_up == 9
